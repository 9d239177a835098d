//! Passes more data to the host than it copies.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Event, Level, Migration, Pack, Tool, ToolError, Value, tools};

/// Kind of data.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    // A log line of 16 MiB.
    Line,
    // An SQL value of 16 MiB.
    Value,
    // A list of 600,000 SQL values.
    Values,
    // A list of 600,000 names for the ledger.
    Names,
}

/// Pass too much data to the host.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Heave {
    /// Kind of the data: line, value, values or names.
    load: Load,
}

impl Tool for Heave {
    const NAME: &'static str = "limit_transfer_pass";
    const TITLE: &'static str = "Heave";
    const EFFECT: Effect = Effect::Write;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let insert = "INSERT INTO limit_transfer_rows (body) VALUES (?1)";
        match self.load {
            Load::Line => cx.log(Level::Info, &"x".repeat(16 << 20)),
            Load::Value => drop(cx.db.execute(insert, &[Value::Blob(vec![7; 16 << 20])])?),
            Load::Values => drop(cx.db.execute(insert, &vec![Value::Null; 600_000])?),
            Load::Names => cx
                .ledger()
                .append(&Event::new("transfer.passed").changed(vec![String::new(); 600_000]))?,
        }
        Ok(Done::new("it went through"))
    }
}

const PACK: Pack = Pack {
    name: "limit-transfer",
    version: "0.1.0",
    summary: "Heaves large things.",
    tools: tools![Heave],
    migrations: &[Migration {
        name: "0001_init",
        sql: "CREATE TABLE limit_transfer_rows (id INTEGER PRIMARY KEY, body BLOB);",
    }],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
