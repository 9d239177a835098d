//! Specs: inputs and outputs that are lists or objects, and what a changed spec means.

use expect_test::expect;
use serde_json::{Value, json};
use tollgate_sdk::native::Session;

use crate::harness::{QUALITY_GATE, check_after, refusal, reply};

fn create(spec: &Value) -> String {
    let arguments = json!({"title": "t", "spec_markdown": "# Inputs\n- a list\n", "workspace": "w",
        "initial_phase": "spec_draft", "spec": spec, "actor_role": "orchestrator"});
    format!("task_create {arguments}")
}

#[test]
fn inputs_and_outputs_are_kept_as_given() {
    let session = Session::new(&task_store::PACK);
    for (id, inputs) in [
        json!({"db": "x", "deep": {"list": [1, null, true]}}),
        json!([{"db": "x"}, "text", 7]),
        json!(["one", "two"]),
    ]
    .iter()
    .enumerate()
    {
        let made = reply(
            &session,
            &create(&json!({"inputs": inputs, "outputs": {"report": "out.html"}})),
        );
        let shown = reply(&session, &format!("get tsk_{}", id + 1));
        for spec in [&made["task"]["spec"], &shown["task"]["spec"]] {
            assert_eq!(spec["inputs"], *inputs);
            assert_eq!(spec["outputs"], json!({"report": "out.html"}));
        }
    }
    // An empty one leaves what the Markdown says.
    for empty in [json!([]), json!({})] {
        let made = reply(&session, &create(&json!({"inputs": empty})));
        assert_eq!(made["task"]["spec"]["inputs"], json!(["a list"]));
    }
}

#[test]
fn inputs_are_bounded_and_no_scalars() {
    let session = Session::new(&task_store::PACK);
    let deep = (0..20).fold(json!([]), |deep, _| json!([deep]));
    for (inputs, told) in [
        (json!("text"), "spec.inputs is neither a list nor an object"),
        (json!(7), "spec.inputs is neither a list nor an object"),
        (deep, "spec.inputs is nested deeper than 16 levels"),
        (
            json!(vec!["x"; 101]),
            "spec.inputs has 101 entries; at most 100 are allowed",
        ),
        (json!([""]), "spec.inputs[0] is blank"),
        (
            json!({"a": "x".repeat(70_000)}),
            "spec has 70012 bytes; at most 65536 are allowed",
        ),
    ] {
        let err = refusal(&session, &create(&json!({"inputs": inputs})));
        assert_eq!(
            (err.code.as_str(), err.message.as_str()),
            ("INVALID_ARGUMENTS", told)
        );
    }
}

#[test]
fn a_changed_spec_needs_a_new_review() {
    check_after(
        "reach 4",
        "
        spec tsk_1 -other ? task.spec_revision
        start tsk_1
        - review tsk_1 none spec approved
        start tsk_1 ? attempt.status
        # An attempt works by the spec, so the spec stays.
        spec tsk_1 -third
        ",
        expect![[r#"
            ok task.spec_revision=2
            err SPEC_NOT_APPROVED: the spec is not approved: there is no review -> task_recover {"task_id":"tsk_1"}
              - SPEC_NOT_APPROVED: the spec is not approved: there is no review
            ok attempt.status="running"
            # An attempt works by the spec, so the spec stays.
            err ATTEMPT_RUNNING: attempt att_1 is still running {"running_attempt_id":"att_1"} -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_RUNNING: attempt att_1 is still running
        "#]],
    );
    check_after(
        QUALITY_GATE,
        "spec tsk_1 -other",
        expect![[r#"
        err WRONG_PHASE: task_update_spec is not allowed in phase quality_gate {"phase":"quality_gate","allowed_phases":["spec_draft","execution_ready"]} -> task_recover {"task_id":"tsk_1"}
          - WRONG_PHASE: task_update_spec is not allowed in phase quality_gate
    "#]],
    );
}
