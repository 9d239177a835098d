//! `approvals`: decisions that a component waits for.
//!
//! A pack's request is written in the pack's transaction. A policy has only a snapshot, so its request goes to the
//! sitting and is written with the row of the judged call.

use serde_json::{Map, Value};
use tollgate_core::clock::Clock;
use tollgate_core::effect::Effect;
use tollgate_core::text;
use tollgate_sdk::approvals::{MAX_KEY, MAX_NAME, MAX_NOTE};
use tollgate_sdk::{
    Answerers, Answering, Approval, ApprovalError, ApprovalRequest, ApprovalStatus, NextCall,
};
use tollgate_store::storage::{
    Answered, Namespace, NewApproval, PolicyRow, Session, StoreError, StoreFailure, StoreResult,
};
use wasmtime::component::{HasData, Linker};

use crate::bindings::tollgate::host::approvals::{self, Request, Status};
use crate::bindings::tollgate::host::component;
use crate::facts::{Facts, Transactions};
use crate::side_effects::SideEffects;
use crate::sitting::Sitting;

pub(crate) struct View<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) effect: Effect,
    pub(crate) session: &'a Session,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) transactions: Transactions,
    pub(crate) side_effects: &'a mut SideEffects,
    pub(crate) namespace: &'a Namespace,
}

impl approvals::Host for View<'_> {
    fn ask(&mut self, request: Request) -> Result<approvals::Approval, ApprovalError> {
        let request = read(request)?;
        request.check()?;
        let asked = match self.judging()? {
            Some(sitting) => {
                let (seen, row) = self.session.as_host(|| self.ask_on(&request, Some(sitting)))?;
                if let Some(new) = row {
                    sitting
                        .write(PolicyRow::Ask(Box::new(new)))
                        .map_err(|err| ApprovalError::Invalid(err.to_string()))?;
                }
                seen
            }
            None => self.in_transaction(|| {
                let (seen, row) = self.ask_on(&request, None)?;
                if let Some(new) = row {
                    self.stored(self.session.approvals().insert(&new))?;
                }
                Ok(seen)
            })?,
        };
        Ok(wire(asked))
    }

    fn find(&mut self, key: String) -> Result<Option<approvals::Approval>, ApprovalError> {
        let asked = self.facts.sitting.as_ref();
        if let Some(new) = asked.and_then(|sitting| sitting.asked(self.namespace.pack(), &key)) {
            return Ok(Some(wire(new.seen())));
        }
        let now_ms = self.clock.now_ms();
        let session = self.session;
        let newest = session.as_host(|| session.approvals().newest(self.namespace.pack(), &key));
        Ok(self.stored(newest)?.map(|found| wire(found.seen(now_ms))))
    }

    fn settle(
        &mut self,
        key: String,
        status: Status,
        by: Option<String>,
        note: Option<String>,
    ) -> Result<bool, ApprovalError> {
        let answer = self.answer(status, by, note)?;
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(ApprovalError::Invalid(format!(
                "the key has {} bytes, but must have 1 to {MAX_KEY}",
                key.len()
            )));
        }
        let component = self.namespace.pack();
        if let Some(sitting) = self.judging()? {
            let session = self.session;
            let newest = session.as_host(|| session.approvals().newest(component, &key));
            let is_open = self
                .stored(newest)?
                .is_some_and(|newest| newest.status(answer.at_ms) == ApprovalStatus::Pending);
            if is_open {
                let component = component.to_owned();
                sitting
                    .write(PolicyRow::Settle {
                        component,
                        key,
                        answer,
                    })
                    .map_err(|err| ApprovalError::Invalid(err.to_string()))?;
            }
            return Ok(is_open);
        }
        let before = *self.side_effects;
        self.side_effects.change_rows(self.transactions);
        let settled =
            self.in_transaction(|| self.stored(self.session.approvals().settle(component, &key, &answer)));
        if matches!(settled, Ok(false)) {
            *self.side_effects = before;
        }
        settled
    }

    fn convert_error(&mut self, err: ApprovalError) -> wasmtime::Result<approvals::Error> {
        Ok(match err {
            ApprovalError::ReadOnly => approvals::Error::ReadOnly,
            ApprovalError::Invalid(why) => approvals::Error::Invalid(why),
            ApprovalError::Full(limit) => approvals::Error::Full(limit),
            ApprovalError::Internal => approvals::Error::Internal,
        })
    }
}

/// Unauthenticated name, in a form that cannot look like an identity.
fn unproven(name: String) -> String {
    match name.contains(':') {
        true => format!("claimed:{name}"),
        false => name,
    }
}

impl View<'_> {
    /// Sitting of a policy that judges a call before it runs. Other callers that may not write get an error.
    fn judging(&self) -> Result<Option<&Sitting>, ApprovalError> {
        if self.facts.is_policy {
            return Ok(self.facts.sitting.as_ref());
        }
        match self.effect {
            Effect::Read => Err(ApprovalError::ReadOnly),
            Effect::Write | Effect::Run => Ok(None),
        }
    }

    /// Current state of the request, and the row to write if it is new.
    fn ask_on(
        &self,
        request: &ApprovalRequest,
        sitting: Option<&Sitting>,
    ) -> Result<(Approval, Option<NewApproval>), ApprovalError> {
        let component = self.namespace.pack();
        let now_ms = self.clock.now_ms();
        if let Some(new) = sitting.and_then(|sitting| sitting.asked(component, &request.key)) {
            return Ok((new.seen(), None));
        }
        let newest = self.stored(self.session.approvals().newest(component, &request.key))?;
        if let Some(newest) = newest.as_ref().filter(|newest| newest.stands(request, now_ms)) {
            let seen = newest.seen(now_ms);
            let is_open = seen.status == ApprovalStatus::Pending;
            // Writing it again changes nothing, but records which open request the call is about.
            let again = sitting.filter(|_| is_open).map(|_| NewApproval {
                id: seen.id.clone(),
                component: component.to_owned(),
                request: request.clone(),
                by: newest.by.clone(),
                at_ms: seen.asked_at_ms,
            });
            return Ok((seen, again));
        }
        let by = &self.facts.asked_by;
        let full = self
            .session
            .approvals()
            .full(component, by.identity.as_deref(), now_ms);
        if let Some(limit) = self.stored(full)? {
            return Err(ApprovalError::Full(limit));
        }
        let round = newest.map_or(1, |newest| newest.round.saturating_add(1));
        let new = NewApproval::new(component, request.clone(), by.clone(), (round, now_ms));
        Ok((new.seen(), Some(new)))
    }

    /// Decision that a component reports.
    fn answer(
        &self,
        status: Status,
        by: Option<String>,
        note: Option<String>,
    ) -> Result<Answered, ApprovalError> {
        let status = match status {
            Status::Approved => ApprovalStatus::Approved,
            Status::Rejected => ApprovalStatus::Rejected,
            Status::Withdrawn => ApprovalStatus::Withdrawn,
            Status::Pending | Status::Expired => {
                return Err(ApprovalError::Invalid(
                    "a decision must be approved, rejected or withdrawn".to_owned(),
                ));
            }
        };
        let cut = |said: String, max: usize| text::clean_prose(text::cut(&said, max));
        let caller = &self.facts.asked_by;
        // An authenticated approver is shown by its identity, whatever name the call gives.
        let proven = caller
            .identity
            .as_ref()
            .map(|identity| identity.as_str().to_owned());
        let by = proven
            .or_else(|| by.map(|by| unproven(cut(by, MAX_NAME))))
            .or_else(|| caller.actor.clone());
        Ok(Answered {
            status,
            by,
            identity: caller.identity.clone(),
            op_id: caller.op_id.clone(),
            note: note.map(|note| cut(note, MAX_NOTE)),
            at_ms: self.clock.now_ms(),
        })
    }

    /// Runs `body` in the call's own transaction, in the open one of a `run` call, or in a short one.
    fn in_transaction<T>(&self, body: impl FnOnce() -> Result<T, ApprovalError>) -> Result<T, ApprovalError> {
        let is_short = self.effect == Effect::Run && self.transactions != Transactions::Open;
        self.session.as_host(|| {
            if !is_short {
                // SQLite may have rolled back the transaction.
                return if self.session.in_transaction() {
                    body()
                } else {
                    Err(ApprovalError::Internal)
                };
            }
            self.stored(self.session.begin_write())?;
            let result = body().and_then(|value| {
                self.stored(self.session.commit())?;
                Ok(value)
            });
            if self.session.in_transaction() {
                self.stored(self.session.rollback())?;
            }
            result
        })
    }

    /// Converts the result of a statement. A policy that judges a result has only a snapshot, unless the call writes.
    fn stored<T>(&self, result: StoreResult<T>) -> Result<T, ApprovalError> {
        result.map_err(|err: StoreError| {
            if err.failure() == StoreFailure::NotWritable && self.facts.is_policy {
                return ApprovalError::ReadOnly;
            }
            tracing::error!(op_id = self.facts.op_id, %err, "a component's request for approval failed");
            ApprovalError::Internal
        })
    }
}

/// Request in the SDK's types. Hidden characters are removed from texts that people see.
fn read(request: Request) -> Result<ApprovalRequest, ApprovalError> {
    let detail = object(&request.detail, "the detail")?;
    let answering = request
        .answering
        .map(|answering| {
            Ok(Answering {
                approve: call(&answering.approve)?,
                reject: answering.reject.as_ref().map(call).transpose()?,
                by: answering.by,
                note: answering.note,
            })
        })
        .transpose()?;
    Ok(ApprovalRequest {
        key: request.key,
        title: text::clean(&request.title),
        detail,
        requested_by: request.requested_by.map(|name| text::clean(&name)),
        renew: request.renew,
        until_ms: request.until,
        answering,
        answerers: request.answerers.map(|answerers| Answerers {
            names: answerers.names,
            proven: answerers.proven,
            another: answerers.another,
        }),
    })
}

fn call(wanted: &component::NextCall) -> Result<NextCall, ApprovalError> {
    Ok(NextCall {
        tool: wanted.tool.clone(),
        arguments: object(&wanted.arguments, "`arguments` of `answering`")?,
    })
}

fn object(json: &str, what: &str) -> Result<Map<String, Value>, ApprovalError> {
    serde_json::from_str(json)
        .map_err(|err| ApprovalError::Invalid(format!("{what} is not a JSON object: {err}")))
}

fn wire(approval: Approval) -> approvals::Approval {
    approvals::Approval {
        id: approval.id,
        key: approval.key,
        status: match approval.status {
            ApprovalStatus::Pending => Status::Pending,
            ApprovalStatus::Approved => Status::Approved,
            ApprovalStatus::Rejected => Status::Rejected,
            ApprovalStatus::Withdrawn => Status::Withdrawn,
            ApprovalStatus::Expired => Status::Expired,
        },
        requested_by: approval.requested_by,
        requester: approval.requester,
        answered_by: approval.answered_by,
        approver: approval.approver,
        note: approval.note,
        asked_at: approval.asked_at_ms,
        answered_at: approval.answered_at_ms,
    }
}

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    approvals::add_to_linker::<_, HasView>(linker, view)
}
