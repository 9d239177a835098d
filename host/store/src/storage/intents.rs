//! Intents: `run` calls that were admitted and whose end is not recorded yet.

use tollgate_core::failure_class::FailureClass;

use super::engine::{Dialects, sql};
use super::error::{StoreError, StoreResult};
use super::handles::Intents;
use super::ledger::Operation;
use super::session::Written;

impl Intents<'_> {
    /// Stores a `run` call that is about to start.
    pub fn insert(self, operation: &Operation) -> StoreResult<()> {
        let json = serde_json::to_string(&*operation.storable()).map_err(StoreError::of_json)?;
        self.0
            .written
            .replace(Some(Written::Intent(operation.op_id.clone())));
        self.0.engine.change_one(
            "INSERT INTO core_intents (op_id, host_id, operation) VALUES (?1, ?2, ?3)",
            sql![operation.op_id, &operation.host_id, json],
        )
    }

    /// Adds to an intent the counters of its call since then.
    pub fn count(self, op_id: &str, counters: &str) -> StoreResult<()> {
        let sql = self.0.engine.text(Dialects {
            sqlite: "UPDATE core_intents SET operation = json_set(operation, '$.counters', ?2) WHERE op_id = ?1",
            postgres: "UPDATE core_intents SET operation =
                    jsonb_set(operation::jsonb, '{counters}', to_jsonb(CAST(?2 AS text)))::text
                WHERE op_id = ?1",
        });
        self.0.engine.change_one(sql, sql![op_id, counters])
    }

    /// Removes an intent, because its operation is recorded. Returns false if there is none.
    pub fn fulfil(self, op_id: &str) -> StoreResult<bool> {
        let gone = self
            .0
            .engine
            .run("DELETE FROM core_intents WHERE op_id = ?1", sql![op_id])?;
        Ok(gone > 0)
    }

    /// Tools of an envelope's calls whose end is not recorded yet, oldest first.
    pub fn running_in(self, envelope: &str) -> StoreResult<Vec<String>> {
        let sql = "SELECT operation ->> 'tool' FROM core_intents
            WHERE operation ->> 'envelope_id' = ?1 ORDER BY op_id";
        self.0.engine.all(sql, sql![envelope], |row| row.get(0))
    }

    /// Hosts of intents.
    pub fn hosts(self) -> StoreResult<Vec<String>> {
        self.0
            .engine
            .all("SELECT DISTINCT host_id FROM core_intents", &[], |row| row.get(0))
    }

    /// Turns the intents of a dead host into operations with unknown outcome.
    pub fn give_up_all(self, host_id: &str) -> StoreResult<usize> {
        let intents: Vec<String> = self.0.engine.all(
            "SELECT operation FROM core_intents WHERE host_id = ?1 ORDER BY op_id",
            sql![host_id],
            |row| row.get(0),
        )?;
        for json in &intents {
            if let Ok(mut operation) = serde_json::from_str::<Operation>(json) {
                operation.success = None;
                operation.failure_class = Some(FailureClass::Interrupted.as_str().to_owned());
                self.0.ledger().record(&operation)?;
                self.fulfil(&operation.op_id)?;
            }
        }
        Ok(intents.len())
    }
}
