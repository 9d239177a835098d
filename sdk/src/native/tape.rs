//! A record of all that a session says to SQLite, for tests that play it to another engine.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value as Json, json};

use crate::Value;

/// Names the folder of the records. Without it nothing is recorded.
const VARIABLE: &str = "TOLLGATE_RECORD_SQL";

/// One session's record: a file with a line of JSON for each thing said.
#[derive(Debug)]
pub(super) struct Tape(RefCell<Option<File>>);

impl Tape {
    /// A record of the tables of `owner`, if records are wanted.
    #[allow(clippy::disallowed_methods, reason = "a test that is told to writes a file")]
    pub(super) fn of(owner: &str) -> Tape {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let file = std::env::var_os(VARIABLE).and_then(|folder| {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{owner}.{}.{number:06}.jsonl", std::process::id());
            File::create(std::path::Path::new(&folder).join(name)).ok()
        });
        Tape(RefCell::new(file))
    }

    /// Notes a statement of the pack.
    pub(super) fn statement(&self, sql: &str, params: &[Value]) {
        if self.0.borrow().is_some() {
            self.line(&json!([sql, params.iter().map(value).collect::<Vec<_>>()]));
        }
    }

    /// Notes where a call begins or ends.
    pub(super) fn mark(&self, sql: &str) {
        if !sql.starts_with("PRAGMA") {
            self.line(&json!([sql]));
        }
    }

    fn line(&self, line: &Json) {
        if let Some(file) = self.0.borrow_mut().as_mut() {
            writeln!(file, "{line}").expect("the record can be written");
        }
    }
}

fn value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) => json!(number),
        Value::Real(number) => json!({ "real": number }),
        Value::Text(text) => json!(text),
        Value::Blob(bytes) => json!({ "blob": bytes }),
    }
}
