//! Members of batches as policies see them in the ledger: each an operation of its own, after the enclosing
//! operation.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use tollgate_core::effect::Effect;

use super::engine::borrowed;
use super::error::StoreResult;
use super::handles::Operations;
use super::operations::{OperationFilter, Rows, StoredOperation};

/// Member of a batch, as stored in the row of the whole call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberCall {
    /// Name of the member's tool.
    pub tool: String,
    /// Effect of the tool.
    pub effect: Effect,
    /// SHA-256 of the canonical arguments.
    pub args_hash: String,
}

impl MemberCall {
    /// Stored form of the members. `None` if there are none.
    pub fn text(members: &[MemberCall]) -> Option<String> {
        if members.is_empty() {
            return None;
        }
        serde_json::to_string(members).ok()
    }

    /// Member as an operation, with the outcome of the whole call.
    fn of(self, row: &StoredOperation) -> StoredOperation {
        StoredOperation {
            tool: self.tool,
            effect: self.effect.as_str().to_owned(),
            args_hash: self.args_hash,
            ..row.clone()
        }
    }
}

impl Operations<'_> {
    /// Operations that match a filter, and matching members of operations, in the order in which they were judged.
    pub fn judged(self, filter: &OperationFilter, limit: u32) -> StoreResult<Vec<StoredOperation>> {
        let mut found = self.list(filter, limit)?;
        let members = self.members(filter, limit)?;
        if members.is_empty() {
            return Ok(found);
        }
        found.extend(members);
        // The operation itself precedes its members, and stable sorting keeps that.
        found.sort_by_key(|operation| operation.seq);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if filter.is_oldest_first() {
            found.truncate(limit);
        } else {
            found.reverse();
            found.truncate(limit);
        }
        Ok(found)
    }

    /// Members that match a filter, in the first `limit` of the order, and in the order in which they ran within each
    /// row.
    fn members(self, filter: &OperationFilter, limit: u32) -> StoreResult<Vec<StoredOperation>> {
        let whole = OperationFilter {
            tool: None,
            effect: None,
            args_hash: None,
            ..filter.clone()
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (sql, params) = whole.statement(Rows::WithMembers, u32::MAX);
        let mut found = Vec::new();
        self.0.engine.each_until(&sql, &borrowed(&params), |row| {
            if found.len() >= limit {
                return Ok(ControlFlow::Break(()));
            }
            let row = super::operations::stored(row)?;
            let members = row.members.as_deref().unwrap_or_default();
            let members: Vec<MemberCall> = serde_json::from_str(members).unwrap_or_default();
            let fitting = members.into_iter().map(|member| member.of(&row));
            found.extend(fitting.filter(|member| filter.fits(member)));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, NOW, Place, operation, verify};
    use super::super::session::Session;
    use super::*;

    fn member(tool: &str, hash: &str) -> MemberCall {
        MemberCall {
            tool: tool.to_owned(),
            effect: Effect::Write,
            args_hash: hash.to_owned(),
        }
    }

    /// A row by itself, one with three calls inside, and one more.
    fn ledger() -> (Place, Session) {
        let (place, session) = fixture::ledger("");
        session.begin_write().unwrap();
        session.ledger().record(&operation(0, None, NOW)).unwrap();
        let mut batch = operation(1, None, NOW);
        batch.tool = "t_batch".to_owned();
        batch.success = Some(true);
        batch.members = MemberCall::text(&[member("t_a", "1"), member("t_b", "2"), member("t_a", "3")]);
        session.ledger().record(&batch).unwrap();
        session.ledger().record(&operation(2, None, NOW)).unwrap();
        session.commit().unwrap();
        (place, session)
    }

    #[test]
    fn members_come_with_their_row_and_fit_by_themselves() {
        let (_place, session) = ledger();
        let found = |filter: OperationFilter, limit: u32| -> Vec<String> {
            let filter = OperationFilter {
                after: Some(0),
                ..filter
            };
            let found = session.operations().judged(&filter, limit).unwrap();
            found
                .iter()
                .map(|one| format!("{} {} {}", one.seq, one.tool, one.args_hash))
                .collect()
        };
        let tool = |tool: &str| OperationFilter {
            tool: Some(tool.to_owned()),
            ..OperationFilter::default()
        };
        let all = found(OperationFilter::default(), 99);
        assert_eq!(all.len(), 6, "{all:?}");
        assert_eq!(all[2..5], ["2 t_a 1", "2 t_b 2", "2 t_a 3"]);
        assert_eq!(found(tool("t_a"), 99), ["2 t_a 1", "2 t_a 3"]);
        assert_eq!(found(tool("t_a"), 1), ["2 t_a 1"]);
        let newest = OperationFilter {
            newest_first: true,
            ..OperationFilter::default()
        };
        let backwards: Vec<String> = all.iter().rev().cloned().collect();
        assert_eq!(found(newest.clone(), 99), backwards);
        assert_eq!(found(newest, 3), backwards[..3]);
        let hash = OperationFilter {
            args_hash: Some("2".to_owned()),
            ..OperationFilter::default()
        };
        assert_eq!(found(hash, 99), ["2 t_b 2"]);
        let failed = OperationFilter {
            success: Some(false),
            ..tool("t_a")
        };
        assert_eq!(found(failed, 99), [] as [String; 0]);
        assert_eq!(verify(&session, None), None);
    }

    #[test]
    fn members_that_were_changed_added_or_removed_break_the_chain() {
        for change in [
            "SET members = NULL WHERE seq = 2",
            "SET members = '[]' WHERE seq = 1",
            "SET members = replace(members, 't_b', 't_c') WHERE seq = 2",
        ] {
            let (_place, session) = ledger();
            fixture::disarm(&session);
            let sql = format!("UPDATE core_operations {change}");
            assert_eq!(session.engine.run(&sql, &[]).unwrap(), 1);
            assert!(verify(&session, None).is_some(), "{change}");
        }
    }
}
