//! Remedies: every refusal in every phase names a call that works.

use serde_json::json;
use tollgate_sdk::native::{Session, line_of};
use tollgate_sdk::{NextCall, Tier, ToolError};

use crate::harness::{run, script};

const PHASES: [&str; 11] = [
    "spec_draft",
    "spec_review",
    "execution_ready",
    "executing",
    "spec_gate",
    "quality_gate",
    "awaiting_approval",
    "ready_to_resume",
    "completed",
    "failed",
    "circuit_open",
];

/// Ways of `tsk_1` to each phase, some with an attempt that runs, failed, or was not followed by a review.
const WAYS: [(&str, &str); 25] = [
    ("spec_draft", "reach 1"),
    ("spec_review", "reach 2"),
    ("spec_review", "reach 3"),
    ("execution_ready", "reach 4"),
    ("execution_ready", "reach 5"),
    ("execution_ready", "reach 5 / finish att_1 failed"),
    ("execution_ready", "reach 4 / spec tsk_1 -other"),
    ("execution_ready", "reach 4 / spec tsk_1 #"),
    ("executing", "reach 6"),
    ("executing", "reach 6 / finish att_1 failed"),
    ("spec_gate", "reach 8"),
    ("quality_gate", "reach 10"),
    (
        "awaiting_approval",
        "reach 10 / move tsk_1 quality_gate awaiting_approval / ask tsk_1 att_1 v1",
    ),
    (
        "ready_to_resume",
        "reach 10 / move tsk_1 quality_gate awaiting_approval / ask tsk_1 att_1 v1 / answer tsk_1 apr_1 approved / \
         move tsk_1 awaiting_approval ready_to_resume",
    ),
    (
        "completed",
        "reach 10 / review tsk_1 att_1 quality approved / move tsk_1 quality_gate completed",
    ),
    ("failed", "reach 6 / move tsk_1 executing failed"),
    ("circuit_open", "reach 1 / open tsk_1"),
    ("circuit_open", "reach 6 / open tsk_1"),
    ("circuit_open", "reach 6 / finish att_1 failed / open tsk_1"),
    ("circuit_open", "reach 10 / open tsk_1"),
    ("circuit_open", RESET_ONCE),
    (
        "awaiting_approval",
        "reach 10 / move tsk_1 quality_gate awaiting_approval / ask tsk_1 att_1 v0 / answer tsk_1 apr_1 rejected",
    ),
    (
        "ready_to_resume",
        "reach 10 / move tsk_1 quality_gate awaiting_approval / ask tsk_1 att_1 v0 / answer tsk_1 apr_1 approved / \
         move tsk_1 awaiting_approval ready_to_resume / ask tsk_1 att_1 v1 / answer tsk_1 apr_2 request_changes",
    ),
    ("executing", "reach 6 / review tsk_1 none spec blocked"),
    (
        "quality_gate",
        "reach 10 / review tsk_1 att_1 quality approved / review tsk_1 none spec changes_requested",
    ),
];

/// The way of `tsk_1` to a circuit that may not be reset again.
const RESET_ONCE: &str = "reach 6 / finish att_1 failed / open tsk_1 / move tsk_1 circuit_open execution_ready / \
    start tsk_1 / finish att_2 failed / open tsk_1";

/// A call of each tool, and calls that miss: wrong phases, attempts, approvals and cursors.
fn calls(phase: &str) -> Vec<String> {
    let mut calls: Vec<String> = PHASES
        .iter()
        .map(|to| format!("move tsk_1 {phase} {to}"))
        .collect();
    calls.extend(PHASES.iter().map(|from| format!("move tsk_1 {from} executing")));
    for attempt in ["att_1", "att_9"] {
        calls.extend(["succeeded", "failed", "aborted"].map(|status| format!("finish {attempt} {status}")));
        calls.extend(["spec", "quality"].map(|kind| format!("review tsk_1 {attempt} {kind} approved")));
        calls.push(format!("ask tsk_1 {attempt} v1"));
        calls.push(format!("ask tsk_1 {attempt} v2"));
        calls.push(format!("note tsk_1 {attempt}"));
    }
    let others = [
        "start tsk_1",
        "start tsk_9",
        "review tsk_1 none spec approved",
        "review tsk_1 none quality approved",
        "answer tsk_1 apr_1 approved",
        "answer tsk_1 apr_1 rejected",
        "answer tsk_1 apr_9 approved",
        "open tsk_1",
        "spec tsk_1 -works",
        "get tsk_9",
        "recover tsk_9",
        r#"task_list {"cursor": "tsk_9"}"#,
        r#"task_list {"after": "env_9", "label": "x"}"#,
        r#"task_list_ready {"cursor": "nonsense"}"#,
        r#"task_list_approvals {"cursor": "apr_9"}"#,
        r#"task_transition {"task_id": "tsk_1", "from_phase": "executing", "to_phase": "failed", "reason": "r", "actor_role": "executor"}"#,
        r#"task_record_artifact {"task_id": "tsk_1", "kind": "diff", "uri": "u", "produced_by": "p", "actor_role": "human"}"#,
    ];
    calls.extend(others.map(str::to_owned));
    calls
}

/// Asserts that the next call of a refusal, and each call of its reasons, is not refused where it is made.
fn can_be_followed(session: &Session, told: &str, err: &ToolError) {
    let reasons = err
        .blockers
        .iter()
        .filter_map(|blocker| blocker.next_call.as_ref());
    let next = err
        .next_call
        .as_ref()
        .unwrap_or_else(|| panic!("{told} cannot be resolved: {err:?}"));
    for call in std::iter::once(next).chain(reasons) {
        session.sql("SAVEPOINT followed");
        let followed = script(session).call(&line_of(call));
        session.sql("ROLLBACK TO followed");
        session.sql("RELEASE followed");
        assert!(followed.is_ok(), "{told}: {err}\n{}\n{followed:?}", line_of(call));
    }
    is_explained(told, err, next);
}

/// Asserts that a refusal which names a tool that the default tier does not list says how to call it.
fn is_explained(told: &str, err: &ToolError, next: &NextCall) {
    let unlisted = task_store::PACK
        .tools
        .iter()
        .filter(|tool| tool.tier != Tier::Core);
    let mut named = unlisted.filter(|tool| next.tool == tool.name || err.remediation.contains(tool.name));
    if let Some(tool) = named.next() {
        assert!(
            err.remediation.contains("through tool_call"),
            "{told} names {}: {err:?}",
            tool.name
        );
    }
}

#[test]
fn every_refusal_in_every_phase_can_be_followed() {
    let mut refused = 0;
    for (phase, way) in WAYS {
        let session =
            Session::new(&task_store::PACK).config(&json!({"retry": {"max_attempts": 1, "max_resets": 1}}));
        for line in way.split(" / ") {
            let line = if line.starts_with("reach") {
                line.to_owned()
            } else {
                format!("- {line}")
            };
            run(&session, &line);
        }
        for line in calls(phase) {
            session.sql("SAVEPOINT tried");
            if let Err(err) = script(&session).call(&line) {
                refused += 1;
                can_be_followed(&session, &format!("{way}: {line}"), &err);
            }
            session.sql("ROLLBACK TO tried");
            session.sql("RELEASE tried");
        }
    }
    assert!(refused > 500, "only {refused} calls were refused");
}

#[test]
fn what_is_over_says_so_and_what_to_do() {
    let session = Session::new(&task_store::PACK);
    run(
        &session,
        "reach 10
         - review tsk_1 att_1 quality approved
         - move tsk_1 quality_gate completed",
    );
    for line in [
        "start tsk_1",
        "open tsk_1",
        "spec tsk_1 -works",
        "ask tsk_1 att_1 v1",
        "move tsk_1 completed executing",
        "move tsk_1 executing spec_gate",
    ] {
        let err = script(&session).refusal(line);
        assert!(
            err.remediation.contains("create a new task with task_create"),
            "{line}: {err:?}"
        );
        assert!(!err.remediation.contains("Move the task to"), "{line}: {err:?}");
    }
}
