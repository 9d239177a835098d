//! One task from its plan to the end, as an agent works.

use expect_test::expect;
use serde_json::Value;
use tollgate_sdk::NextCall;

use crate::harness::{THREE_STEPS, check, follow, ok, refused, session};

#[test]
fn from_bootstrap_to_handoff() {
    let script = r#"
        # refused: nothing is confirmed
        done {"task": "TASK-001", "path": "s:0"}
        evidence_capture {"task": "TASK-001", "path": "s:0", "checkpoint": "tests", "items": [{"kind": "cmd_output", "title": "cargo test", "body": "ok token=abcd1234", "exit_code": 0}]}
        close_step {"task": "TASK-001", "path": "s:0", "step_id": "STEP-00000001", "expected_revision": 2, "checkpoints": {"criteria": {"confirmed": true}, "tests": {"confirmed": true}}}
        close_step {"task": "TASK-001", "path": "s:1", "checkpoints": "gate", "events": true}
        radar {"task": "TASK-001"}
        undo {"task": "TASK-001"}
        handoff {"task": "TASK-001"}
        "#;
    check(
        &[THREE_STEPS],
        script,
        expect![[r##"
            # refused: nothing is confirmed
            err CHECKPOINTS_NOT_CONFIRMED: checkpoint `criteria` of step s:0 is not confirmed; and 1 more reason
              - CHECKPOINTS_NOT_CONFIRMED: checkpoint `criteria` of step s:0 is not confirmed -> tasks_verify {"workspace":"w","task":"TASK-001","step_id":"STEP-00000001","checkpoints":{"criteria":{"confirmed":true},"tests":{"confirmed":true}}}
              - CHECKPOINTS_NOT_CONFIRMED: checkpoint `tests` of step s:0 is not confirmed
            ok {"task":"TASK-001","revision":2,"step":{"step_id":"STEP-00000001","path":"s:0"},"ids":["EVD-00000004"],"next":"Close s:0: one","warnings":[{"code":"SECRETS_REDACTED","message":"1 likely secrets were redacted and not stored"}],"next_calls":[{"tool":"tasks_close_step","arguments":{"workspace":"w","task":"TASK-001","step_id":"STEP-00000001","checkpoints":{"criteria":{"confirmed":true},"tests":{"confirmed":true}}}}]}
            ok {"task":"TASK-001","revision":3,"step":{"step_id":"STEP-00000001","path":"s:0"},"next":"Do s:1: two","next_calls":[{"tool":"tasks_show","arguments":{"workspace":"w","task":"TASK-001","step_id":"STEP-00000002"}}]}
            ok {"task":"TASK-001","revision":4,"step":{"step_id":"STEP-00000002","path":"s:1"},"events":[{"seq":8,"type":"step_verified","task":"TASK-001","revision":4,"target":"STEP-00000002","data":{"path":"s:1","checkpoints":["criteria","tests"]},"at":"2026-01-01T00:00:05.000Z"},{"seq":9,"type":"step_done","task":"TASK-001","revision":4,"target":"STEP-00000002","data":{"path":"s:1","title":"two"},"at":"2026-01-01T00:00:05.000Z"}],"next":"Do s:2: three","next_calls":[{"tool":"tasks_show","arguments":{"workspace":"w","task":"TASK-001","step_id":"STEP-00000003"}}]}
            ok {"task":"TASK-001","revision":4,"now":"TASK-001 ACTIVE at s:2: three","next":"Do s:2, attach evidence, then confirm and close it.","verify":"criteria: c3 | tests: t3","why":"P","blockers":[],"step":{"step_id":"STEP-00000003","path":"s:2"},"progress":{"done":2,"total":3},"next_calls":[{"tool":"tasks_show","arguments":{"workspace":"w","task":"TASK-001","step_id":"STEP-00000003"}}]}
            ok {"task":"TASK-001","revision":5,"reverted":[{"operation":4,"tool":"tasks_close_step","summary":"confirmed criteria, tests of step \"two\" of TASK-001; closed step \"two\" of TASK-001"}],"next":"Do s:1: two","next_calls":[{"tool":"tasks_show","arguments":{"workspace":"w","task":"TASK-001","step_id":"STEP-00000002"}}]}
            ok {"task":"TASK-001","revision":5,"done":["s:0 one"],"remaining":["s:1 two","s:2 three"],"risks":[],"radar":{"task":"TASK-001","revision":5,"now":"TASK-001 ACTIVE at s:1: two","next":"Do s:1, attach evidence, then confirm and close it.","verify":"criteria: c2 | tests: t2","why":"P","blockers":[],"step":{"step_id":"STEP-00000002","path":"s:1"},"progress":{"done":1,"total":3},"next_calls":[{"tool":"tasks_show","arguments":{"workspace":"w","task":"TASK-001","step_id":"STEP-00000002"}}]}}
        "##]],
    );
}

#[test]
fn the_calls_that_replies_name_lead_to_the_end() {
    let session = session();
    let mut reply = ok(&session, THREE_STEPS.trim_start_matches("- "));
    let next =
        |reply: &Value| -> NextCall { serde_json::from_value(reply["next_calls"][0].clone()).unwrap() };
    for path in ["s:0", "s:1", "s:2"] {
        // Untouched work is shown, and never confirmed.
        let shown = next(&reply);
        assert_eq!(shown.tool, "tasks_show");
        assert_eq!(follow(&session, &shown)["step"]["path"], path);
        let radar = ok(&session, r#"radar {"task": "TASK-001"}"#);
        assert_eq!(next(&radar), shown);
        let captured = ok(
            &session,
            &format!(r#"evidence_capture {{"task": "TASK-001", "path": "{path}", "checks": ["it holds"]}}"#),
        );
        let close = next(&captured);
        assert_eq!(close.tool, "tasks_close_step");
        assert_eq!(next(&ok(&session, r#"radar {"task": "TASK-001"}"#)), close);
        reply = follow(&session, &close);
    }
    assert_eq!(reply["next"], "Complete TASK-001: T");
    let refusal = refused(&session, r#"complete {"task": "PLAN-001"}"#);
    assert_eq!(refusal.code, "CHILDREN_OPEN");
    let completed = follow(&session, &next(&reply));
    assert_eq!(
        ok(&session, r#"radar {"plan": "PLAN-001"}"#)["horizon"]["done"],
        1
    );
    assert_eq!(completed["next"], "Complete PLAN-001: P");
    follow(&session, &next(&completed));
    let radar = ok(&session, r#"radar {"plan": "PLAN-001"}"#);
    assert_eq!(radar["now"], "PLAN-001 DONE: P");
}
