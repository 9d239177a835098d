//! Whole rows as JSON: for exports and for the mirror.

use serde::Serialize;
use serde_json::value::RawValue;

use super::engine::{Column, Row, sql};
use super::error::StoreResult;
use super::handles::Ledger;
use super::ledger::CHAIN_COLUMNS;

/// A row of the ledger with everything that its hash covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedRow {
    /// Place in the ledger.
    pub seq: i64,
    /// Time at which the call reached the gate.
    pub timestamp: String,
    /// Row as one line of JSON. Absent columns are left out.
    pub json: String,
}

/// Columns that hold JSON.
const JSON_COLUMNS: &[&str] = &[
    "changed_paths",
    "diff_stats",
    "failing_tests",
    "events",
    "verdicts",
    "artifact_ids",
    "members",
    "outcome",
    "counters",
];

impl Ledger<'_> {
    /// Rows after a place, oldest first.
    pub fn export(self, after: i64, limit: u32) -> StoreResult<Vec<ExportedRow>> {
        let sql = format!("SELECT {CHAIN_COLUMNS} FROM core_operations WHERE seq > ?1 ORDER BY seq LIMIT ?2");
        self.0.engine.all(&sql, sql![after, limit], |row| {
            Ok(ExportedRow {
                seq: row.get(0)?,
                timestamp: row.get(3)?,
                json: json(row)?,
            })
        })
    }
}

fn json(row: &Row<'_>) -> StoreResult<String> {
    let mut out = String::with_capacity(1024);
    for (column, name) in CHAIN_COLUMNS.split(',').map(str::trim).enumerate() {
        let text = match (name, row.column(column)?) {
            (_, Column::Null | Column::Blob(_)) => continue,
            ("success", Column::Int(number)) => (number == 1).to_string(),
            (_, Column::Int(number)) => number.to_string(),
            (_, Column::Real(number)) => json_of(&number),
            (name, Column::Text(bytes)) => {
                let text = String::from_utf8_lossy(bytes);
                if JSON_COLUMNS.contains(&name) && is_json_line(&text) {
                    text.into_owned()
                } else {
                    json_of(&text)
                }
            }
        };
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(&json_of(&name));
        out.push(':');
        out.push_str(&text);
    }
    out.push('}');
    Ok(out)
}

fn json_of<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// True if text can be written in a line unchanged, so that its bytes stay those that were hashed.
fn is_json_line(text: &str) -> bool {
    !text.contains('\n') && serde_json::from_str::<&RawValue>(text).is_ok()
}
