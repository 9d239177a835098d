//! Runs scripts of tool calls and prints what comes back.
//!
//! A line is `tool {arguments}` or one of the short forms in [`expand`], which end in `as NAME` to name an actor. A
//! line that starts with `-` has to succeed and is not printed; `+ms` lets time pass; `#` comments are kept.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use expect_test::Expect;
use serde_json::{Value, json};
use tollgate_sdk::native::Session;
use tollgate_sdk::{Effect, Reply, ToolError};

/// A milestone with two slices, the second after the first, and two tasks in the first.
pub(crate) const PLANNED: &str = "- plan M01 S01 S02<S01\n- tasks M01/S01 T01 T02\n";

/// Runs a script in a fresh session and compares its log.
pub(crate) fn check(script: &str, expected: Expect) {
    expected.assert_eq(&run(&Session::new(&gsd::PACK), script));
}

/// Runs a script and returns its log.
pub(crate) fn run(session: &Session, script: &str) -> String {
    let mut log = String::new();
    for line in script.lines().map(str::trim) {
        if let Some(ms) = line.strip_prefix('+') {
            session.advance_ms(ms.parse().unwrap());
        } else if let Some(line) = line.strip_prefix("- ") {
            reply(session, line);
        } else if line.starts_with('#') {
            let _ = writeln!(log, "{line}");
        } else if !line.is_empty() {
            let (tool, arguments) = expand(line);
            log += &outcome(&call(session, &tool, &arguments));
        }
    }
    log
}

/// The structured reply of a call that has to succeed.
pub(crate) fn reply(session: &Session, line: &str) -> Value {
    let (tool, arguments) = expand(line);
    let reply = call(session, &tool, &arguments).unwrap_or_else(|err| panic!("{line}: {err:#?}"));
    serde_json::from_str(&reply.structured).unwrap()
}

/// The refusal of a call that has to be refused.
pub(crate) fn refusal(session: &Session, line: &str) -> ToolError {
    let (tool, arguments) = expand(line);
    call(session, &tool, &arguments).expect_err(line)
}

/// Runs a tool. Its arguments have to fit the input schema if it succeeds, and its reply the output schema.
pub(crate) fn call(session: &Session, tool: &str, arguments: &str) -> Result<Reply, ToolError> {
    let result = session.call(tool, arguments);
    match &result {
        Ok(reply) => {
            fits(tool, "input", arguments);
            fits(tool, "output", &reply.structured);
            assert!(
                !reply.structured.contains(":null"),
                "{tool}: {}",
                reply.structured
            );
        }
        Err(err) => {
            assert!(!err.remediation.is_empty(), "{err:?} says what to do");
            assert!(
                err.blockers.iter().all(|blocker| !blocker.message.is_empty()),
                "{err:?}"
            );
            assert_ne!(err.code, "INTERNAL", "{err:?}");
            assert_ne!(err.code, "STORAGE_FAILED", "{err:?}");
        }
    }
    result
}

thread_local! {
    static VALIDATORS: RefCell<HashMap<String, jsonschema::Validator>> = RefCell::default();
}

fn fits(tool: &str, side: &str, text: &str) {
    let value: Value = serde_json::from_str(text).unwrap();
    VALIDATORS.with_borrow_mut(|validators| {
        let validator = validators.entry(format!("{tool} {side}")).or_insert_with(|| {
            let entry = gsd::PACK.tool(tool).unwrap();
            let schema = match side {
                "input" => (entry.input_schema)(),
                _ => (entry.output_schema)(),
            };
            jsonschema::validator_for(&schema).unwrap()
        });
        let faults: Vec<_> = validator.iter_errors(&value).map(|err| err.to_string()).collect();
        assert!(faults.is_empty(), "{tool} {side} {text}: {faults:?}");
    });
}

/// Short forms for the calls that scripts make most.
pub(crate) fn expand(line: &str) -> (String, String) {
    let (line, actor) = match line.rsplit_once(" as ") {
        Some((rest, actor)) => (rest, Some(actor)),
        None => (line, None),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let (tool, mut arguments) = match words.as_slice() {
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
        ["status"] => return ("gsd_status".to_owned(), "{}".to_owned()),
        _ => {
            let (tool, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
            (
                tool,
                serde_json::from_str(arguments).unwrap_or_else(|err| panic!("{line}: {err}")),
            )
        }
    };
    if arguments.get("workspace").is_none() && gsd::PACK.tool(tool).unwrap().effect != Effect::Read {
        arguments["workspace"] = json!("app");
    }
    if let Some(actor) = actor {
        arguments["actor_name"] = json!(actor);
    }
    (tool.to_owned(), arguments.to_string())
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

fn outcome(result: &Result<Reply, ToolError>) -> String {
    let mut text = String::new();
    let err = match result {
        Ok(reply) => return format!("ok {}\n", reply.structured),
        Err(err) => err,
    };
    let _ = write!(text, "err {}: {}", err.code, err.message);
    if !err.context.is_empty() {
        let _ = write!(text, " {}", Value::Object(err.context.clone()));
    }
    text.push('\n');
    if err.blockers.len() > 1 {
        for blocker in &err.blockers {
            let _ = write!(text, "  - {}", blocker.code);
            if let Some(field) = &blocker.field {
                let _ = write!(text, " ({field})");
            }
            let _ = writeln!(text, ": {}", blocker.message);
        }
    }
    text
}

/// The text of a tool that has one.
pub(crate) fn text(session: &Session, line: &str) -> String {
    let (tool, arguments) = expand(line);
    call(session, &tool, &arguments).unwrap().text.unwrap()
}
