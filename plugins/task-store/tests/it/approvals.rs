//! Approvals: asked once, answered once.

use expect_test::expect;

use crate::harness::{EXECUTING, check_after};

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
        task_events {"task_id": "tsk_1", "after_id": 6}
        "#,
        expect![[r#"
            ok {"approval":{"id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:07.000Z"},"replayed":false}
            ok {"approval":{"id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:07.000Z"},"replayed":true}
            ok {"approval":{"id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"rejected","requested_by":"gate","resolved_by":"ada","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:09.000Z"},"replayed":false}
            # Answered or not, it stays the same request.
            ok {"approval":{"id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"rejected","requested_by":"gate","resolved_by":"ada","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:09.000Z"},"replayed":true}
            # Another kind with the same key is another request.
            ok {"approval":{"id":"apr_2","task_id":"tsk_1","attempt_id":"att_1","requested_action":"tell everybody","side_effect_kind":"mail","idempotency_key":"v1","status":"pending","requested_by":"boss","created_at":"2026-01-01T00:00:11.000Z"},"replayed":false}
            ok {"events":[{"id":7,"task_id":"tsk_1","attempt_id":"att_1","event_type":"approval.requested","actor":"gate","actor_role":"gateway","payload":{"after":{"id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:07.000Z"}},"created_at":"2026-01-01T00:00:07.000Z"},{"id":8,"task_id":"tsk_1","attempt_id":"att_1","event_type":"approval.resolved","actor":"ada","actor_role":"human","payload":{"before":{"status":"pending"},"after":{"id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"rejected","requested_by":"gate","resolved_by":"ada","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:09.000Z"}},"created_at":"2026-01-01T00:00:09.000Z"},{"id":9,"task_id":"tsk_1","attempt_id":"att_1","event_type":"approval.requested","actor":"gate","actor_role":"orchestrator","payload":{"after":{"id":"apr_2","task_id":"tsk_1","attempt_id":"att_1","requested_action":"tell everybody","side_effect_kind":"mail","idempotency_key":"v1","status":"pending","requested_by":"boss","created_at":"2026-01-01T00:00:11.000Z"}},"created_at":"2026-01-01T00:00:11.000Z"}]}
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
            ok {"approval":{"id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"request_changes","requested_by":"gate","resolved_by":"ada","note":"not on a Friday","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:08.000Z"},"replayed":false}
            ok {"approval":{"id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"request_changes","requested_by":"gate","resolved_by":"ada","note":"not on a Friday","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:08.000Z"},"replayed":true}
            err ALREADY_RESOLVED: approval apr_1 was already answered with request_changes {"status":"request_changes","resolved_by":"ada","resolved_at":"2026-01-01T00:00:08.000Z"}
              - ALREADY_RESOLVED (resolution): approval apr_1 was already answered with request_changes
            err APPROVAL_NOT_FOUND: approval apr_2 does not exist or belongs to another task
              - APPROVAL_NOT_FOUND (approval_id): approval apr_2 does not exist or belongs to another task
            err TASK_NOT_FOUND: there is no task tsk_2; and 1 more reason
              - TASK_NOT_FOUND (task_id): there is no task tsk_2 -> task_list {}
              - APPROVAL_NOT_FOUND (approval_id): approval apr_1 does not exist or belongs to another task
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
        # What was asked before can still be asked about and answered.
        ask tsk_1 att_1 v1
        answer tsk_1 apr_1 approved
        ",
        expect![[r#"
            err WRONG_PHASE: task_request_approval is not allowed in phase failed {"phase":"failed","allowed_phases":["spec_draft","spec_review","execution_ready","executing","spec_gate","quality_gate","awaiting_approval","ready_to_resume","circuit_open"]}
              - WRONG_PHASE: task_request_approval is not allowed in phase failed
            # What was asked before can still be asked about and answered.
            ok {"approval":{"id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:07.000Z"},"replayed":true}
            ok {"approval":{"id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"approved","requested_by":"gate","resolved_by":"ada","created_at":"2026-01-01T00:00:07.000Z","resolved_at":"2026-01-01T00:00:11.000Z"},"replayed":false}
        "#]],
    );
}
