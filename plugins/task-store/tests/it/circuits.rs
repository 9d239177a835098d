//! Circuits: where they return to, and the start that is one too many.

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::native::Session;

use crate::harness::{EXECUTING, check_after, refusal, reply, run};

#[test]
fn an_open_circuit_returns_the_task_to_where_it_came_from() {
    check_after(
        "- create one",
        "
        open tsk_1 ? phase legal_transitions
        # The circuit is no way around the reviews.
        move tsk_1 circuit_open execution_ready
        move tsk_1 circuit_open spec_draft ? phase circuit_status legal_transitions
        ",
        expect![[r#"
            ok phase="circuit_open" legal_transitions=["spec_draft","failed"]
            # The circuit is no way around the reviews.
            err ILLEGAL_TRANSITION: no transition leads from circuit_open to execution_ready; the circuit was opened in spec_draft {"legal_transitions":["spec_draft","failed"]}
              - ILLEGAL_TRANSITION (to_phase): no transition leads from circuit_open to execution_ready; the circuit was opened in spec_draft -> task_recover {"task_id":"tsk_1"}
            ok phase="spec_draft" circuit_status="closed" legal_transitions=["spec_review","failed"]
        "#]],
    );
    check_after(
        "reach 10",
        "
        open tsk_1 ? phase legal_transitions
        move tsk_1 circuit_open quality_gate ? phase legal_transitions
        - open tsk_1
        move tsk_1 circuit_open execution_ready ? phase
        ",
        expect![[r#"
            ok phase="circuit_open" legal_transitions=["quality_gate","execution_ready","failed"]
            ok phase="quality_gate" legal_transitions=["completed","execution_ready","awaiting_approval","circuit_open","failed"]
            ok phase="execution_ready"
        "#]],
    );
}

#[test]
fn a_running_attempt_goes_on_after_the_circuit() {
    check_after(
        EXECUTING,
        "
        - open tsk_1
        move tsk_1 circuit_open executing ? phase attempt_id
        - finish att_1 failed
        - open tsk_1
        # Without a running attempt the way back is to execution_ready.
        move tsk_1 circuit_open executing
        move tsk_1 circuit_open execution_ready ? phase
        ",
        expect![[r#"
            ok phase="executing" attempt_id="att_1"
            # Without a running attempt the way back is to execution_ready.
            err NO_RUNNING_ATTEMPT: no attempt is running
              - NO_RUNNING_ATTEMPT: no attempt is running -> task_transition {"task_id":"tsk_1","from_phase":"circuit_open","to_phase":"execution_ready","reason":"the failures were investigated","actor":"boss","actor_role":"orchestrator"}
            ok phase="execution_ready"
        "#]],
    );
}

#[test]
fn the_start_that_is_one_too_many_opens_the_circuit() {
    let session =
        Session::new(&task_store::PACK).config(&json!({"retry": {"max_attempts": 1, "backoff_ms": []}}));
    run(&session, EXECUTING);
    run(
        &session,
        "- finish att_1 failed\n- move tsk_1 executing execution_ready",
    );
    let log = run(
        &session,
        "
        start tsk_1
        recover tsk_1 ? phase task.circuit_status task.circuit_from
        task_events {\"task_id\": \"tsk_1\", \"cursor\": 8} ? events.0.event_type events.0.payload
        # Nobody gets around it.
        start tsk_1
        move tsk_1 execution_ready executing
        - move tsk_1 circuit_open execution_ready
        start tsk_1 ? attempt.ordinal attempts_left
        ",
    );
    expect![[r#"
        err RETRIES_EXHAUSTED: all attempts are used up (limit: 1) {"phase":"circuit_open","legal_transitions":["execution_ready","failed"],"max_attempts":1} -> task_recover {"task_id":"tsk_1"}
          - RETRIES_EXHAUSTED: all attempts are used up (limit: 1)
        ok phase="circuit_open" task.circuit_status="open" task.circuit_from="execution_ready"
        ok events.0.event_type="circuit.opened" events.0.payload={"before":{"phase":"execution_ready","circuit_status":"closed","attempts_used":1},"after":{"phase":"circuit_open","circuit_status":"open","attempts_used":1},"reason":"all attempts are used up"}
        # Nobody gets around it.
        err CIRCUIT_OPEN: the circuit is open
          - CIRCUIT_OPEN: the circuit is open -> task_transition {"task_id":"tsk_1","from_phase":"circuit_open","to_phase":"execution_ready","reason":"the failures were investigated","actor":"boss","actor_role":"orchestrator"}
        err PHASE_CONFLICT: the task is in circuit_open, not in execution_ready {"actual_phase":"circuit_open","legal_transitions":["execution_ready","failed"]}
          - PHASE_CONFLICT (from_phase): the task is in circuit_open, not in execution_ready -> task_recover {"task_id":"tsk_1"}
        ok attempt.ordinal=2 attempts_left=0
    "#]].assert_eq(&log);
}

#[test]
fn a_start_that_is_refused_for_other_reasons_opens_nothing() {
    let session =
        Session::new(&task_store::PACK).config(&json!({"retry": {"max_attempts": 1, "backoff_ms": []}}));
    run(&session, "reach 5");
    let err = refusal(&session, "start tsk_1");
    assert_eq!(err.code, "ATTEMPT_RUNNING");
    run(&session, "- finish att_1 failed");
    let blank = r#"task_start_attempt {"task_id": "tsk_1", "phase": "executing", "runtime": "local", "executor_kind": "builder", "worker_ref": " ", "actor_role": "orchestrator"}"#;
    assert_eq!(refusal(&session, blank).blockers.len(), 2);
    assert_eq!(reply(&session, "recover tsk_1")["phase"], "execution_ready");
}

/// The statement of the migration that looks for where old circuits were opened.
fn of_migration() -> &'static str {
    let sql = task_store::PACK.migrations[1].sql;
    let start = sql.find("INSERT INTO task_store_circuits").unwrap();
    let end = sql.find("WHERE t.phase = 'circuit_open';").unwrap();
    &sql[start..end + "WHERE t.phase = 'circuit_open'".len()]
}

#[test]
fn circuits_of_earlier_versions_return_where_their_events_say() {
    for (way, from) in [
        ("- create one\n- open tsk_1", "spec_draft"),
        ("reach 3\n- open tsk_1", "spec_review"),
        ("reach 4\n- open tsk_1", "execution_ready"),
        (
            "reach 6\n- move tsk_1 executing circuit_open\n- note tsk_1 att_1",
            "executing",
        ),
        ("reach 8\n- open tsk_1", "spec_gate"),
        ("reach 10\n- open tsk_1", "quality_gate"),
    ] {
        let session = Session::new(&task_store::PACK);
        run(&session, way);
        session.sql("DELETE FROM task_store_circuits");
        session.sql(of_migration());
        assert_eq!(
            reply(&session, "recover tsk_1")["task"]["circuit_from"],
            from,
            "{way}"
        );
    }
}

#[test]
fn a_circuit_of_unknown_origin_leads_to_the_spec_or_past_its_conditions() {
    let session = Session::new(&task_store::PACK);
    run(&session, "- create one\n- open tsk_1");
    session.sql("UPDATE task_store_circuits SET from_phase = NULL");
    let log = run(
        &session,
        "
        move tsk_1 circuit_open execution_ready
        move tsk_1 circuit_open spec_draft ? phase
        ",
    );
    expect![[r#"
        err SPEC_NOT_APPROVED: the spec is not approved: there is no review -> task_recover {"task_id":"tsk_1"}
          - SPEC_NOT_APPROVED: the spec is not approved: there is no review
        ok phase="spec_draft"
    "#]].assert_eq(&log);
}

/// Tasks that an earlier version let into `executing` or `ready_to_resume` without a reviewed spec.
#[test]
fn tasks_without_a_reviewed_spec_are_led_out() {
    let session = Session::new(&task_store::PACK);
    run(&session, "- create one");
    session.sql("UPDATE task_store_tasks SET phase = 'execution_ready', acceptance_json = '[]'");
    let log = run(
        &session,
        "
        start tsk_1
        task_list_ready ? waiting.0.waiting_for.0.code waiting.0.waiting_for.1.code
        review tsk_1 none spec approved ? review.verdict
        - spec tsk_1 -works
        start tsk_1
        - review tsk_1 none spec approved
        start tsk_1 ? attempt.status
        move tsk_1 execution_ready executing ? phase
        spec tsk_1 -other
        ",
    );
    expect![[r#"
        err ACCEPTANCE_MISSING: the spec has no acceptance criteria; and 1 more reason -> task_recover {"task_id":"tsk_1"}
          - ACCEPTANCE_MISSING: the spec has no acceptance criteria
          - SPEC_NOT_APPROVED: the spec is not approved: there is no review
        ok waiting.0.waiting_for.0.code="ACCEPTANCE_MISSING" waiting.0.waiting_for.1.code="SPEC_NOT_APPROVED"
        ok review.verdict="approved"
        err SPEC_NOT_APPROVED: the spec is not approved: there is no review -> task_recover {"task_id":"tsk_1"}
          - SPEC_NOT_APPROVED: the spec is not approved: there is no review
        ok attempt.status="running"
        ok phase="executing"
        err WRONG_PHASE: task_update_spec is not allowed in phase executing {"phase":"executing","allowed_phases":["spec_draft","execution_ready"]} -> task_recover {"task_id":"tsk_1"}
          - WRONG_PHASE: task_update_spec is not allowed in phase executing
    "#]].assert_eq(&log);
}

/// Resets the circuit of `tsk_1` after one failed attempt each, in `execution_ready`.
fn reset(session: &Session, attempt: u32) {
    run(
        session,
        &format!(
            "- start tsk_1
             - finish att_{attempt} failed
             - open tsk_1
             - move tsk_1 circuit_open execution_ready"
        ),
    );
}

#[test]
fn a_circuit_is_reset_so_often_and_then_a_person_decides() {
    let session = Session::new(&task_store::PACK).config(&json!({"retry": {"backoff_ms": []}}));
    run(&session, "reach 4");
    reset(&session, 1);
    reset(&session, 2);
    run(&session, "- start tsk_1\n- finish att_3 failed\n- open tsk_1");
    let log = run(
        &session,
        "
        recover tsk_1 ? task.circuit_resets pending transitions.0.unmet
        move tsk_1 circuit_open execution_ready
        start tsk_1
        # The suggested call asks a person, and nobody else can grant it.
        task_request_approval {\"task_id\": \"tsk_1\", \"attempt_id\": \"att_3\", \"requested_action\": \"Close the circuit and allow further attempts\", \"side_effect_kind\": \"circuit_reset\", \"idempotency_key\": \"att_3\", \"actor\": \"boss\", \"actor_role\": \"orchestrator\"} ? approval.status
        move tsk_1 circuit_open execution_ready
        task_resolve_approval {\"task_id\": \"tsk_1\", \"approval_id\": \"apr_1\", \"resolution\": \"approved\", \"resolved_by\": \"gate\", \"actor_role\": \"gateway\"}
        answer tsk_1 apr_1 approved ? approval.status
        move tsk_1 circuit_open execution_ready ? phase
        recover tsk_1 ? task.circuit_resets attempts_left
        task_events {\"task_id\": \"tsk_1\", \"cursor\": 17} ? events.0.event_type events.0.payload
        ",
    );
    expect![[r#"
        ok task.circuit_resets=2 pending=[{"code":"CIRCUIT_OPEN","message":"the circuit is open","next_call":{"tool":"task_request_approval","arguments":{"task_id":"tsk_1","attempt_id":"att_3","requested_action":"Close the circuit and allow further attempts","side_effect_kind":"circuit_reset","idempotency_key":"att_3","actor":"orchestrator","actor_role":"orchestrator"}}}] transitions.0.unmet=[{"code":"RESETS_EXHAUSTED","message":"the circuit was reset as often as is allowed without an approval","next_call":{"tool":"task_request_approval","arguments":{"task_id":"tsk_1","attempt_id":"att_3","requested_action":"Close the circuit and allow further attempts","side_effect_kind":"circuit_reset","idempotency_key":"att_3","actor":"orchestrator","actor_role":"orchestrator"}}}]
        err RESETS_EXHAUSTED: the circuit was reset as often as is allowed without an approval
          - RESETS_EXHAUSTED: the circuit was reset as often as is allowed without an approval -> task_request_approval {"task_id":"tsk_1","attempt_id":"att_3","requested_action":"Close the circuit and allow further attempts","side_effect_kind":"circuit_reset","idempotency_key":"att_3","actor":"boss","actor_role":"orchestrator"}
        err CIRCUIT_OPEN: the circuit is open
          - CIRCUIT_OPEN: the circuit is open -> task_request_approval {"task_id":"tsk_1","attempt_id":"att_3","requested_action":"Close the circuit and allow further attempts","side_effect_kind":"circuit_reset","idempotency_key":"att_3","actor":"boss","actor_role":"orchestrator"}
        # The suggested call asks a person, and nobody else can grant it.
        ok approval.status="pending"
        err RESETS_EXHAUSTED: the circuit was reset as often as is allowed without an approval -> task_recover {"task_id":"tsk_1"}
          - RESETS_EXHAUSTED: the circuit was reset as often as is allowed without an approval
        err ROLE_FORBIDDEN: gateway may not call task_resolve_approval to approve a circuit_reset {"role":"gateway","tool":"task_resolve_approval","allowed_roles":["human"]} -> task_recover {"task_id":"tsk_1"}
          - ROLE_FORBIDDEN (actor_role): gateway may not call task_resolve_approval to approve a circuit_reset
        ok approval.status="approved"
        ok phase="execution_ready"
        ok task.circuit_resets=3 attempts_left=3
        ok events.0.event_type="task.transitioned" events.0.payload={"before":{"phase":"circuit_open","circuit_status":"open","attempts_used":1,"circuit_resets":2},"after":{"phase":"execution_ready","circuit_status":"closed","attempts_used":0,"circuit_resets":3},"reason":"because"}
    "#]].assert_eq(&log);
    // An approval is for one reset.
    run(&session, "- start tsk_1\n- finish att_4 failed\n- open tsk_1");
    let refused = refusal(&session, "move tsk_1 circuit_open execution_ready");
    assert_eq!(refused.code, "RESETS_EXHAUSTED", "{refused:?}");
    assert_eq!(
        reply(&session, "move tsk_1 circuit_open failed")["phase"],
        "failed"
    );
}

#[test]
fn a_circuit_that_stopped_no_attempt_costs_no_reset() {
    let session = Session::new(&task_store::PACK).config(&json!({"retry": {"max_resets": 0}}));
    run(&session, "- create one");
    for _ in 0..3 {
        run(&session, "- open tsk_1\n- move tsk_1 circuit_open spec_draft");
    }
    assert_eq!(
        reply(&session, "recover tsk_1")["task"].get("circuit_resets"),
        None
    );
}

#[test]
fn an_approval_of_a_reset_lets_nothing_else_pass() {
    let session = Session::new(&task_store::PACK);
    run(&session, "reach 10\n- move tsk_1 quality_gate awaiting_approval");
    let ask = r#"- task_request_approval {"task_id": "tsk_1", "attempt_id": "att_1", "requested_action": "once more", "side_effect_kind": "circuit_reset", "idempotency_key": "x", "actor_role": "gateway"}"#;
    run(&session, &format!("{ask}\n- answer tsk_1 apr_1 approved"));
    let refused = refusal(&session, "move tsk_1 awaiting_approval ready_to_resume");
    assert_eq!(refused.code, "APPROVAL_MISSING", "{refused:?}");
}
