//! Approvals: asked once, answered once.

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::native::Session;

use crate::harness::{EXECUTING, check_after, line_of, refusal, reply, run};

#[test]
fn asking_again_is_not_asking_twice() {
    check_after(
        EXECUTING,
        r#"
        ask tsk_1 att_1 v1
        ask tsk_1 att_1 v1
        answer tsk_1 apr_1 rejected
        # Answered or not, it stays the same request.
        ask tsk_1 att_1 v1
        # Another kind with the same key is another request.
        task_request_approval {"task_id": "tsk_1", "attempt_id": "att_1", "requested_action": "tell everybody", "side_effect_kind": "mail", "idempotency_key": "v1", "requested_by": "boss", "status": "pending", "actor": "gate", "actor_role": "orchestrator"}
        task_events {"task_id": "tsk_1", "cursor": 6}
        "#,
        expect![[r#"
            ok {"approval":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:07.000Z"},"replayed":false}
            ok {"approval":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:07.000Z"},"replayed":true}
            ok {"approval":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"rejected","requested_by":"gate","resolved_by":"ada","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:09.000Z"},"replayed":false}
            # Answered or not, it stays the same request.
            ok {"approval":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"rejected","requested_by":"gate","resolved_by":"ada","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:09.000Z"},"replayed":true,"warnings":["the approval was answered with rejected; to request it again, use another idempotency_key"]}
            # Another kind with the same key is another request.
            ok {"approval":{"id":"apr_2","approval_id":"apr_2","task_id":"tsk_1","attempt_id":"att_1","requested_action":"tell everybody","side_effect_kind":"mail","idempotency_key":"v1","status":"pending","requested_by":"boss","created_at":"2026-01-01T00:00:11.000Z"},"replayed":false}
            ok {"events":[{"id":7,"event_id":7,"task_id":"tsk_1","attempt_id":"att_1","event_type":"approval.requested","actor":"gate","actor_role":"gateway","payload":{"after":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:07.000Z"}},"created_at":"2026-01-01T00:00:07.000Z"},{"id":8,"event_id":8,"task_id":"tsk_1","attempt_id":"att_1","event_type":"approval.resolved","actor":"ada","actor_role":"human","payload":{"before":{"status":"pending"},"after":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"rejected","requested_by":"gate","resolved_by":"ada","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:09.000Z"}},"created_at":"2026-01-01T00:00:09.000Z"},{"id":9,"event_id":9,"task_id":"tsk_1","attempt_id":"att_1","event_type":"approval.requested","actor":"gate","actor_role":"orchestrator","payload":{"after":{"id":"apr_2","approval_id":"apr_2","task_id":"tsk_1","attempt_id":"att_1","requested_action":"tell everybody","side_effect_kind":"mail","idempotency_key":"v1","status":"pending","requested_by":"boss","created_at":"2026-01-01T00:00:11.000Z"}},"created_at":"2026-01-01T00:00:11.000Z"}],"has_more":false}
        "#]],
    );
}

#[test]
fn answering_again_is_a_replay_or_a_refusal() {
    check_after(
        EXECUTING,
        r#"
        - ask tsk_1 att_1 v1
        task_resolve_approval {"task_id": "tsk_1", "approval_id": "apr_1", "resolution": "request_changes", "resolved_by": "ada", "note": "not on a Friday", "actor": "gate", "actor_role": "gateway"}
        answer tsk_1 apr_1 request_changes
        answer tsk_1 apr_1 approved
        answer tsk_1 apr_2 approved
        answer tsk_2 apr_1 approved
        "#,
        expect![[r#"
            ok {"approval":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"request_changes","requested_by":"gate","resolved_by":"ada","note":"not on a Friday","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:08.000Z"},"replayed":false}
            ok {"approval":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"request_changes","requested_by":"gate","resolved_by":"ada","note":"not on a Friday","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:08.000Z"},"replayed":true}
            err ALREADY_RESOLVED: approval apr_1 was already answered with request_changes {"status":"request_changes","resolved_by":"ada","resolved_at":"2026-01-01T00:00:08.000Z"} -> task_recover {"task_id":"tsk_1"}
              - ALREADY_RESOLVED (resolution): approval apr_1 was already answered with request_changes
            err NOT_FOUND: approval apr_2 does not exist or belongs to another task -> task_recover {"task_id":"tsk_1"}
              - NOT_FOUND (approval_id): approval apr_2 does not exist or belongs to another task
            err NOT_FOUND: there is no task tsk_2; and 1 more reason
              - NOT_FOUND (task_id): there is no task tsk_2 -> task_list {}
              - NOT_FOUND (approval_id): approval apr_1 does not exist or belongs to another task
        "#]],
    );
}

#[test]
fn a_task_that_is_over_asks_for_nothing_new() {
    check_after(
        EXECUTING,
        "
        - ask tsk_1 att_1 v1
        - move tsk_1 executing failed
        ask tsk_1 att_1 v2
        # What was asked before can still be asked about, and is approved no more.
        ask tsk_1 att_1 v1
        answer tsk_1 apr_1 approved
        ",
        expect![[r#"
            err WRONG_PHASE: task_request_approval is not allowed in phase failed {"phase":"failed","allowed_phases":["spec_draft","spec_review","execution_ready","executing","spec_gate","quality_gate","awaiting_approval","ready_to_resume","circuit_open"]} -> task_recover {"task_id":"tsk_1"}
              - WRONG_PHASE: task_request_approval is not allowed in phase failed
            # What was asked before can still be asked about, and is approved no more.
            ok {"approval":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:07.000Z"},"replayed":true}
            err WRONG_PHASE: task_resolve_approval is not allowed in phase failed {"phase":"failed","allowed_phases":["spec_draft","spec_review","execution_ready","executing","spec_gate","quality_gate","awaiting_approval","ready_to_resume","circuit_open"]} -> task_recover {"task_id":"tsk_1"}
              - WRONG_PHASE: task_resolve_approval is not allowed in phase failed
        "#]],
    );
}

#[test]
fn an_approval_is_for_the_attempt_that_asked() {
    check_after(
        "reach 10
        - move tsk_1 quality_gate awaiting_approval
        - ask tsk_1 att_1 v1
        - answer tsk_1 apr_1 approved
        - move tsk_1 awaiting_approval execution_ready
        - start tsk_1
        - move tsk_1 execution_ready executing
        - finish att_2 succeeded
        - move tsk_1 executing spec_gate
        - review tsk_1 att_2 spec approved
        - move tsk_1 spec_gate quality_gate
        - move tsk_1 quality_gate awaiting_approval",
        "
        move tsk_1 awaiting_approval ready_to_resume
        # The same side effect was approved in another attempt, which does not count.
        ask tsk_1 att_2 v1 ? approval.attempt_id replayed warnings
        ask tsk_1 att_1 v2
        review tsk_1 att_1 quality approved
        - ask tsk_1 att_2 v2
        answer tsk_1 apr_2 approved ? approval.status
        move tsk_1 awaiting_approval ready_to_resume ? phase
        ",
        expect![[r#"
            err APPROVAL_MISSING: no approval was granted for the current attempt -> task_recover {"task_id":"tsk_1"}
              - APPROVAL_MISSING: no approval was granted for the current attempt
            # The same side effect was approved in another attempt, which does not count.
            ok approval.attempt_id="att_1" replayed=true warnings=["the approval belongs to attempt att_1; for attempt att_2 use another idempotency_key"]
            err STALE_ATTEMPT: attempt att_1 is not the task's current one, which is att_2 -> task_recover {"task_id":"tsk_1"}
              - STALE_ATTEMPT (attempt_id): attempt att_1 is not the task's current one, which is att_2
            err STALE_ATTEMPT: attempt att_1 is not the task's current one, which is att_2 -> task_recover {"task_id":"tsk_1"}
              - STALE_ATTEMPT (attempt_id): attempt att_1 is not the task's current one, which is att_2
            ok approval.status="approved"
            ok phase="ready_to_resume"
        "#]],
    );
}

#[test]
fn an_approval_that_comes_too_late_is_refused_and_a_rejection_is_kept() {
    check_after(
        EXECUTING,
        "
        - ask tsk_1 att_1 v1
        - finish att_1 failed
        +30000
        - start tsk_1
        answer tsk_1 apr_1 approved
        answer tsk_1 apr_1 rejected ? approval.status warnings
        task_list_approvals {\"status\": \"rejected\"} ? approvals.0.counts approvals.0.task_title has_more
        ",
        expect![[r#"
            err STALE_ATTEMPT: attempt att_1 is not the task's current one, which is att_2 -> task_recover {"task_id":"tsk_1"}
              - STALE_ATTEMPT (attempt_id): attempt att_1 is not the task's current one, which is att_2
            ok approval.status="rejected" warnings=["attempt att_1 is not the task's current one, so the answer does not advance the task"]
            ok approvals.0.counts=false approvals.0.task_title="one" has_more=false
        "#]],
    );
}

#[test]
fn approvals_of_all_tasks_are_listed() {
    let session = Session::new(&task_store::PACK);
    run(&session, EXECUTING);
    for key in ["v1", "v2", "v3"] {
        run(&session, &format!("- ask tsk_1 att_1 {key}"));
    }
    run(&session, "- answer tsk_1 apr_2 rejected");
    expect![[r#"
        ok {"approvals":[{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:07.000Z","task_title":"one","workspace":"main","task_phase":"executing","counts":true}],"has_more":true,"next_cursor":"apr_1"}
    "#]].assert_eq(&run(&session, r#"task_list_approvals {"limit": 1}"#));
    let keys = |arguments: serde_json::Value| -> Vec<String> {
        let page = reply(&session, &format!("task_list_approvals {arguments}"));
        let approvals = page["approvals"].as_array().unwrap().clone();
        let keys = approvals
            .iter()
            .map(|approval| approval["idempotency_key"].as_str());
        keys.map(|key| key.unwrap().to_owned()).collect()
    };
    assert_eq!(keys(json!({})), ["v1", "v3"]);
    // The earlier name is still accepted.
    for name in ["cursor", "after"] {
        assert_eq!(keys(json!({name: "apr_1"})), ["v3"]);
    }
    assert_eq!(keys(json!({"status": "rejected"})), ["v2"]);
    assert_eq!(keys(json!({"workspace": "other"})), [""; 0]);
    run(&session, "- move tsk_1 executing failed");
    let over = reply(&session, "task_list_approvals");
    assert_eq!(over["approvals"][0]["counts"], false, "{over}");
}

#[test]
fn requests_take_from_the_budget_where_there_is_one() {
    let session = Session::new(&task_store::PACK);
    run(&session, EXECUTING);
    // Without an envelope, and in one without the budget, requests are not limited.
    run(&session, "- ask tsk_1 att_1 v1");
    session.set_envelope(Some("env_1"));
    run(&session, "- ask tsk_1 att_1 v2");
    session.set_budget("approvals", 1);
    run(&session, "- ask tsk_1 att_1 v3");
    // A replay takes nothing, and a refused call gives its unit back.
    run(&session, "- ask tsk_1 att_1 v3");
    let refused = refusal(&session, "ask tsk_1 att_1 v4");
    assert_eq!(refused.code, "BUDGET_EXHAUSTED", "{refused:?}");
    assert_eq!(refused.next_call.unwrap().tool, "task_recover");
    let used = session.envelope().unwrap().counter("approvals").unwrap().used;
    assert_eq!(used, 1);
    session.set_envelope(None);
    run(&session, "- ask tsk_1 att_1 v4");
}

/// Brings `tsk_1` to `awaiting_approval`, `att_1` having succeeded.
const AWAITING: &str = "reach 10\n- move tsk_1 quality_gate awaiting_approval";

#[test]
fn one_approval_of_two_is_not_enough() {
    check_after(
        AWAITING,
        "
        - ask tsk_1 att_1 v1
        - ask tsk_1 att_1 v2
        - answer tsk_1 apr_1 approved
        move tsk_1 awaiting_approval ready_to_resume
        - answer tsk_1 apr_2 rejected
        move tsk_1 awaiting_approval ready_to_resume
        task_list_ready ? answered.0.approval_id answered.0.status answered.0.next_call.arguments.to_phase
        # Asking the same again is told that it was denied, and another key replaces it.
        ask tsk_1 att_1 v2 ? replayed approval.status warnings
        ask tsk_1 att_1 v3 ? replayed approval.status replaces
        ask tsk_1 att_1 v3 ? replayed approval.status replaces
        move tsk_1 awaiting_approval ready_to_resume
        task_list_approvals {\"status\": \"rejected\"} ? approvals.0.replaced_by approvals.0.counts
        - answer tsk_1 apr_3 approved
        task_list_ready ? answered.0.approval_id answered.0.status answered.0.next_call.arguments.to_phase
        move tsk_1 awaiting_approval ready_to_resume ? phase
        ",
        expect![[r#"
            err APPROVAL_PENDING: an approval for the current attempt is still pending -> task_recover {"task_id":"tsk_1"}
              - APPROVAL_PENDING: an approval for the current attempt is still pending
            err APPROVAL_DENIED: an approval for the current attempt was denied
              - APPROVAL_DENIED: an approval for the current attempt was denied -> task_transition {"task_id":"tsk_1","from_phase":"awaiting_approval","to_phase":"execution_ready","reason":"an approval was denied","actor":"boss","actor_role":"orchestrator"}
            ok answered.0.approval_id="apr_2" answered.0.status="rejected" answered.0.next_call.arguments.to_phase="execution_ready"
            # Asking the same again is told that it was denied, and another key replaces it.
            ok replayed=true approval.status="rejected" warnings=["the approval was answered with rejected; to request it again, use another idempotency_key"]
            ok replayed=false approval.status="pending" replaces=["apr_2"]
            ok replayed=true approval.status="pending" replaces=["apr_2"]
            err APPROVAL_PENDING: an approval for the current attempt is still pending -> task_recover {"task_id":"tsk_1"}
              - APPROVAL_PENDING: an approval for the current attempt is still pending
            ok approvals.0.replaced_by="apr_3" approvals.0.counts=false
            ok answered.0.approval_id="apr_3" answered.0.status="approved" answered.0.next_call.arguments.to_phase="ready_to_resume"
            ok phase="ready_to_resume"
        "#]],
    );
}

#[test]
fn a_denial_is_not_outvoted_by_an_approval_of_something_else() {
    let session = Session::new(&task_store::PACK);
    run(&session, AWAITING);
    run(
        &session,
        "
        - ask tsk_1 att_1 v1
        - answer tsk_1 apr_1 request_changes
        - task_request_approval {\"task_id\": \"tsk_1\", \"attempt_id\": \"att_1\", \"requested_action\": \"tell everybody\", \"side_effect_kind\": \"mail\", \"idempotency_key\": \"v1\", \"actor_role\": \"gateway\"}
        - answer tsk_1 apr_2 approved
        ",
    );
    let refused = refusal(&session, "move tsk_1 awaiting_approval ready_to_resume");
    assert_eq!(refused.code, "APPROVAL_DENIED", "{refused:?}");
    // The remedy can be followed: the task gets another attempt, for which nothing was denied.
    let back = refused.blockers[0].next_call.as_ref().unwrap();
    assert_eq!(back.arguments["to_phase"], "execution_ready", "{back:?}");
    reply(&session, &line_of(back));
    run(&session, "- start tsk_1");
    assert_eq!(
        reply(&session, "move tsk_1 execution_ready executing")["phase"],
        "executing"
    );
}

#[test]
fn what_was_denied_keeps_a_task_from_being_completed() {
    check_after(
        "reach 10
        - review tsk_1 att_1 quality approved
        - ask tsk_1 att_1 v1
        - answer tsk_1 apr_1 rejected",
        "
        move tsk_1 quality_gate completed
        - ask tsk_1 att_1 v2
        move tsk_1 quality_gate completed
        - answer tsk_1 apr_2 approved
        move tsk_1 quality_gate completed ? phase
        ",
        expect![[r#"
            err APPROVAL_DENIED: an approval for the current attempt was denied
              - APPROVAL_DENIED: an approval for the current attempt was denied -> task_transition {"task_id":"tsk_1","from_phase":"quality_gate","to_phase":"execution_ready","reason":"an approval was denied","actor":"boss","actor_role":"orchestrator"}
            err APPROVAL_PENDING: an approval for the current attempt is still pending -> task_recover {"task_id":"tsk_1"}
              - APPROVAL_PENDING: an approval for the current attempt is still pending
            ok phase="completed"
        "#]],
    );
}
