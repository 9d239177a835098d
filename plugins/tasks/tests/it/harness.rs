//! Runs scripts of tool calls and prints what comes back.
//!
//! A line is `tool {arguments}`, without the `tasks_` that all names start with; `workspace` is `w` unless the
//! arguments say otherwise. A line that starts with `- ` has to succeed and is not printed; `#` comments are
//! kept; `+ms` lets time pass.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use expect_test::Expect;
use serde_json::{Map, Value, json};
use tollgate_sdk::native::Session;
use tollgate_sdk::{NextCall, Reply, ToolError};

/// A plan with a task of three steps.
pub(crate) const THREE: &str = r#"- bootstrap {"plan_title": "P", "task_title": "T", "steps": [
    {"title": "one", "success_criteria": ["c1"], "tests": ["t1"]},
    {"title": "two", "success_criteria": ["c2"], "tests": ["t2"]},
    {"title": "three", "success_criteria": ["c3"], "tests": ["t3"]}]}"#;

pub(crate) fn session() -> Session {
    Session::new(&tasks::PACK)
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

/// Runs a script and returns its log.
pub(crate) fn run(session: &Session, script: &str) -> String {
    let mut log = String::new();
    for line in script.lines().map(str::trim) {
        if let Some(ms) = line.strip_prefix('+') {
            session.advance_ms(ms.parse().unwrap());
        } else if let Some(line) = line.strip_prefix("- ") {
            ok(session, line);
        } else if line.starts_with('#') {
            let _ = writeln!(log, "{line}");
        } else if !line.is_empty() {
            log += &outcome(&call(session, line));
        }
    }
    log
}

/// The structured reply of a call that has to succeed.
pub(crate) fn ok(session: &Session, line: &str) -> Value {
    let reply = call(session, line).unwrap_or_else(|err| panic!("{line}: {err:#?}"));
    serde_json::from_str(&reply.structured).unwrap()
}

/// The refusal of a call that has to be refused.
pub(crate) fn refused(session: &Session, line: &str) -> ToolError {
    call(session, line).expect_err(line)
}

/// Runs a line. Arguments that succeed fit the input schema, and replies the output schema.
pub(crate) fn call(session: &Session, line: &str) -> Result<Reply, ToolError> {
    let (tool, arguments) = line.split_once([' ', '\n']).unwrap_or((line, "{}"));
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|err| panic!("{line}: {err}"));
    call_tool(session, &format!("tasks_{tool}"), arguments)
}

/// Runs a tool by its whole name.
pub(crate) fn call_tool(session: &Session, tool: &str, mut arguments: Value) -> Result<Reply, ToolError> {
    if arguments.get("workspace").is_none() {
        arguments["workspace"] = json!("w");
    }
    let result = session.call(tool, &arguments.to_string());
    match &result {
        Ok(reply) => {
            fits(tool, "input", &arguments);
            fits(tool, "output", &serde_json::from_str(&reply.structured).unwrap());
        }
        Err(err) => {
            assert!(!err.remediation.is_empty(), "{err:?} says what to do");
            if let Some(next) = &err.next_call {
                fits(&next.tool, "input", &Value::Object(next.arguments.clone()));
            }
            for blocker in &err.blockers {
                assert!(!blocker.message.is_empty(), "{err:?}");
                if let Some(next) = &blocker.next_call {
                    fits(&next.tool, "input", &Value::Object(next.arguments.clone()));
                }
            }
        }
    }
    result
}

/// Makes a call that a reply or refusal names.
pub(crate) fn follow(session: &Session, next: &NextCall) -> Value {
    let reply = call_tool(session, &next.tool, Value::Object(next.arguments.clone()));
    serde_json::from_str(&reply.unwrap().structured).unwrap()
}

thread_local! {
    static VALIDATORS: RefCell<HashMap<String, jsonschema::Validator>> = RefCell::default();
}

fn fits(tool: &str, side: &str, value: &Value) {
    VALIDATORS.with_borrow_mut(|validators| {
        let validator = validators.entry(format!("{tool} {side}")).or_insert_with(|| {
            let entry = tasks::PACK
                .tool(tool)
                .unwrap_or_else(|| panic!("there is no {tool}"));
            let mut schema = match side {
                "input" => (entry.input_schema)(),
                _ => (entry.output_schema)(),
            };
            widen(&mut schema);
            jsonschema::validator_for(&schema).unwrap()
        });
        let faults: Vec<_> = validator.iter_errors(value).map(|err| err.to_string()).collect();
        assert!(faults.is_empty(), "{tool} {side} {value}: {faults:?}");
    });
}

/// What the host does with the other form that a property says it accepts.
fn widen(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(widen);
            if let Some(other) = members.remove("x-accepts") {
                let listed = Value::Object(std::mem::take(members));
                *members = Map::from_iter([("anyOf".to_owned(), json!([listed, other]))]);
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(widen),
        _ => {}
    }
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
    for blocker in &err.blockers {
        let _ = write!(text, "  - {}", blocker.code);
        if let Some(field) = &blocker.field {
            let _ = write!(text, " ({field})");
        }
        let _ = write!(text, ": {}", blocker.message);
        if let Some(next) = &blocker.next_call {
            let _ = write!(
                text,
                " -> {} {}",
                next.tool,
                Value::Object(next.arguments.clone())
            );
        }
        text.push('\n');
    }
    text
}
