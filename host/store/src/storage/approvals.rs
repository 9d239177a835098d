//! Decisions that components wait for, and their answers: one list for all components and hosts.

mod stored;

use serde_json::Value;
use tollgate_sdk::ApprovalStatus;

use self::stored::{COLUMNS, answerers_json, answering_json, stored};
use super::engine::{Dialects, Once, borrowed, sql};
use super::error::StoreResult;
use super::handles::Approvals;

pub use stored::{Answered, ApprovalFilter, AskedBy, NewApproval, PolicyRow, StoredApproval};

/// Most open requests of one component.
pub const MAX_PENDING: u32 = 200;
/// Most open requests of one component by one identity.
pub const MAX_PENDING_OF_ONE: u32 = MAX_PENDING / 2;
/// Time for which answered requests are stored, in milliseconds: more than a year.
const REMEMBERED_MS: i64 = 400 * 24 * 3_600_000;
/// Most expired requests that are removed for each new one.
const FORGOTTEN_BATCH: u32 = 16;

impl Approvals<'_> {
    /// Request with an id.
    pub fn get(self, id: &str) -> StoreResult<Option<StoredApproval>> {
        self.0.engine.maybe(
            &format!("SELECT {COLUMNS} FROM core_approvals WHERE id = ?1"),
            sql![id],
            stored,
        )
    }

    /// First request of a call.
    pub fn of_call(self, op_id: &str) -> StoreResult<Option<StoredApproval>> {
        let sql =
            format!("SELECT {COLUMNS} FROM core_approvals WHERE op_id = ?1 ORDER BY asked_at, id LIMIT 1");
        self.0.engine.maybe(&sql, sql![op_id], stored)
    }

    /// True if a request waits for an answer.
    pub fn is_open(self, id: &str, now_ms: i64) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM core_approvals WHERE id = ?1 AND status = 'pending' AND (until_ms IS NULL OR until_ms > ?2)";
        self.0.engine.exists(sql, sql![id, now_ms])
    }

    /// Newest request of a component with a key.
    pub fn newest(self, component: &str, key: &str) -> StoreResult<Option<StoredApproval>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM core_approvals WHERE component = ?1 AND key = ?2 ORDER BY round DESC LIMIT 1"
        );
        self.0.engine.maybe(&sql, sql![component, key], stored)
    }

    /// Limit that one more request would exceed, if any. Other transactions that check the same component wait until
    /// this one ends, so the count includes its additions.
    pub fn full(self, component: &str, identity: Option<&str>, now_ms: i64) -> StoreResult<Option<u32>> {
        self.0.engine.hold(&format!("approvals {component}"))?;
        let (all, own) = self.count_open_for(component, identity, now_ms)?;
        Ok(if all >= MAX_PENDING {
            Some(MAX_PENDING)
        } else {
            (identity.is_some() && own >= MAX_PENDING_OF_ONE).then_some(MAX_PENDING_OF_ONE)
        })
    }

    /// Number of further requests that a component can make for an identity.
    pub fn room(self, component: &str, identity: Option<&str>, now_ms: i64) -> StoreResult<u32> {
        let (all, own) = self.count_open_for(component, identity, now_ms)?;
        let room = MAX_PENDING.saturating_sub(all);
        Ok(match identity {
            Some(_) => room.min(MAX_PENDING_OF_ONE.saturating_sub(own)),
            None => room,
        })
    }

    /// Number of a component's open requests, and of those by an identity.
    fn count_open_for(self, component: &str, identity: Option<&str>, now_ms: i64) -> StoreResult<(u32, u32)> {
        let sql = "SELECT count(*), coalesce(sum(CASE WHEN identity IS NOT DISTINCT FROM ?2 THEN 1 ELSE 0 END), 0) FROM core_approvals
            WHERE status = 'pending' AND component = ?1 AND (until_ms IS NULL OR until_ms > ?3)";
        self.0.engine.one(sql, sql![component, identity, now_ms], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }

    /// Stores a request, and withdraws an open one with the same key. Does nothing if the request exists. Requires a
    /// write transaction.
    pub fn insert(self, new: &NewApproval) -> StoreResult<()> {
        if self.get(&new.id)?.is_some() {
            return Ok(());
        }
        self.forget(new.at_ms)?;
        let withdrawn = Answered {
            status: ApprovalStatus::Withdrawn,
            by: None,
            identity: None,
            op_id: new.by.op_id.clone(),
            note: Some("asked again with different content".to_owned()),
            at_ms: new.at_ms,
        };
        let newest = self.newest(&new.component, &new.request.key)?;
        if let Some(newest) = &newest {
            self.answer(&newest.approval.id, &withdrawn)?;
        }
        let request = &new.request;
        let seen = new.seen();
        let sql = "INSERT INTO core_approvals (id, component, key, round, title, detail, answering, answerers, status,
                op_id, envelope_id, tool, requested_by, identity, connection, asked_at, until_ms)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'pending', ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
        self.0.engine.change_one(
            sql,
            sql![
                new.id,
                new.component,
                request.key,
                newest.map_or(1, |newest| newest.round.saturating_add(1)),
                request.title,
                Value::Object(request.detail.clone()).to_string(),
                request
                    .answering
                    .as_ref()
                    .map(|answering| answering_json(answering).to_string()),
                request
                    .answerers
                    .as_ref()
                    .map(|answerers| answerers_json(answerers).to_string()),
                new.by.op_id,
                new.by.envelope_id,
                new.by.tool,
                seen.requested_by,
                new.by.identity,
                new.by.connection,
                new.at_ms,
                request.until_ms,
            ],
        )
    }

    /// Answers an open request. Returns whether this was the first answer, and in time. Requires a write transaction.
    pub fn answer(self, id: &str, answer: &Answered) -> StoreResult<bool> {
        let sql = "UPDATE core_approvals SET status = ?2, answered_by = ?3, answered_identity = ?4, answered_op = ?5,
                note = ?6, answered_at = ?7
            WHERE id = ?1 AND status = 'pending' AND (until_ms IS NULL OR until_ms > ?7 OR ?2 = 'withdrawn')";
        let answered = self.0.engine.run(
            sql,
            sql![
                id,
                answer.status.as_str(),
                answer.by,
                answer.identity,
                answer.op_id,
                answer.note,
                answer.at_ms,
            ],
        )?;
        Ok(answered == 1)
    }

    /// Answers the open request of a component with a key, if there is one. Requires a write transaction.
    pub fn settle(self, component: &str, key: &str, answer: &Answered) -> StoreResult<bool> {
        match self.newest(component, key)? {
            Some(newest) => self.answer(&newest.approval.id, answer),
            None => Ok(false),
        }
    }

    /// Writes a policy's row.
    pub(super) fn write_policy_row(self, row: &PolicyRow) -> StoreResult<()> {
        match row {
            // The limit was checked on the snapshot. Calls that were judged concurrently may exceed it by a few.
            PolicyRow::Ask(new) => self.insert(new),
            PolicyRow::Settle {
                component,
                key,
                answer,
            } => self.settle(component, key, answer).map(drop),
            PolicyRow::Remember(wanted) => self.0.policy_memory().write(wanted),
        }
    }

    /// Writes the rows of policies. Requires a write transaction.
    pub fn write_policy_rows(self, rows: &[PolicyRow]) -> StoreResult<()> {
        rows.iter().try_for_each(|row| self.write_policy_row(row))
    }

    /// Requests that match a filter, oldest first.
    pub fn list(self, filter: &ApprovalFilter, limit: u32) -> StoreResult<Vec<StoredApproval>> {
        let open = "(until_ms IS NULL OR until_ms > ?1)";
        let status = match filter.status {
            None => "1 = 1".to_owned(),
            Some(ApprovalStatus::Pending) => format!("status = 'pending' AND {open}"),
            Some(ApprovalStatus::Expired) => format!("status = 'pending' AND NOT {open}"),
            Some(status) => format!("status = '{}'", status.as_str()),
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM core_approvals WHERE {status}
               AND (CAST(?2 AS TEXT) IS NULL OR component = ?2) AND (CAST(?3 AS TEXT) IS NULL OR identity = ?3)
               AND (CAST(?4 AS TEXT) IS NULL OR (asked_at, id) > (SELECT asked_at, id FROM core_approvals WHERE id = ?4))
               AND CAST(?1 AS BIGINT) IS NOT NULL
             ORDER BY asked_at, id LIMIT {limit}"
        );
        let values = sql![filter.now_ms, filter.component, filter.identity, filter.after];
        self.0.engine.all(&sql, values, stored)
    }

    /// Open requests in turn by identity: the oldest of each identity first, then the next of each, so that the
    /// requests of one identity cannot crowd out others.
    pub fn list_by_turns(self, now_ms: i64, (skip, limit): (u32, u32)) -> StoreResult<Vec<StoredApproval>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM (
              SELECT *, row_number() OVER (PARTITION BY identity ORDER BY asked_at, id) AS turn
              FROM core_approvals WHERE status = 'pending' AND (until_ms IS NULL OR until_ms > ?1)) AS turns
            ORDER BY turn, asked_at, id LIMIT ?2 OFFSET ?3"
        );
        self.0.engine.all(&sql, sql![now_ms, limit, skip], stored)
    }

    /// Number of open requests.
    pub fn count_open(self, now_ms: i64) -> StoreResult<usize> {
        let sql = "SELECT count(*) FROM core_approvals WHERE status = 'pending' AND (until_ms IS NULL OR until_ms > ?1)";
        let open: i64 = self.0.engine.one(sql, sql![now_ms], |row| row.get(0))?;
        Ok(usize::try_from(open).unwrap_or_default())
    }

    /// Requests that can no longer be answered, newest first.
    pub fn settled(self, now_ms: i64, limit: u32) -> StoreResult<Vec<StoredApproval>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM core_approvals WHERE status <> 'pending' OR until_ms <= ?1
            ORDER BY coalesce(answered_at, until_ms) DESC, id DESC LIMIT ?2"
        );
        self.0.engine.all(&sql, sql![now_ms, limit], stored)
    }

    /// True if there are open requests that the operator's program has not been notified of.
    pub fn has_unheard(self) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM core_approvals WHERE notified = 0 LIMIT 1";
        self.0.engine.exists(sql, &[])
    }

    /// Takes the open requests that the operator's program has not been notified of, oldest first. No other host gets
    /// them. Requires a write transaction.
    pub fn take_unheard(self, now_ms: i64, limit: u32) -> StoreResult<Vec<StoredApproval>> {
        let sql =
            format!("SELECT {COLUMNS} FROM core_approvals WHERE notified = 0 ORDER BY asked_at LIMIT ?1");
        let unheard: Vec<StoredApproval> = self.0.engine.all(&sql, sql![limit], stored)?;
        if unheard.is_empty() {
            return Ok(unheard);
        }
        let ids: Vec<&str> = unheard.iter().map(|found| found.approval.id.as_str()).collect();
        let places = vec!["?"; unheard.len()].join(", ");
        let sql = format!("UPDATE core_approvals SET notified = 1 WHERE id IN ({places})");
        self.0.engine.run(Once(&sql), &borrowed(&ids))?;
        let is_open = |found: &StoredApproval| found.status(now_ms) == ApprovalStatus::Pending;
        Ok(unheard.into_iter().filter(is_open).collect())
    }

    fn forget(self, now_ms: i64) -> StoreResult<()> {
        let sql = self.0.engine.text(Dialects {
            sqlite: "DELETE FROM core_approvals WHERE rowid IN (SELECT rowid FROM core_approvals
            WHERE answered_at < ?1 ORDER BY answered_at LIMIT ?2)",
            postgres: "DELETE FROM core_approvals WHERE ctid = ANY (ARRAY(SELECT ctid FROM core_approvals
            WHERE answered_at < ?1 ORDER BY answered_at LIMIT ?2))",
        });
        self.0
            .engine
            .run(sql, sql![now_ms.saturating_sub(REMEMBERED_MS), FORGOTTEN_BATCH])
            .map(drop)
    }
}

#[cfg(test)]
mod tests;
