//! In-memory approval requests for native tests.

use std::cell::{Cell, RefCell};

use crate::approvals::check_key;
use crate::{Approval, ApprovalError, ApprovalRequest, ApprovalStatus, Effect};

/// Maximum number of open requests of a component. The host has the same limit.
const MAX_PENDING: usize = 200;

/// Requests of a session, with their answers.
#[derive(Default)]
pub(super) struct Requests {
    all: RefCell<Vec<(ApprovalRequest, Approval)>>,
    /// State at the start of the call or of its open transaction.
    before: RefCell<Vec<(ApprovalRequest, Approval)>>,
    before_transaction: RefCell<Vec<(ApprovalRequest, Approval)>>,
    effect: Cell<Option<Effect>>,
    /// True for a policy. Its requests are kept although it only reads.
    is_policy: Cell<bool>,
    /// Identity of the caller.
    pub(super) identity: RefCell<Option<String>>,
}

impl Requests {
    pub(super) fn of_policy(&self) {
        self.is_policy.set(true);
    }

    pub(super) fn enter(&self, effect: Effect) {
        self.effect.set(Some(effect));
        self.before.replace(self.all.borrow().clone());
    }

    pub(super) fn leave(&self, kept: bool) {
        if !kept && self.effect.get() == Some(Effect::Write) {
            self.all.replace(self.before.take());
        }
        self.effect.set(None);
    }

    pub(super) fn begin(&self) {
        self.before_transaction.replace(self.all.borrow().clone());
    }

    pub(super) fn roll_back(&self) {
        self.all.replace(self.before_transaction.take());
    }

    pub(super) fn all(&self) -> Vec<(ApprovalRequest, Approval)> {
        self.all.borrow().clone()
    }

    fn may_write(&self) -> Result<(), ApprovalError> {
        let is_reader = self.effect.get() == Some(Effect::Read) && !self.is_policy.get();
        if is_reader {
            Err(ApprovalError::ReadOnly)
        } else {
            Ok(())
        }
    }

    pub(super) fn ask(
        &self,
        request: &ApprovalRequest,
        now_ms: i64,
        new_id: impl FnOnce() -> String,
    ) -> Result<Approval, ApprovalError> {
        self.may_write()?;
        request.check()?;
        if let Some((known, approval)) = self.newest(&request.key, now_ms) {
            let is_same = (&known.title, &known.detail, &known.answering, &known.answerers)
                == (
                    &request.title,
                    &request.detail,
                    &request.answering,
                    &request.answerers,
                );
            match approval.status {
                ApprovalStatus::Pending if is_same => return Ok(approval),
                ApprovalStatus::Pending => {
                    self.answer(&request.key, ApprovalStatus::Withdrawn, None, None, now_ms);
                }
                ApprovalStatus::Approved | ApprovalStatus::Rejected if is_same && !request.renew => {
                    return Ok(approval);
                }
                _ => {}
            }
        }
        let pending = self
            .all
            .borrow()
            .iter()
            .filter(|(_, one)| one.status == ApprovalStatus::Pending)
            .count();
        if pending >= MAX_PENDING {
            return Err(ApprovalError::Full(
                u32::try_from(MAX_PENDING).unwrap_or(u32::MAX),
            ));
        }
        let identity = self.identity.borrow().clone();
        let approval = Approval {
            id: new_id(),
            key: request.key.clone(),
            status: ApprovalStatus::Pending,
            requested_by: request.requested_by.clone().or_else(|| identity.clone()),
            requester: identity,
            answered_by: None,
            approver: None,
            note: None,
            asked_at_ms: now_ms,
            answered_at_ms: None,
        };
        self.all.borrow_mut().push((request.clone(), approval.clone()));
        Ok(approval)
    }

    pub(super) fn find(&self, key: &str, now_ms: i64) -> Result<Option<Approval>, ApprovalError> {
        check_key(key)?;
        Ok(self.newest(key, now_ms).map(|(_, approval)| approval))
    }

    pub(super) fn settle(
        &self,
        key: &str,
        status: ApprovalStatus,
        (by, note): (Option<&str>, Option<&str>),
        now_ms: i64,
    ) -> Result<bool, ApprovalError> {
        self.may_write()?;
        check_key(key)?;
        if matches!(status, ApprovalStatus::Pending | ApprovalStatus::Expired) {
            return Err(ApprovalError::Invalid(format!(
                "{} is not a decision",
                status.as_str()
            )));
        }
        Ok(self.answer(key, status, by, note, now_ms))
    }

    /// Answers the open request with a key, if there is one.
    pub(super) fn answer(
        &self,
        key: &str,
        status: ApprovalStatus,
        by: Option<&str>,
        note: Option<&str>,
        now_ms: i64,
    ) -> bool {
        let Some((_, open)) = self
            .newest(key, now_ms)
            .filter(|(_, one)| one.status == ApprovalStatus::Pending)
        else {
            return false;
        };
        let identity = self.identity.borrow().clone();
        let mut all = self.all.borrow_mut();
        let found = all.iter_mut().map(|(_, approval)| approval);
        for approval in found.filter(|approval| approval.id == open.id) {
            approval.status = status;
            approval.answered_by = by.map(str::to_owned).or_else(|| identity.clone());
            approval.approver = by.filter(|by| by.starts_with("token:")).map(str::to_owned);
            approval.note = note.map(str::to_owned);
            approval.answered_at_ms = Some(now_ms);
        }
        true
    }

    /// Newest request with a key, in its current state.
    fn newest(&self, key: &str, now_ms: i64) -> Option<(ApprovalRequest, Approval)> {
        let all = self.all.borrow();
        let (request, mut approval) = all.iter().rev().find(|(request, _)| request.key == key)?.clone();
        let is_late = request.until_ms.is_some_and(|until| now_ms >= until);
        if is_late && approval.status == ApprovalStatus::Pending {
            approval.status = ApprovalStatus::Expired;
        }
        Some((request, approval))
    }
}
