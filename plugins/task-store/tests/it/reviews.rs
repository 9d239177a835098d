//! Reviews: whose, of what, and which one counts.

use expect_test::expect;

use tollgate_sdk::native::Session;

use crate::harness::{EXECUTING, QUALITY_GATE, check_after, refusal, reply, run};

#[test]
fn the_latest_review_of_the_current_attempt_counts() {
    check_after(
        QUALITY_GATE,
        "
        move tsk_1 quality_gate completed
        - review tsk_1 att_1 quality approved
        - review tsk_1 att_1 quality changes_requested
        # A later review overrides an earlier one.
        move tsk_1 quality_gate completed
        - review tsk_1 att_1 quality blocked
        move tsk_1 quality_gate completed
        - review tsk_1 att_1 quality approved
        # A spec review is no quality review.
        - review tsk_1 att_1 spec blocked
        - ask tsk_1 att_1 v1
        move tsk_1 quality_gate completed
        - answer tsk_1 apr_1 rejected
        move tsk_1 quality_gate completed
        ",
        expect![[r#"
            err QUALITY_NOT_APPROVED: the quality of the current attempt is not approved: there is no review -> task_recover {"task_id":"tsk_1"}
              - QUALITY_NOT_APPROVED: the quality of the current attempt is not approved: there is no review
            # A later review overrides an earlier one.
            err QUALITY_NOT_APPROVED: the quality of the current attempt is not approved: the latest verdict is changes_requested -> task_recover {"task_id":"tsk_1"}
              - QUALITY_NOT_APPROVED: the quality of the current attempt is not approved: the latest verdict is changes_requested
            err QUALITY_NOT_APPROVED: the quality of the current attempt is not approved: the latest verdict is blocked -> task_recover {"task_id":"tsk_1"}
              - QUALITY_NOT_APPROVED: the quality of the current attempt is not approved: the latest verdict is blocked
            # A spec review is no quality review.
            err SPEC_NOT_APPROVED: the current attempt is not approved against the spec: the latest verdict is blocked; and 1 more reason -> task_recover {"task_id":"tsk_1"}
              - SPEC_NOT_APPROVED: the current attempt is not approved against the spec: the latest verdict is blocked
              - APPROVAL_PENDING: an approval for the current attempt is still pending
            err SPEC_NOT_APPROVED: the current attempt is not approved against the spec: the latest verdict is blocked; and 1 more reason
              - SPEC_NOT_APPROVED: the current attempt is not approved against the spec: the latest verdict is blocked
              - APPROVAL_DENIED: an approval for the current attempt was denied -> task_transition {"task_id":"tsk_1","from_phase":"quality_gate","to_phase":"execution_ready","reason":"an approval was denied","actor":"boss","actor_role":"orchestrator"}
        "#]],
    );
}

#[test]
fn a_review_outside_spec_review_names_its_attempt() {
    check_after(
        "- create one",
        "
        review tsk_1 none spec approved
        - move tsk_1 spec_draft spec_review
        review tsk_1 none quality approved
        review tsk_1 none spec approved
        review tsk_1 att_1 spec approved
        ",
        expect![[r#"
            err WRONG_PHASE: task_append_review is not allowed in phase spec_draft {"phase":"spec_draft","allowed_phases":["spec_review","execution_ready","executing","spec_gate","quality_gate","awaiting_approval","ready_to_resume","circuit_open"]}
              - WRONG_PHASE: task_append_review is not allowed in phase spec_draft -> task_transition {"task_id":"tsk_1","from_phase":"spec_draft","to_phase":"spec_review","reason":"the spec is ready for review","actor":"eye","actor_role":"orchestrator"}
            err ATTEMPT_REQUIRED: a quality review concerns an attempt, so attempt_id is required -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_REQUIRED (attempt_id): a quality review concerns an attempt, so attempt_id is required
            ok {"review":{"id":"rev_1","review_id":"rev_1","task_id":"tsk_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:05.000Z"},"id":"rev_1","review_id":"rev_1","task_id":"tsk_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:05.000Z"}
            err NOT_FOUND: attempt att_1 does not exist or belongs to another task -> task_recover {"task_id":"tsk_1"}
              - NOT_FOUND (attempt_id): attempt att_1 does not exist or belongs to another task
        "#]],
    );
    check_after(
        EXECUTING,
        "review tsk_1 none spec approved",
        expect![[r#"
            err ATTEMPT_REQUIRED: the spec is approved already; a review of an attempt needs its attempt_id -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_REQUIRED (attempt_id): the spec is approved already; a review of an attempt needs its attempt_id
        "#]],
    );
}

#[test]
fn findings_are_kept_and_checked() {
    check_after(
        "reach 7",
        r#"
        task_append_review {"task_id": "tsk_1", "attempt_id": "att_1", "review_type": "quality", "reviewer_ref": "eye", "verdict": "blocked", "summary": "no", "findings": [{"severity": "critical", "message": "it panics", "file": "a.rs", "line": 3}, {"severity": "minor", "message": "a typo", "artifact_uri": "out.diff"}], "actor": "eye", "actor_role": "quality_reviewer"}
        task_append_review {"task_id": "tsk_1", "attempt_id": "att_1", "review_type": "quality", "reviewer_ref": "eye", "verdict": "blocked", "findings": [{"severity": "critical", "message": ""}, {"severity": "minor", "message": "x", "file": " "}], "actor": "eye", "actor_role": "quality_reviewer"}
        task_append_review {"task_id": "tsk_1", "attempt_id": "att_1", "review_type": "quality", "reviewer_ref": "eye", "verdict": "blocked", "findings": [{"severity": "critical"}], "actor": "eye", "actor_role": "quality_reviewer"}
        task_events {"task_id": "tsk_1", "cursor": 6}
        "#,
        expect![[r#"
            ok {"review":{"id":"rev_2","review_id":"rev_2","task_id":"tsk_1","attempt_id":"att_1","review_type":"quality","reviewer_ref":"eye","verdict":"blocked","summary":"no","finding_count":2,"spec_revision":1,"created_at":"2026-01-01T00:00:08.000Z"},"id":"rev_2","review_id":"rev_2","task_id":"tsk_1","attempt_id":"att_1","review_type":"quality","reviewer_ref":"eye","verdict":"blocked","summary":"no","finding_count":2,"spec_revision":1,"created_at":"2026-01-01T00:00:08.000Z"}
            err INVALID_ARGUMENTS: findings[0].message is blank; and 1 more reason -> task_recover {"task_id":"tsk_1"}
              - INVALID_ARGUMENTS (findings[0].message): findings[0].message is blank
              - INVALID_ARGUMENTS (findings[1].file): findings[1].file is blank
            err INVALID_ARGUMENTS: the arguments of task_append_review do not match the tool's input schema: missing field `message` at line 1 column 152
            ok {"events":[{"id":7,"event_id":7,"task_id":"tsk_1","attempt_id":"att_1","event_type":"attempt.finished","actor":"hand","actor_role":"executor","payload":{"before":{"status":"running"},"after":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"succeeded","escalate":false,"started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:07.000Z"}},"created_at":"2026-01-01T00:00:07.000Z"},{"id":8,"event_id":8,"task_id":"tsk_1","attempt_id":"att_1","event_type":"review.appended","actor":"eye","actor_role":"quality_reviewer","payload":{"after":{"id":"rev_2","review_id":"rev_2","task_id":"tsk_1","attempt_id":"att_1","review_type":"quality","reviewer_ref":"eye","verdict":"blocked","summary":"no","finding_count":2,"spec_revision":1,"created_at":"2026-01-01T00:00:08.000Z","findings":[{"severity":"critical","message":"it panics","file":"a.rs","line":3},{"severity":"minor","message":"a typo","artifact_uri":"out.diff"}]}},"created_at":"2026-01-01T00:00:08.000Z"}],"has_more":false}
        "#]],
    );
}

#[test]
fn an_attempt_is_reviewed_when_it_has_ended() {
    check_after(
        "reach 5",
        "
        # The attempt has started and nothing has been done.
        review tsk_1 att_1 quality approved
        review tsk_1 att_1 spec approved
        - move tsk_1 execution_ready executing
        review tsk_1 att_1 quality approved
        - finish att_1 succeeded
        - move tsk_1 executing spec_gate
        move tsk_1 spec_gate quality_gate
        review tsk_1 att_1 spec approved ? review.verdict
        - move tsk_1 spec_gate quality_gate
        move tsk_1 quality_gate completed
        review tsk_1 att_1 quality approved ? review.verdict
        move tsk_1 quality_gate completed ? phase
        ",
        expect![[r##"
            # The attempt has started and nothing has been done.
            err ATTEMPT_RUNNING: attempt att_1 is still running; only a finished attempt can be reviewed {"running_attempt_id":"att_1"} -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_RUNNING (attempt_id): attempt att_1 is still running; only a finished attempt can be reviewed
            err ATTEMPT_RUNNING: attempt att_1 is still running; only a finished attempt can be reviewed {"running_attempt_id":"att_1"} -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_RUNNING (attempt_id): attempt att_1 is still running; only a finished attempt can be reviewed
            err ATTEMPT_RUNNING: attempt att_1 is still running; only a finished attempt can be reviewed {"running_attempt_id":"att_1"} -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_RUNNING (attempt_id): attempt att_1 is still running; only a finished attempt can be reviewed
            err SPEC_NOT_APPROVED: the current attempt is not approved against the spec: there is no review -> task_recover {"task_id":"tsk_1"}
              - SPEC_NOT_APPROVED: the current attempt is not approved against the spec: there is no review
            ok review.verdict="approved"
            err QUALITY_NOT_APPROVED: the quality of the current attempt is not approved: there is no review -> task_recover {"task_id":"tsk_1"}
              - QUALITY_NOT_APPROVED: the quality of the current attempt is not approved: there is no review
            ok review.verdict="approved"
            ok phase="completed"
        "##]],
    );
}

/// Earlier versions took reviews of running attempts.
#[test]
fn reviews_of_earlier_versions_count_if_their_attempt_had_ended() {
    let session = Session::new(&task_store::PACK);
    run(&session, "reach 10\n- review tsk_1 att_1 quality approved");
    session.sql(
        "UPDATE task_store_reviews SET created_at = '2026-01-01T00:00:06.000Z' WHERE review_type = 'quality'",
    );
    let sql = task_store::PACK.migrations[2].sql;
    let (start, end) = (
        sql.find("UPDATE task_store_reviews").unwrap(),
        sql.find("-- The later").unwrap(),
    );
    session.sql(sql[start..end].trim().trim_end_matches(';'));
    let early = session.sql("SELECT id FROM task_store_reviews WHERE too_early = 1");
    assert_eq!(early.len(), 1);
    assert_eq!(early[0].get::<String>(0).unwrap(), "rev_3");
    let refused = refusal(&session, "move tsk_1 quality_gate completed");
    assert_eq!(
        (refused.code.as_str(), refused.blockers.len()),
        ("QUALITY_NOT_APPROVED", 1)
    );
    run(&session, "- review tsk_1 att_1 quality approved");
    assert_eq!(
        reply(&session, "move tsk_1 quality_gate completed")["phase"],
        "completed"
    );
}

#[test]
fn a_reviewer_withdraws_the_approval_of_a_spec() {
    check_after(
        "reach 4",
        "
        review tsk_1 none spec changes_requested ? review.verdict warnings
        start tsk_1
        review tsk_1 none spec approved ? review.verdict warnings
        # An approval of what is approved was most likely meant for an attempt.
        review tsk_1 none spec approved
        start tsk_1 ? attempt.status
        - move tsk_1 execution_ready executing
        # The attempt goes on, and its result cannot be completed.
        review tsk_1 none spec blocked ? review.verdict warnings
        - finish att_1 succeeded
        - move tsk_1 executing spec_gate
        - review tsk_1 att_1 spec approved
        - move tsk_1 spec_gate quality_gate
        - review tsk_1 att_1 quality approved
        move tsk_1 quality_gate completed
        - review tsk_1 none spec approved
        move tsk_1 quality_gate completed ? phase
        review tsk_1 none spec blocked
        ",
        expect![[r#"
            ok review.verdict="changes_requested" warnings=["the approval of the spec is withdrawn: until a spec_reviewer approves it again, no attempt starts and the task is not completed"]
            err SPEC_NOT_APPROVED: the spec is not approved: the latest verdict is changes_requested -> task_recover {"task_id":"tsk_1"}
              - SPEC_NOT_APPROVED: the spec is not approved: the latest verdict is changes_requested
            ok review.verdict="approved" warnings=null
            # An approval of what is approved was most likely meant for an attempt.
            err ATTEMPT_REQUIRED: the spec is approved already; a review of an attempt needs its attempt_id -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_REQUIRED (attempt_id): the spec is approved already; a review of an attempt needs its attempt_id
            ok attempt.status="running"
            # The attempt goes on, and its result cannot be completed.
            ok review.verdict="blocked" warnings=["the approval of the spec is withdrawn: until a spec_reviewer approves it again, no attempt starts and the task is not completed"]
            err SPEC_NOT_APPROVED: the spec is not approved: the latest verdict is blocked -> task_recover {"task_id":"tsk_1"}
              - SPEC_NOT_APPROVED: the spec is not approved: the latest verdict is blocked
            ok phase="completed"
            err WRONG_PHASE: task_append_review is not allowed in phase completed {"phase":"completed","allowed_phases":["spec_review","execution_ready","executing","spec_gate","quality_gate","awaiting_approval","ready_to_resume","circuit_open"]} -> task_recover {"task_id":"tsk_1"}
              - WRONG_PHASE: task_append_review is not allowed in phase completed
        "#]],
    );
}
