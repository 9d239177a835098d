//! A pack that uses files and programs, tested natively.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::time::Duration;

use expect_test::expect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::native::{Session, Workspace};
use tollgate_sdk::{Command, Cx, Effect, GitAccess, Migration, Pack, Tool, ToolError, Value, Want, tools};

/// Write a note into a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Note {
    path: String,
    #[serde(default)]
    fail: bool,
}

#[derive(Serialize, JsonSchema)]
struct Noted {
    /// True if the call itself sees the file.
    seen: bool,
    /// The file is older than what it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<bool>,
    /// Reasons for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>>,
}

impl Tool for Note {
    const NAME: &'static str = "notes_write";
    const TITLE: &'static str = "Write";
    const EFFECT: Effect = Effect::Write;
    type Output = Noted;

    fn run(self, cx: &Cx<'_>) -> Result<Noted, ToolError> {
        let workspace = cx.workspace("main")?;
        workspace.append(&self.path, b"noted\n")?;
        if self.fail {
            return Err(ToolError::new("ASKED_TO_FAIL", "asked to fail"));
        }
        Ok(Noted {
            seen: workspace.find(&self.path)?.is_some(),
            stale: None,
            warnings: None,
        })
    }
}

/// Run the registered tests, or any command.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Check {
    #[serde(default)]
    argv: Vec<String>,
    #[serde(default)]
    in_transaction: bool,
    #[serde(default)]
    hurried: bool,
}

#[derive(Serialize, JsonSchema)]
struct Checked {
    ending: String,
    output: String,
}

impl Tool for Check {
    const NAME: &'static str = "notes_check";
    const TITLE: &'static str = "Check";
    const EFFECT: Effect = Effect::Run;
    type Output = Checked;

    fn run(self, cx: &Cx<'_>) -> Result<Checked, ToolError> {
        let workspace = cx.workspace("main")?;
        let command = match self.argv.split_first() {
            Some((program, arguments)) => Command::new(program).args(arguments),
            None => Command::test(workspace.info().test("default").expect("it is registered")),
        };
        let time = Duration::from_millis(if self.hurried { 300 } else { 30_000 });
        let command = command.timeout(time).output_limit(20);
        cx.progress(1, Some(2), "checking");
        let outcome = match self.in_transaction {
            true => cx.transaction(|db| {
                db.execute("INSERT INTO notes_runs (id) VALUES (?1)", &[Value::Integer(1)])?;
                Ok::<_, ToolError>(workspace.run(&command)?)
            })?,
            false => workspace.run(&command)?,
        };
        Ok(Checked {
            ending: format!("{:?}", outcome.ending),
            output: outcome.stdout.text().into_owned(),
        })
    }
}

static PACK: Pack = Pack {
    name: "notes",
    tools: tools![Note, Check],
    wants: &[
        Want::WorkspaceRead("*"),
        Want::WorkspaceWrite("notes/"),
        Want::Tests,
        Want::Git(GitAccess::Read),
        Want::Process("sh"),
    ],
    migrations: &[Migration {
        name: "0001_init",
        sql: "CREATE TABLE notes_runs (id BIGINT);",
    }],
    ..Pack::EMPTY
};

#[test]
fn a_native_session_keeps_the_hosts_rules() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("notes/taken")).unwrap();
    let workspace = Workspace::new("main", place.path())
        .write("notes/")
        .git(GitAccess::Write)
        .test("default", &["sh", "-c", "echo tested"]);
    let session = Session::new(&PACK).workspace(workspace);
    let mut log = session.script(
        r#"
        notes_write {"path": "notes/a", "fail": true}
        notes_write {"path": "notes/a"}
        notes_write {"path": "notes/a"}
        notes_write {"path": "notes/taken"}
        notes_write {"path": "elsewhere"}
        notes_write {"path": "../out"}
        notes_check {}
        notes_check {"in_transaction": true}
        notes_check {"argv": ["sh", "-c", "echo not registered"]}
        notes_check {"argv": ["git", "commit", "-m", "x"]}
        notes_check {"argv": ["git", "version", "--build-options"]}
        "#,
    );
    // Git's version is the machine's own; that it was cut is what counts.
    log.truncate(log.rfind("ok ").unwrap());
    expect![[r#"
        err ASKED_TO_FAIL: asked to fail
        ok {"seen":false}
        ok {"seen":true}
        ok {"seen":true,"stale":true,"warnings":["`notes/taken` exists and is not a regular file"]}
        err WORKSPACE_DENIED: access refused: `elsewhere` is not below a prefix that the pack may write to
        err WORKSPACE_DENIED: access refused: `../out` contains `..`
        ok {"ending":"Exited(0)","output":"tested\n"}
        err PROCESS_FAILED: a transaction is open; run programs outside of transactions
        err PROCESS_DENIED: not allowed: the pack may not run `sh` in `main`
        err PROCESS_DENIED: not allowed: `git commit` writes, but git may only read here; set `git = "write"` in [workspaces.NAME], for a pack that requests it
    "#]].assert_eq(&log);
    assert_eq!(
        std::fs::read_to_string(place.path().join("notes/a")).unwrap(),
        "noted\nnoted\n"
    );
    assert_eq!(session.progress(), ["1/2 checking"; 5]);
}

#[test]
fn a_granted_program_runs_with_any_arguments_and_is_ended_in_time() {
    let place = tempfile::tempdir().unwrap();
    let session = Session::new(&PACK)
        .workspace(Workspace::new("main", place.path()))
        .allow_program("sh")
        .allow_program("python3");
    let log = session.script(
        r#"
        notes_check {"argv": ["sh", "-c", "echo 0123456789; echo abcdefghijklmnopqrst"]}
        notes_check {"argv": ["sh", "-c", "sleep 1000 & sleep 1000"], "hurried": true}
        notes_check {"argv": ["sh", "-c", "kill -9 $$"]}
        notes_check {"argv": ["python3"]}
        "#,
    );
    expect![[r#"
        ok {"ending":"Exited(0)","output":"0123456789\n[12 bytes cut]\nlmnopqrst\n"}
        ok {"ending":"TimedOut","output":""}
        ok {"ending":"Signalled(9)","output":""}
        err PROCESS_DENIED: not allowed: the pack may not run `python3` in `main`
    "#]]
    .assert_eq(&log);
}
