//! Scripts of the pack's calls. Lines leave out the `tasks_` that all names start with, and the workspace `w`.

use expect_test::Expect;
use serde_json::{Value, json};
use tollgate_kit_test::well_formed_with_nulls;
use tollgate_sdk::native::{Script, Session, line_of};
use tollgate_sdk::{NextCall, Reply, ToolError};

/// A plan with a task of three steps.
pub(crate) const THREE_STEPS: &str = r#"- bootstrap {"plan_title": "P", "task_title": "T", "steps": [
    {"title": "one", "success_criteria": ["c1"], "tests": ["t1"]},
    {"title": "two", "success_criteria": ["c2"], "tests": ["t2"]},
    {"title": "three", "success_criteria": ["c3"], "tests": ["t3"]}]}"#;

pub(crate) fn session() -> Session {
    Session::new(&tasks::PACK).portable()
}

/// A session after lines that have to succeed.
pub(crate) fn after(setup: &[&str]) -> Session {
    let session = session();
    for line in setup {
        ok(&session, line.trim_start_matches("- "));
    }
    session
}

/// Runs a script after some lines and compares its log.
pub(crate) fn check(setup: &[&str], script: &str, expected: Expect) {
    expected.assert_eq(&run(&after(setup), script));
}

fn script(session: &Session) -> Script<'_> {
    tollgate_kit_test::script(session)
        .check(well_formed_with_nulls)
        .prefix("tasks_")
        .default_argument("workspace", json!("w"))
}

/// Runs a script and returns its log.
pub(crate) fn run(session: &Session, lines: &str) -> String {
    script(session).run(lines)
}

/// The structured reply of a call that has to succeed.
pub(crate) fn ok(session: &Session, line: &str) -> Value {
    script(session).reply(line)
}

/// The refusal of a call that has to be refused.
pub(crate) fn refused(session: &Session, line: &str) -> ToolError {
    script(session).refusal(line)
}

/// The arguments that a refusal is for.
pub(crate) fn fields(err: &ToolError) -> Vec<&str> {
    err.blockers
        .iter()
        .filter_map(|blocker| blocker.field.as_deref())
        .collect()
}

/// The texts of a field of all entries of a list.
pub(crate) fn texts<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let entries = list.as_array().unwrap();
    entries
        .iter()
        .map(|entry| entry[field].as_str().unwrap())
        .collect()
}

/// Runs a line.
pub(crate) fn call(session: &Session, line: &str) -> Result<Reply, ToolError> {
    script(session).call(line)
}

/// Runs a tool by its whole name.
pub(crate) fn call_tool(session: &Session, tool: &str, arguments: Value) -> Result<Reply, ToolError> {
    script(session).call_tool(tool, arguments)
}

/// Makes a call that a reply or refusal names.
pub(crate) fn follow(session: &Session, next: &NextCall) -> Value {
    script(session).reply(&line_of(next))
}
