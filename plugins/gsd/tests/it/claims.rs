//! Permissions on claimed units.

use expect_test::expect;

use serde_json::{Value, json};
use tollgate_sdk::native::Session;

use crate::harness::{PLANNED, check, refusal, reply, run};

#[test]
fn the_first_claim_wins_and_holds() {
    check(
        &format!(
            "{PLANNED}
             claim M01/S01/T01 as executor-01
             claim M01/S01/T01 as executor-02
             start M01/S01/T01 as executor-02
             done M01/S01/T01 as executor-02
             done M01/S01/T01
             reopen M01/S01/T01 no as executor-02
             skip M01/S01 as executor-02
             - done M01/S01/T01 as executor-01
             # completing released it
             gsd_claims"
        ),
        expect![[r#"
            ok {"unit":"M01/S01/T01","status":"held by executor-01","event_id":3,"hash":"ea4fb9cd44bd34f5","next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T01","actor":"executor-01"}}}
            err NOT_CLAIM_OWNER: Unit M01/S01/T01 is owned by executor-01, not executor-02
            err NOT_CLAIM_OWNER: Unit M01/S01/T01 is owned by executor-01, not executor-02
            err NOT_CLAIM_OWNER: Unit M01/S01/T01 is owned by executor-01, not executor-02
            err ACTOR_REQUIRED: Unit M01/S01/T01 is owned by executor-01; actor is required
            err NOT_CLOSED: Cannot reopen: task T01 is pending, not closed; and 1 more reason
              - NOT_CLOSED: Cannot reopen: task T01 is pending, not closed
              - NOT_CLAIM_OWNER (actor): Unit M01/S01/T01 is owned by executor-01, not executor-02
            err NOT_CLAIM_OWNER: Unit M01/S01/T01 is owned by executor-01, not executor-02
            # completing released it
            ok {"claims":[],"has_more":false,"more":false}
        "#]],
    );
}

#[test]
fn a_slice_covers_its_unclaimed_tasks() {
    check(
        &format!(
            "{PLANNED}
             - claim M01/S01/T02 as bob
             - claim M01/S01 as ada
             done M01/S01/T01 as bob
             done M01/S01/T02 as ada
             claim M01/S01/T01 as bob
             - done M01/S01/T02 as bob
             - done M01/S01/T01 as ada
             close M01/S01 as bob
             - close M01/S01 as ada
             gsd_claims
             claim M01/S01 as ada
             claim M01/S01/T01 as ada
             # once closed nobody holds it
             - reopen M01/S01 again as carl"
        ),
        expect![[r#"
            err NOT_CLAIM_OWNER: Unit M01/S01 is owned by ada, not bob
            err NOT_CLAIM_OWNER: Unit M01/S01/T02 is owned by bob, not ada
            err NOT_CLAIM_OWNER: Unit M01/S01 is owned by ada, not bob
            err NOT_CLAIM_OWNER: Unit M01/S01 is owned by ada, not bob
            ok {"claims":[],"has_more":false,"more":false}
            err ALREADY_COMPLETE: Slice S01 is already complete
            err ALREADY_COMPLETE: Task T01 is already complete; and 1 more reason
              - ALREADY_COMPLETE: Task T01 is already complete
              - PARENT_CLOSED: Slice S01 is already complete
            # once closed nobody holds it
        "#]],
    );
}

#[test]
fn claims_end_are_renewed_and_taken_over() {
    check(
        &format!(
            "{PLANNED}
             - claim M01/S01/T01 60 as ada
             +50000
             # renewed
             - claim M01/S01/T01 60 as ada
             +50000
             claim M01/S01/T01 as bob
             +20000
             # over
             claim M01/S01/T01 as bob
             gsd_claim {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"task_id\": \"T01\", \"actor_name\": \"eve\", \"force\": true}}
             take M01/S01/T01 bob is ill as eve
             done M01/S01/T01 as bob
             release M01/S01/T01 as bob
             release M01/S01/T01 as eve
             release M01/S01/T01 as eve
             - claim M01/S01 as ada
             release M01/S01/T02 as ada
             claim M01/S07 as ada"
        ),
        expect![[r##"
            # renewed
            err NOT_CLAIM_OWNER: Unit M01/S01/T01 is owned by ada, not bob
            # over
            ok {"unit":"M01/S01/T01","status":"held by bob","event_id":5,"hash":"ea4fb9cd44bd34f5","next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T01","actor":"bob"}}}
            err INVALID_ARGUMENTS: reason is required to take a claim over
            ok {"unit":"M01/S01/T01","status":"held by eve","event_id":6,"hash":"63429fb7e8c6ddea","warnings":["M01/S01/T01 was taken over from bob: bob is ill"],"next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T01","actor":"eve"}}}
            err NOT_CLAIM_OWNER: Unit M01/S01/T01 is owned by eve, not bob
            err NOT_CLAIM_OWNER: Unit M01/S01/T01 is owned by eve, not bob
            ok {"unit":"M01/S01/T01","status":"released","event_id":7,"hash":"8ec30bb6f872788f"}
            ok {"unit":"M01/S01/T01","status":"not held"}
            ok {"unit":"M01/S01/T02","status":"covered by the claim of ada on M01/S01"}
            err NOT_FOUND: Slice S07 does not exist (M01/S07)
        "##]],
    );
}

#[test]
fn workspaces_do_not_share_claims() {
    check(
        &format!(
            "{PLANNED}
             - claim M01/S01 as ada
             - gsd_plan_milestone {{\"milestone_id\": \"M01\", \"title\": \"x\", \"workspace\": \"other\", \"slices\": [{{\"slice_id\": \"S01\", \"title\": \"y\"}}]}}
             - gsd_plan_slice {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"workspace\": \"other\", \"tasks\": [{{\"task_id\": \"T01\", \"title\": \"z\"}}]}}
             - gsd_task_start {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"task_id\": \"T01\", \"workspace\": \"other\"}}
             gsd_claims {{\"workspace\": \"other\"}}
             gsd_claims {{\"milestone_id\": \"M02\"}}
             gsd_claims {{\"milestone_id\": \"M01\"}}"
        ),
        expect![[r#"
            ok {"claims":[],"has_more":false,"more":false}
            ok {"claims":[],"has_more":false,"more":false}
            ok {"claims":[{"workspace":"app","unit":"M01/S01","owner":"ada","claimed_at":"2026-01-01T00:00:03.000Z"}],"has_more":false,"more":false}
        "#]],
    );
}

#[test]
fn a_claim_of_started_work_says_that_it_takes_it_over() {
    check(
        &format!(
            "{PLANNED}
             - start M01/S01/T01 as ann
             claim M01/S01/T01 as bob
             claim M01/S01 as bob
             gsd_claim {{\"unit\": \"M01/S01/T01\", \"actor\": \"bob\", \"force\": true}}
             # one's own, and what another claim covers, is not taken over
             - claim M01/S01/T01 as ann
             - claim M01/S01 as bob
             # once ann has released it, the slice's claim covers it, but does not take it over
             - release M01/S01/T01 as ann
             claim M01/S01/T01 as bob
             gsd_plan_task {{\"unit\": \"M01/S01/T01\", \"description\": \"d\", \"actor\": \"bob\"}}
             take M01/S01/T01 ann is ill as bob
             claim M01/S01/T01 60 as bob
             - start M01/S01/T01 as bob
             done M01/S01/T01 as ann"
        ),
        expect![[r#"
            err ALREADY_STARTED: Task T01 was already started by ann at 2026-01-01T00:00:03.000Z, not bob
            err ALREADY_STARTED: Task T01 was already started by ann at 2026-01-01T00:00:03.000Z, not bob
            err INVALID_ARGUMENTS: reason is required to take started work over
            # one's own, and what another claim covers, is not taken over
            # once ann has released it, the slice's claim covers it, but does not take it over
            err ALREADY_STARTED: Task T01 was already started by ann at 2026-01-01T00:00:03.000Z, not bob
            ok {"unit":"M01/S01/T01","status":"in_progress","event_id":7,"hash":"de657e7fe633f3e9","warnings":["M01/S01/T01 is in progress by ann; tell ann about the new plan"],"next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T02","actor":"bob"}}}
            ok {"unit":"M01/S01/T01","status":"held by bob","event_id":8,"hash":"76303a735723280d","warnings":["M01/S01/T01 was taken over from ann: ann is ill"],"next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T01","actor":"bob"}}}
            ok {"unit":"M01/S01/T01","status":"held by bob","event_id":9,"hash":"8c0f15a9a5b5d64e","next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T01","actor":"bob"}}}
            err NOT_CLAIM_OWNER: Unit M01/S01/T01 is owned by bob, not ann; and 1 more reason
              - NOT_CLAIM_OWNER (actor): Unit M01/S01/T01 is owned by bob, not ann
              - ALREADY_STARTED: Task T01 was already started by bob at 2026-01-01T00:00:14.000Z, not ann
        "#]],
    );
}

#[test]
fn no_reply_or_refusal_pushes_a_takeover() {
    let session = Session::new(&gsd::PACK);
    run(
        &session,
        &format!("{PLANNED}- start M01/S01/T01 as ann\n- claim M01/S01/T02 as ann"),
    );
    for line in [
        "claim M01/S01/T01 as bob",
        "start M01/S01/T01 as bob",
        "done M01/S01/T01 as bob",
        "claim M01/S01 as bob",
        "claim M01/S01/T02 as bob",
        "start M01/S01/T02 as bob",
        "start M01/S01/T02",
    ] {
        let err = refusal(&session, line);
        let said = format!("{} {}", err.remediation, json!(err.blockers));
        assert!(
            !said.contains("force") && !said.contains("claim this"),
            "{line}: {said}"
        );
        assert!(!said.contains("gsd_claim\""), "{line}: {said}");
        assert_ne!(
            err.next_call.map(|call| call.tool).as_deref(),
            Some("gsd_claim"),
            "{line}"
        );
    }
    // A slice that was taken over does not lead to the task that another actor works on.
    let taken = reply(&session, "take M01/S01 ann is ill as bob");
    assert_eq!(
        (&taken["next"], &taken["next_call"]),
        (&Value::Null, &Value::Null),
        "{taken}"
    );
}
