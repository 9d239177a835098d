//! Runs any SQL on request, to test what the host permits.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Migration, Pack, Tool, ToolError, Value, tools};

/// Run statements in a write call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Execute {
    /// Statements to run, in this order.
    sql: Vec<String>,
    /// Fail after the statements. Default false.
    #[serde(default)]
    fail: bool,
}

impl Tool for Execute {
    const NAME: &'static str = "sql_access_execute";
    const TITLE: &'static str = "Execute";
    const EFFECT: Effect = Effect::Write;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let mut results = Vec::new();
        for sql in &self.sql {
            results.push(match cx.db.execute(sql, &[]) {
                Ok(changed) => format!("changed {changed}"),
                Err(err) => format!("{err}"),
            });
        }
        if self.fail {
            return Err(ToolError::new("ASKED_TO_FAIL", results.join("; ")));
        }
        Ok(Done::new(results.join("; ")))
    }
}

/// Run a query in a read call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Query to run on the tables.
    sql: String,
}

impl Tool for Query {
    const NAME: &'static str = "sql_access_query";
    const TITLE: &'static str = "Query";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        Ok(Done::new(match cx.db.query(&self.sql, &[]) {
            Ok(rows) => format!("{} rows", rows.len()),
            Err(err) => err.to_string(),
        }))
    }
}

/// Insert rows of a given size.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    /// Number of rows to insert.
    rows: u32,
    /// Number of bytes of each row.
    bytes: u32,
}

impl Tool for Fill {
    const NAME: &'static str = "sql_access_fill";
    const TITLE: &'static str = "Fill";
    const EFFECT: Effect = Effect::Write;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let body = Value::Blob(vec![7; self.bytes as usize]);
        for _ in 0..self.rows {
            cx.db.execute(
                "INSERT INTO sql_access_rows (body) VALUES (?1)",
                std::slice::from_ref(&body),
            )?;
        }
        Ok(Done::new("filled"))
    }
}

/// Use storage in a run call, without and with a transaction.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {}

impl Tool for Run {
    const NAME: &'static str = "sql_access_run";
    const TITLE: &'static str = "Run";
    const EFFECT: Effect = Effect::Run;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let outside = match cx
            .db
            .execute("INSERT INTO sql_access_rows (body) VALUES (?1)", &[Value::Null])
        {
            Ok(_) => "let through".to_owned(),
            Err(err) => err.to_string(),
        };
        let inside = cx
            .transaction(|db| db.execute("INSERT INTO sql_access_rows (body) VALUES (?1)", &[Value::Null]))?;
        Ok(Done::new(format!("{outside}; changed {inside}")))
    }
}

const PACK: Pack = Pack {
    name: "sql-access",
    version: "0.1.0",
    summary: "Runs any SQL.",
    tools: tools![Execute, Query, Fill, Run],
    migrations: &[Migration {
        name: "0001_init",
        sql:
            "CREATE TABLE sql_access_rows (id INTEGER PRIMARY KEY, body BLOB);
              CREATE TABLE sql_access_log (id INTEGER PRIMARY KEY, line TEXT NOT NULL) WITH (append_only = true);",
    }],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
