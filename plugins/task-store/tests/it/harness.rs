//! Runs scripts of tool calls and prints what comes back.
//!
//! A line is `tool {arguments}` or one of the short forms in [`expand`]. A line that starts with `-` has to
//! succeed and is not printed; `reach n` runs the first `n` steps of [`WAY`] so; `+ms` lets time pass; `#`
//! comments are kept.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use expect_test::Expect;
use serde_json::{Value, json};
use tollgate_sdk::native::Session;
use tollgate_sdk::{NextCall, Reply, ToolError};

/// A spec with every part.
pub(crate) const SPEC: &str = "## Goal\nShip it.\n## Scope\n### In\n- the server\n### Out\n- the client\n## Inputs\n- the source\n\
    ## Outputs\n- a binary\n## Acceptance\n- it runs\n- it stops\n## Risks\n- none\n";

/// The way of a task `tsk_1` to `quality_gate`, with `att_1` as its attempt.
const WAY: [&str; 10] = [
    "create one",
    "move tsk_1 spec_draft spec_review",
    "review tsk_1 none spec approved",
    "move tsk_1 spec_review execution_ready",
    "start tsk_1",
    "move tsk_1 execution_ready executing",
    "finish att_1 succeeded",
    "move tsk_1 executing spec_gate",
    "review tsk_1 att_1 spec approved",
    "move tsk_1 spec_gate quality_gate",
];

/// Brings `tsk_1` to `execution_ready`.
pub(crate) const READY: &str = "reach 4";

/// Brings `tsk_1` to `executing`, with `att_1` running.
pub(crate) const EXECUTING: &str = "reach 6";

/// Brings `tsk_1` to `quality_gate`, `att_1` having ended.
pub(crate) const QUALITY_GATE: &str = "reach 10";

/// Runs a script in a fresh session and compares its log.
pub(crate) fn check(script: &str, expected: Expect) {
    expected.assert_eq(&run(&Session::new(&task_store::PACK), script));
}

/// Like [`check`], after lines that are not printed.
pub(crate) fn check_after(setup: &str, script: &str, expected: Expect) {
    let session = Session::new(&task_store::PACK);
    run(&session, setup);
    expected.assert_eq(&run(&session, script));
}

/// Runs a script and returns its log.
pub(crate) fn run(session: &Session, script: &str) -> String {
    let mut log = String::new();
    for line in script.lines().map(str::trim) {
        if let Some(ms) = line.strip_prefix('+') {
            session.advance_ms(ms.parse().unwrap());
        } else if let Some(steps) = line.strip_prefix("reach ") {
            for line in &WAY[..steps.parse().unwrap()] {
                reply(session, line);
            }
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

/// The call that a refusal or reply names, as a line of a script.
pub(crate) fn line_of(call: &NextCall) -> String {
    format!("{} {}", call.tool, Value::Object(call.arguments.clone()))
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
            for blocker in &err.blockers {
                assert!(!blocker.message.is_empty(), "{err:?}");
            }
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
            let entry = task_store::PACK.tool(tool).unwrap();
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
    let words: Vec<&str> = line.split_whitespace().collect();
    let (tool, arguments) = match words.as_slice() {
        ["create", title] => (
            "task_create",
            json!({"title": title, "spec_markdown": SPEC, "workspace": "main", "initial_phase": "spec_draft",
                "actor": "boss", "actor_role": "orchestrator"}),
        ),
        ["move", task, from, to] => (
            "task_transition",
            json!({"task_id": task, "from_phase": from, "to_phase": to, "reason": "because",
                "actor": "boss", "actor_role": "orchestrator"}),
        ),
        ["start", task] => (
            "task_start_attempt",
            json!({"task_id": task, "phase": "executing", "runtime": "local", "executor_kind": "builder",
                "actor": "boss", "actor_role": "orchestrator"}),
        ),
        ["finish", attempt, status] => (
            "task_finish_attempt",
            json!({"attempt_id": attempt, "status": status, "actor": "hand", "actor_role": "executor"}),
        ),
        ["review", task, attempt, kind, verdict] => {
            let mut arguments = json!({"task_id": task, "review_type": kind, "reviewer_ref": "eye", "verdict": verdict,
                "findings": [], "actor": "eye", "actor_role": format!("{kind}_reviewer")});
            if *attempt != "none" {
                arguments["attempt_id"] = json!(attempt);
            }
            ("task_append_review", arguments)
        }
        ["ask", task, attempt, key] => (
            "task_request_approval",
            json!({"task_id": task, "attempt_id": attempt, "requested_action": "put it online",
                "side_effect_kind": "deploy", "idempotency_key": key, "actor": "gate", "actor_role": "gateway"}),
        ),
        ["answer", task, approval, resolution] => (
            "task_resolve_approval",
            json!({"task_id": task, "approval_id": approval, "resolution": resolution, "resolved_by": "ada",
                "actor": "ada", "actor_role": "human"}),
        ),
        ["open", task] => (
            "task_open_circuit",
            json!({"task_id": task, "reason": "it burns", "actor": "boss", "actor_role": "orchestrator"}),
        ),
        ["recover", task] => ("task_recover", json!({"task_id": task})),
        ["get", task] => ("task_get", json!({"task_id": task})),
        _ => {
            let (tool, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
            return (tool.to_owned(), arguments.to_owned());
        }
    };
    (tool.to_owned(), arguments.to_string())
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
            let _ = write!(text, " -> {}", line_of(next));
        }
        text.push('\n');
    }
    text
}
