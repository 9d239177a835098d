//! Attempts, waits, escalation and the circuit.

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::native::Session;

use crate::harness::{EXECUTING, READY, check_after, line_of, refusal, reply, run};

#[test]
fn one_attempt_runs_at_a_time() {
    check_after(
        READY,
        "
        start tsk_1
        start tsk_1
        ",
        expect![[r#"
            ok {"attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":false,"started_at":"2026-01-01T00:00:05.000Z"},"attempts_left":2,"next_call":{"tool":"task_transition","arguments":{"task_id":"tsk_1","from_phase":"execution_ready","to_phase":"executing","reason":"an attempt is running","actor":"boss","actor_role":"orchestrator"}}}
            err ATTEMPT_RUNNING: attempt att_1 is still running {"running_attempt_id":"att_1"} -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_RUNNING: attempt att_1 is still running
        "#]],
    );
}

#[test]
fn an_attempt_starts_in_three_phases_only() {
    check_after(
        "- create one",
        "
        start tsk_1
        ",
        expect![[r#"
            err WRONG_PHASE: attempts start in execution_ready, executing or ready_to_resume, but the task is in spec_draft -> task_recover {"task_id":"tsk_1"}
              - WRONG_PHASE: attempts start in execution_ready, executing or ready_to_resume, but the task is in spec_draft
        "#]],
    );
    check_after(
        EXECUTING,
        "
        - finish att_1 failed
        +30000
        # Still in executing.
        start tsk_1
        - finish att_2 succeeded
        - move tsk_1 executing spec_gate
        start tsk_1
        ",
        expect![[r##"
            # Still in executing.
            ok {"attempt":{"id":"att_2","attempt_id":"att_2","task_id":"tsk_1","ordinal":2,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":false,"started_at":"2026-01-01T00:00:38.000Z"},"attempts_left":1}
            err WRONG_PHASE: attempts start in execution_ready, executing or ready_to_resume, but the task is in spec_gate -> task_recover {"task_id":"tsk_1"}
              - WRONG_PHASE: attempts start in execution_ready, executing or ready_to_resume, but the task is in spec_gate
        "##]],
    );
}

#[test]
fn waits_escalation_and_exhaustion() {
    check_after(
        EXECUTING,
        "
        # The first failure: 30 seconds.
        finish att_1 failed
        start tsk_1
        +28000
        start tsk_1
        # The second: two minutes, and the third attempt is escalated.
        finish att_2 aborted
        start tsk_1
        +119000
        start tsk_1
        finish att_3 failed
        # No wait makes a fourth: the circuit opens.
        +100000000
        start tsk_1
        move tsk_1 executing execution_ready
        open tsk_1
        start tsk_1
        move tsk_1 circuit_open execution_ready
        # Retries count anew, ordinals go on.
        start tsk_1
        ",
        expect![[r##"
            # The first failure: 30 seconds.
            ok {"attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"failed","escalate":false,"started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:07.000Z"},"attempts_left":2,"next_retry_at":"2026-01-01T00:00:37.000Z","replayed":false}
            err RETRY_TOO_EARLY: the next attempt may not start before 2026-01-01T00:00:37.000Z {"next_retry_at":"2026-01-01T00:00:37.000Z"} -> task_recover {"task_id":"tsk_1"}
              - RETRY_TOO_EARLY: the next attempt may not start before 2026-01-01T00:00:37.000Z
            ok {"attempt":{"id":"att_2","attempt_id":"att_2","task_id":"tsk_1","ordinal":2,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":false,"started_at":"2026-01-01T00:00:37.000Z"},"attempts_left":1}
            # The second: two minutes, and the third attempt is escalated.
            ok {"attempt":{"id":"att_2","attempt_id":"att_2","task_id":"tsk_1","ordinal":2,"phase":"executing","runtime":"local","executor_kind":"builder","status":"aborted","escalate":false,"started_at":"2026-01-01T00:00:37.000Z","finished_at":"2026-01-01T00:00:38.000Z"},"attempts_left":1,"next_retry_at":"2026-01-01T00:02:38.000Z","replayed":false}
            err RETRY_TOO_EARLY: the next attempt may not start before 2026-01-01T00:02:38.000Z {"next_retry_at":"2026-01-01T00:02:38.000Z"} -> task_recover {"task_id":"tsk_1"}
              - RETRY_TOO_EARLY: the next attempt may not start before 2026-01-01T00:02:38.000Z
            ok {"attempt":{"id":"att_3","attempt_id":"att_3","task_id":"tsk_1","ordinal":3,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":true,"started_at":"2026-01-01T00:02:39.000Z"},"attempts_left":0}
            ok {"attempt":{"id":"att_3","attempt_id":"att_3","task_id":"tsk_1","ordinal":3,"phase":"executing","runtime":"local","executor_kind":"builder","status":"failed","escalate":true,"started_at":"2026-01-01T00:02:39.000Z","finished_at":"2026-01-01T00:02:40.000Z"},"attempts_left":0,"replayed":false}
            # No wait makes a fourth: the circuit opens.
            err RETRIES_EXHAUSTED: all attempts are used up (limit: 3) {"phase":"circuit_open","legal_transitions":["executing","execution_ready","failed"],"max_attempts":3} -> task_recover {"task_id":"tsk_1"}
              - RETRIES_EXHAUSTED: all attempts are used up (limit: 3)
            err PHASE_CONFLICT: the task is in circuit_open, not in executing {"actual_phase":"circuit_open","legal_transitions":["executing","execution_ready","failed"]}
              - PHASE_CONFLICT (from_phase): the task is in circuit_open, not in executing -> task_recover {"task_id":"tsk_1"}
            ok {"task_id":"tsk_1","from_phase":"circuit_open","phase":"circuit_open","circuit_status":"open","attempt_id":"att_3","legal_transitions":["executing","execution_ready","failed"],"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"circuit_open","updated_at":"2026-01-02T03:49:21.000Z"},"replayed":true}
            err CIRCUIT_OPEN: the circuit is open
              - CIRCUIT_OPEN: the circuit is open -> task_transition {"task_id":"tsk_1","from_phase":"circuit_open","to_phase":"execution_ready","reason":"the failures were investigated","actor":"boss","actor_role":"orchestrator"}
            ok {"task_id":"tsk_1","from_phase":"circuit_open","phase":"execution_ready","circuit_status":"closed","attempt_id":"att_3","legal_transitions":["executing","failed"],"event_id":13,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"execution_ready","updated_at":"2026-01-02T03:49:25.000Z"}}
            # Retries count anew, ordinals go on.
            ok {"attempt":{"id":"att_4","attempt_id":"att_4","task_id":"tsk_1","ordinal":4,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":false,"started_at":"2026-01-02T03:49:26.000Z"},"attempts_left":2,"next_call":{"tool":"task_transition","arguments":{"task_id":"tsk_1","from_phase":"execution_ready","to_phase":"executing","reason":"an attempt is running","actor":"boss","actor_role":"orchestrator"}}}
        "##]],
    );
}

#[test]
fn exhaustion_offers_the_way_out() {
    let session =
        Session::new(&task_store::PACK).config(&json!({"retry": {"max_attempts": 1, "backoff_ms": []}}));
    run(&session, EXECUTING);
    run(&session, "- finish att_1 failed");
    let refused = refusal(&session, "start tsk_1");
    assert_eq!(refused.code, "RETRIES_EXHAUSTED");
    run(&session, &format!("- {}", line_of(&refused.next_call.unwrap())));
    let refused = refusal(&session, "start tsk_1");
    assert_eq!(refused.code, "CIRCUIT_OPEN");
    run(&session, &format!("- {}", line_of(&refused.next_call.unwrap())));
    assert_eq!(reply(&session, "start tsk_1")["attempt"]["ordinal"], 2);
}

#[test]
fn an_attempt_ends_once() {
    check_after(
        EXECUTING,
        "
        finish att_1 succeeded
        finish att_1 succeeded
        finish att_1 failed
        finish att_9 failed
        ",
        expect![[r#"
            ok {"attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"succeeded","escalate":false,"started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:07.000Z"},"attempts_left":2,"replayed":false}
            ok {"attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"succeeded","escalate":false,"started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:07.000Z"},"attempts_left":2,"replayed":true}
            err ATTEMPT_FINISHED: attempt att_1 already ended as succeeded -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_FINISHED (attempt_id): attempt att_1 already ended as succeeded
            err NOT_FOUND: attempt att_9 does not exist or belongs to another task -> task_list {}
              - NOT_FOUND (attempt_id): attempt att_9 does not exist or belongs to another task
        "#]],
    );
}

#[test]
fn the_circuit_opens_from_any_phase_but_the_last() {
    check_after(
        EXECUTING,
        r#"
        task_open_circuit {"task_id": "tsk_1", "reason": "it burns", "latest_attempt_id": "att_1", "actor": "boss", "actor_role": "orchestrator"}
        open tsk_1
        get tsk_1
        # Leaving it closes it.
        move tsk_1 circuit_open failed
        open tsk_1
        task_open_circuit {"task_id": "tsk_2", "reason": " ", "latest_attempt_id": "att_7", "actor": "", "actor_role": "orchestrator"}
        "#,
        expect![[r#"
            ok {"task_id":"tsk_1","from_phase":"executing","phase":"circuit_open","circuit_status":"open","attempt_id":"att_1","legal_transitions":["executing","execution_ready","failed"],"event_id":7,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"circuit_open","updated_at":"2026-01-01T00:00:07.000Z"},"replayed":false}
            ok {"task_id":"tsk_1","from_phase":"circuit_open","phase":"circuit_open","circuit_status":"open","attempt_id":"att_1","legal_transitions":["executing","execution_ready","failed"],"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"circuit_open","updated_at":"2026-01-01T00:00:07.000Z"},"replayed":true}
            ok {"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"circuit_open","labels":[],"circuit_status":"open","circuit_from":"executing","current_attempt_id":"att_1","attempt_count":1,"spec_revision":1,"created_at":"2026-01-01T00:00:01.000Z","updated_at":"2026-01-01T00:00:07.000Z","spec":{"goal":"Ship it.","scope_in":["the server"],"scope_out":["the client"],"inputs":["the source"],"outputs":["a binary"],"acceptance":["it runs","it stops"],"risks":["none"]}},"attempts_left":2,"latest_attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":false,"started_at":"2026-01-01T00:00:05.000Z"},"latest_review":{"id":"rev_1","review_id":"rev_1","task_id":"tsk_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:03.000Z","findings":[]},"attempts":[{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":false,"started_at":"2026-01-01T00:00:05.000Z"}],"reviews":[{"id":"rev_1","review_id":"rev_1","task_id":"tsk_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:03.000Z"}],"artifacts":[],"approvals":[]}
            # Leaving it closes it.
            ok {"task_id":"tsk_1","from_phase":"circuit_open","phase":"failed","circuit_status":"closed","attempt_id":"att_1","legal_transitions":[],"event_id":9,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"failed","updated_at":"2026-01-01T00:00:10.000Z"}}
            err WRONG_PHASE: task_open_circuit is not allowed in phase failed {"phase":"failed","allowed_phases":["spec_draft","spec_review","execution_ready","executing","spec_gate","quality_gate","awaiting_approval","ready_to_resume","circuit_open"]} -> task_recover {"task_id":"tsk_1"}
              - WRONG_PHASE: task_open_circuit is not allowed in phase failed
            err INVALID_ARGUMENTS: actor is blank; and 3 more reasons
              - INVALID_ARGUMENTS (actor): actor is blank
              - INVALID_ARGUMENTS (reason): reason is blank
              - NOT_FOUND (task_id): there is no task tsk_2 -> task_list {}
              - NOT_FOUND (attempt_id): attempt att_7 does not exist or belongs to another task
        "#]],
    );
    check_after(
        "- create one",
        "open tsk_1",
        expect![[r#"
            ok {"task_id":"tsk_1","from_phase":"spec_draft","phase":"circuit_open","circuit_status":"open","legal_transitions":["spec_draft","failed"],"event_id":2,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"circuit_open","updated_at":"2026-01-01T00:00:02.000Z"},"replayed":false}
        "#]],
    );
}

#[test]
fn a_transition_opens_the_circuit_too() {
    check_after(
        EXECUTING,
        "
        - finish att_1 failed
        move tsk_1 executing circuit_open
        move tsk_1 circuit_open execution_ready
        # Nothing is left of the wait.
        start tsk_1
        ",
        expect![[r#"
            ok {"task_id":"tsk_1","from_phase":"executing","phase":"circuit_open","circuit_status":"open","attempt_id":"att_1","legal_transitions":["executing","execution_ready","failed"],"event_id":8,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"circuit_open","updated_at":"2026-01-01T00:00:08.000Z"}}
            ok {"task_id":"tsk_1","from_phase":"circuit_open","phase":"execution_ready","circuit_status":"closed","attempt_id":"att_1","legal_transitions":["executing","failed"],"event_id":9,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"execution_ready","updated_at":"2026-01-01T00:00:09.000Z"}}
            # Nothing is left of the wait.
            ok {"attempt":{"id":"att_2","attempt_id":"att_2","task_id":"tsk_1","ordinal":2,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":false,"started_at":"2026-01-01T00:00:10.000Z"},"attempts_left":2,"next_call":{"tool":"task_transition","arguments":{"task_id":"tsk_1","from_phase":"execution_ready","to_phase":"executing","reason":"an attempt is running","actor":"boss","actor_role":"orchestrator"}}}
        "#]],
    );
}
