//! Whole lives of tasks, from draft to the end.

use expect_test::expect;

use crate::harness::{EXECUTING, QUALITY_GATE, check, check_after};

#[test]
fn from_draft_to_completed() {
    check(
        r#"
        create one
        move tsk_1 spec_draft spec_review
        review tsk_1 none spec approved
        move tsk_1 spec_review execution_ready
        start tsk_1
        move tsk_1 execution_ready executing
        task_record_checkpoint {"task_id": "tsk_1", "attempt_id": "att_1", "checkpoint_type": "heartbeat", "payload": {"done": 0.5}, "actor": "hand", "actor_role": "executor"}
        task_record_artifact {"task_id": "tsk_1", "attempt_id": "att_1", "kind": "diff", "uri": "out.diff", "summary": "all of it", "produced_by": "hand", "actor": "hand", "actor_role": "executor"}
        finish att_1 succeeded
        move tsk_1 executing spec_gate
        review tsk_1 att_1 spec approved
        move tsk_1 spec_gate quality_gate
        review tsk_1 att_1 quality approved
        move tsk_1 quality_gate completed
        get tsk_1
        "#,
        expect![[r#"
            ok {"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"spec_draft","labels":[],"circuit_status":"closed","attempt_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:01.000Z","updated_at":"2026-01-01T00:00:01.000Z","spec":{"goal":"Ship it.","scope_in":["the server"],"scope_out":["the client"],"inputs":["the source"],"outputs":["a binary"],"acceptance":["it runs","it stops"],"risks":["none"]}},"warnings":[],"event_id":1}
            ok {"task_id":"tsk_1","from_phase":"spec_draft","phase":"spec_review","circuit_status":"closed","legal_transitions":["spec_draft","execution_ready","failed"],"event_id":2,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"spec_review","updated_at":"2026-01-01T00:00:02.000Z"}}
            ok {"review":{"id":"rev_1","review_id":"rev_1","task_id":"tsk_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:03.000Z"},"id":"rev_1","review_id":"rev_1","task_id":"tsk_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:03.000Z"}
            ok {"task_id":"tsk_1","from_phase":"spec_review","phase":"execution_ready","circuit_status":"closed","legal_transitions":["executing","failed"],"event_id":4,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"execution_ready","updated_at":"2026-01-01T00:00:04.000Z"}}
            ok {"attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":false,"started_at":"2026-01-01T00:00:05.000Z"},"attempts_left":2,"next_call":{"tool":"task_transition","arguments":{"task_id":"tsk_1","from_phase":"execution_ready","to_phase":"executing","reason":"an attempt is running","actor":"boss","actor_role":"orchestrator"}}}
            ok {"task_id":"tsk_1","from_phase":"execution_ready","phase":"executing","circuit_status":"closed","attempt_id":"att_1","legal_transitions":["spec_gate","execution_ready","circuit_open","failed"],"event_id":6,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"executing","updated_at":"2026-01-01T00:00:06.000Z"}}
            ok {"event_id":7,"task_id":"tsk_1","attempt_id":"att_1","checkpoint_type":"heartbeat","created_at":"2026-01-01T00:00:07.000Z"}
            ok {"artifact":{"id":"art_1","artifact_id":"art_1","task_id":"tsk_1","attempt_id":"att_1","kind":"diff","uri":"out.diff","summary":"all of it","produced_by":"hand","created_at":"2026-01-01T00:00:08.000Z"},"id":"art_1","artifact_id":"art_1","task_id":"tsk_1","attempt_id":"att_1","kind":"diff","uri":"out.diff","summary":"all of it","produced_by":"hand","created_at":"2026-01-01T00:00:08.000Z"}
            ok {"attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"succeeded","escalate":false,"started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:09.000Z"},"attempts_left":2,"replayed":false}
            ok {"task_id":"tsk_1","from_phase":"executing","phase":"spec_gate","circuit_status":"closed","attempt_id":"att_1","legal_transitions":["quality_gate","execution_ready","circuit_open","failed"],"event_id":10,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"spec_gate","updated_at":"2026-01-01T00:00:10.000Z"}}
            ok {"review":{"id":"rev_2","review_id":"rev_2","task_id":"tsk_1","attempt_id":"att_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:11.000Z"},"id":"rev_2","review_id":"rev_2","task_id":"tsk_1","attempt_id":"att_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:11.000Z"}
            ok {"task_id":"tsk_1","from_phase":"spec_gate","phase":"quality_gate","circuit_status":"closed","attempt_id":"att_1","legal_transitions":["completed","execution_ready","awaiting_approval","circuit_open","failed"],"event_id":12,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"quality_gate","updated_at":"2026-01-01T00:00:12.000Z"}}
            ok {"review":{"id":"rev_3","review_id":"rev_3","task_id":"tsk_1","attempt_id":"att_1","review_type":"quality","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:13.000Z"},"id":"rev_3","review_id":"rev_3","task_id":"tsk_1","attempt_id":"att_1","review_type":"quality","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:13.000Z"}
            ok {"task_id":"tsk_1","from_phase":"quality_gate","phase":"completed","circuit_status":"closed","attempt_id":"att_1","legal_transitions":[],"event_id":14,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"completed","updated_at":"2026-01-01T00:00:14.000Z"}}
            ok {"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"completed","labels":[],"circuit_status":"closed","current_attempt_id":"att_1","attempt_count":1,"spec_revision":1,"created_at":"2026-01-01T00:00:01.000Z","updated_at":"2026-01-01T00:00:14.000Z","spec":{"goal":"Ship it.","scope_in":["the server"],"scope_out":["the client"],"inputs":["the source"],"outputs":["a binary"],"acceptance":["it runs","it stops"],"risks":["none"]}},"attempts_left":2,"latest_attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"succeeded","escalate":false,"started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:09.000Z"},"latest_review":{"id":"rev_3","review_id":"rev_3","task_id":"tsk_1","attempt_id":"att_1","review_type":"quality","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:13.000Z","findings":[]},"attempts":[{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"succeeded","escalate":false,"started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:09.000Z"}],"reviews":[{"id":"rev_3","review_id":"rev_3","task_id":"tsk_1","attempt_id":"att_1","review_type":"quality","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:13.000Z"},{"id":"rev_2","review_id":"rev_2","task_id":"tsk_1","attempt_id":"att_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:11.000Z"},{"id":"rev_1","review_id":"rev_1","task_id":"tsk_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:03.000Z"}],"artifacts":[{"id":"art_1","artifact_id":"art_1","task_id":"tsk_1","attempt_id":"att_1","kind":"diff","uri":"out.diff","summary":"all of it","produced_by":"hand","created_at":"2026-01-01T00:00:08.000Z"}],"approvals":[]}
        "#]],
    );
}

#[test]
fn through_an_approval_and_a_resumed_attempt() {
    check_after(
        QUALITY_GATE,
        "
        - move tsk_1 quality_gate awaiting_approval
        # Nothing was asked yet.
        move tsk_1 awaiting_approval ready_to_resume
        ask tsk_1 att_1 v1
        # Asked, not answered.
        move tsk_1 awaiting_approval ready_to_resume
        answer tsk_1 apr_1 approved
        move tsk_1 awaiting_approval ready_to_resume
        # The first attempt ended, so resuming wants another.
        move tsk_1 ready_to_resume executing
        start tsk_1
        move tsk_1 ready_to_resume executing
        - finish att_2 succeeded
        - move tsk_1 executing spec_gate
        # The review of the first attempt does not count for the second.
        move tsk_1 spec_gate quality_gate
        - review tsk_1 att_2 spec approved
        - move tsk_1 spec_gate quality_gate
        - review tsk_1 att_2 quality approved
        move tsk_1 quality_gate completed
        ",
        expect![[r##"
            # Nothing was asked yet.
            err APPROVAL_MISSING: no approval was granted for the current attempt -> task_recover {"task_id":"tsk_1"}
              - APPROVAL_MISSING: no approval was granted for the current attempt
            ok {"approval":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:13.000Z"},"replayed":false}
            # Asked, not answered.
            err APPROVAL_MISSING: no approval was granted for the current attempt; and 1 more reason -> task_recover {"task_id":"tsk_1"}
              - APPROVAL_MISSING: no approval was granted for the current attempt
              - APPROVAL_PENDING: an approval for the current attempt is still pending
            ok {"approval":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"approved","requested_by":"gate","resolved_by":"ada","created_at":"2026-01-01T00:00:13.000Z","resolved_at":"2026-01-01T00:00:15.000Z"},"replayed":false}
            ok {"task_id":"tsk_1","from_phase":"awaiting_approval","phase":"ready_to_resume","circuit_status":"closed","attempt_id":"att_1","legal_transitions":["executing","completed","failed"],"event_id":14,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"ready_to_resume","updated_at":"2026-01-01T00:00:16.000Z"}}
            # The first attempt ended, so resuming wants another.
            err NO_RUNNING_ATTEMPT: no attempt is running
              - NO_RUNNING_ATTEMPT: no attempt is running -> task_start_attempt {"task_id":"tsk_1","phase":"executing","runtime":"local","executor_kind":"builder","actor":"boss","actor_role":"orchestrator"}
            ok {"attempt":{"id":"att_2","attempt_id":"att_2","task_id":"tsk_1","ordinal":2,"phase":"executing","runtime":"local","executor_kind":"builder","status":"running","escalate":false,"started_at":"2026-01-01T00:00:18.000Z"},"attempts_left":1,"next_call":{"tool":"task_transition","arguments":{"task_id":"tsk_1","from_phase":"ready_to_resume","to_phase":"executing","reason":"an attempt is running","actor":"boss","actor_role":"orchestrator"}}}
            ok {"task_id":"tsk_1","from_phase":"ready_to_resume","phase":"executing","circuit_status":"closed","attempt_id":"att_2","legal_transitions":["spec_gate","execution_ready","circuit_open","failed"],"event_id":16,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"executing","updated_at":"2026-01-01T00:00:19.000Z"}}
            # The review of the first attempt does not count for the second.
            err SPEC_NOT_APPROVED: the current attempt is not approved against the spec: there is no review -> task_recover {"task_id":"tsk_1"}
              - SPEC_NOT_APPROVED: the current attempt is not approved against the spec: there is no review
            ok {"task_id":"tsk_1","from_phase":"quality_gate","phase":"completed","circuit_status":"closed","attempt_id":"att_2","legal_transitions":[],"event_id":22,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"completed","updated_at":"2026-01-01T00:00:26.000Z"}}
        "##]],
    );
}

#[test]
fn a_draft_gets_its_acceptance_criteria_later() {
    check(
        r##"
        task_create {"title": "vague", "spec_markdown": "Do something.", "workspace": "main", "initial_phase": "spec_review", "labels": ["a", "b", "a"], "actor": "boss", "actor_role": "orchestrator"}
        - review tsk_1 none spec approved
        move tsk_1 spec_review execution_ready
        task_update_spec {"task_id": "tsk_1", "spec_markdown": "# Acceptance\n- it works", "actor": "boss", "actor_role": "orchestrator"}
        - move tsk_1 spec_review spec_draft
        task_update_spec {"task_id": "tsk_1", "spec_markdown": "# Goal\nOld\n# Acceptance\n- it works", "spec": {"goal": "New"}, "actor": "boss", "actor_role": "orchestrator"}
        - move tsk_1 spec_draft spec_review
        # The review was of the spec before.
        move tsk_1 spec_review execution_ready
        - review tsk_1 none spec approved
        move tsk_1 spec_review execution_ready
        "##,
        expect![[r#"
            ok {"task":{"id":"tsk_1","task_id":"tsk_1","title":"vague","workspace":"main","phase":"spec_review","labels":["a","b"],"circuit_status":"closed","attempt_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:01.000Z","updated_at":"2026-01-01T00:00:01.000Z","spec":{}},"warnings":["the spec has no goal; add a heading for it, or pass spec.goal","the spec has no scope_in; add a heading for it, or pass spec.scope_in","the spec has no scope_out; add a heading for it, or pass spec.scope_out","the spec has no inputs; add a heading for it, or pass spec.inputs","the spec has no outputs; add a heading for it, or pass spec.outputs","the spec has no acceptance; add a heading for it, or pass spec.acceptance","the spec has no risks; add a heading for it, or pass spec.risks"],"event_id":1}
            err ACCEPTANCE_MISSING: the spec has no acceptance criteria
              - ACCEPTANCE_MISSING: the spec has no acceptance criteria -> task_transition {"task_id":"tsk_1","from_phase":"spec_review","to_phase":"spec_draft","reason":"the spec needs acceptance criteria","actor":"boss","actor_role":"orchestrator"}
            err WRONG_PHASE: task_update_spec is not allowed in phase spec_review {"phase":"spec_review","allowed_phases":["spec_draft","execution_ready"]}
              - WRONG_PHASE: task_update_spec is not allowed in phase spec_review -> task_transition {"task_id":"tsk_1","from_phase":"spec_review","to_phase":"spec_draft","reason":"the spec must change","actor":"boss","actor_role":"orchestrator"}
            ok {"task":{"id":"tsk_1","task_id":"tsk_1","title":"vague","workspace":"main","phase":"spec_draft","labels":["a","b"],"circuit_status":"closed","attempt_count":0,"spec_revision":2,"created_at":"2026-01-01T00:00:01.000Z","updated_at":"2026-01-01T00:00:06.000Z","spec":{"goal":"New","acceptance":["it works"]}},"warnings":["the spec has no scope_in; add a heading for it, or pass spec.scope_in","the spec has no scope_out; add a heading for it, or pass spec.scope_out","the spec has no inputs; add a heading for it, or pass spec.inputs","the spec has no outputs; add a heading for it, or pass spec.outputs","the spec has no risks; add a heading for it, or pass spec.risks"],"event_id":4}
            # The review was of the spec before.
            err SPEC_NOT_APPROVED: the spec is not approved: there is no review -> task_recover {"task_id":"tsk_1"}
              - SPEC_NOT_APPROVED: the spec is not approved: there is no review
            ok {"task_id":"tsk_1","from_phase":"spec_review","phase":"execution_ready","circuit_status":"closed","legal_transitions":["executing","failed"],"event_id":7,"task":{"id":"tsk_1","task_id":"tsk_1","title":"vague","workspace":"main","phase":"execution_ready","labels":["a","b"],"updated_at":"2026-01-01T00:00:10.000Z"}}
        "#]],
    );
}

#[test]
fn any_phase_but_the_last_may_fail() {
    check_after(
        EXECUTING,
        "
        move tsk_1 executing failed
        move tsk_1 failed execution_ready
        # The attempt can still be ended, and evidence added.
        finish att_1 aborted
        ",
        expect![[r#"
            ok {"task_id":"tsk_1","from_phase":"executing","phase":"failed","circuit_status":"closed","attempt_id":"att_1","legal_transitions":[],"event_id":8,"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"failed","updated_at":"2026-01-01T00:00:07.000Z"}}
            err ILLEGAL_TRANSITION: no transition leads from failed to execution_ready {"legal_transitions":[]}
              - ILLEGAL_TRANSITION (to_phase): no transition leads from failed to execution_ready -> task_recover {"task_id":"tsk_1"}
            # The attempt can still be ended, and evidence added.
            ok {"attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"aborted","escalate":false,"error_summary":"the task moved to failed","started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:07.000Z"},"attempts_left":2,"replayed":true}
        "#]],
    );
}

#[test]
fn recovery_needs_no_history() {
    check_after(
        EXECUTING,
        r#"
        - task_record_checkpoint {"task_id": "tsk_1", "checkpoint_type": "note", "payload": {"n": 1}, "actor": "hand", "actor_role": "executor"}
        - task_record_checkpoint {"task_id": "tsk_1", "attempt_id": "att_1", "checkpoint_type": "my_own", "payload": {"n": 2}, "actor": "hand", "actor_role": "executor"}
        - task_record_artifact {"task_id": "tsk_1", "kind": "other", "uri": "a", "produced_by": "hand", "actor": "hand", "actor_role": "executor"}
        - ask tsk_1 att_1 v1
        - finish att_1 failed
        - move tsk_1 executing execution_ready
        task_recover {"task_id": "tsk_1", "actor": "fresh", "actor_role": "orchestrator"}
        "#,
        expect![[r#"
            ok {"phase":"execution_ready","task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"execution_ready","labels":[],"circuit_status":"closed","current_attempt_id":"att_1","attempt_count":1,"next_retry_at":"2026-01-01T00:00:41.000Z","spec_revision":1,"created_at":"2026-01-01T00:00:01.000Z","updated_at":"2026-01-01T00:00:12.000Z","spec":{"goal":"Ship it.","scope_in":["the server"],"scope_out":["the client"],"inputs":["the source"],"outputs":["a binary"],"acceptance":["it runs","it stops"],"risks":["none"]}},"attempts_left":2,"latest_attempt":{"id":"att_1","attempt_id":"att_1","task_id":"tsk_1","ordinal":1,"phase":"executing","runtime":"local","executor_kind":"builder","status":"failed","escalate":false,"started_at":"2026-01-01T00:00:05.000Z","finished_at":"2026-01-01T00:00:11.000Z"},"latest_review":{"id":"rev_1","review_id":"rev_1","task_id":"tsk_1","review_type":"spec","reviewer_ref":"eye","verdict":"approved","finding_count":0,"spec_revision":1,"created_at":"2026-01-01T00:00:03.000Z","findings":[]},"latest_approval":{"id":"apr_1","approval_id":"apr_1","task_id":"tsk_1","attempt_id":"att_1","requested_action":"put it online","side_effect_kind":"deploy","idempotency_key":"v1","status":"pending","requested_by":"gate","created_at":"2026-01-01T00:00:10.000Z"},"latest_checkpoint":{"id":8,"event_id":8,"task_id":"tsk_1","attempt_id":"att_1","event_type":"attempt.checkpoint","actor":"hand","actor_role":"executor","payload":{"checkpoint_type":"my_own","payload":{"n":2}},"created_at":"2026-01-01T00:00:08.000Z"},"latest_artifact":{"id":"art_1","artifact_id":"art_1","task_id":"tsk_1","kind":"other","uri":"a","produced_by":"hand","created_at":"2026-01-01T00:00:09.000Z"},"pending":[{"code":"RETRY_TOO_EARLY","message":"the next attempt may not start before 2026-01-01T00:00:41.000Z"},{"code":"APPROVAL_PENDING","message":"approval apr_1 is pending: put it online"}],"transitions":[{"to_phase":"executing","ready":false,"unmet":[{"code":"NO_RUNNING_ATTEMPT","message":"no attempt is running"}],"next_call":{"tool":"task_transition","arguments":{"task_id":"tsk_1","from_phase":"execution_ready","to_phase":"executing","reason":"the task continues","actor":"fresh","actor_role":"orchestrator"}}},{"to_phase":"failed","ready":true,"next_call":{"tool":"task_transition","arguments":{"task_id":"tsk_1","from_phase":"execution_ready","to_phase":"failed","reason":"the task continues","actor":"fresh","actor_role":"orchestrator"}}}]}
        "#]],
    );
}
