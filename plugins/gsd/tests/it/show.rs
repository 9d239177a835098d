//! Everything that was written can be read.

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::native::Session;

use crate::harness::{PLANNED, refusal, reply, run, text};

/// A milestone with a bit of everything.
fn told() -> Session {
    let session = Session::new(&gsd::PACK);
    let task = json!({"unit": "M01/S01/T01", "description": "First.\nThen.", "estimate": "30m", "files": ["a.rs"],
        "verify": "make test", "inputs": ["in"], "expected_output": ["out"]});
    let done = json!({"unit": "M01/S01/T01", "one_liner": "did it", "narrative": "All.", "verification": "Ran it.",
        "verification_evidence": [{"command": "make test", "exit_code": 1, "verdict": "fail"}], "deviations": "Later.",
        "key_files": ["b.rs"], "blocker_discovered": true});
    let replan = json!({"unit": "M01/S01", "blocker_task_id": "T01", "blocker_description": "no disk", "what_changed": "T03",
        "updated_tasks": [{"task_id": "T03", "title": "three"}]});
    let assess = json!({"milestone_id": "M01", "completed_slice_id": "S01", "verdict": "adjusted", "assessment": "More to do.",
        "slice_changes": {"added": [{"slice_id": "S03", "title": "three"}]}});
    let validate = json!({"milestone_id": "M01", "verdict": "needs_attention", "rationale": "Slow.",
        "criteria": [{"criterion": "fast", "met": false, "evidence": "9 s"}]});
    run(
        &session,
        &format!(
            "{PLANNED}
             - gsd_plan_task {task}
             - done M01/S01/T01 as ada
             - reopen M01/S01/T01 it never ran as eve
             - gsd_task_complete {done}
             - gsd_replan_slice {replan}
             - done M01/S01/T02
             - done M01/S01/T03
             - close M01/S01
             - gsd_reassess_roadmap {assess}
             - gsd_validate_milestone {validate}
             - claim M01/S02 60 as ada"
        ),
    );
    session
}

#[test]
fn a_task_is_shown_before_it_starts_and_after_it_is_closed() {
    let session = told();
    expect![[r##"
        # M01/S01/T01: task T01 (complete)
        description:
          First.
          Then.
        estimate: 30m
        files:
        - a.rs
        verify: make test
        inputs:
        - in
        expected_output:
        - out
        one_liner: did it
        narrative: All.
        verification: Ran it.
        verification_evidence:
        - {"command":"make test","exit_code":1,"verdict":"fail"}
        deviations: Later.
        key_files:
        - b.rs
        blocker_discovered: true
        completed_by: agent
        completed_at: 2026-01-01T00:00:06.000Z
        replan of S01 at 2026-01-01T00:00:07.000Z, blocker T01: no disk
        what_changed: T03
        earlier:
        - 2026-01-01T00:00:04.000Z complete-task by ada
          one_liner: did it
          narrative: All of it.
          verification: ran it
          verification_evidence: [{"command":"make test","exit_code":0,"verdict":"pass"}]
        history:
        - 2026-01-01T00:00:03.000Z plan-task by agent
        - 2026-01-01T00:00:04.000Z complete-task by ada, one_liner: did it
        - 2026-01-01T00:00:05.000Z reopen-task by eve, reason: it never ran
        - 2026-01-01T00:00:06.000Z complete-task by agent, one_liner: did it
    "##]]
    .assert_eq(&text(&session, "gsd_show {\"unit\": \"M01/S01/T01\"}"));
    expect![[r##"
        # M01/S01/T02: task T02 (complete)
        one_liner: did it
        narrative: All of it.
        verification: ran it
        verification_evidence:
        - {"command":"make test","exit_code":0,"verdict":"pass"}
        completed_by: agent
        completed_at: 2026-01-01T00:00:08.000Z
        history:
        - 2026-01-01T00:00:08.000Z complete-task by agent, one_liner: did it
    "##]]
    .assert_eq(&text(&session, "gsd_show {\"unit\": \"M01/S01/T02\"}"));
}

#[test]
fn a_slice_is_shown_with_replans_and_assessment() {
    let session = told();
    expect![[r##"
        # M01/S01: slice S01 (complete)
        demo: it runs
        risk: medium
        tasks:
        - T01 task T01 (complete)
        - T02 task T02 (complete)
        - T03 three (complete)
        one_liner: did it
        narrative: All of it.
        verification: ran it
        uat_content: Try it.
        completed_by: agent
        completed_at: 2026-01-01T00:00:10.000Z
        assessment after S01 at 2026-01-01T00:00:11.000Z: adjusted: More to do.
        slice_changes: {"added":[{"slice_id":"S03","title":"three"}]}
        replan of S01 at 2026-01-01T00:00:07.000Z, blocker T01: no disk
        what_changed: T03
        history:
        - 2026-01-01T00:00:02.000Z plan-slice by agent
        - 2026-01-01T00:00:07.000Z replan-slice by agent, planned: T03
        - 2026-01-01T00:00:10.000Z complete-slice by agent, one_liner: did it
        - 2026-01-01T00:00:11.000Z reassess-roadmap by agent, verdict: adjusted, added: S03
    "##]]
    .assert_eq(&text(&session, "gsd_show {\"unit\": \"M01/S01\"}"));
    expect![[r#"
        # M01/S02: slice S02 (pending)
        held: by ada, claim on M01/S02 until 2026-01-01T00:01:13.000Z
        demo: it runs
        risk: medium
        depends:
        - S01
        history:
        - 2026-01-01T00:00:13.000Z claim-unit by ada
    "#]]
    .assert_eq(&text(&session, "gsd_show {\"unit\": \"M01/S02\"}"));
}

#[test]
fn a_milestone_is_shown_with_its_validation() {
    let session = told();
    expect![[r##"
        # M01: milestone M01 (active)
        slices:
        - S01 slice S01 (complete)
        - S02 slice S02 (pending)
        - S03 three (pending)
        validation: needs_attention
        rationale: Slow.
        criteria: [{"criterion":"fast","met":false,"evidence":"9 s"}]
        assessment after S01 at 2026-01-01T00:00:11.000Z: adjusted: More to do.
        slice_changes: {"added":[{"slice_id":"S03","title":"three"}]}
        replan of S01 at 2026-01-01T00:00:07.000Z, blocker T01: no disk
        what_changed: T03
        history:
        - 2026-01-01T00:00:01.000Z plan-milestone by agent
        - 2026-01-01T00:00:12.000Z validate-milestone by agent, verdict: needs_attention
    "##]]
    .assert_eq(&text(&session, "gsd_show {\"milestone_id\": \"M01\"}"));
}

#[test]
fn what_a_reopening_took_back_and_a_later_statement_replaced_is_shown() {
    let session = told();
    let again = json!({"milestone_id": "M01", "completed_slice_id": "S01", "verdict": "confirmed", "assessment": "Enough.",
        "slice_changes": {"removed": ["S03"]}});
    run(
        &session,
        &format!(
            "- gsd_reassess_roadmap {again} as ada
             - validate M01 pass
             - reopen M01/S01 it is slow as eve"
        ),
    );
    let slice = text(&session, "gsd_show {\"unit\": \"M01/S01\"}");
    for told in [
        "\nreopened by eve at 2026-01-01T00:00:16.000Z: it is slow\n",
        "\nearlier:\n- 2026-01-01T00:00:10.000Z complete-slice by agent\n  one_liner: did it\n",
        "\n  uat_content: Try it.\n",
        "\n- 2026-01-01T00:00:11.000Z reassess-roadmap by agent\n",
        "\n  assessment: More to do.\n",
        "reassess-roadmap by ada, verdict: confirmed, removed: S03\n",
    ] {
        assert!(slice.contains(told), "{told}: {slice}");
    }
    let task = text(&session, "gsd_show {\"unit\": \"M01/S01/T02\"}");
    assert!(
        task.contains("earlier:\n- 2026-01-01T00:00:08.000Z complete-task by agent\n  one_liner: did it\n  narrative: All of it.\n"),
        "{task}"
    );
    let milestone = text(&session, "gsd_show {\"unit\": \"M01\"}");
    assert!(
        milestone.contains("earlier:\n- 2026-01-01T00:00:12.000Z validate-milestone by agent\n  verdict: needs_attention\n  rationale: Slow.\n"),
        "{milestone}"
    );
    let gone = "Slice S03 was removed by ada at 2026-01-01T00:00:14.000Z: Enough. (M01/S03)";
    for line in ["start M01/S03/T01", "gsd_show {\"unit\": \"M01/S03\"}"] {
        let err = refusal(&session, line);
        assert_eq!((err.code.as_str(), err.message.as_str()), ("NOT_FOUND", gone));
        assert_eq!(err.next_call.unwrap().tool, "gsd_show");
    }
}

#[test]
fn a_removed_task_is_told_to_whoever_looks_for_it() {
    let session = Session::new(&gsd::PACK);
    let replan = json!({"unit": "M01/S01", "blocker_task_id": "T01", "blocker_description": "no disk",
        "what_changed": "Without a disk.", "removed_task_ids": ["T02"]});
    run(
        &session,
        &format!("{PLANNED}- done M01/S01/T01\n- gsd_replan_slice {replan} as ada"),
    );
    let slice = text(&session, "gsd_show {\"unit\": \"M01/S01\"}");
    assert!(slice.contains("replan-slice by ada, removed: T02\n"), "{slice}");
    let err = refusal(&session, "start M01/S01/T02 as eve");
    assert_eq!(
        err.message,
        "Task T02 was removed by ada at 2026-01-01T00:00:04.000Z: Without a disk. (M01/S01/T02)"
    );
    let next = err.next_call.unwrap();
    assert_eq!(
        (next.tool.as_str(), &next.arguments["unit"]),
        ("gsd_show", &json!("M01/S01"))
    );
    // A unit that is planned again is there.
    run(&session, "- tasks M01/S01 T02\n- start M01/S01/T02 as eve");
}

#[test]
fn long_texts_are_read_in_pages_and_in_full() {
    let session = Session::new(&gsd::PACK);
    run(&session, PLANNED);
    let description = "größer ".repeat(1_000);
    let task = json!({"unit": "M01/S01/T01", "description": description});
    run(&session, &format!("- gsd_plan_task {task}"));
    let (mut whole, mut cursor, mut pages) = (String::new(), json!(0), 0);
    loop {
        // The earlier name is still accepted.
        let name = if pages % 2 == 0 { "cursor" } else { "after" };
        let page = reply(
            &session,
            &format!("gsd_show {{\"unit\": \"M01/S01/T01\", \"limit\": 500, \"{name}\": {cursor}}}"),
        );
        whole += page["content"].as_str().unwrap();
        pages += 1;
        if page["has_more"] == false {
            assert_eq!(page.get("next_cursor"), None);
            break;
        }
        cursor = page["next_cursor"].clone();
    }
    assert!(pages > 10 && whole.contains(description.trim()), "{pages}");
    let at_once = reply(&session, "gsd_show {\"unit\": \"M01/S01/T01\"}");
    assert_eq!(at_once["content"], whole.as_str());
}

#[test]
fn what_does_not_exist_leads_to_what_does() {
    let session = told();
    for (arguments, code, next) in [
        (
            r#"{"unit": "M01/S01/T09"}"#,
            "NOT_FOUND",
            r#"{"unit":"M01","workspace":"app"}"#,
        ),
        (r#"{"unit": "M09"}"#, "NOT_FOUND", r#"{"workspace":"app"}"#),
        (
            r#"{"unit": "T01"}"#,
            "INVALID_ARGUMENTS",
            r#"{"workspace":"app"}"#,
        ),
        (r#"{}"#, "INVALID_ARGUMENTS", r#"{"workspace":"app"}"#),
        (
            r#"{"unit": "M02/S01", "milestone_id": "M01"}"#,
            "INVALID_ARGUMENTS",
            r#"{"workspace":"app"}"#,
        ),
        (r#"{"unit": "T01", "workspace": "ap"}"#, "INVALID_ARGUMENTS", "{}"),
        (r#"{"unit": "M01", "workspace": "ap"}"#, "WORKSPACE_UNKNOWN", "{}"),
    ] {
        let err = refusal(&session, &format!("gsd_show {arguments}"));
        let mut call = err.next_call.clone().unwrap().arguments;
        call.sort_keys();
        assert_eq!(
            (err.code.as_str(), json!(call).to_string().as_str()),
            (code, next)
        );
    }
}

#[test]
fn a_mistyped_workspace_is_not_an_empty_one() {
    let session = Session::new(&gsd::PACK);
    // Before anything is known, any name may be the first.
    reply(&session, "gsd_status {\"workspace\": \"ap\"}");
    run(&session, PLANNED);
    for line in ["gsd_status", "gsd_events", "gsd_audit_log", "gsd_claims"] {
        let err = refusal(&session, &format!("{line} {{\"workspace\": \"ap\"}}"));
        assert_eq!(
            err.message,
            "workspace `ap` is not registered and has no milestones; known are app"
        );
        reply(&session, &format!("{line} {{\"workspace\": \"app\"}}"));
    }
    let said = session
        .prompt("gsd_resume_work", r#"{"workspace": "app", "actor": "ada"}"#)
        .unwrap();
    assert!(
        said.contains("next: start M01/S01/T01") && said.contains("Pass actor: \"ada\""),
        "{said}"
    );
    let err = session
        .prompt("gsd_resume_work", r#"{"workspace": "ap"}"#)
        .unwrap_err();
    assert_eq!(err.code, "WORKSPACE_UNKNOWN");
}
