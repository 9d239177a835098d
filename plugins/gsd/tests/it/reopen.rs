//! Taking back what was closed.

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::native::Session;

use crate::harness::{PLANNED, check, reply, run};

#[test]
fn only_what_is_closed_and_inside_what_is_open() {
    check(
        &format!(
            "{PLANNED}
             reopen M01/S01/T01 why
             reopen M01/S01 why
             reopen M01 why
             - done M01/S01/T01
             - done M01/S01/T02
             - close M01/S01
             reopen M01/S01/T01 why
             - skip M01/S02
             - validate M01 pass
             - finish M01
             reopen M01/S01 why
             reopen M01/S01/T01 why
             - reopen M01 the users complained as eve
             # its slices stay as they are
             gsd_status {{\"milestone_id\": \"M01\"}}
             reopen M01/S01 the first slice is wrong as eve
             reopen M01/S02 it is worth it after all"
        ),
        expect![[r#"
            err NOT_CLOSED: Cannot reopen: task T01 is pending, not closed
            err NOT_CLOSED: Cannot reopen: slice S01 is pending, not closed
            err NOT_CLOSED: Cannot reopen: milestone M01 is active, not complete
            err PARENT_CLOSED: Slice S01 is already complete
            err PARENT_CLOSED: Milestone M01 is already complete
            err PARENT_CLOSED: Slice S01 is already complete; and 1 more reason
              - PARENT_CLOSED: Slice S01 is already complete
              - PARENT_CLOSED: Milestone M01 is already complete
            # its slices stay as they are
            ok {"milestones":[{"workspace":"app","milestone_id":"M01","title":"milestone M01","status":"active","depends_on":[],"validation":"pass","validation_stale":true,"reopened":{"reason":"the users complained","by":"eve","at":"2026-01-01T00:00:15.000Z"}}],"slices":[{"workspace":"app","unit":"M01/S01","slice_id":"S01","title":"slice S01","status":"complete","risk":"medium","depends":[],"tasks_total":2,"tasks_closed":2},{"workspace":"app","unit":"M01/S02","slice_id":"S02","title":"slice S02","status":"skipped","risk":"medium","depends":["S01"],"tasks_total":0,"tasks_closed":0}],"tasks":[{"workspace":"app","unit":"M01/S01/T01","task_id":"T01","title":"task T01","status":"complete"},{"workspace":"app","unit":"M01/S01/T02","task_id":"T02","title":"task T02","status":"complete"}],"next":[{"workspace":"app","unit":"M01","action":"validate milestone M01: the validation of milestone M01 is older than its last change","tool":"gsd_validate_milestone"}],"blockers":[]}
            ok {"unit":"M01/S01","status":"in_progress","also":[{"unit":"M01/S01/T01","status":"pending"},{"unit":"M01/S01/T02","status":"pending"}],"event_id":10,"hash":"d1089dad3357b39f","next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T01","actor":"eve"}}}
            ok {"unit":"M01/S02","status":"in_progress","event_id":11,"hash":"8a2cab08dcae0b59","next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T01"}}}
        "#]],
    );
}

#[test]
fn the_reason_reaches_the_next_worker_until_the_work_is_done() {
    let session = Session::new(&gsd::PACK);
    run(
        &session,
        &format!(
            "{PLANNED}
             - done M01/S01/T01
             - done M01/S01/T02
             - close M01/S01
             - reopen M01/S01 the storage loses rows as eve
             - done M01/S01/T01
             - reopen M01/S01/T01 and still does as ada"
        ),
    );
    let started = reply(&session, "start M01/S01/T01 as bob");
    assert_eq!(
        started["reopened"],
        json!([
            {"unit": "M01/S01/T01", "reason": "and still does", "by": "ada", "at": "2026-01-01T00:00:08.000Z"},
            {"unit": "M01/S01", "reason": "the storage loses rows", "by": "eve", "at": "2026-01-01T00:00:06.000Z"},
        ])
    );
    run(
        &session,
        "- done M01/S01/T01 as bob\n- reopen M01/S01/T01 once more",
    );
    let started = reply(&session, "start M01/S01/T01 as bob");
    assert_eq!(started["reopened"][0]["reason"], "once more");
    let other = reply(&session, "start M01/S01/T02 as bob");
    assert_eq!(other["reopened"][0]["reason"], "the storage loses rows");
}

#[test]
fn a_slice_stays_closed_while_complete_slices_depend_on_it() {
    check(
        "- plan M01 S01 S02<S01 S03<S02 S04<S01
         - tasks M01/S01 T01
         - tasks M01/S02 T01
         - tasks M01/S03 T01
         - done M01/S01/T01
         - close M01/S01
         - done M01/S02/T01
         - close M01/S02
         - done M01/S03/T01
         - close M01/S03
         - skip M01/S04
         reopen M01/S01 it was wrong
         reopen M01/S02 it was wrong
         - reopen M01/S03 it was wrong
         - reopen M01/S02 it was wrong
         - reopen M01/S01 it was wrong",
        expect![[r#"
            err DEPENDENT_COMPLETE: Cannot reopen: slice S02 depends on slice S01 and is complete; and 1 more reason
              - DEPENDENT_COMPLETE: Cannot reopen: slice S02 depends on slice S01 and is complete
              - DEPENDENT_COMPLETE: Cannot reopen: slice S03 depends on slice S02 and is complete
            err DEPENDENT_COMPLETE: Cannot reopen: slice S03 depends on slice S02 and is complete
        "#]],
    );
}

#[test]
fn a_milestone_stays_closed_while_complete_milestones_depend_on_it() {
    let finish = |milestone: &str| {
        format!(
            "- tasks {milestone}/S01 T01\n- done {milestone}/S01/T01\n- close {milestone}/S01\n- validate {milestone} pass\n- finish {milestone}\n"
        )
    };
    check(
        &format!(
            "- plan M01 S01\n{}- plan M02<M01 S01\n{}- plan M03<M02 S01
             reopen M01 it was wrong
             - reopen M02 it was wrong
             - reopen M01 it was wrong",
            finish("M01"),
            finish("M02"),
        ),
        expect![[r#"
            err DEPENDENT_COMPLETE: Cannot reopen: milestone M02 depends on milestone M01 and is complete
        "#]],
    );
}
