//! Breaking each promise on purpose, to see that it would be noticed.

use std::path::Path;

use anyhow::Context as _;
use rusqlite::Connection;

use crate::promise::Promise;

/// What somebody does to the database behind the hosts' backs.
pub(crate) struct Sabotage {
    /// In words.
    pub(crate) what: &'static str,
    /// What is broken by it.
    pub(crate) promise: Promise,
    sql: &'static str,
}

/// Ways to break what can be seen in the database.
pub(crate) const ALL: &[Sabotage] = &[
    Sabotage {
        what: "the rows of writes are gone",
        promise: Promise::Durable,
        sql: "DELETE FROM core_operations WHERE effect = 'write'",
    },
    Sabotage {
        what: "one row is gone",
        promise: Promise::Chained,
        sql: "DELETE FROM core_operations WHERE seq = 2",
    },
    Sabotage {
        what: "rows tell of other replies",
        promise: Promise::Durable,
        sql: "UPDATE core_operations SET result_hash = 'x' WHERE effect = 'write' AND success = 1",
    },
    Sabotage {
        what: "one column of one row is another",
        promise: Promise::Chained,
        sql: "UPDATE core_operations SET client = 'x' WHERE seq = 1",
    },
    Sabotage {
        what: "a request has two rows",
        promise: Promise::Whole,
        sql: "UPDATE core_operations SET (connection, request_id) =
                (SELECT connection, request_id FROM core_operations WHERE seq = 1) WHERE seq = 2",
    },
    Sabotage {
        what: "a counter is one too high",
        promise: Promise::Counted,
        sql: "UPDATE core_envelopes SET mutation_count = mutation_count + 1 WHERE id =
                (SELECT envelope_id FROM core_operations WHERE op_type = 'mutation' AND envelope_id IS NOT NULL LIMIT 1)",
    },
    Sabotage {
        what: "what a pack wrote is gone, and its row is not",
        promise: Promise::Whole,
        sql: "DELETE FROM task_store_events",
    },
    Sabotage {
        what: "an index is gone from the schema, and its pages are not",
        promise: Promise::Sound,
        sql: "PRAGMA writable_schema = ON;
              DELETE FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = 'task_store_tasks'",
    },
    Sabotage {
        what: "an envelope is open whose host is gone",
        promise: Promise::Buried,
        sql: "UPDATE core_envelopes SET state = 'OPEN', host_id = 'hst_gone', closed_at = NULL, closed_by = NULL",
    },
];

impl Sabotage {
    /// Does it, past every trigger. They are there again afterwards.
    pub(crate) fn commit(&self, database: &Path) -> anyhow::Result<()> {
        let db = Connection::open(database)?;
        let triggers: Vec<(String, String)> = db
            .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        for (name, _) in &triggers {
            db.execute_batch(&format!("DROP TRIGGER {name}"))?;
        }
        db.execute_batch(self.sql)
            .with_context(|| format!("sabotage: {}", self.what))?;
        for (_, sql) in &triggers {
            db.execute_batch(sql)?;
        }
        Ok(())
    }
}
