//! Load that records its replies, and checks of the database against these replies.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use tollgate_store::storage::{Database, Verified};

use crate::harness::Session;

/// Size of a task's text in bytes, so that few calls fill a disk.
const TEXT: usize = 8 << 10;
/// Number of calls within which one must be refused.
const MANY: usize = 20_000;

/// Replies to clients: created tasks and refused ones.
#[derive(Default)]
pub(crate) struct Load {
    made: usize,
    acknowledged: Vec<String>,
    refused: Vec<String>,
}

impl Load {
    /// Creates a task. Returns the refusal, if the call was refused.
    pub(crate) async fn create(&mut self, session: &Session) -> Option<Value> {
        let title = format!("task {}", self.made);
        self.made += 1;
        let arguments = json!({"title": title, "spec_markdown": format!("# Goal\n{}", "g".repeat(TEXT)),
            "workspace": "w", "initial_phase": "spec_draft", "actor": "a", "actor_role": "orchestrator"});
        let result = session.call_raw("task_create", arguments).await;
        let body = result.structured_content.unwrap();
        if result.is_error == Some(true) {
            self.refused.push(title);
            return Some(body["error"].clone());
        }
        let id = body["task"]["id"].as_str().unwrap();
        self.acknowledged.push(id.to_owned());
        None
    }

    /// Creates tasks. None of the calls may be refused.
    pub(crate) async fn create_many(&mut self, session: &Session, count: usize) {
        for _ in 0..count {
            assert_eq!(self.create(session).await, None);
        }
    }

    /// Creates tasks until one is refused.
    pub(crate) async fn until_refused(&mut self, session: &Session) -> Value {
        for _ in 0..MANY {
            if let Some(refusal) = self.create(session).await {
                return refusal;
            }
        }
        panic!("{MANY} calls, and nothing was refused");
    }

    /// Forgets refused tasks, because their outcome is unknown.
    pub(crate) fn forget_refusals(&mut self) {
        self.refused.clear();
    }

    /// Checks that all acknowledged tasks exist, that refused ones do not, and that the ledger agrees.
    pub(crate) fn check(&self, data: &Path) {
        let path = data.join("tollgate.db");
        let there = texts(&path, "SELECT id FROM task_store_tasks");
        for id in &self.acknowledged {
            assert!(there.contains(id), "{id} was acknowledged and is gone");
        }
        let titles = texts(&path, "SELECT title FROM task_store_tasks");
        for title in &self.refused {
            assert!(!titles.contains(title), "{title} was refused and is there");
        }
        consistent(&path);
    }
}

/// Checks that a database is intact, its ledger verifies, and the packs' rows match the ledger.
pub(crate) fn consistent(path: &Path) {
    assert_eq!(texts(path, "PRAGMA integrity_check"), ["ok"]);
    let created = "SELECT op_id FROM core_operations WHERE tool = 'task_create' AND success = 1";
    let tasks = texts(path, "SELECT id FROM task_store_tasks");
    assert_eq!(tasks.len(), texts(path, created).len());
    assert_eq!(tasks.len(), texts(path, "SELECT id FROM task_store_events").len());
    assert_eq!(verified(path).broken, None);
}

/// Verifies a ledger.
pub(crate) fn verified(path: &Path) -> Verified {
    let database = Database::open(path).unwrap();
    database
        .read_session()
        .unwrap()
        .ledger()
        .verify(None, &[])
        .unwrap()
}

/// The first column of a query, as text.
pub(crate) fn texts(path: &Path, sql: &str) -> Vec<String> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let value: rusqlite::types::Value = row.get(0)?;
        Ok(match value {
            rusqlite::types::Value::Text(text) => text,
            other => format!("{other:?}"),
        })
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}
