//! Does things on request and then fails with any code, to test which of them use up an approval.

use guests::Done;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tollgate_sdk::{
    ApprovalRequest, Command, Cx, Db, DbError, Effect, Event, GitAccess, Migration, Pack, ProcessError,
    Question, Tool, ToolError, Want, tools,
};

/// Act in a run call, then fail or ask.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Names of the actions, in this order.
    actions: Vec<String>,
    /// Code of the error at the end.
    code: String,
    /// Ask the client's user at the end, and succeed once there is an answer. Default false.
    #[serde(default)]
    asks: bool,
}

impl Tool for Run {
    const NAME: &'static str = "side_effects_run";
    const TITLE: &'static str = "Act in a run";
    const EFFECT: Effect = Effect::Run;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        for action in &self.actions {
            match statement(action) {
                Some(sql) => cx.transaction(|db| run(&db, sql))?,
                None if action == "rolled_back" => roll_back(cx),
                None => act(cx, action)?,
            }
        }
        let error = ToolError::new(self.code, "asked to fail");
        if !self.asks {
            return Err(error);
        }
        match cx.answer("go_on") {
            Some(_) => Ok(Done::new("done")),
            None => Err(error.ask(Question::with_form("go_on", "Go on?", form()))),
        }
    }
}

/// Form for a yes or no.
fn form() -> Value {
    json!({"type": "object", "properties": {"go_on": {"type": "boolean"}}, "required": ["go_on"]})
}

/// Act in a write call, then fail.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Names of the actions, in this order.
    actions: Vec<String>,
    /// Code of the error at the end.
    code: String,
    /// Keep what was written although the call fails. Default false.
    #[serde(default)]
    keep: bool,
}

impl Tool for Write {
    const NAME: &'static str = "side_effects_write";
    const TITLE: &'static str = "Act in a write";
    const EFFECT: Effect = Effect::Write;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        for action in &self.actions {
            match statement(action) {
                Some(sql) => run(&cx.db, sql)?,
                None => act(cx, action)?,
            }
        }
        if self.keep {
            cx.keep_rows();
        }
        Err(ToolError::new(self.code, "asked to fail"))
    }
}

/// Statement of an action that uses the pack's tables.
fn statement(action: &str) -> Option<&'static str> {
    Some(match action {
        "look" => "SELECT count(*) FROM side_effects_rows",
        "unchanged" => "UPDATE side_effects_rows SET body = 'y' WHERE body = 'none' RETURNING id",
        "row" => "INSERT INTO side_effects_rows (body) VALUES ('x')",
        "returned" => "INSERT INTO side_effects_rows (body) VALUES ('x') RETURNING id",
        "cleared" => "DELETE FROM side_effects_rows",
        _ => return None,
    })
}

fn run(db: &Db<'_>, sql: &str) -> Result<(), DbError> {
    db.query(sql, &[]).map(drop)
}

/// Inserts a row in a transaction that is rolled back.
fn roll_back(cx: &Cx<'_>) {
    let undone: Result<(), ToolError> = cx.transaction(|db| {
        run(&db, "INSERT INTO side_effects_rows (body) VALUES ('undone')")?;
        Err(ToolError::new("UNDONE", "undone"))
    });
    drop(undone);
}

fn act(cx: &Cx<'_>, action: &str) -> Result<(), ToolError> {
    let main = cx.workspace("main")?;
    match action {
        "event" => cx.ledger().append(&Event::new("it.was").note("noted"))?,
        "ask" => {
            cx.approvals()
                .ask(&ApprovalRequest::new("one", "Allow one", json!({})))?;
        }
        "withdraw" => {
            cx.approvals().withdraw("one")?;
        }
        "file" => main.write("out/a.txt", b"x")?,
        "refused_file" => drop(main.write("b.txt", b"x")),
        "program" => start(cx, &Command::new("echo"))?,
        "refs" => start(cx, &Command::new("git").args(["for-each-ref"]))?,
        "status" => start(cx, &Command::new("git").args(["status", "--porcelain"]))?,
        "add" => start(cx, &Command::new("git").args(["add", "--", "a"]))?,
        "missing" => match main.run(&Command::new("no-such-program")) {
            Err(ProcessError::NotStarted(_)) => {}
            other => return Err(ToolError::new("NOT_MISSING", format!("{other:?}"))),
        },
        other => return Err(ToolError::new("UNKNOWN_ACTION", other)),
    }
    Ok(())
}

/// Runs a program, which must succeed.
fn start(cx: &Cx<'_>, command: &Command) -> Result<(), ToolError> {
    let outcome = cx.workspace("main")?.run(command)?;
    match outcome.succeeded() {
        true => Ok(()),
        false => Err(ToolError::new("NOT_DONE", outcome.stderr.text())),
    }
}

const PACK: Pack = Pack {
    name: "side-effects",
    version: "0.1.0",
    summary: "Acts and then fails.",
    wants: &[
        Want::WorkspaceRead("*"),
        Want::WorkspaceWrite("out/"),
        Want::Process("echo"),
        Want::Process("no-such-program"),
        Want::Git(GitAccess::Write),
    ],
    tools: tools![Run, Write],
    migrations: &[Migration {
        name: "0001_init",
        sql: "CREATE TABLE side_effects_rows (id INTEGER PRIMARY KEY, body TEXT NOT NULL)",
    }],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
