//! Record of the statements that a session runs in SQLite, for tests that run them in another engine.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value as Json, json};

use crate::Value;

/// Environment variable with the folder for the records. If unset, nothing is recorded.
const VARIABLE: &str = "TOLLGATE_RECORD_SQL";
/// Maximum lines of one record, because long sessions repeat themselves.
const MAX_LINES: u32 = 1_500;

/// Record of one session: a file with a line of JSON for each statement and for each begin and end of a call.
#[derive(Debug)]
pub(super) struct Tape {
    file: RefCell<Option<File>>,
    lines: Cell<u32>,
}

impl Tape {
    /// Opens a record for the tables of `owner`, if recording is enabled.
    #[allow(clippy::disallowed_methods, reason = "a test that is told to writes a file")]
    pub(super) fn of(owner: &str) -> Tape {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let file = std::env::var_os(VARIABLE).and_then(|folder| {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{owner}.{}.{number:06}.jsonl", std::process::id());
            File::create(std::path::Path::new(&folder).join(name)).ok()
        });
        Tape {
            file: RefCell::new(file),
            lines: Cell::new(0),
        }
    }

    /// Records a statement of the pack.
    pub(super) fn statement(&self, sql: &str, params: &[Value]) {
        if self.file.borrow().is_some() {
            self.line(&json!([sql, params.iter().map(value).collect::<Vec<_>>()]));
        }
    }

    /// Records the begin or end of a call.
    pub(super) fn mark(&self, sql: &str) {
        self.line(&json!([sql]));
    }

    fn line(&self, line: &Json) {
        let mut file = self.file.borrow_mut();
        let Some(open) = file.as_mut() else { return };
        self.lines.set(self.lines.get() + 1);
        // Tests with a full disk can write half a line.
        if writeln!(open, "{line}").is_err() || self.lines.get() == MAX_LINES {
            *file = None;
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
