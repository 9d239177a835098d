//! Reviews: whose, of what, and which one counts.

use expect_test::expect;

use crate::harness::{EXECUTING, QUALITY_GATE, check_after};

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
            err SPEC_NOT_APPROVED: the current attempt is not approved against the spec: the latest verdict is blocked -> task_recover {"task_id":"tsk_1"}
              - SPEC_NOT_APPROVED: the current attempt is not approved against the spec: the latest verdict is blocked
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
            err ATTEMPT_REQUIRED: attempt_id is required, except for a spec review in spec_review or of a spec that is not approved
              - ATTEMPT_REQUIRED (attempt_id): attempt_id is required, except for a spec review in spec_review or of a spec that is not approved -> task_transition {"task_id":"tsk_1","from_phase":"spec_draft","to_phase":"spec_review","reason":"the spec is to be reviewed","actor":"eye","actor_role":"orchestrator"}
            err ATTEMPT_REQUIRED: attempt_id is required, except for a spec review in spec_review or of a spec that is not approved -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_REQUIRED (attempt_id): attempt_id is required, except for a spec review in spec_review or of a spec that is not approved
            ok {"review":{"id":"rev_1","review_id":"rev_1","task_id":"tsk_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:05.000Z"},"id":"rev_1","review_id":"rev_1","task_id":"tsk_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:05.000Z"}
            err NOT_FOUND: attempt att_1 does not exist or belongs to another task -> task_recover {"task_id":"tsk_1"}
              - NOT_FOUND (attempt_id): attempt att_1 does not exist or belongs to another task
        "#]],
    );
    check_after(
        EXECUTING,
        "review tsk_1 none spec approved",
        expect![[r#"
            err ATTEMPT_REQUIRED: attempt_id is required, except for a spec review in spec_review or of a spec that is not approved -> task_recover {"task_id":"tsk_1"}
              - ATTEMPT_REQUIRED (attempt_id): attempt_id is required, except for a spec review in spec_review or of a spec that is not approved
        "#]],
    );
}

#[test]
fn findings_are_kept_and_checked() {
    check_after(
        EXECUTING,
        r#"
        task_append_review {"task_id": "tsk_1", "attempt_id": "att_1", "review_type": "quality", "reviewer_ref": "eye", "verdict": "blocked", "summary": "no", "findings": [{"severity": "critical", "message": "it panics", "file": "a.rs", "line": 3}, {"severity": "minor", "message": "a typo", "artifact_uri": "out.diff"}], "actor": "eye", "actor_role": "quality_reviewer"}
        task_append_review {"task_id": "tsk_1", "attempt_id": "att_1", "review_type": "quality", "reviewer_ref": "eye", "verdict": "blocked", "findings": [{"severity": "critical", "message": ""}, {"severity": "minor", "message": "x", "file": " "}], "actor": "eye", "actor_role": "quality_reviewer"}
        task_append_review {"task_id": "tsk_1", "attempt_id": "att_1", "review_type": "quality", "reviewer_ref": "eye", "verdict": "blocked", "findings": [{"severity": "critical"}], "actor": "eye", "actor_role": "quality_reviewer"}
        task_events {"task_id": "tsk_1", "after_id": 6}
        "#,
        expect![[r#"
            ok {"review":{"id":"rev_2","review_id":"rev_2","task_id":"tsk_1","attempt_id":"att_1","review_type":"quality","reviewer_ref":"eye","verdict":"blocked","summary":"no","finding_count":2,"spec_revision":1,"created_at":"2026-01-01T00:00:07.000Z"},"id":"rev_2","review_id":"rev_2","task_id":"tsk_1","attempt_id":"att_1","review_type":"quality","reviewer_ref":"eye","verdict":"blocked","summary":"no","finding_count":2,"spec_revision":1,"created_at":"2026-01-01T00:00:07.000Z"}
            err INVALID_ARGUMENTS: findings[0].message is blank; and 1 more reason -> task_recover {"task_id":"tsk_1"}
              - INVALID_ARGUMENTS (findings[0].message): findings[0].message is blank
              - INVALID_ARGUMENTS (findings[1].file): findings[1].file is blank
            err INVALID_ARGUMENTS: the arguments do not fit task_append_review: missing field `message` at line 1 column 152
            ok {"events":[{"id":7,"event_id":7,"task_id":"tsk_1","attempt_id":"att_1","event_type":"review.appended","actor":"eye","actor_role":"quality_reviewer","payload":{"after":{"id":"rev_2","review_id":"rev_2","task_id":"tsk_1","attempt_id":"att_1","review_type":"quality","reviewer_ref":"eye","verdict":"blocked","summary":"no","finding_count":2,"spec_revision":1,"created_at":"2026-01-01T00:00:07.000Z","findings":[{"severity":"critical","message":"it panics","file":"a.rs","line":3},{"severity":"minor","message":"a typo","artifact_uri":"out.diff"}]}},"created_at":"2026-01-01T00:00:07.000Z"}],"has_more":false}
        "#]],
    );
}
