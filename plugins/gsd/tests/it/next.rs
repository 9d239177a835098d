//! Suggested calls: each is accepted as it is, and each refusal has one.

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::native::Session;

use crate::harness::{PLANNED, follow, refusal, reply, run, script};

/// Runs a story, and makes every call that it suggests on the way.
fn story(session: &Session, lines: &str) -> usize {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let outcome = script(session).call(line);
            follow(session, line, &outcome)
        })
        .sum()
}

#[test]
fn a_story_with_every_refusal_leads_on() {
    let session = Session::new(&gsd::PACK);
    let lines = "
        done M01/S01/T01
        plan M01 S01 S02<S01
        plan M02<M09
        plan M03 S01<S02 S02<S01
        finish M01
        close M01/S01
        tasks M01/S01 T01 T02
        tasks M01/S02 T01
        start M01/S02/T01
        reopen M01/S01/T01 why
        reopen M01 why
        start M01/S01/T01 as ada
        start M01/S01/T01 as bob
        done M01/S01/T01 as bob
        done M01/S01/T01
        claim M01/S01/T02 as bob
        start M01/S01/T02 as ada
        start M01/S01/T02
        skip M01/S01 as ada
        done M01/S01/T01 as ada
        done M01/S01/T01 as ada
        plan M01 S01 S02
        gsd_plan_task {\"unit\": \"M01/S01/T01\", \"title\": \"x\"}
        gsd_replan_slice {\"unit\": \"M01/S01\", \"blocker_task_id\": \"T02\", \"blocker_description\": \"b\", \"what_changed\": \"c\", \"removed_task_ids\": [\"T01\"]}
        gsd_task_complete {\"unit\": \"M01/S01/T02\", \"one_liner\": \" \", \"narrative\": \"\", \"verification\": \"\"}
        gsd_task_complete {\"unit\": \"M05/S01/T02\", \"one_liner\": \" \", \"narrative\": \"\", \"verification\": \"\"}
        done M01/S01/T02 as bob
        finish M01
        close M01/S01
        tasks M01/S01 T03
        start M01/S01/T01
        gsd_reassess_roadmap {\"milestone_id\": \"M01\", \"completed_slice_id\": \"S02\", \"verdict\": \"v\", \"assessment\": \"a\"}
        gsd_plan_milestone {\"milestone_id\": \"M01\", \"parked\": true}
        start M01/S02/T01
        claim M01/S02
        claim M01/S07 as ada
        gsd_plan_milestone {\"milestone_id\": \"M01\", \"parked\": false}
        skip M01/S02
        finish M01
        validate M01 fail
        finish M01
        validate M01 pass
        gsd_milestone_complete {\"milestone_id\": \"M01\", \"one_liner\": \"x\", \"narrative\": \"y\", \"verification_passed\": false}
        finish M01
        finish M01
        reopen M01/S01 no
        gsd_status {\"workspace\": \"other\"}
        gsd_task_start {\"workspace\": \"other\", \"unit\": \"M01/S01/T01\"}
        gsd_render {\"workspace\": \"other\"}
        gsd_import {\"workspace\": \"other\"}
        gsd_show {\"unit\": \"M09\"}
        gsd_status {\"milestone_id\": \"M09\"}";
    let followed = story(&session, lines);
    assert!(followed > 50, "{followed}");
}

#[test]
fn fifty_open_tasks_are_one_call() {
    let session = Session::new(&gsd::PACK);
    run(&session, "- plan M01 S01 S02");
    let tasks: Vec<String> = (1..=50).map(|number| format!("T{number:02}")).collect();
    run(&session, &format!("- tasks M01/S01 {}", tasks.join(" ")));
    let err = refusal(&session, "finish M01");
    let calls: Vec<String> = err
        .blockers
        .iter()
        .filter_map(|blocker| blocker.next_call.as_ref())
        .map(|call| format!("{} {}", call.tool, json!(call.arguments)))
        .collect();
    assert_eq!(
        calls,
        [
            r#"gsd_status {"workspace":"app","milestone_id":"M01"}"#,
            r#"gsd_show {"workspace":"app","unit":"M01"}"#
        ]
    );
}

/// Suggested next call of a reply.
fn next(session: &Session, line: &str) -> String {
    let reply = reply(session, line);
    let call = &reply["next_call"];
    match call.is_object() {
        true => format!(
            "{line}: {} {}\n",
            call["tool"].as_str().unwrap(),
            call["arguments"]
        ),
        false => format!("{line}: {}\n", reply["next"]),
    }
}

#[test]
fn each_reply_names_what_comes_next() {
    let session = Session::new(&gsd::PACK);
    let lines = [
        "plan M01 S01 S02<S01 S03",
        "tasks M01/S01 T01 T02 T03",
        "claim M01/S01/T02 as bob",
        "start M01/S01/T01 as ada",
        "tasks M01/S01 T01 T02 T03",
        "done M01/S01/T01 as ada",
        "done M01/S01/T02 as bob",
        "done M01/S01/T03",
        "close M01/S01",
        "skip M01/S02",
        "skip M01/S03",
        "validate M01 pass",
        "finish M01",
    ];
    let told: String = lines.iter().map(|line| next(&session, line)).collect();
    expect![[r#"
        plan M01 S01 S02<S01 S03: {"action":"plan the tasks of M01/S01","tool":"gsd_plan_slice","arguments":{"workspace":"app","unit":"M01/S01"},"needs":["tasks"]}
        tasks M01/S01 T01 T02 T03: gsd_task_start {"workspace":"app","unit":"M01/S01/T01"}
        claim M01/S01/T02 as bob: gsd_task_start {"workspace":"app","unit":"M01/S01/T02","actor":"bob"}
        start M01/S01/T01 as ada: {"action":"finish M01/S01/T01 “task T01”, started by ada","tool":"gsd_task_complete","arguments":{"workspace":"app","unit":"M01/S01/T01","actor":"ada"},"needs":["one_liner","narrative","verification"]}
        tasks M01/S01 T01 T02 T03: gsd_task_start {"workspace":"app","unit":"M01/S01/T03"}
        done M01/S01/T01 as ada: gsd_task_start {"workspace":"app","unit":"M01/S01/T03","actor":"ada"}
        done M01/S01/T02 as bob: gsd_task_start {"workspace":"app","unit":"M01/S01/T03","actor":"bob"}
        done M01/S01/T03: {"action":"complete slice M01/S01","tool":"gsd_slice_complete","arguments":{"workspace":"app","unit":"M01/S01"},"needs":["one_liner","narrative","verification","uat_content"]}
        close M01/S01: {"action":"plan the tasks of M01/S02","tool":"gsd_plan_slice","arguments":{"workspace":"app","unit":"M01/S02"},"needs":["tasks"]}
        skip M01/S02: {"action":"plan the tasks of M01/S03","tool":"gsd_plan_slice","arguments":{"workspace":"app","unit":"M01/S03"},"needs":["tasks"]}
        skip M01/S03: {"action":"validate milestone M01: milestone M01 was not validated","tool":"gsd_validate_milestone","arguments":{"workspace":"app","milestone_id":"M01"},"needs":["verdict","rationale"]}
        validate M01 pass: {"action":"complete milestone M01","tool":"gsd_milestone_complete","arguments":{"workspace":"app","milestone_id":"M01"},"needs":["one_liner","narrative","verification_passed"]}
        finish M01: null
    "#]].assert_eq(&told);
}

#[test]
fn a_blocker_leads_to_replanning() {
    let session = Session::new(&gsd::PACK);
    run(&session, PLANNED);
    let done = r#"gsd_task_complete {"unit": "M01/S01/T01", "one_liner": "x", "narrative": "y", "verification": "z", "blocker_discovered": true}"#;
    expect![[r#"
        gsd_task_complete {"unit": "M01/S01/T01", "one_liner": "x", "narrative": "y", "verification": "z", "blocker_discovered": true}: {"action":"replan slice M01/S01 around the blocker","tool":"gsd_replan_slice","arguments":{"workspace":"app","unit":"M01/S01","blocker_task_id":"T01"},"needs":["blocker_description","what_changed"]}
    "#]].assert_eq(&next(&session, done));
}

#[test]
fn a_task_under_way_is_completed_by_who_started_or_claims_it() {
    let session = Session::new(&gsd::PACK);
    run(&session, &format!("{PLANNED}- start M01/S01/T01 as ada"));
    for line in ["done M01/S01/T01 as bob", "done M01/S01/T01"] {
        assert_eq!(refusal(&session, line).code, "ALREADY_STARTED", "{line}");
    }
    assert_eq!(
        refusal(&session, "claim M01/S01/T01 as bob").code,
        "ALREADY_STARTED"
    );
    run(
        &session,
        "- take M01/S01/T01 ada is ill as bob\n- done M01/S01/T01 as bob",
    );
    // Work that somebody does is dropped with a warning.
    run(&session, "- start M01/S01/T02 as ada");
    let skipped = reply(&session, "skip M01/S01 as bob");
    assert_eq!(
        skipped["warnings"],
        json!(["M01/S01/T02 is in progress by ada; tell ada about the new plan"])
    );
}

#[test]
fn what_changes_nothing_leaves_no_event() {
    let session = Session::new(&gsd::PACK);
    run(&session, PLANNED);
    let events = |session: &Session| reply(session, "gsd_events")["events"].as_array().unwrap().len();
    run(&session, "- start M01/S01/T01 as ada\n- claim M01/S01/T01 as ada");
    let before = events(&session);
    for line in [
        "start M01/S01/T01 as ada",
        "claim M01/S01/T01 as ada",
        "release M01/S01/T02 as ada",
    ] {
        let reply = reply(&session, line);
        assert_eq!((reply.get("event_id"), reply.get("hash")), (None, None), "{line}");
    }
    assert_eq!(events(&session), before);
    // The ledger names units, and none for what changed nothing.
    let changed: Vec<_> = session.events().into_iter().map(|event| event.changed).collect();
    assert_eq!(
        changed,
        [
            vec!["gsd/M01"],
            vec!["gsd/M01/S01"],
            vec!["gsd/M01/S01/T01", "gsd/M01/S01"],
            vec!["gsd/M01/S01/T01"],
        ]
    );
}

#[test]
fn a_claim_ends_with_its_time() {
    let session = Session::new(&gsd::PACK);
    run(&session, &format!("{PLANNED}- claim M01/S01/T01 60 as ada"));
    assert_eq!(
        refusal(&session, "start M01/S01/T01 as bob").code,
        "NOT_CLAIM_OWNER"
    );
    session.advance_ms(60_000);
    run(&session, "- start M01/S01/T02 as bob");
    let left = session.sql("SELECT count(*) FROM gsd_claims")[0]
        .get::<i64>(0)
        .unwrap();
    assert_eq!(left, 0);
    run(&session, "- start M01/S01/T01 as bob");
}
