//! From an empty workspace to a complete milestone, and what is refused on the way.

use expect_test::expect;
use tollgate_sdk::native::Session;

use crate::harness::{PLANNED, check, run, text};

#[test]
fn the_whole_way() {
    check(
        "plan M01 S01 S02<S01
         tasks M01/S01 T01
         start M01/S01/T01 as ada
         done M01/S01/T01 as ada
         close M01/S01
         tasks M01/S02 T01
         done M01/S02/T01
         close M01/S02
         validate M01 pass
         finish M01
         reopen M01 forgot something",
        expect![[r#"
            ok {"unit":"M01","status":"active","event_id":1,"hash":"d939cb555ff4dfd3","next":{"action":"plan the tasks of M01/S01","tool":"gsd_plan_slice","arguments":{"workspace":"app","unit":"M01/S01"},"needs":["tasks"]}}
            ok {"unit":"M01/S01","status":"pending","event_id":2,"hash":"c7c43903cfddf4c7","next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T01"}}}
            ok {"unit":"M01/S01/T01","status":"in_progress","also":[{"unit":"M01/S01","status":"in_progress"}],"event_id":3,"hash":"9f9a62b6f9235194","next":{"action":"finish M01/S01/T01 “task T01”, started by ada","tool":"gsd_task_complete","arguments":{"workspace":"app","unit":"M01/S01/T01","actor":"ada"},"needs":["one_liner","narrative","verification"]},"title":"task T01","description":"","estimate":"","files":[],"verify":"","inputs":[],"expected_output":[],"slice_goal":"","reopened":[]}
            ok {"unit":"M01/S01/T01","status":"complete","event_id":4,"hash":"9e5f2136922a3ed4","next":{"action":"complete slice M01/S01","tool":"gsd_slice_complete","arguments":{"workspace":"app","unit":"M01/S01","actor":"ada"},"needs":["one_liner","narrative","verification","uat_content"]}}
            ok {"unit":"M01/S01","status":"complete","event_id":5,"hash":"595eaa09cff3f62b","next":{"action":"plan the tasks of M01/S02","tool":"gsd_plan_slice","arguments":{"workspace":"app","unit":"M01/S02"},"needs":["tasks"]}}
            ok {"unit":"M01/S02","status":"pending","event_id":6,"hash":"e31aeae53cb7343a","next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S02/T01"}}}
            ok {"unit":"M01/S02/T01","status":"complete","also":[{"unit":"M01/S02","status":"in_progress"}],"event_id":7,"hash":"a5b293e1cc235a25","next":{"action":"complete slice M01/S02","tool":"gsd_slice_complete","arguments":{"workspace":"app","unit":"M01/S02"},"needs":["one_liner","narrative","verification","uat_content"]}}
            ok {"unit":"M01/S02","status":"complete","event_id":8,"hash":"d9d5e2a2a36e2f6b","next":{"action":"validate milestone M01: milestone M01 was not validated","tool":"gsd_validate_milestone","arguments":{"workspace":"app","milestone_id":"M01"},"needs":["verdict","rationale"]}}
            ok {"unit":"M01","status":"active","event_id":9,"hash":"8d64e3cdde06fbdd","next":{"action":"complete milestone M01","tool":"gsd_milestone_complete","arguments":{"workspace":"app","milestone_id":"M01"},"needs":["one_liner","narrative","verification_passed"]}}
            ok {"unit":"M01","status":"complete","event_id":10,"hash":"1430ccb3d36b360a"}
            ok {"unit":"M01","status":"active","event_id":11,"hash":"49f035f36fc36858","next":{"action":"validate milestone M01: the validation of milestone M01 is older than its last change","tool":"gsd_validate_milestone","arguments":{"workspace":"app","milestone_id":"M01"},"needs":["verdict","rationale"]}}
        "#]],
    );
}

#[test]
fn what_completing_a_task_wants() {
    check(
        &format!(
            "{PLANNED}
             # twice, by the same and by another
             - done M01/S01/T01 as ada
             done M01/S01/T01 as ada
             done M01/S01/T01 as bob
             # unknown units
             done M02/S01/T01
             done M01/S09/T01
             done M01/S01/T09
             # a slice whose dependency is open
             - tasks M01/S02 T01
             start M01/S02/T01
             done M01/S02/T01"
        ),
        expect![[r##"
            # twice, by the same and by another
            err ALREADY_COMPLETE: Task T01 is already complete {"same_content":true,"completed_by":"ada"}
            err ALREADY_COMPLETE: Task T01 is already complete {"same_content":false,"completed_by":"ada"}
            # unknown units
            err NOT_FOUND: Milestone M02 does not exist (M02)
            err NOT_FOUND: Slice S09 does not exist (M01/S09)
            err NOT_FOUND: Task T09 does not exist (M01/S01/T09)
            # a slice whose dependency is open
            err SLICE_DEPENDENCY_OPEN: Slice S02 depends on slice S01, which is in_progress, not complete
            err SLICE_DEPENDENCY_OPEN: Slice S02 depends on slice S01, which is in_progress, not complete
        "##]],
    );
}

#[test]
fn what_completing_a_slice_wants() {
    check(
        "- plan M01 S01 S02 S03
         close M01/S01
         - tasks M01/S01 T01 T02 T03
         - done M01/S01/T02
         - start M01/S01/T03 as ada
         close M01/S01
         - done M01/S01/T01
         - done M01/S01/T03 as ada
         - close M01/S01
         close M01/S01
         done M01/S01/T01",
        expect![[r#"
            err SLICE_EMPTY: Slice S01 has no tasks
            err TASKS_OPEN: Task T01 is not complete: it is pending (M01/S01/T01); and 1 more reason
              - TASKS_OPEN: Task T01 is not complete: it is pending (M01/S01/T01)
              - TASKS_OPEN: Task T03 is not complete: it is in_progress (M01/S01/T03)
            err ALREADY_COMPLETE: Slice S01 is already complete {"same_content":true,"completed_by":"agent"}
            err ALREADY_COMPLETE: Task T01 is already complete; and 1 more reason {"same_content":true,"completed_by":"agent"}
              - ALREADY_COMPLETE: Task T01 is already complete
              - PARENT_CLOSED: Slice S01 is already complete
        "#]],
    );
}

#[test]
fn what_completing_a_milestone_wants() {
    check(
        "- plan M01
         finish M01
         - plan M01 S01 S02
         - tasks M01/S01 T01
         finish M01
         - done M01/S01/T01
         - close M01/S01
         - skip M01/S02
         finish M01
         - validate M01 needs_attention
         finish M01
         - validate M01 pass
         - reopen M01/S02 once more
         - skip M01/S02
         finish M01
         - validate M01 pass
         gsd_milestone_complete {\"milestone_id\": \"M01\", \"one_liner\": \"x\", \"narrative\": \"y\", \"verification_passed\": false}
         finish M01
         finish M01",
        expect![[r#"
            err MILESTONE_EMPTY: Milestone M01 has no slices; and 1 more reason
              - MILESTONE_EMPTY: Milestone M01 has no slices
              - VALIDATION_MISSING: Milestone M01 was not validated
            err SLICES_OPEN: Slice S01 is not complete: it is pending (M01/S01); and 3 more reasons
              - SLICES_OPEN: Slice S01 is not complete: it is pending (M01/S01)
              - SLICES_OPEN: Slice S02 is not complete: it is pending (M01/S02)
              - TASKS_OPEN: Task T01 is not complete: it is pending (M01/S01/T01)
              - VALIDATION_MISSING: Milestone M01 was not validated
            err VALIDATION_MISSING: Milestone M01 was not validated
            err VALIDATION_MISSING: The validation of milestone M01 says needs_attention
            err VALIDATION_MISSING: The validation of milestone M01 is older than its last change
            err VERIFICATION_NOT_PASSED: Milestone M01 cannot be complete while verification_passed is false
            ok {"unit":"M01","status":"complete","event_id":12,"hash":"1430ccb3d36b360a"}
            err ALREADY_COMPLETE: Milestone M01 is already complete {"same_content":true,"completed_by":"agent"}
        "#]],
    );
}

#[test]
fn milestones_wait_for_each_other() {
    check(
        "- plan M01 S01
         plan M02<M01 S01
         plan M02<M01
         plan M02<M07
         plan M02<M02",
        expect![[r#"
            err DEPENDENCY_INCOMPLETE: Milestone M02 depends on milestone M01, which is active, not complete
            err DEPENDENCY_INCOMPLETE: Milestone M02 depends on milestone M01, which is active, not complete
            err DEPENDENCY_INCOMPLETE: Milestone M02 depends on milestone M07, which does not exist
            err DEPENDENCY_INCOMPLETE: Milestone M02 depends on milestone M02, which does not exist; and 1 more reason
              - DEPENDENCY_INCOMPLETE: Milestone M02 depends on milestone M02, which does not exist
              - DEPENDENCY_CYCLE: The dependencies form a cycle: M02 → M02
        "#]],
    );
    let ahead = Session::new(&gsd::PACK).config(&serde_json::json!({"plan_ahead": true}));
    let log = run(
        &ahead,
        "- plan M01 S01
         - plan M02<M01 S01
         - tasks M02/S01 T01
         start M02/S01/T01
         plan M01<M02
         plan M03<M07
         - skip M01/S01
         - validate M01 pass
         - finish M01
         - start M02/S01/T01",
    );
    expect![[r#"
        err DEPENDENCY_INCOMPLETE: Milestone M02 depends on milestone M01, which is active, not complete
        err DEPENDENCY_CYCLE: The dependencies form a cycle: M01 → M02 → M01
        err DEPENDENCY_INCOMPLETE: Milestone M03 depends on milestone M07, which does not exist
    "#]]
    .assert_eq(&log);
}

#[test]
fn validation_can_be_switched_off() {
    let session = Session::new(&gsd::PACK).config(&serde_json::json!({"require_validation": false}));
    run(&session, "- plan M01 S01\n- skip M01/S01\n- finish M01");
}

#[test]
fn a_parked_milestone_rests() {
    check(
        "- plan M01 S01
         - tasks M01/S01 T01
         gsd_plan_milestone {\"milestone_id\": \"M01\", \"title\": \"later\", \"parked\": true}
         start M01/S01/T01
         done M01/S01/T01
         claim M01/S01 as ada
         finish M01
         - tasks M01/S01 T02
         reopen M01 now",
        expect![[r#"
            ok {"unit":"M01","status":"parked","event_id":3,"hash":"309c91aa9f9505eb"}
            err MILESTONE_PARKED: Milestone M01 is parked
            err MILESTONE_PARKED: Milestone M01 is parked
            err MILESTONE_PARKED: Milestone M01 is parked
            err MILESTONE_PARKED: Milestone M01 is parked; and 3 more reasons
              - MILESTONE_PARKED: Milestone M01 is parked
              - SLICES_OPEN: Slice S01 is not complete: it is pending (M01/S01)
              - TASKS_OPEN: Task T01 is not complete: it is pending (M01/S01/T01)
              - VALIDATION_MISSING: Milestone M01 was not validated
            ok {"unit":"M01","status":"active","event_id":5,"hash":"8dbfad6923527c09","next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T01"}}}
        "#]],
    );
}

#[test]
fn a_task_is_started_by_one_at_a_time() {
    check(
        &format!(
            "{PLANNED}
             - start M01/S01/T01 as ada
             start M01/S01/T01 as bob
             # coming back is fine
             - start M01/S01/T01 as ada
             # and so is taking over by a claim that says so
             claim M01/S01/T01 as bob
             take M01/S01/T01 ada is ill as bob
             - start M01/S01/T01 as bob
             start M01/S01/T01 as ada"
        ),
        expect![[r#"
            err ALREADY_STARTED: Task T01 was already started by ada at 2026-01-01T00:00:03.000Z, not bob
            # coming back is fine
            # and so is taking over by a claim that says so
            err ALREADY_STARTED: Task T01 was already started by ada at 2026-01-01T00:00:03.000Z, not bob
            ok {"unit":"M01/S01/T01","status":"held by bob","event_id":4,"hash":"41025eb89c167b51","warnings":["M01/S01/T01 was taken over from ada: ada is ill"],"next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T01","actor":"bob"}}}
            err NOT_CLAIM_OWNER: Unit M01/S01/T01 is owned by bob, not ada; and 1 more reason
              - NOT_CLAIM_OWNER (actor): Unit M01/S01/T01 is owned by bob, not ada
              - ALREADY_STARTED: Task T01 was already started by bob at 2026-01-01T00:00:08.000Z, not ada
        "#]],
    );
}

#[test]
fn the_tree_as_people_read_it() {
    let session = Session::new(&gsd::PACK);
    assert_eq!(
        text(&session, "status"),
        "Nothing is planned. Start with gsd_plan_milestone.\n"
    );
    run(
        &session,
        &format!(
            "{PLANNED}
             - done M01/S01/T01 as ada
             - reopen M01/S01/T01 the tests never ran as eve
             - claim M01/S01 as ada
             - start M01/S01/T02 as ada
             - gsd_plan_milestone {{\"milestone_id\": \"M02\", \"title\": \"more\", \"workspace\": \"other\"}}"
        ),
    );
    expect![[r#"
        workspace app
        M01 milestone M01 (active, 0 of 2 slices closed)
        ├─ [~] S01 slice S01 (in_progress, 0 of 2 tasks closed) held by ada
        │  ├─ [ ] T01 task T01 (pending)
        │  │     reopened by eve: the tests never ran
        │  └─ [~] T02 task T02 (in_progress, started by ada)
        └─ [ ] S02 slice S02 (pending, 0 of 0 tasks closed)
        next: finish M01/S01/T02 “task T02”, started by ada, held by ada (gsd_task_complete)
        next: start M01/S01/T01 “task T01”, held by ada (gsd_task_start)
        blocked: Slice S02 depends on slice S01, which is in_progress, not complete (SLICE_DEPENDENCY_OPEN)

        workspace other
        M02 more (active)
        next: plan the slices of M02 (gsd_plan_milestone)
    "#]]
    .assert_eq(&text(&session, "status"));
    expect![[r#"
        ok {"milestones":[{"workspace":"app","milestone_id":"M01","title":"milestone M01","status":"active","depends_on":[]}],"slices":[{"workspace":"app","unit":"M01/S01","slice_id":"S01","title":"slice S01","status":"in_progress","risk":"medium","depends":[],"tasks_total":2,"tasks_closed":0,"owner":"ada"},{"workspace":"app","unit":"M01/S02","slice_id":"S02","title":"slice S02","status":"pending","risk":"medium","depends":["S01"],"tasks_total":0,"tasks_closed":0}],"tasks":[{"workspace":"app","unit":"M01/S01/T01","task_id":"T01","title":"task T01","status":"pending","owner":"ada","reopened":{"reason":"the tests never ran","by":"eve","at":"2026-01-01T00:00:05.000Z"}},{"workspace":"app","unit":"M01/S01/T02","task_id":"T02","title":"task T02","status":"in_progress","owner":"ada","started_by":"ada"}],"next":[{"workspace":"app","unit":"M01/S01/T02","action":"finish M01/S01/T02 “task T02”, started by ada, held by ada","tool":"gsd_task_complete"},{"workspace":"app","unit":"M01/S01/T01","action":"start M01/S01/T01 “task T01”, held by ada","tool":"gsd_task_start"}],"blockers":[{"workspace":"app","unit":"M01/S02","code":"SLICE_DEPENDENCY_OPEN","message":"Slice S02 depends on slice S01, which is in_progress, not complete"}]}
        err NOT_FOUND: Milestone M09 does not exist (M09)
    "#]].assert_eq(&run(&session, "gsd_status {\"workspace\": \"app\"}\ngsd_status {\"milestone_id\": \"M09\"}"));
}
