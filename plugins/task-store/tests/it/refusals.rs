//! Refusals: every reason at once, and nothing written.

use expect_test::expect;
use serde_json::{Value, json};
use tollgate_sdk::native::Session;

use crate::harness::{EXECUTING, QUALITY_GATE, check_after, refusal, reply, run};

#[test]
fn an_illegal_transition_lists_the_legal_ones() {
    check_after(
        EXECUTING,
        "
        move tsk_1 executing completed
        move tsk_1 executing executing
        move tsk_1 spec_gate completed
        ",
        expect![[r#"
            err ILLEGAL_TRANSITION: no transition leads from executing to completed {"legal_transitions":["spec_gate","execution_ready","circuit_open","failed"]}
              - ILLEGAL_TRANSITION (to_phase): no transition leads from executing to completed -> task_recover {"task_id":"tsk_1"}
            err ILLEGAL_TRANSITION: no transition leads from executing to executing {"legal_transitions":["spec_gate","execution_ready","circuit_open","failed"]}
              - ILLEGAL_TRANSITION (to_phase): no transition leads from executing to executing -> task_recover {"task_id":"tsk_1"}
            err PHASE_CONFLICT: the task is in executing, not in spec_gate; and 1 more reason {"actual_phase":"executing","legal_transitions":["spec_gate","execution_ready","circuit_open","failed"]}
              - PHASE_CONFLICT (from_phase): the task is in executing, not in spec_gate -> task_recover {"task_id":"tsk_1"}
              - ILLEGAL_TRANSITION (to_phase): no transition leads from spec_gate to completed -> task_recover {"task_id":"tsk_1"}
        "#]],
    );
}

#[test]
fn a_task_that_moved_meanwhile_is_a_conflict() {
    check_after(
        EXECUTING,
        "
        move tsk_1 execution_ready executing
        ",
        expect![[r#"
            err PHASE_CONFLICT: the task is in executing, not in execution_ready {"actual_phase":"executing","legal_transitions":["spec_gate","execution_ready","circuit_open","failed"]}
              - PHASE_CONFLICT (from_phase): the task is in executing, not in execution_ready -> task_recover {"task_id":"tsk_1"}
        "#]],
    );
}

#[test]
fn unmet_conditions_come_together() {
    check_after(
        r##"- task_create {"title": "vague", "spec_markdown": "Do it.", "workspace": "main", "initial_phase": "spec_review", "actor": "boss", "actor_role": "orchestrator"}"##,
        "move tsk_1 spec_review execution_ready",
        expect![[r#"
            err ACCEPTANCE_MISSING: the spec has no acceptance criteria; and 1 more reason
              - ACCEPTANCE_MISSING: the spec has no acceptance criteria -> task_transition {"task_id":"tsk_1","from_phase":"spec_review","to_phase":"spec_draft","reason":"the spec needs acceptance criteria","actor":"boss","actor_role":"orchestrator"}
              - SPEC_NOT_APPROVED: the spec is not approved: there is no review
        "#]],
    );
    check_after(
        QUALITY_GATE,
        "
        - ask tsk_1 att_1 v1
        move tsk_1 quality_gate completed
        - move tsk_1 quality_gate awaiting_approval
        move tsk_1 awaiting_approval ready_to_resume
        ",
        expect![[r#"
            err QUALITY_NOT_APPROVED: the quality of the current attempt is not approved: there is no review; and 1 more reason -> task_recover {"task_id":"tsk_1"}
              - QUALITY_NOT_APPROVED: the quality of the current attempt is not approved: there is no review
              - APPROVAL_PENDING: an approval for the current attempt is still pending
            err APPROVAL_MISSING: no approval was granted for the current attempt; and 1 more reason -> task_recover {"task_id":"tsk_1"}
              - APPROVAL_MISSING: no approval was granted for the current attempt
              - APPROVAL_PENDING: an approval for the current attempt is still pending
        "#]],
    );
}

#[test]
fn a_transition_may_name_the_current_attempt_only() {
    check_after(
        EXECUTING,
        r#"
        - finish att_1 failed
        +30000
        - start tsk_1
        task_transition {"task_id": "tsk_1", "from_phase": "executing", "to_phase": "spec_gate", "attempt_id": "att_1", "reason": "done", "actor": "boss", "actor_role": "orchestrator"}
        task_transition {"task_id": "tsk_1", "from_phase": "executing", "to_phase": "spec_gate", "attempt_id": "att_5", "reason": "done", "actor": "boss", "actor_role": "orchestrator"}
        task_transition {"task_id": "tsk_1", "from_phase": "executing", "to_phase": "spec_gate", "attempt_id": "att_2", "reason": "done", "actor": "boss", "actor_role": "orchestrator"}
        "#,
        expect![[r#"
            err STALE_ATTEMPT: attempt att_1 is not the task's current one, which is att_2 -> task_recover {"task_id":"tsk_1"}
              - STALE_ATTEMPT (attempt_id): attempt att_1 is not the task's current one, which is att_2
            err NOT_FOUND: attempt att_5 does not exist or belongs to another task -> task_recover {"task_id":"tsk_1"}
              - NOT_FOUND (attempt_id): attempt att_5 does not exist or belongs to another task
            ok {"task_id":"tsk_1","from_phase":"executing","phase":"spec_gate","circuit_status":"closed","attempt_id":"att_2","legal_transitions":["quality_gate","execution_ready","circuit_open","failed"],"event_id":9,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"spec_gate","updated_at":"2026-01-01T00:00:41.000Z"}}
        "#]],
    );
}

#[test]
fn unknown_ids_and_bad_arguments_come_together() {
    check_after(
        EXECUTING,
        r#"
        task_transition {"task_id": "tsk_9", "from_phase": "executing", "to_phase": "spec_gate", "attempt_id": "att_9", "reason": " ", "actor": "", "actor_role": "orchestrator"}
        task_record_checkpoint {"task_id": "tsk_9", "attempt_id": "att_9", "checkpoint_type": "", "payload": {}, "actor": "hand", "actor_role": "executor"}
        task_record_artifact {"task_id": "tsk_1", "attempt_id": "att_9", "kind": "diff", "uri": "", "summary": "", "produced_by": "", "actor": "hand", "actor_role": "executor"}
        task_request_approval {"task_id": "tsk_9", "attempt_id": "att_1", "requested_action": "", "side_effect_kind": "", "idempotency_key": "", "actor": "gate", "actor_role": "gateway"}
        get tsk_9
        recover tsk_9
        task_events {"task_id": "tsk_9", "limit": 0}
        task_get {"task_id": "tsk_1", "include_events_limit": 201}
        task_list {"limit": 101}
        task_list_ready {"limit": 0}
        "#,
        expect![[r#"
            err INVALID_ARGUMENTS: actor is blank; and 3 more reasons
              - INVALID_ARGUMENTS (actor): actor is blank
              - INVALID_ARGUMENTS (reason): reason is blank
              - NOT_FOUND (task_id): there is no task tsk_9 -> task_list {}
              - NOT_FOUND (attempt_id): attempt att_9 does not exist or belongs to another task
            err INVALID_ARGUMENTS: checkpoint_type is blank; and 2 more reasons
              - INVALID_ARGUMENTS (checkpoint_type): checkpoint_type is blank
              - NOT_FOUND (task_id): there is no task tsk_9 -> task_list {}
              - NOT_FOUND (attempt_id): attempt att_9 does not exist or belongs to another task
            err INVALID_ARGUMENTS: uri is blank; and 3 more reasons -> task_recover {"task_id":"tsk_1"}
              - INVALID_ARGUMENTS (uri): uri is blank
              - INVALID_ARGUMENTS (summary): summary is blank
              - INVALID_ARGUMENTS (produced_by): produced_by is blank
              - NOT_FOUND (attempt_id): attempt att_9 does not exist or belongs to another task
            err INVALID_ARGUMENTS: requested_action is blank; and 4 more reasons
              - INVALID_ARGUMENTS (requested_action): requested_action is blank
              - INVALID_ARGUMENTS (side_effect_kind): side_effect_kind is blank
              - INVALID_ARGUMENTS (idempotency_key): idempotency_key is blank
              - NOT_FOUND (task_id): there is no task tsk_9 -> task_list {}
              - NOT_FOUND (attempt_id): attempt att_1 does not exist or belongs to another task
            err NOT_FOUND: there is no task tsk_9
              - NOT_FOUND (task_id): there is no task tsk_9 -> task_list {}
            err NOT_FOUND: there is no task tsk_9
              - NOT_FOUND (task_id): there is no task tsk_9 -> task_list {}
            err INVALID_ARGUMENTS: limit is 0, not within 1 to 200; and 1 more reason
              - INVALID_ARGUMENTS (limit): limit is 0, not within 1 to 200
              - NOT_FOUND (task_id): there is no task tsk_9 -> task_list {}
            err INVALID_ARGUMENTS: include_events_limit is 201, not within 0 to 200 -> task_recover {"task_id":"tsk_1"}
              - INVALID_ARGUMENTS (include_events_limit): include_events_limit is 201, not within 0 to 200
            err INVALID_ARGUMENTS: limit is 101, not within 1 to 100
              - INVALID_ARGUMENTS (limit): limit is 101, not within 1 to 100
            err INVALID_ARGUMENTS: limit is 0, not within 1 to 100
              - INVALID_ARGUMENTS (limit): limit is 0, not within 1 to 100
        "#]],
    );
}

#[test]
fn arguments_of_the_wrong_shape_are_refused_by_name() {
    check_after(
        EXECUTING,
        r#"
        task_get {}
        task_get {"task_id": "tsk_1", "verbose": true}
        task_get {"task_id": 1}
        task_list {"phase": "done"}
        task_start_attempt {"task_id": "tsk_1", "phase": "spec_gate", "runtime": "local", "executor_kind": "builder", "actor": "boss", "actor_role": "orchestrator"}
        task_request_approval {"task_id": "tsk_1", "attempt_id": "att_1", "requested_action": "x", "side_effect_kind": "x", "idempotency_key": "x", "status": "approved", "actor": "gate", "actor_role": "gateway"}
        task_create []
        task_create nonsense
        "#,
        expect![[r#"
            err INVALID_ARGUMENTS: the arguments of task_get do not match the tool's input schema: missing field `task_id` at line 1 column 2
            err INVALID_ARGUMENTS: the arguments of task_get do not match the tool's input schema: unknown field `verbose`, expected one of `task_id`, `include_events_limit`, `include_spec_markdown`, `actor`, `actor_role` at line 1 column 30
            err INVALID_ARGUMENTS: the arguments of task_get do not match the tool's input schema: invalid type: integer `1`, expected a string at line 1 column 13
            err INVALID_ARGUMENTS: the arguments of task_list do not match the tool's input schema: `done` is not one of spec_draft, spec_review, execution_ready, executing, spec_gate, quality_gate, awaiting_approval, ready_to_resume, completed, failed, circuit_open at line 1 column 17
            err INVALID_ARGUMENTS: the arguments of task_start_attempt do not match the tool's input schema: `spec_gate` is not one of executing at line 1 column 41
            err INVALID_ARGUMENTS: the arguments of task_request_approval do not match the tool's input schema: `approved` is not one of pending at line 1 column 138
            err INVALID_ARGUMENTS: the arguments of task_create do not match the tool's input schema: invalid length 0, expected struct TaskCreate with 8 elements at line 1 column 2
            err INVALID_ARGUMENTS: the arguments of task_create do not match the tool's input schema: expected ident at line 1 column 2
        "#]],
    );
}

/// Valid arguments of each tool, for a task in `executing` with a running attempt.
fn valid(tool: &str) -> Value {
    match tool {
        "task_create" => json!({"title": "two", "spec_markdown": "Do it.", "workspace": "main",
            "initial_phase": "spec_draft", "actor": "boss", "actor_role": "orchestrator"}),
        "task_append_review" => json!({"task_id": "tsk_1", "attempt_id": "att_1", "review_type": "spec",
            "reviewer_ref": "eye", "verdict": "approved", "findings": [], "actor": "eye", "actor_role": "spec_reviewer"}),
        "task_record_checkpoint" => json!({"task_id": "tsk_1", "checkpoint_type": "note", "payload": {},
            "actor": "hand", "actor_role": "executor"}),
        other => panic!("no valid arguments for {other}"),
    }
}

/// The largest value of an argument is taken, one more is refused.
#[test]
fn sizes_end_where_they_say() {
    let text = |length: usize| json!("ä".repeat(length));
    let ascii = |length: usize| json!("a".repeat(length));
    let list = |length: usize, entry: Value| Value::Array(vec![entry; length]);
    let labels = |length: usize| Value::Array((0..length).map(|n| json!(format!("l{n}"))).collect());
    let finding = |length: usize| json!([{"severity": "minor", "message": "m".repeat(length)}]);
    let payload = |length: usize| json!({"text": "p".repeat(length)});
    let around = r#"{"checkpoint_type":"note","payload":{"text":""}}"#.len();
    let cases: &[(&str, &str, Value, Value)] = &[
        ("task_create", "title", text(500), text(501)),
        ("task_create", "workspace", text(2_000), text(2_001)),
        ("task_create", "spec_markdown", ascii(262_144), ascii(262_145)),
        ("task_create", "actor", text(200), text(201)),
        ("task_create", "labels", labels(32), labels(33)),
        ("task_create", "labels", list(1, text(64)), list(1, text(65))),
        (
            "task_create",
            "spec",
            json!({"goal": text(8_192)}),
            json!({"goal": text(8_193)}),
        ),
        (
            "task_create",
            "spec",
            json!({"risks": list(100, json!("r"))}),
            json!({"risks": list(101, json!("r"))}),
        ),
        (
            "task_create",
            "spec",
            json!({"inputs": list(1, text(2_000))}),
            json!({"inputs": list(1, text(2_001))}),
        ),
        (
            "task_create",
            "spec",
            json!({"inputs": list(32, json!("i".repeat(2_000)))}),
            json!({"inputs": list(33, json!("i".repeat(2_000)))}),
        ),
        ("task_append_review", "summary", text(8_192), text(8_193)),
        ("task_append_review", "reviewer_ref", text(200), text(201)),
        ("task_append_review", "findings", finding(2_000), finding(2_001)),
        (
            "task_append_review",
            "findings",
            list(200, finding(1)[0].clone()),
            list(201, finding(1)[0].clone()),
        ),
        (
            "task_append_review",
            "findings",
            list(30, finding(2_000)[0].clone()),
            list(40, finding(2_000)[0].clone()),
        ),
        (
            "task_record_checkpoint",
            "payload",
            payload(65_536 - around),
            payload(65_537 - around),
        ),
        ("task_record_checkpoint", "checkpoint_type", text(64), text(65)),
    ];
    for (tool, field, largest, too_large) in cases {
        let session = Session::new(&task_store::PACK);
        run(&session, "reach 7");
        let with = |value: &Value| {
            let mut arguments = valid(tool);
            arguments[*field] = value.clone();
            format!("{tool} {arguments}")
        };
        reply(&session, &with(largest));
        let err = refusal(&session, &with(too_large));
        assert_eq!(
            (err.code.as_str(), err.blockers.len()),
            ("INVALID_ARGUMENTS", 1),
            "{err}"
        );
        let named = err.blockers[0].field.as_deref().unwrap_or_default();
        assert!(named.starts_with(field), "{named} is about {field}");
    }
}

#[test]
fn a_refusal_repeats_only_the_start_of_what_was_sent() {
    let session = Session::new(&task_store::PACK);
    let err = refusal(&session, &format!("get {}", "ä".repeat(100_000)));
    assert!(err.message.len() < 300, "{}", err.message);
}

#[test]
fn a_refused_call_writes_nothing() {
    let session = Session::new(&task_store::PACK);
    run(&session, EXECUTING);
    let before = reply(
        &session,
        r#"task_get {"task_id": "tsk_1", "include_events_limit": 200}"#,
    );
    refusal(&session, "start tsk_1");
    refusal(&session, "move tsk_1 executing completed");
    refusal(&session, "finish att_2 failed");
    refusal(&session, "answer tsk_1 apr_1 approved");
    let after = reply(
        &session,
        r#"task_get {"task_id": "tsk_1", "include_events_limit": 200}"#,
    );
    assert_eq!(before, after);
}

#[test]
fn a_wrong_config_names_the_mistake() {
    let session = Session::new(&task_store::PACK).config(&json!({"retry": {"max_attempts": 0}}));
    let err = refusal(&session, "task_list");
    assert_eq!(err.code, "CONFIG_INVALID");
    assert!(err.message.contains("nonzero"), "{}", err.message);
}
