//! Uses more time and memory in SQL than its limits, and holds the write lock.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Migration, Pack, Tool, ToolError, Value, tools};

/// Run a query with two long texts in a read call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// Query to run with two parameters.
    sql: String,
    /// Length of `?1` (letters `z`) and `?2` (letters `a` and a final `z`).
    length: usize,
}

impl Tool for Read {
    const NAME: &'static str = "limit_sql_read";
    const TITLE: &'static str = "Read";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        ask(cx, &self.sql, self.length)
    }
}

/// Run a query with two long texts in a write call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Query to run with two parameters.
    sql: String,
    /// Length of the parameters `?1` and `?2`.
    length: usize,
}

impl Tool for Write {
    const NAME: &'static str = "limit_sql_write";
    const TITLE: &'static str = "Write";
    const EFFECT: Effect = Effect::Write;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        ask(cx, &self.sql, self.length)
    }
}

fn ask(cx: &Cx<'_>, sql: &str, length: usize) -> Result<Done, ToolError> {
    let texts = [
        Value::Text("z".repeat(length)),
        Value::Text(format!("{}z", "a".repeat(length.saturating_sub(1)))),
    ];
    let rows = cx.db.query(sql, &texts)?;
    Ok(Done::new(format!("{} rows", rows.len())))
}

/// Keep a transaction open.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// Way to end: `spin` or `query` without end, or `end` at once.
    how: String,
}

impl Tool for Hold {
    const NAME: &'static str = "limit_sql_hold";
    const TITLE: &'static str = "Hold";
    const EFFECT: Effect = Effect::Run;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        cx.transaction(|db| -> Result<Done, ToolError> {
            db.execute("INSERT INTO limit_sql_rows (body) VALUES ('held')", &[])?;
            match self.how.as_str() {
                "spin" => spin(),
                "query" => loop {
                    let _ = db.query(ENDLESS, &[]);
                },
                _ => Ok(Done::new("done")),
            }
        })
    }
}

const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

fn spin() -> ! {
    let mut count = 0_u64;
    loop {
        count = std::hint::black_box(count.wrapping_add(1));
    }
}

/// Insert a row.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {}

impl Tool for Note {
    const NAME: &'static str = "limit_sql_note";
    const TITLE: &'static str = "Note";
    const EFFECT: Effect = Effect::Write;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        cx.db
            .execute("INSERT INTO limit_sql_rows (body) VALUES ('noted')", &[])?;
        Ok(Done::new("noted"))
    }
}

const PACK: Pack = Pack {
    name: "limit-sql",
    version: "0.1.0",
    summary: "Wants too much of SQL.",
    tools: tools![Read, Write, Hold, Note],
    migrations: &[Migration {
        name: "0001_init",
        sql: "CREATE TABLE limit_sql_rows (id INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    }],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
