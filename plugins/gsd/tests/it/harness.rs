//! Scripts of the pack's calls, with short forms. The workspace is `app` unless a line names another one.
#![allow(clippy::disallowed_methods, reason = "the tests look at files")]

use std::path::Path;

use expect_test::Expect;
use serde_json::{Value, json};
use tollgate_sdk::native::{Script, Session};
use tollgate_sdk::{NextCall, Reply, ToolError};

/// A milestone with two slices, the second after the first, and two tasks in the first.
pub(crate) const PLANNED: &str = "- plan M01 S01 S02<S01\n- tasks M01/S01 T01 T02\n";

pub(crate) fn script(session: &Session) -> Script<'_> {
    tollgate_kit_test::script(session)
        .short_forms(short_form)
        .default_argument("workspace", json!("app"))
        .actor("actor")
        .terse()
}

/// Runs a script in a fresh session and compares its log.
pub(crate) fn check(lines: &str, expected: Expect) {
    expected.assert_eq(&run(&Session::new(&gsd::PACK).portable(), lines));
}

/// Runs a script and returns its log.
pub(crate) fn run(session: &Session, lines: &str) -> String {
    script(session).run(lines)
}

/// The structured reply of a call that has to succeed.
pub(crate) fn reply(session: &Session, line: &str) -> Value {
    script(session).reply(line)
}

/// The refusal of a call that has to be refused.
pub(crate) fn refusal(session: &Session, line: &str) -> ToolError {
    script(session).refusal(line)
}

/// The text of a tool that has one.
pub(crate) fn text(session: &Session, line: &str) -> String {
    script(session).call(line).unwrap().text.unwrap()
}

/// Runs a tool with these arguments and no others.
pub(crate) fn call(session: &Session, tool: &str, arguments: &str) -> Result<Reply, ToolError> {
    script(session).call_with(tool, arguments)
}

/// Makes every call that an outcome suggests, each in a transaction that is rolled back, and returns their number.
pub(crate) fn follow(session: &Session, line: &str, outcome: &Result<Reply, ToolError>) -> usize {
    let calls = suggested(outcome);
    if let Err(err) = outcome {
        assert!(err.next_call.is_some(), "{line}: no next call in {err:?}");
    }
    for NextCall { tool, arguments } in &calls {
        session.sql("SAVEPOINT followed");
        let accepted = call(session, tool, &Value::Object(arguments.clone()).to_string());
        session.sql("ROLLBACK TO followed");
        session.sql("RELEASE followed");
        assert!(accepted.is_ok(), "{line}: {tool} {arguments:?} → {accepted:?}");
    }
    calls.len()
}

/// The calls that an outcome names.
fn suggested(outcome: &Result<Reply, ToolError>) -> Vec<NextCall> {
    match outcome {
        Err(err) => {
            let blockers = err
                .blockers
                .iter()
                .filter_map(|blocker| blocker.next_call.clone());
            let calls: Vec<NextCall> = blockers.chain(err.next_call.clone()).collect();
            let distinct = err
                .blockers
                .iter()
                .filter_map(|blocker| blocker.next_call.as_ref());
            let mut distinct: Vec<String> = distinct.map(|call| format!("{call:?}")).collect();
            let all = distinct.len();
            distinct.sort();
            distinct.dedup();
            assert_eq!(distinct.len(), all, "a call is named twice: {err:?}");
            calls
        }
        Ok(reply) => {
            let reply: Value = serde_json::from_str(&reply.structured).unwrap();
            let steps = reply["next"].as_array().into_iter().flatten();
            let calls = steps.map(|step| &step["next_call"]).chain([&reply["next_call"]]);
            let calls = calls.filter(|call| call.is_object());
            calls
                .map(|call| serde_json::from_value(call.clone()).unwrap())
                .collect()
        }
    }
}

/// Every file below a directory, with its content.
pub(crate) fn tree(dir: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(tree(&path));
        } else {
            files.push((
                path.display().to_string(),
                std::fs::read_to_string(&path).unwrap(),
            ));
        }
    }
    files.sort();
    files
}

/// Short forms for the calls that scripts make most.
fn short_form(line: &str) -> Option<(&'static str, Value)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(match words.as_slice() {
        ["plan", milestone, slices @ ..] => {
            let (milestone, depends_on) = after(milestone);
            let slices: Vec<Value> = slices
                .iter()
                .map(|slice| {
                    let (id, depends) = after(slice);
                    json!({"slice_id": id, "title": format!("slice {id}"), "depends": depends, "demo": "it runs"})
                })
                .collect();
            let title = format!("milestone {milestone}");
            (
                "gsd_plan_milestone",
                json!({"milestone_id": milestone, "title": title, "depends_on": depends_on, "slices": slices}),
            )
        }
        ["tasks", slice, tasks @ ..] => {
            let tasks: Vec<Value> = tasks
                .iter()
                .map(|id| json!({"task_id": id, "title": format!("task {id}")}))
                .collect();
            ("gsd_plan_slice", at(slice, json!({"tasks": tasks})))
        }
        ["start", unit] => ("gsd_task_start", at(unit, json!({}))),
        ["done", unit] => (
            "gsd_task_complete",
            at(
                unit,
                json!({"one_liner": "did it", "narrative": "All of it.", "verification": "ran it",
                    "verification_evidence": [{"command": "make test", "exit_code": 0, "verdict": "pass"}]}),
            ),
        ),
        ["close", unit] => (
            "gsd_slice_complete",
            at(
                unit,
                json!({"one_liner": "did it", "narrative": "All of it.", "verification": "ran it", "uat_content": "Try it."}),
            ),
        ),
        ["skip", unit] => ("gsd_slice_skip", at(unit, json!({"reason": "not worth it"}))),
        ["validate", unit, verdict] => (
            "gsd_validate_milestone",
            at(unit, json!({"verdict": verdict, "rationale": "looked at it"})),
        ),
        ["finish", unit] => (
            "gsd_milestone_complete",
            at(
                unit,
                json!({"one_liner": "did it", "narrative": "All of it.", "verification_passed": true}),
            ),
        ),
        ["reopen", unit, reason @ ..] => {
            let tool = match unit.split('/').count() {
                1 => "gsd_milestone_reopen",
                2 => "gsd_slice_reopen",
                _ => "gsd_task_reopen",
            };
            (tool, at(unit, json!({"reason": reason.join(" ")})))
        }
        ["claim", unit] => ("gsd_claim", at(unit, json!({}))),
        ["claim", unit, ttl] => (
            "gsd_claim",
            at(unit, json!({"ttl_sec": ttl.parse::<u32>().unwrap()})),
        ),
        ["take", unit, reason @ ..] => (
            "gsd_claim",
            at(unit, json!({"force": true, "reason": reason.join(" ")})),
        ),
        ["release", unit] => ("gsd_release", at(unit, json!({}))),
        ["status"] => ("gsd_status", json!({})),
        _ => return None,
    })
}

/// `S02<S01,S00` is S02 after S01 and S00.
fn after(word: &str) -> (&str, Vec<&str>) {
    match word.split_once('<') {
        Some((id, depends)) => (id, depends.split(',').collect()),
        None => (word, Vec::new()),
    }
}

/// Puts the ids of a unit's key beside other arguments.
fn at(unit: &str, mut arguments: Value) -> Value {
    for (name, id) in ["milestone_id", "slice_id", "task_id"]
        .iter()
        .zip(unit.split('/'))
    {
        arguments[name] = json!(id);
    }
    arguments
}
