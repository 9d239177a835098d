//! Sabotage that breaks each promise, to prove that the checks detect it.

use anyhow::Context as _;
use rusqlite::Connection;

use crate::load::MARK;
use crate::place::Place;
use crate::promise::Promise;

/// Change of data without any host.
pub(crate) struct Sabotage {
    /// Description of the change.
    pub(crate) what: &'static str,
    /// Promise that the change breaks.
    pub(crate) promise: Promise,
    deed: Deed,
}

/// Target of the change.
enum Deed {
    /// SQL that changes the database.
    Rows(&'static str),
    /// Write to a file of a workspace, with an event that never happened.
    File,
}

/// Ways to break promises.
pub(crate) const ALL: &[Sabotage] = &[
    Sabotage {
        what: "the rows of writes are gone",
        promise: Promise::Durable,
        deed: Deed::Rows("DELETE FROM core_operations WHERE effect = 'write'"),
    },
    Sabotage {
        what: "one row is gone",
        promise: Promise::Chained,
        deed: Deed::Rows("DELETE FROM core_operations WHERE seq = 2"),
    },
    Sabotage {
        what: "rows tell of other replies",
        promise: Promise::Durable,
        deed: Deed::Rows(
            "UPDATE core_operations SET result_hash = 'x' WHERE effect = 'write' AND success = 1",
        ),
    },
    Sabotage {
        what: "one column of one row is another",
        promise: Promise::Chained,
        deed: Deed::Rows("UPDATE core_operations SET client = 'x' WHERE seq = 1"),
    },
    Sabotage {
        what: "a request has two rows",
        promise: Promise::Whole,
        deed: Deed::Rows(
            "UPDATE core_operations SET (connection, request_id) =
                (SELECT connection, request_id FROM core_operations WHERE seq = 1) WHERE seq = 2",
        ),
    },
    Sabotage {
        what: "a counter is one too high",
        promise: Promise::Counted,
        deed: Deed::Rows(
            "UPDATE core_envelopes SET mutation_count = mutation_count + 1 WHERE id =
                (SELECT envelope_id FROM core_operations WHERE op_type = 'mutation' AND envelope_id IS NOT NULL LIMIT 1)",
        ),
    },
    Sabotage {
        what: "what a pack wrote is gone, and its row is not",
        promise: Promise::Whole,
        deed: Deed::Rows("DELETE FROM task_store_events"),
    },
    Sabotage {
        what: "a change of tasks is gone, and its row is not",
        promise: Promise::Whole,
        deed: Deed::Rows("DELETE FROM tasks_operations WHERE seq = 1"),
    },
    Sabotage {
        what: "a report of tests is there twice, and has one row",
        promise: Promise::Whole,
        deed: Deed::Rows(
            "INSERT INTO convergence_runs (envelope_id, workspace, command, outcome, mutations, at)
                SELECT envelope_id, workspace, command, outcome, mutations, at FROM convergence_runs
                WHERE command = 'torture' LIMIT 1",
        ),
    },
    Sabotage {
        what: "tasks are as they were before their last change",
        promise: Promise::Visible,
        deed: Deed::Rows("UPDATE tasks_roots SET revision = revision - 1 WHERE kind = 'task'"),
    },
    Sabotage {
        what: "jobs have lost their logs",
        promise: Promise::Visible,
        deed: Deed::Rows("DELETE FROM conductor_logs"),
    },
    Sabotage {
        what: "tasks are gone whose clients may come back",
        promise: Promise::Visible,
        deed: Deed::Rows("DELETE FROM core_tasks"),
    },
    Sabotage {
        what: "a file shows what never happened",
        promise: Promise::Behind,
        deed: Deed::File,
    },
    Sabotage {
        what: "an index is gone from the schema, and its pages are not",
        promise: Promise::Sound,
        deed: Deed::Rows(
            "PRAGMA writable_schema = ON;
             DELETE FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = 'task_store_tasks'",
        ),
    },
    Sabotage {
        what: "an envelope is open whose host is gone",
        promise: Promise::Buried,
        deed: Deed::Rows(
            "UPDATE core_envelopes SET state = 'OPEN', host_id = 'hst_gone', closed_at = NULL, closed_by = NULL",
        ),
    },
];

impl Sabotage {
    pub(crate) fn commit(&self, place: &Place) -> anyhow::Result<()> {
        let done = match self.deed {
            Deed::Rows(sql) => change(place, sql),
            Deed::File => place.forge(&format!("# State\n- {MARK}{}\n", "0".repeat(16))),
        };
        done.with_context(|| format!("sabotage: {}", self.what))
    }
}

/// Runs SQL without the triggers, which are created again afterwards.
fn change(place: &Place, sql: &str) -> anyhow::Result<()> {
    let db = Connection::open(place.database())?;
    let triggers: Vec<(String, String)> = db
        .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (name, _) in &triggers {
        db.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    db.execute_batch(sql)?;
    for (_, sql) in &triggers {
        db.execute_batch(sql)?;
    }
    Ok(())
}
