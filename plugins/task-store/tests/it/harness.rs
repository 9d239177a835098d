//! Scripts of the pack's calls, with short forms, and `reach n` for the way of a task.

use expect_test::Expect;
use serde_json::{Value, json};
use tollgate_sdk::ToolError;
pub(crate) use tollgate_sdk::native::line_of;
use tollgate_sdk::native::{Script, Session};

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

pub(crate) fn script(session: &Session) -> Script<'_> {
    tollgate_kit_test::script(session)
        .short_forms(short_form)
        .way(&WAY)
}

/// Runs a script in a fresh session and compares its log.
pub(crate) fn check(lines: &str, expected: Expect) {
    check_after("", lines, expected);
}

/// Like [`check`], after lines that are not printed.
pub(crate) fn check_after(setup: &str, lines: &str, expected: Expect) {
    let session = Session::new(&task_store::PACK).portable();
    run(&session, setup);
    expected.assert_eq(&run(&session, lines));
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

/// Short forms for the calls that scripts make most.
fn short_form(line: &str) -> Option<(&'static str, Value)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(match words.as_slice() {
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
        ["spec", task, markdown] => (
            "task_update_spec",
            json!({"task_id": task, "spec_markdown": format!("# Acceptance\n{markdown}"),
                "actor": "boss", "actor_role": "orchestrator"}),
        ),
        ["note", task, attempt] => (
            "task_record_checkpoint",
            json!({"task_id": task, "attempt_id": attempt, "checkpoint_type": "heartbeat", "payload": {},
                "actor": "hand", "actor_role": "executor"}),
        ),
        ["open", task] => (
            "task_open_circuit",
            json!({"task_id": task, "reason": "it burns", "actor": "boss", "actor_role": "orchestrator"}),
        ),
        ["recover", task] => ("task_recover", json!({"task_id": task})),
        ["get", task] => ("task_get", json!({"task_id": task})),
        _ => return None,
    })
}
