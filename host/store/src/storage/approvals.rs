//! Decisions that components wait for, and their answers: one list over all components and hosts.

use rusqlite::{OptionalExtension, Row, params, params_from_iter};
use serde_json::{Map, Value, json};
use tollgate_core::hash;
use tollgate_sdk::{
    Answerers, Answering, Approval, ApprovalRequest, ApprovalStatus, NextCall, canonical_json,
};

use super::error::StoreResult;
use super::schema::exactly_one;
use super::session::Session;

/// Most requests of one component that are open at a time.
pub const MAX_PENDING: u32 = 200;
/// Most of those that one identity asked for.
pub const MAX_PENDING_OF_ONE: u32 = MAX_PENDING / 2;
/// Time for which answered requests are remembered, in milliseconds: a year and some.
const REMEMBERED_MS: i64 = 400 * 24 * 3_600_000;
/// Most forgotten requests for each new one.
const FORGOTTEN_BATCH: u32 = 16;

/// Columns of a request, for [`stored`].
const COLUMNS: &str = "id, component, key, round, title, detail, answering, answerers, status, op_id, envelope_id,
    tool, requested_by, identity, connection, asked_at, until_ms, answered_by, answered_identity, answered_op, note,
    answered_at";

/// Call in which a component asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedBy {
    /// Operation.
    pub op_id: String,
    /// Envelope around it.
    pub envelope_id: Option<String>,
    /// Its tool.
    pub tool: String,
    /// Caller as the ledger names it.
    pub actor: Option<String>,
    /// Caller, if the transport proved one.
    pub identity: Option<String>,
    /// Connection of the call.
    pub connection: String,
}

/// A request that is not stored yet.
#[derive(Debug, Clone, PartialEq)]
pub struct NewApproval {
    /// Id that follows from the content, so that of hosts that ask the same at the same time both know it.
    pub id: String,
    /// Component that asks.
    pub component: String,
    /// Content of the request.
    pub request: ApprovalRequest,
    /// Call in which it is asked.
    pub by: AskedBy,
    /// Time in milliseconds since 1970 UTC.
    pub at_ms: i64,
}

/// A row that a policy wants written in the commit that holds the record of the call that it judged.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyRow {
    /// A request for approval.
    Ask(Box<NewApproval>),
    /// The decision on one.
    Settle {
        /// Policy that asked.
        component: String,
        /// Key of the request.
        key: String,
        /// Decision.
        answer: Answered,
    },
}

/// Decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Decision: approved, rejected or withdrawn.
    pub status: ApprovalStatus,
    /// Name of the approver.
    pub by: Option<String>,
    /// Identity of the approver, if the transport proved one.
    pub identity: Option<String>,
    /// Operation of the answer.
    pub op_id: String,
    /// Note of the approver.
    pub note: Option<String>,
    /// Time in milliseconds since 1970 UTC.
    pub at_ms: i64,
}

/// A request as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredApproval {
    /// The request and its answer, as its component sees them. A request whose time is over is still pending here.
    pub approval: Approval,
    /// Component that asked.
    pub component: String,
    /// Number of the request among those with the same key.
    pub round: i64,
    /// Title for people.
    pub title: String,
    /// Content of the decision.
    pub detail: Map<String, Value>,
    /// Calls that answer, if the component answers itself.
    pub answering: Option<Answering>,
    /// Restrictions of who may answer.
    pub answerers: Option<Answerers>,
    /// Call in which it was asked.
    pub by: AskedBy,
    /// Time from which it is not open any more.
    pub until_ms: Option<i64>,
    /// Operation of the answer.
    pub answered_op: Option<String>,
}

impl StoredApproval {
    /// State of the request at a time.
    pub fn status(&self, now_ms: i64) -> ApprovalStatus {
        let is_late = self.until_ms.is_some_and(|until| now_ms >= until);
        match self.approval.status {
            ApprovalStatus::Pending if is_late => ApprovalStatus::Expired,
            status => status,
        }
    }

    /// The request as its component sees it at a time.
    pub fn seen(&self, now_ms: i64) -> Approval {
        Approval {
            status: self.status(now_ms),
            ..self.approval.clone()
        }
    }

    /// True if a request has the same content.
    fn is_same(&self, request: &ApprovalRequest) -> bool {
        (&self.title, &self.detail, &self.answering, &self.answerers)
            == (
                &request.title,
                &request.detail,
                &request.answering,
                &request.answerers,
            )
    }

    /// True if a request is this one at a time, and need not be asked anew.
    pub fn stands(&self, request: &ApprovalRequest, now_ms: i64) -> bool {
        self.is_same(request)
            && match self.status(now_ms) {
                ApprovalStatus::Pending => true,
                ApprovalStatus::Approved | ApprovalStatus::Rejected => !request.renew,
                ApprovalStatus::Withdrawn | ApprovalStatus::Expired => false,
            }
    }
}

/// Requests of a list.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Status; expired ones are no longer pending.
    pub status: Option<ApprovalStatus>,
    /// Component that asked.
    pub component: Option<String>,
    /// Identity that asked.
    pub identity: Option<String>,
    /// Only requests after this one, in the order of the list.
    pub after: Option<String>,
    /// Time in milliseconds since 1970 UTC.
    pub now_ms: i64,
}

impl NewApproval {
    /// A request that would be the `round`th with its key.
    pub fn new(
        component: &str,
        request: ApprovalRequest,
        by: AskedBy,
        (round, at_ms): (i64, i64),
    ) -> NewApproval {
        let content = json!([
            component,
            request.key,
            request.title,
            request.detail,
            request.answering.as_ref().map(answering_json),
            request.answerers.as_ref().map(answerers_json),
            round,
        ]);
        let digest = hash::sha256_hex(canonical_json(&content).as_bytes());
        let id = format!("apv_{}", digest.get(..26).unwrap_or(&digest));
        NewApproval {
            id,
            component: component.to_owned(),
            request,
            by,
            at_ms,
        }
    }

    /// The request as its component sees it before anybody answers.
    pub fn seen(&self) -> Approval {
        Approval {
            id: self.id.clone(),
            key: self.request.key.clone(),
            status: ApprovalStatus::Pending,
            requested_by: self
                .request
                .requested_by
                .clone()
                .or_else(|| self.by.actor.clone()),
            requester: self.by.identity.clone(),
            answered_by: None,
            approver: None,
            note: None,
            asked_at_ms: self.at_ms,
            answered_at_ms: None,
        }
    }
}

fn call_json(call: &NextCall) -> Value {
    json!({"tool": call.tool, "arguments": call.arguments})
}

fn answering_json(answering: &Answering) -> Value {
    json!({
        "approve": call_json(&answering.approve),
        "reject": answering.reject.as_ref().map(call_json),
        "by": answering.by,
        "note": answering.note,
    })
}

fn answerers_json(answerers: &Answerers) -> Value {
    json!({"names": answerers.names, "proven": answerers.proven, "another": answerers.another})
}

fn read_answering(text: &str) -> Option<Answering> {
    let read: Value = serde_json::from_str(text).ok()?;
    let call = |name: &str| serde_json::from_value(read.get(name)?.clone()).ok();
    let word = |name: &str| Some(read.get(name)?.as_str()?.to_owned());
    Some(Answering {
        approve: call("approve")?,
        reject: call("reject"),
        by: word("by"),
        note: word("note"),
    })
}

fn read_answerers(text: &str) -> Option<Answerers> {
    let read: Value = serde_json::from_str(text).ok()?;
    let flag = |name: &str| read.get(name).and_then(Value::as_bool).unwrap_or(true);
    Some(Answerers {
        names: serde_json::from_value(read.get("names")?.clone()).ok()?,
        proven: flag("proven"),
        another: flag("another"),
    })
}

fn read_status(text: &str) -> ApprovalStatus {
    match text {
        "approved" => ApprovalStatus::Approved,
        "rejected" => ApprovalStatus::Rejected,
        "withdrawn" => ApprovalStatus::Withdrawn,
        _ => ApprovalStatus::Pending,
    }
}

/// Restrictions that cannot be read let nobody answer.
fn nobody() -> Answerers {
    Answerers {
        names: vec![String::new()],
        proven: true,
        another: true,
    }
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredApproval> {
    let detail: String = row.get(5)?;
    let answering: Option<String> = row.get(6)?;
    let answerers: Option<String> = row.get(7)?;
    let status: String = row.get(8)?;
    Ok(StoredApproval {
        approval: Approval {
            id: row.get(0)?,
            key: row.get(2)?,
            status: read_status(&status),
            requested_by: row.get(12)?,
            requester: row.get(13)?,
            answered_by: row.get(17)?,
            approver: row.get(18)?,
            note: row.get(20)?,
            asked_at_ms: row.get(15)?,
            answered_at_ms: row.get(21)?,
        },
        component: row.get(1)?,
        round: row.get(3)?,
        title: row.get(4)?,
        detail: serde_json::from_str(&detail).unwrap_or_default(),
        answering: answering.as_deref().and_then(read_answering),
        answerers: answerers
            .as_deref()
            .map(|text| read_answerers(text).unwrap_or_else(nobody)),
        by: AskedBy {
            op_id: row.get(9)?,
            envelope_id: row.get(10)?,
            tool: row.get(11)?,
            actor: row.get(12)?,
            identity: row.get(13)?,
            connection: row.get(14)?,
        },
        until_ms: row.get(16)?,
        answered_op: row.get(19)?,
    })
}

impl Session {
    /// The request with an id.
    pub fn approval(&self, id: &str) -> StoreResult<Option<StoredApproval>> {
        Ok(self
            .db
            .prepare_cached(&format!("SELECT {COLUMNS} FROM core_approvals WHERE id = ?1"))?
            .query_row([id], stored)
            .optional()?)
    }

    /// The newest request of a component with a key.
    pub fn newest_approval(&self, component: &str, key: &str) -> StoreResult<Option<StoredApproval>> {
        Ok(self
            .db
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM core_approvals WHERE component = ?1 AND key = ?2 ORDER BY round DESC LIMIT 1"
            ))?
            .query_row([component, key], stored)
            .optional()?)
    }

    /// The limit that one more request would exceed, if it would exceed one.
    pub fn approvals_full(
        &self,
        component: &str,
        identity: Option<&str>,
        now_ms: i64,
    ) -> StoreResult<Option<u32>> {
        let (all, own): (u32, u32) = self
            .db
            .prepare_cached(
                "SELECT count(*), coalesce(sum(identity IS ?2), 0) FROM core_approvals
                 WHERE status = 'pending' AND component = ?1 AND (until_ms IS NULL OR until_ms > ?3)",
            )?
            .query_row(params![component, identity, now_ms], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        Ok(if all >= MAX_PENDING {
            Some(MAX_PENDING)
        } else {
            (identity.is_some() && own >= MAX_PENDING_OF_ONE).then_some(MAX_PENDING_OF_ONE)
        })
    }

    /// Stores a request, and withdraws an open one with the same key. Does nothing if the request is there. Wants a
    /// write transaction.
    pub fn add_approval(&self, new: &NewApproval) -> StoreResult<()> {
        if self.approval(&new.id)?.is_some() {
            return Ok(());
        }
        self.forget_approvals(new.at_ms)?;
        let withdrawn = Answered {
            status: ApprovalStatus::Withdrawn,
            by: None,
            identity: None,
            op_id: new.by.op_id.clone(),
            note: Some("asked anew with another content".to_owned()),
            at_ms: new.at_ms,
        };
        let newest = self.newest_approval(&new.component, &new.request.key)?;
        if let Some(newest) = &newest {
            self.answer_approval(&newest.approval.id, &withdrawn)?;
        }
        let request = &new.request;
        let seen = new.seen();
        Ok(self
            .db
            .prepare_cached(
                "INSERT INTO core_approvals (id, component, key, round, title, detail, answering, answerers, status,
                     op_id, envelope_id, tool, requested_by, identity, connection, asked_at, until_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
            )?
            .execute(params![
                new.id,
                new.component,
                request.key,
                newest.map_or(1, |newest| newest.round.saturating_add(1)),
                request.title,
                Value::Object(request.detail.clone()).to_string(),
                request.answering.as_ref().map(|answering| answering_json(answering).to_string()),
                request.answerers.as_ref().map(|answerers| answerers_json(answerers).to_string()),
                new.by.op_id,
                new.by.envelope_id,
                new.by.tool,
                seen.requested_by,
                new.by.identity,
                new.by.connection,
                new.at_ms,
                request.until_ms,
            ])
            .and_then(exactly_one)?)
    }

    /// Answers an open request. Whether this was the first answer, and in time. Wants a write transaction.
    pub fn answer_approval(&self, id: &str, answer: &Answered) -> StoreResult<bool> {
        let answered = self
            .db
            .prepare_cached(
                "UPDATE core_approvals SET status = ?2, answered_by = ?3, answered_identity = ?4, answered_op = ?5,
                     note = ?6, answered_at = ?7
                 WHERE id = ?1 AND status = 'pending' AND (until_ms IS NULL OR until_ms > ?7 OR ?2 = 'withdrawn')",
            )?
            .execute(params![
                id,
                answer.status.as_str(),
                answer.by,
                answer.identity,
                answer.op_id,
                answer.note,
                answer.at_ms,
            ])?;
        Ok(answered == 1)
    }

    /// Answers the open request of a component with a key, if there is one. Wants a write transaction.
    pub fn settle_approval(&self, component: &str, key: &str, answer: &Answered) -> StoreResult<bool> {
        match self.newest_approval(component, key)? {
            Some(newest) => self.answer_approval(&newest.approval.id, answer),
            None => Ok(false),
        }
    }

    /// Writes a row that a policy wants written.
    pub(super) fn write_policy_row(&self, row: &PolicyRow) -> StoreResult<()> {
        match row {
            // The limit was checked on the snapshot. Calls that were judged at the same time exceed it by a few.
            PolicyRow::Ask(new) => self.add_approval(new),
            PolicyRow::Settle {
                component,
                key,
                answer,
            } => self.settle_approval(component, key, answer).map(drop),
        }
    }

    /// Requests that fit a filter, the oldest first.
    pub fn approvals(&self, filter: &ApprovalFilter, limit: u32) -> StoreResult<Vec<StoredApproval>> {
        let open = "(until_ms IS NULL OR until_ms > ?1)";
        let status = match filter.status {
            None => "1".to_owned(),
            Some(ApprovalStatus::Pending) => format!("status = 'pending' AND {open}"),
            Some(ApprovalStatus::Expired) => format!("status = 'pending' AND NOT {open}"),
            Some(status) => format!("status = '{}'", status.as_str()),
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM core_approvals WHERE {status}
               AND (?2 IS NULL OR component = ?2) AND (?3 IS NULL OR identity = ?3)
               AND (?4 IS NULL OR (asked_at, id) > (SELECT asked_at, id FROM core_approvals WHERE id = ?4))
               AND ?1 IS NOT NULL
             ORDER BY asked_at, id LIMIT {limit}"
        );
        let values = params![filter.now_ms, filter.component, filter.identity, filter.after];
        self.db
            .prepare_cached(&sql)?
            .query_map(values, stored)?
            .map(|row| Ok(row?))
            .collect()
    }

    /// True if there are open requests that the operator's program was not told of.
    pub fn has_unheard_approvals(&self) -> StoreResult<bool> {
        let mut statement = self
            .db
            .prepare_cached("SELECT 1 FROM core_approvals WHERE notified = 0 LIMIT 1")?;
        Ok(statement.exists([])?)
    }

    /// Takes open requests that the operator's program was not told of, the oldest first. No other host gets them.
    /// Wants a write transaction.
    pub fn take_unheard_approvals(&self, now_ms: i64, limit: u32) -> StoreResult<Vec<StoredApproval>> {
        let unheard: Vec<StoredApproval> = self
            .db
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM core_approvals WHERE notified = 0 ORDER BY asked_at LIMIT ?1"
            ))?
            .query_map([limit], stored)?
            .collect::<rusqlite::Result<_>>()?;
        let ids = unheard.iter().map(|found| found.approval.id.as_str());
        let places = vec!["?"; unheard.len()].join(", ");
        self.db.execute(
            &format!("UPDATE core_approvals SET notified = 1 WHERE id IN ({places})"),
            params_from_iter(ids),
        )?;
        let is_open = |found: &StoredApproval| found.status(now_ms) == ApprovalStatus::Pending;
        Ok(unheard.into_iter().filter(is_open).collect())
    }

    fn forget_approvals(&self, now_ms: i64) -> StoreResult<()> {
        Ok(self
            .db
            .prepare_cached(
                "DELETE FROM core_approvals WHERE rowid IN (SELECT rowid FROM core_approvals
                 WHERE answered_at < ?1 ORDER BY answered_at LIMIT ?2)",
            )?
            .execute((now_ms.saturating_sub(REMEMBERED_MS), FORGOTTEN_BATCH))
            .map(drop)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(key: &str, to: &str) -> ApprovalRequest {
        ApprovalRequest::new(key, format!("Deploy to {to}"), json!({"to": to}))
    }

    fn ask(session: &Session, request: &ApprovalRequest, identity: Option<&str>, now_ms: i64) -> String {
        let newest = session.newest_approval("pack", &request.key).unwrap();
        if let Some(newest) = newest.as_ref().filter(|newest| newest.stands(request, now_ms)) {
            return newest.approval.id.clone();
        }
        let round = newest.map_or(1, |newest| newest.round + 1);
        let by = AskedBy {
            identity: identity.map(str::to_owned),
            ..AskedBy::default()
        };
        let new = NewApproval::new("pack", request.clone(), by, (round, now_ms));
        session.add_approval(&new).unwrap();
        new.id
    }

    fn answer(status: ApprovalStatus, at_ms: i64) -> Answered {
        Answered {
            status,
            by: Some("grace".to_owned()),
            identity: None,
            op_id: "op_2".to_owned(),
            note: None,
            at_ms,
        }
    }

    #[test]
    fn the_same_key_is_the_same_request_until_its_content_changes() {
        let session = super::super::scratch(std::iter::empty()).unwrap();
        session.begin_write().unwrap();
        let first = ask(&session, &request("k", "staging"), None, 1);
        assert_eq!(ask(&session, &request("k", "staging"), None, 2), first);
        let other = ask(&session, &request("k", "production"), None, 3);
        assert_ne!(other, first);
        let status = |id: &str| session.approval(id).unwrap().unwrap().status(4);
        assert_eq!(status(&first), ApprovalStatus::Withdrawn);
        assert!(
            !session
                .answer_approval(&first, &answer(ApprovalStatus::Approved, 4))
                .unwrap()
        );
        assert!(
            session
                .answer_approval(&other, &answer(ApprovalStatus::Approved, 4))
                .unwrap()
        );
        // One answer settles it.
        assert!(
            !session
                .answer_approval(&other, &answer(ApprovalStatus::Rejected, 5))
                .unwrap()
        );
        assert_eq!(status(&other), ApprovalStatus::Approved);
        assert_eq!(ask(&session, &request("k", "production"), None, 6), other);
        let renewed = ApprovalRequest {
            renew: true,
            ..request("k", "production")
        };
        assert_ne!(ask(&session, &renewed, None, 7), other);
        session.commit().unwrap();
    }

    #[test]
    fn hosts_that_ask_the_same_on_one_snapshot_have_one_request() {
        let session = super::super::scratch(std::iter::empty()).unwrap();
        session.begin_write().unwrap();
        let new = |to: &str| NewApproval::new("pack", request("k", to), AskedBy::default(), (1, 1));
        for to in ["staging", "staging", "production", "staging"] {
            session.add_approval(&new(to)).unwrap();
        }
        let all = session.approvals(&ApprovalFilter::default(), 10).unwrap();
        let rounds: Vec<_> = all
            .iter()
            .map(|found| (found.title.as_str(), found.round, found.approval.status))
            .collect();
        let mut rounds = rounds;
        rounds.sort_by_key(|(_, round, _)| *round);
        assert_eq!(
            rounds,
            [
                ("Deploy to staging", 1, ApprovalStatus::Withdrawn),
                ("Deploy to production", 2, ApprovalStatus::Pending),
            ]
        );
        session.commit().unwrap();
    }

    #[test]
    fn a_request_is_open_until_its_time_and_a_new_one_follows() {
        let session = super::super::scratch(std::iter::empty()).unwrap();
        session.begin_write().unwrap();
        let timed = ApprovalRequest {
            until_ms: Some(100),
            ..request("k", "staging")
        };
        let first = ask(&session, &timed, None, 1);
        let listed = |status: ApprovalStatus, now_ms: i64| {
            let filter = ApprovalFilter {
                status: Some(status),
                now_ms,
                ..ApprovalFilter::default()
            };
            session.approvals(&filter, 10).unwrap().len()
        };
        assert_eq!(
            (
                listed(ApprovalStatus::Pending, 99),
                listed(ApprovalStatus::Expired, 99)
            ),
            (1, 0)
        );
        assert_eq!(
            (
                listed(ApprovalStatus::Pending, 100),
                listed(ApprovalStatus::Expired, 100)
            ),
            (0, 1)
        );
        assert!(
            !session
                .answer_approval(&first, &answer(ApprovalStatus::Approved, 100))
                .unwrap()
        );
        let later = ApprovalRequest {
            until_ms: Some(300),
            ..timed
        };
        assert_ne!(ask(&session, &later, None, 200), first);
        session.commit().unwrap();
    }

    #[test]
    fn nobody_fills_the_list_for_others() {
        let session = super::super::scratch(std::iter::empty()).unwrap();
        session.begin_write().unwrap();
        let full = |identity: Option<&str>| session.approvals_full("pack", identity, 1).unwrap();
        for number in 0..MAX_PENDING_OF_ONE {
            assert_eq!(full(Some("token:ada")), None);
            ask(
                &session,
                &request(&format!("a{number}"), "x"),
                Some("token:ada"),
                1,
            );
        }
        assert_eq!(full(Some("token:ada")), Some(MAX_PENDING_OF_ONE));
        assert_eq!(full(Some("token:bob")), None);
        for number in MAX_PENDING_OF_ONE..MAX_PENDING {
            ask(&session, &request(&format!("a{number}"), "x"), None, 1);
        }
        assert_eq!(full(None), Some(MAX_PENDING));
        assert_eq!(session.approvals_full("other", None, 1).unwrap(), None);
        session.commit().unwrap();
    }

    #[test]
    fn each_request_is_told_once_and_pages_follow_each_other() {
        let session = super::super::scratch(std::iter::empty()).unwrap();
        session.begin_write().unwrap();
        for number in 0..5 {
            ask(&session, &request(&format!("k{number}"), "x"), None, number);
        }
        session
            .settle_approval("pack", "k0", &answer(ApprovalStatus::Withdrawn, 9))
            .unwrap();
        assert!(session.has_unheard_approvals().unwrap());
        assert_eq!(session.take_unheard_approvals(9, 3).unwrap().len(), 2);
        assert_eq!(session.take_unheard_approvals(9, 3).unwrap().len(), 2);
        assert!(!session.has_unheard_approvals().unwrap());
        let mut keys = Vec::new();
        let mut filter = ApprovalFilter::default();
        loop {
            let page = session.approvals(&filter, 2).unwrap();
            let Some(last) = page.last() else { break };
            filter.after = Some(last.approval.id.clone());
            keys.extend(page.into_iter().map(|found| found.approval.key));
        }
        assert_eq!(keys, ["k0", "k1", "k2", "k3", "k4"]);
        session.commit().unwrap();
    }

    #[test]
    fn what_is_stored_reads_as_it_was_asked() {
        let session = super::super::scratch(std::iter::empty()).unwrap();
        session.begin_write().unwrap();
        let whole = ApprovalRequest {
            requested_by: Some("ada".to_owned()),
            answering: Some(Answering {
                reject: Some(NextCall::new("task_reject", json!({}))),
                by: Some("resolved_by".to_owned()),
                ..Answering::new(NextCall::new("task_approve", json!({"id": 1})))
            }),
            answerers: Some(Answerers {
                names: vec!["grace".to_owned()],
                proven: true,
                another: false,
            }),
            ..request("k", "x")
        };
        let id = ask(&session, &whole, Some("token:ada"), 1);
        let found = session.approval(&id).unwrap().unwrap();
        assert_eq!(
            (&found.answering, &found.answerers),
            (&whole.answering, &whole.answerers)
        );
        assert_eq!(found.approval.requested_by.as_deref(), Some("ada"));
        assert!(found.stands(&whole, 2));
        session
            .db
            .execute("UPDATE core_approvals SET answerers = '[]'", [])
            .unwrap();
        let broken = session.approval(&id).unwrap().unwrap();
        assert_eq!(broken.answerers, Some(nobody()));
        session.commit().unwrap();
    }
}
