//! Plans, and how they change.

use expect_test::expect;

use crate::harness::{PLANNED, check};

#[test]
fn closed_work_is_never_changed_or_dropped() {
    check(
        &format!(
            "{PLANNED}
             - done M01/S01/T01
             # the same again is no change
             - tasks M01/S01 T01 T02 T03
             gsd_plan_slice {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"tasks\": [{{\"task_id\": \"T01\", \"title\": \"other\"}}, {{\"task_id\": \"T02\", \"title\": \"new\"}}]}}
             gsd_plan_task {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"task_id\": \"T01\", \"title\": \"other\"}}
             - done M01/S01/T02
             - done M01/S01/T03
             - close M01/S01
             tasks M01/S01 T04
             gsd_plan_task {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"task_id\": \"T04\", \"title\": \"late\"}}
             gsd_plan_milestone {{\"milestone_id\": \"M01\", \"title\": \"t\", \"slices\": [{{\"slice_id\": \"S01\", \"title\": \"other\"}}]}}
             - plan M01 S01 S02<S01 S03
             - skip M01/S02
             - skip M01/S03
             - validate M01 pass
             - finish M01
             plan M01 S04
             tasks M01/S02 T01"
        ),
        expect![[r#"
            # the same again is no change
            err CLOSED_WORK_PROTECTED: Cannot change task T01: it is already complete
            err ALREADY_COMPLETE: Cannot re-plan: task T01 is already complete
            err ALREADY_COMPLETE: Cannot re-plan: slice S01 is already complete
            err PARENT_CLOSED: Cannot re-plan: slice S01 is already complete
            err CLOSED_WORK_PROTECTED: Cannot change slice S01: it is already complete
            err ALREADY_COMPLETE: Cannot re-plan: milestone M01 is already complete
            err ALREADY_COMPLETE: Cannot re-plan: slice S02 is already skipped; and 1 more reason
              - ALREADY_COMPLETE: Cannot re-plan: slice S02 is already skipped
              - PARENT_CLOSED: Cannot re-plan: milestone M01 is already complete
        "#]],
    );
}

#[test]
fn replanning_wants_a_completed_blocker() {
    check(
        &format!(
            "{PLANNED}
             - start M01/S01/T02 as bob
             gsd_replan_slice {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"blocker_task_id\": \"T01\", \"blocker_description\": \"b\", \"what_changed\": \"c\", \"removed_task_ids\": [\"T01\", \"T07\"]}}
             - done M01/S01/T01
             gsd_replan_slice {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"blocker_task_id\": \"T01\", \"blocker_description\": \"b\", \"what_changed\": \"c\", \"updated_tasks\": [{{\"task_id\": \"T01\", \"title\": \"no\"}}], \"removed_task_ids\": [\"T01\"]}}
             gsd_replan_slice {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"blocker_task_id\": \"T01\", \"blocker_description\": \"b\", \"what_changed\": \"c\", \"updated_tasks\": [{{\"task_id\": \"T02\", \"title\": \"another\"}}, {{\"task_id\": \"T03\", \"title\": \"new\"}}]}}
             gsd_replan_slice {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"blocker_task_id\": \"T01\", \"blocker_description\": \"b\", \"what_changed\": \"d\", \"removed_task_ids\": [\"T03\"]}}
             - claim M01/S01/T02 as bob
             gsd_slice_replan {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"blocker_task_id\": \"T01\", \"blocker_description\": \"b\", \"what_changed\": \"d\", \"removed_task_ids\": [\"T02\"]}} as eve
             gsd_status {{\"milestone_id\": \"M01\"}}"
        ),
        expect![[r#"
            err BLOCKER_NOT_COMPLETE: Blocker task T01 is not complete: it is pending; and 1 more reason
              - BLOCKER_NOT_COMPLETE: Blocker task T01 is not complete: it is pending
              - NOT_FOUND: Task T07 does not exist (M01/S01/T07)
            err INVALID_ARGUMENTS: removed_task_ids contains T01, which updated_tasks changes; and 2 more reasons
              - INVALID_ARGUMENTS (removed_task_ids): removed_task_ids contains T01, which updated_tasks changes
              - CLOSED_WORK_PROTECTED: Cannot change task T01: it is already complete
              - CLOSED_WORK_PROTECTED: Cannot remove task T01: it is already complete
            ok {"unit":"M01/S01","status":"in_progress","event_id":5,"hash":"70e32c38ffd00ec0","warnings":["M01/S01/T02 is in progress by bob; tell bob about the new plan"],"next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T03"}}}
            ok {"unit":"M01/S01","status":"in_progress","event_id":6,"hash":"942fd07acd77629a"}
            err NOT_CLAIM_OWNER: Unit M01/S01/T02 is owned by bob, not eve
            ok {"milestones":[{"workspace":"app","milestone_id":"M01","title":"milestone M01","status":"active","depends_on":[]}],"slices":[{"workspace":"app","unit":"M01/S01","slice_id":"S01","title":"slice S01","status":"in_progress","risk":"medium","depends":[],"tasks_total":2,"tasks_closed":1},{"workspace":"app","unit":"M01/S02","slice_id":"S02","title":"slice S02","status":"pending","risk":"medium","depends":["S01"],"tasks_total":0,"tasks_closed":0}],"tasks":[{"workspace":"app","unit":"M01/S01/T01","task_id":"T01","title":"task T01","status":"complete"},{"workspace":"app","unit":"M01/S01/T02","task_id":"T02","title":"another","status":"in_progress","owner":"bob","started_by":"bob"}],"next":[{"workspace":"app","unit":"M01/S01/T02","action":"finish M01/S01/T02 “another”, started by bob, held by bob","tool":"gsd_task_complete"}],"blockers":[{"workspace":"app","unit":"M01/S02","code":"SLICE_DEPENDENCY_OPEN","message":"Slice S02 depends on slice S01, which is in_progress, not complete"}]}
        "#]],
    );
}

#[test]
fn there_is_one_record_for_each_cause() {
    use tollgate_sdk::native::Session;
    let session = Session::new(&gsd::PACK);
    crate::harness::run(&session, &format!("{PLANNED}- done M01/S01/T01"));
    let replan = "- gsd_replan_slice {\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"blocker_task_id\": \"T01\", \"blocker_description\": \"b\", \"what_changed\": \"CHANGED\"}";
    crate::harness::run(&session, &replan.replace("CHANGED", "one"));
    crate::harness::run(&session, &replan.replace("CHANGED", "two"));
    crate::harness::run(&session, "- done M01/S01/T02\n- close M01/S01");
    let assess = "- gsd_reassess_roadmap {\"milestone_id\": \"M01\", \"completed_slice_id\": \"S01\", \"verdict\": \"VERDICT\", \"assessment\": \"a\"}";
    crate::harness::run(&session, &assess.replace("VERDICT", "confirmed"));
    crate::harness::run(&session, &assess.replace("VERDICT", "adjusted"));
    let rows = session.sql("SELECT (SELECT group_concat(what_changed) FROM gsd_replans), (SELECT group_concat(verdict) FROM gsd_assessments)");
    assert_eq!(rows[0].get::<String>(0).unwrap(), "two");
    assert_eq!(rows[0].get::<String>(1).unwrap(), "adjusted");
}

#[test]
fn a_roadmap_changes_after_a_completed_slice() {
    check(
        "- plan M01 S01 S02 S03 S04<S03
         - tasks M01/S01 T01
         - tasks M01/S02 T01
         gsd_reassess_roadmap {\"milestone_id\": \"M01\", \"completed_slice_id\": \"S01\", \"verdict\": \"v\", \"assessment\": \"a\"}
         - done M01/S01/T01
         - close M01/S01
         # closed, unknown, needed by another, known, circular
         gsd_reassess_roadmap {\"milestone_id\": \"M01\", \"completed_slice_id\": \"S01\", \"verdict\": \"v\", \"assessment\": \"a\", \"slice_changes\": {\"added\": [{\"slice_id\": \"S02\", \"title\": \"x\"}], \"modified\": [{\"slice_id\": \"S01\", \"title\": \"x\"}, {\"slice_id\": \"S08\", \"title\": \"x\"}], \"removed\": [\"S03\", \"S09\", \"S01\"]}}
         gsd_reassess_roadmap {\"milestone_id\": \"M01\", \"completed_slice_id\": \"S01\", \"verdict\": \"v\", \"assessment\": \"a\", \"slice_changes\": {\"modified\": [{\"slice_id\": \"S03\", \"depends\": [\"S04\"]}]}}
         gsd_reassess_roadmap {\"milestone_id\": \"M01\", \"completed_slice_id\": \"S01\", \"verdict\": \"adjusted\", \"assessment\": \"a\", \"slice_changes\": {\"added\": [{\"slice_id\": \"S05\", \"title\": \"five\", \"risk\": \"high\"}], \"modified\": [{\"slice_id\": \"S04\", \"depends\": [\"S05\"]}], \"removed\": [\"S02\", \"S03\"]}}
         gsd_status {\"milestone_id\": \"M01\"}",
        expect![[r#"
            err SLICES_OPEN: Slice S01 is not complete: it is pending (M01/S01)
            # closed, unknown, needed by another, known, circular
            err INVALID_ARGUMENTS: slice_changes.added contains S02, which already exists; put it into modified; and 7 more reasons
              - INVALID_ARGUMENTS (slice_changes.added): slice_changes.added contains S02, which already exists; put it into modified
              - NOT_FOUND: Slice S08 does not exist (M01/S08)
              - NOT_FOUND: Slice S09 does not exist (M01/S09)
              - INVALID_ARGUMENTS (slice_changes): slice_changes cannot both modify and remove S01
              - CLOSED_WORK_PROTECTED: Cannot remove task T01: it is already complete
              - CLOSED_WORK_PROTECTED: Cannot change slice S01: it is already complete
              - CLOSED_WORK_PROTECTED: Cannot remove slice S01: it is already complete
              - SLICE_DEPENDENCY_OPEN: Slice S04 depends on slice S03, which does not exist
            err DEPENDENCY_CYCLE: The dependencies form a cycle: M01/S03 → M01/S04 → M01/S03
            ok {"unit":"M01/S01","status":"assessed","event_id":6,"hash":"13ec6681981a2064","next":{"action":"plan the tasks of M01/S05","tool":"gsd_plan_slice","arguments":{"workspace":"app","unit":"M01/S05"},"needs":["tasks"]}}
            ok {"milestones":[{"workspace":"app","milestone_id":"M01","title":"milestone M01","status":"active","depends_on":[]}],"slices":[{"workspace":"app","unit":"M01/S01","slice_id":"S01","title":"slice S01","status":"complete","risk":"medium","depends":[],"tasks_total":1,"tasks_closed":1},{"workspace":"app","unit":"M01/S04","slice_id":"S04","title":"slice S04","status":"pending","risk":"medium","depends":["S05"],"tasks_total":0,"tasks_closed":0},{"workspace":"app","unit":"M01/S05","slice_id":"S05","title":"five","status":"pending","risk":"high","depends":[],"tasks_total":0,"tasks_closed":0}],"tasks":[{"workspace":"app","unit":"M01/S01/T01","task_id":"T01","title":"task T01","status":"complete"}],"next":[{"workspace":"app","unit":"M01/S05","action":"plan the tasks of M01/S05","tool":"gsd_plan_slice"}],"blockers":[{"workspace":"app","unit":"M01/S04","code":"SLICE_DEPENDENCY_OPEN","message":"Slice S04 depends on slice S05, which is pending, not complete"}]}
        "#]],
    );
}
