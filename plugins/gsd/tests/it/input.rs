//! Bad input: every mistake is named, and nothing happens.

use expect_test::expect;
use serde_json::{Value, json};
use tollgate_sdk::native::Session;

use crate::harness::{PLANNED, call, check, refusal, run};

#[test]
fn text_that_would_break_a_line() {
    check(
        "gsd_plan_milestone {\"milestone_id\": \"M01\", \"title\": \"two\\nlines\", \"success_criteria\": [\"\", \"a\\rb\", \"fine\"], \"key_risks\": [\" x\"], \"slices\": [{\"slice_id\": \"S01\", \"title\": \"\\u2028\", \"demo\": \"\\u0007\"}]}
         gsd_plan_milestone {\"milestone_id\": \"M01\", \"title\": \"\\u202egnihtemos\", \"vision\": \"\\u0000\", \"workspace\": \"a\\nb\"}
         gsd_status",
        expect![[r#"
            err INVALID_ARGUMENTS: title has a line break; and 6 more reasons
              - INVALID_ARGUMENTS (title): title has a line break
              - INVALID_ARGUMENTS (success_criteria[0]): success_criteria[0] is blank
              - INVALID_ARGUMENTS (success_criteria[1]): success_criteria[1] has a line break
              - INVALID_ARGUMENTS (key_risks[0]): key_risks[0] starts or ends with whitespace
              - INVALID_ARGUMENTS (slices[0].title): slices[0].title is blank
              - INVALID_ARGUMENTS (slices[0].title): slices[0].title has a line break
              - INVALID_ARGUMENTS (slices[0].demo): slices[0].demo has the control character U+0007
            err INVALID_ARGUMENTS: workspace has a line break; and 2 more reasons
              - INVALID_ARGUMENTS (workspace): workspace has a line break
              - INVALID_ARGUMENTS (title): title has the control character U+202E
              - INVALID_ARGUMENTS (vision): vision has the control character U+0000
            ok {"milestones":[],"slices":[],"tasks":[],"next":[],"blockers":[]}
        "#]],
    );
}

#[test]
fn ids_that_are_none_or_the_same_twice() {
    let session = Session::new(&gsd::PACK);
    for id in ["", "M1", "M0001", "m01", "../M01", "M01/S01", "M٠١"] {
        let err = refusal(
            &session,
            &format!("gsd_plan_milestone {}", json!({"milestone_id": id, "title": "x"})),
        );
        assert_eq!(err.code, "INVALID_ARGUMENTS", "{id}");
    }
    let log = run(
        &session,
        &format!(
            "{PLANNED}
             plan M001
             plan M01 S001 S03 S03
             tasks M01/S01 T001 T05 T005
             plan M01 S03<S03 S04<S05 S05<S04 S06<S77"
        ),
    );
    expect![[r#"
        err INVALID_ARGUMENTS: milestone_id spells M01 as M001; use M01
        err INVALID_ARGUMENTS: slice_id spells S01 as S001; use S01; and 1 more reason
          - INVALID_ARGUMENTS (slice_id): slice_id spells S01 as S001; use S01
          - INVALID_ARGUMENTS (slice_id): slice_id names S03 twice
        err INVALID_ARGUMENTS: task_id spells T01 as T001; use T01; and 1 more reason
          - INVALID_ARGUMENTS (task_id): task_id spells T01 as T001; use T01
          - INVALID_ARGUMENTS (task_id): task_id spells T05 as T005; use T05
        err SLICE_DEPENDENCY_OPEN: Slice S06 depends on slice S77, which does not exist; and 1 more reason
          - SLICE_DEPENDENCY_OPEN: Slice S06 depends on slice S77, which does not exist
          - DEPENDENCY_CYCLE: The dependencies form a cycle: M01/S03 → M01/S03
    "#]]
    .assert_eq(&log);
}

#[test]
fn ten_thousand_tasks_in_a_slice() {
    let session = Session::new(&gsd::PACK);
    run(&session, "- plan M01 S01");
    let tasks: Vec<Value> = (0..10_000)
        .map(|number| json!({"task_id": format!("T{:03}", number % 1000), "title": "x"}))
        .collect();
    let arguments =
        json!({"workspace": "app", "milestone_id": "M01", "slice_id": "S01", "tasks": tasks}).to_string();
    let err = call(&session, "gsd_plan_slice", &arguments).unwrap_err();
    assert_eq!(err.code, "INVALID_ARGUMENTS");
    assert!(
        err.blockers
            .iter()
            .any(|blocker| blocker.message == "tasks has 10000 entries; at most 999 are allowed"),
        "{:?}",
        err.blockers.first()
    );
    assert_eq!(
        session.sql("SELECT count(id) FROM gsd_tasks")[0]
            .get::<i64>(0)
            .unwrap(),
        0
    );
}

#[test]
fn as_many_tasks_as_ids_can_number() {
    let session = Session::new(&gsd::PACK);
    run(&session, "- plan M01 S01");
    let tasks: Vec<String> = (1..1000).map(|number| format!("T{number:03}")).collect();
    run(&session, &format!("- tasks M01/S01 {}", tasks.join(" ")));
    let open = refusal(&session, "close M01/S01");
    assert_eq!(open.blockers.len(), 999);
    run(&session, "- skip M01/S01");
}

#[test]
fn what_is_missing_is_named() {
    check(
        &format!(
            "{PLANNED}
             gsd_task_complete {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"task_id\": \"T01\", \"one_liner\": \" \", \"narrative\": \"\", \"verification\": \"\\n\", \"verification_evidence\": [{{\"command\": \"\", \"exit_code\": 1, \"verdict\": \"a\\nb\"}}], \"key_files\": [\"\"], \"actor_name\": \" \"}}
             gsd_task_reopen {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"task_id\": \"T01\", \"reason\": \"\"}}
             gsd_validate_milestone {{\"milestone_id\": \"M01\", \"verdict\": \"pass\", \"rationale\": \"r\", \"criteria\": [{{\"criterion\": \"c\", \"met\": false}}]}}"
        ),
        expect![[r#"
            err INVALID_ARGUMENTS: actor is blank; and 6 more reasons
              - INVALID_ARGUMENTS (actor): actor is blank
              - INVALID_ARGUMENTS (one_liner): one_liner is blank
              - INVALID_ARGUMENTS (narrative): narrative is blank
              - INVALID_ARGUMENTS (verification): verification is blank
              - INVALID_ARGUMENTS (verification_evidence[0].command): verification_evidence[0].command is blank
              - INVALID_ARGUMENTS (verification_evidence[0].verdict): verification_evidence[0].verdict has a line break
              - INVALID_ARGUMENTS (key_files[0]): key_files[0] is blank
            err NOT_CLOSED: Cannot reopen: task T01 is pending, not closed; and 1 more reason
              - NOT_CLOSED: Cannot reopen: task T01 is pending, not closed
              - INVALID_ARGUMENTS (reason): reason is blank
            err INVALID_ARGUMENTS: criteria[0].met is false, but the verdict is pass
        "#]],
    );
}

#[test]
fn what_is_suspicious_is_warned_about() {
    check(
        &format!(
            "{PLANNED}
             gsd_task_complete {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"task_id\": \"T01\", \"one_liner\": \"x\", \"narrative\": \"y\", \"verification\": \"z\"}}
             gsd_task_complete {{\"milestone_id\": \"M01\", \"slice_id\": \"S01\", \"task_id\": \"T02\", \"one_liner\": \"x\", \"narrative\": \"y\", \"verification\": \"z\", \"verification_evidence\": [{{\"command\": \"make\", \"exit_code\": 2, \"verdict\": \"fail\"}}], \"blocker_discovered\": true}}
             validate M01 pass"
        ),
        expect![[r#"
            ok {"unit":"M01/S01/T01","status":"complete","also":[{"unit":"M01/S01","status":"in_progress"}],"event_id":3,"hash":"8cac855b266528cb","warnings":["M01/S01/T01 was completed without verification_evidence"],"next_call":{"tool":"gsd_task_start","arguments":{"workspace":"app","unit":"M01/S01/T02"}}}
            ok {"unit":"M01/S01/T02","status":"complete","event_id":4,"hash":"cf6d786df02b4ecf","warnings":["M01/S01/T02: `make` exited with 2","M01/S01/T02 found a blocker; replan the slice with gsd_replan_slice"],"next":{"action":"replan slice M01/S01 around the blocker","tool":"gsd_replan_slice","arguments":{"workspace":"app","unit":"M01/S01","blocker_task_id":"T02"},"needs":["blocker_description","what_changed"]}}
            ok {"unit":"M01","status":"active","event_id":5,"hash":"8d64e3cdde06fbdd","warnings":["M01 has open slices; closing them outdates this validation"],"next":{"action":"complete slice M01/S01","tool":"gsd_slice_complete","arguments":{"workspace":"app","unit":"M01/S01"},"needs":["one_liner","narrative","verification","uat_content"]}}
        "#]],
    );
}

#[test]
fn a_unit_that_is_none_is_refused_with_its_field_and_a_next_call() {
    let session = Session::new(&gsd::PACK);
    run(&session, PLANNED);
    let mut log = String::new();
    for line in [
        r#"gsd_claim {"milestone_id": "M01", "actor": "dora"}"#,
        r#"gsd_release {"actor": "dora"}"#,
        r#"gsd_task_start {"unit": "M01/S01"}"#,
        r#"gsd_plan_task {"unit": "T01", "title": "x"}"#,
        r#"gsd_slice_reopen {"unit": "M01/S01", "slice_id": "S02", "reason": "x"}"#,
        r#"gsd_slice_complete {"unit": "M01/S01/T01", "one_liner": "x", "narrative": "y", "verification": "z", "uat_content": "u"}"#,
        r#"gsd_task_reopen {"workspace": "mistyped", "unit": "M01", "reason": "x"}"#,
    ] {
        let err = refusal(&session, line);
        let fields: Vec<_> = err.blockers.iter().map(|blocker| blocker.field.clone()).collect();
        let next = json!(err.next_call);
        log.push_str(&format!("{err} {fields:?} {next}\n"));
        assert!(
            call(&session, "gsd_status", &next["arguments"].to_string()).is_ok(),
            "{next}"
        );
    }
    expect![[r#"
        INVALID_ARGUMENTS: unit is M01, not a slice or task such as M01/S01 or M01/S01/T01 [Some("unit")] {"tool":"gsd_status","arguments":{"workspace":"app"}}
        INVALID_ARGUMENTS: unit is missing; pass a key, for example M01/S01 or M01/S01/T01 [Some("unit")] {"tool":"gsd_status","arguments":{"workspace":"app"}}
        INVALID_ARGUMENTS: unit is M01/S01, not a task such as M01/S01/T01 [Some("unit")] {"tool":"gsd_status","arguments":{"workspace":"app"}}
        INVALID_ARGUMENTS: unit is `T01`, not a key such as M01/S01/T01 [Some("unit")] {"tool":"gsd_status","arguments":{"workspace":"app"}}
        INVALID_ARGUMENTS: unit is M01/S01, but milestone_id, slice_id or task_id names another unit; pass only one of the two forms [Some("unit")] {"tool":"gsd_status","arguments":{"workspace":"app"}}
        INVALID_ARGUMENTS: unit is M01/S01/T01, not a slice such as M01/S01 [Some("unit")] {"tool":"gsd_status","arguments":{"workspace":"app"}}
        INVALID_ARGUMENTS: unit is M01, not a task such as M01/S01/T01 [Some("unit")] {"tool":"gsd_status","arguments":{}}
    "#]].assert_eq(&log);
    // Other mistakes are refused as before, and numbers may be floating-point numbers.
    let missing = refusal(&session, r#"gsd_slice_skip {"unit": "M01/S01"}"#);
    assert!(missing.message.contains("missing field `reason`"), "{missing}");
    let unknown = refusal(
        &session,
        r#"gsd_claim {"unit": "M01/S01", "actor": "dora", "tll": 1}"#,
    );
    assert!(unknown.message.contains("unknown field `tll`"), "{unknown}");
    run(
        &session,
        r#"- gsd_claim {"unit": "M01/S01", "actor": "dora", "ttl_sec": 60.0}"#,
    );
}
