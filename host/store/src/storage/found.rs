//! A row of the ledger by its id, for components that were told of an operation.

use rusqlite::OptionalExtension;
use serde::Deserialize;

use super::error::StoreResult;
use super::operations::{OperationFilter, StoredOperation};
use super::session::Session;

/// A row with the standing of its envelope when the row's call was counted.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundOperation {
    /// The row.
    pub operation: StoredOperation,
    /// Mutations of its envelope, with the call itself. Absent outside of envelopes.
    pub mutations: Option<u64>,
    /// Edits of work trees that its envelope had counted.
    pub edits: Option<u64>,
}

#[derive(Deserialize)]
struct Counters {
    mutations: u64,
    #[serde(default)]
    edits: u64,
}

impl Session {
    /// An operation by its id, unless it was pruned or never was.
    pub fn find_operation(&self, op_id: &str) -> StoreResult<Option<FoundOperation>> {
        let found: Option<(i64, Option<String>)> = self
            .db
            .prepare_cached("SELECT seq, counters FROM core_operations WHERE op_id = ?1")?
            .query_row([op_id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((seq, counters)) = found else {
            return Ok(None);
        };
        let filter = OperationFilter {
            after: Some(seq.saturating_sub(1)),
            before: Some(seq.saturating_add(1)),
            ..OperationFilter::default()
        };
        let operation = self.operations(&filter, 1)?.into_iter().next();
        let counters = counters.and_then(|json| serde_json::from_str::<Counters>(&json).ok());
        Ok(operation.map(|operation| FoundOperation {
            operation,
            mutations: counters.as_ref().map(|counters| counters.mutations),
            edits: counters.as_ref().map(|counters| counters.edits),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, NOW, operation};

    #[test]
    fn an_operation_is_found_by_its_id_alone() {
        let (_dir, session) = fixture::ledger("");
        session.begin_write().unwrap();
        session.record(&operation(1, None, NOW)).unwrap();
        let mut counted = operation(2, Some("env_1"), NOW);
        counted.counters = Some(r#"{"mutations": 3, "test_runs": 1, "edits": 2}"#.to_owned());
        session.record(&counted).unwrap();
        session.commit().unwrap();
        let found = session.find_operation("op_2").unwrap().unwrap();
        assert_eq!(
            (found.operation.op_id.as_str(), found.mutations, found.edits),
            ("op_2", Some(3), Some(2))
        );
        assert_eq!(session.find_operation("op_1").unwrap().unwrap().mutations, None);
        for unknown in ["op_", "op_9", "", "%"] {
            assert_eq!(session.find_operation(unknown).unwrap(), None);
        }
    }
}
