//! `run` calls that were admitted and whose end is not recorded yet.

use super::error::StoreResult;
use super::handles::Intents;
use super::ledger::Operation;
use super::schema::exactly_one;

impl Intents<'_> {
    /// Remembers a `run` call that is about to start.
    pub fn insert(self, operation: &Operation) -> StoreResult<()> {
        let json = serde_json::to_string(operation)
            .map_err(|err| rusqlite::Error::ToSqlConversionFailure(err.into()))?;
        Ok(self
            .0
            .db
            .prepare_cached("INSERT INTO core_intents (op_id, host_id, operation) VALUES (?1, ?2, ?3)")?
            .execute((&operation.op_id, &operation.host_id, json))
            .and_then(exactly_one)?)
    }

    /// Notes in an intent what its call was counted for since.
    pub fn count(self, op_id: &str, counters: &str) -> StoreResult<()> {
        Ok(self
            .0
            .db
            .prepare_cached(
                "UPDATE core_intents SET operation = json_set(operation, '$.counters', ?2) WHERE op_id = ?1",
            )?
            .execute((op_id, counters))
            .and_then(exactly_one)?)
    }

    /// Forgets an intent, now that its operation is recorded.
    pub fn fulfil(self, op_id: &str) -> StoreResult<()> {
        Ok(self
            .0
            .db
            .prepare_cached("DELETE FROM core_intents WHERE op_id = ?1")?
            .execute([op_id])
            .map(drop)?)
    }

    /// Tools of calls of an envelope whose end is not recorded yet, oldest first.
    pub fn running_in(self, envelope: &str) -> StoreResult<Vec<String>> {
        Ok(self
            .0
            .db
            .prepare_cached(
                "SELECT json_extract(operation, '$.tool') FROM core_intents
                 WHERE json_extract(operation, '$.envelope_id') = ?1 ORDER BY op_id",
            )?
            .query_map([envelope], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?)
    }

    /// The hosts that intents name.
    pub fn hosts(self) -> StoreResult<Vec<String>> {
        Ok(self
            .0
            .db
            .prepare_cached("SELECT DISTINCT host_id FROM core_intents")?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?)
    }

    /// Turns the intents of a host that is gone into operations of unknown outcome.
    pub fn give_up_all(self, host_id: &str) -> StoreResult<usize> {
        let intents: Vec<String> = self
            .0
            .db
            .prepare_cached("SELECT operation FROM core_intents WHERE host_id = ?1 ORDER BY op_id")?
            .query_map([host_id], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for json in &intents {
            if let Ok(mut operation) = serde_json::from_str::<Operation>(json) {
                operation.success = None;
                operation.failure_class = Some("interrupted".to_owned());
                self.0.ledger().record(&operation)?;
                self.fulfil(&operation.op_id)?;
            }
        }
        Ok(intents.len())
    }
}
