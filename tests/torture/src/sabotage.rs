//! Sabotage that breaks each promise, to prove that the checks detect it.

use anyhow::Context as _;

use crate::load::MARK;
use crate::look::Database;
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
    /// SQL that changes a database in a file.
    RowsOfFile(&'static str),
    /// SQL that changes a database on a server.
    RowsOfServer(&'static str),
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
        deed: Deed::RowsOfFile(
            "PRAGMA writable_schema = ON;
             DELETE FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = 'task_store_tasks'",
        ),
    },
    Sabotage {
        what: "an index does not know a row",
        promise: Promise::Sound,
        deed: Deed::RowsOfServer(
            "UPDATE pg_index SET indisready = FALSE WHERE indexrelid = 'task_store_tasks_pkey'::regclass;
             UPDATE task_store_tasks SET id = id || '-' WHERE id = (SELECT min(id) FROM task_store_tasks);
             UPDATE pg_index SET indisready = TRUE WHERE indexrelid = 'task_store_tasks_pkey'::regclass",
        ),
    },
    Sabotage {
        what: "the end of the ledger's stream is another",
        promise: Promise::Chained,
        deed: Deed::RowsOfServer("UPDATE core_streams SET place = place + 1"),
    },
    Sabotage {
        what: "the newest rows are gone, as after a backup was restored",
        promise: Promise::Chained,
        deed: Deed::RowsOfServer(
            "DELETE FROM core_operations WHERE seq > (SELECT max(seq) - 5 FROM core_operations);
             UPDATE core_streams SET (place, hash) =
                (SELECT seq, hash FROM core_operations ORDER BY seq DESC LIMIT 1)",
        ),
    },
    Sabotage {
        what: "a host added a row that goes after another one",
        promise: Promise::Chained,
        deed: Deed::RowsOfServer(
            "CREATE TEMPORARY TABLE zombie AS SELECT * FROM core_operations WHERE seq = 2;
             UPDATE zombie SET seq = (SELECT max(seq) + 1 FROM core_operations), op_id = 'op_zombie', request_id = NULL;
             INSERT INTO core_operations SELECT * FROM zombie",
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
    /// Returns whether the change is possible in a database of this kind.
    pub(crate) fn fits(&self, database: &Database) -> bool {
        match self.deed {
            Deed::Rows(_) | Deed::File => true,
            Deed::RowsOfFile(_) => matches!(database, Database::File(_)),
            Deed::RowsOfServer(_) => matches!(database, Database::Server(_)),
        }
    }

    pub(crate) fn commit(&self, place: &Place) -> anyhow::Result<()> {
        let done = match self.deed {
            Deed::Rows(sql) | Deed::RowsOfFile(sql) | Deed::RowsOfServer(sql) => place.database.change(sql),
            Deed::File => place.forge(&format!("# State\n- {MARK}{}\n", "0".repeat(16))),
        };
        done.with_context(|| format!("sabotage: {}", self.what))
    }
}
