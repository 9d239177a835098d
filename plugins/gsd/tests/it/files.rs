//! The files in `.gsd/`.
#![allow(clippy::disallowed_methods, reason = "the tests look at files")]

use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate_sdk::native::{Session, Workspace};

use crate::grammar::{parse_plan, parse_roadmap};
use crate::harness::{PLANNED, refusal, reply, run, tree};

fn session(dir: &TempDir) -> Session {
    Session::new(&gsd::PACK).workspace(Workspace::new("app", dir.path()).write(".gsd/"))
}

fn read(dir: &TempDir, path: &str) -> String {
    std::fs::read_to_string(dir.path().join(".gsd").join(path)).unwrap_or_else(|err| panic!("{path}: {err}"))
}

const STORY: &str = "
    - claim M01/S01 as ada
    - done M01/S01/T01 as ada
    done M01/S01/T01 as ada
    - reopen M01/S01/T01 the tests never ran as ada
    - start M01/S01/T02 as ada
";

/// A directory with the files of a story that has everything in it.
fn told() -> (TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let session = session(&dir);
    run(&session, PLANNED);
    let task = json!({"milestone_id": "M01", "slice_id": "S01", "task_id": "T03", "title": "three | [x] **bold**",
        "description": "First.\n- [x] **T99: not a task**\n\n# Not a heading", "estimate": "30m",
        "files": ["src/a_b.rs", "src/c.rs"], "verify": "make test"});
    run(&session, &format!("- gsd_plan_task {task}"));
    run(&session, STORY);
    (dir, session)
}

#[test]
fn what_the_documents_look_like() {
    let (dir, _) = told();
    expect![[r#"
        # M01: milestone M01

        <!-- Written by Tollgate. Changes to this file are overwritten. gsd_status shows the current state. -->

        Status: active

        ## Slices

        - [ ] **S01: slice S01** risk:medium depends:[]
          > After this: it runs
          - Status: in_progress
        - [ ] **S02: slice S02** risk:medium depends:[S01]
          > After this: it runs
          - Status: pending
    "#]]
    .assert_eq(&read(&dir, "milestones/M01/M01-ROADMAP.md"));
    expect![[r#"
        # S01: slice S01

        <!-- Written by Tollgate. Changes to this file are overwritten. gsd_status shows the current state. -->

        Unit: M01/S01. Status: in_progress

        ## After this

          it runs

        ## Tasks

        - [ ] **T01: task T01**
          - Status: pending
          - Reopened by ada at 2026-01-01T00:00:07.000Z: the tests never ran
        - [ ] **T02: task T02**
          - Status: in_progress
        - [ ] **T03: three \| \[x\] \*\*bold\*\***
          - Status: pending

          First.
          - [x] **T99: not a task**

          # Not a heading

          - Estimate: 30m
          - Files: src/a_b.rs, src/c.rs
          - Verify: make test
    "#]]
    .assert_eq(&read(&dir, "milestones/M01/slices/S01/S01-PLAN.md"));
    expect![[r#"
        # T01: task T01

        <!-- Written by Tollgate. Changes to this file are overwritten. gsd_status shows the current state. -->

        Unit: M01/S01/T01. Status: pending

        Reopened by ada at 2026-01-01T00:00:07.000Z: the tests never ran

        The task is open. Summaries of earlier completions are in event-log.jsonl.
    "#]]
    .assert_eq(&read(&dir, "milestones/M01/slices/S01/tasks/T01-SUMMARY.md"));
    expect![[r#"
        # State

        <!-- Written by Tollgate. Changes to this file are overwritten. gsd_status shows the current state. -->

            workspace app
            M01 milestone M01 (active, 0 of 2 slices closed)
            ├─ [~] S01 slice S01 (in_progress, 0 of 3 tasks closed) held by ada
            │  ├─ [ ] T01 task T01 (pending)
            │  │     reopened by ada: the tests never ran
            │  ├─ [~] T02 task T02 (in_progress, started by ada)
            │  └─ [ ] T03 three | [x] **bold** (pending)
            └─ [ ] S02 slice S02 (pending, 0 of 0 tasks closed)
            next: finish M01/S01/T02 “task T02”, started by ada, held by ada (gsd_task_complete)
            next: start M01/S01/T01 “task T01”, held by ada (gsd_task_start)
            next: start M01/S01/T03 “three | [x] **bold**”, held by ada (gsd_task_start)
            blocked: Slice S02 depends on slice S01, which is in_progress, not complete (SLICE_DEPENDENCY_OPEN)
    "#]].assert_eq(&read(&dir, "STATE.md"));
}

#[test]
fn what_the_logs_and_claims_look_like() {
    let (dir, _) = told();
    expect![[r#"
        {
          "M01/S01": {
            "agent": "ada",
            "claimed_at": "2026-01-01T00:00:04.000Z"
          }
        }
    "#]]
    .assert_eq(&read(&dir, "unit-claims.json"));
    expect![[r#"
        {"ts":"2026-01-01T00:00:01.000Z","severity":"info","component":"gsd_plan_milestone","message":"M01 is active","unit":"M01","actor_name":"agent","session_id":"00000000-0000-7000-8000-000000000000","op_id":""}
        {"ts":"2026-01-01T00:00:02.000Z","severity":"info","component":"gsd_plan_slice","message":"M01/S01 is pending","unit":"M01/S01","actor_name":"agent","session_id":"00000000-0000-7000-8000-000000000000","op_id":""}
        {"ts":"2026-01-01T00:00:03.000Z","severity":"info","component":"gsd_plan_task","message":"M01/S01/T03 is pending","unit":"M01/S01/T03","actor_name":"agent","session_id":"00000000-0000-7000-8000-000000000000","op_id":""}
        {"ts":"2026-01-01T00:00:04.000Z","severity":"info","component":"gsd_claim","message":"M01/S01 is held by ada","unit":"M01/S01","actor_name":"ada","session_id":"00000000-0000-7000-8000-000000000000","op_id":""}
        {"ts":"2026-01-01T00:00:05.000Z","severity":"info","component":"gsd_task_complete","message":"M01/S01/T01 is complete","unit":"M01/S01/T01","actor_name":"ada","session_id":"00000000-0000-7000-8000-000000000000","op_id":""}
        {"ts":"2026-01-01T00:00:06.000Z","severity":"error","component":"gsd_task_complete","message":"Task T01 is already complete","unit":"M01/S01/T01","code":"ALREADY_COMPLETE","actor_name":"ada","session_id":"00000000-0000-7000-8000-000000000000","op_id":""}
        {"ts":"2026-01-01T00:00:07.000Z","severity":"info","component":"gsd_task_reopen","message":"M01/S01/T01 is pending","unit":"M01/S01/T01","actor_name":"ada","session_id":"00000000-0000-7000-8000-000000000000","op_id":""}
        {"ts":"2026-01-01T00:00:08.000Z","severity":"info","component":"gsd_task_start","message":"M01/S01/T02 is in_progress","unit":"M01/S01/T02","actor_name":"ada","session_id":"00000000-0000-7000-8000-000000000000","op_id":""}
    "#]].assert_eq(&read(&dir, "audit-log.jsonl"));
    let events = read(&dir, "event-log.jsonl");
    assert_eq!(events.lines().count(), 7);
    let last: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!(last["cmd"], "start-task");
    assert_eq!(last["actor_name"], "ada");
}

#[test]
fn statuses_and_titles_are_read_back() {
    let (dir, _) = told();
    let roadmap = parse_roadmap(&read(&dir, "milestones/M01/M01-ROADMAP.md"));
    assert_eq!(roadmap.len(), 2);
    assert_eq!(roadmap[1].depends, ["S01"]);
    let plan = parse_plan(&read(&dir, "milestones/M01/slices/S01/S01-PLAN.md"));
    let titles: Vec<_> = plan
        .iter()
        .map(|task| (task.title.as_str(), task.status.as_str()))
        .collect();
    assert_eq!(
        titles,
        [
            ("task T01", "pending"),
            ("task T02", "in_progress"),
            ("three | [x] **bold**", "pending")
        ]
    );
}

#[test]
fn whatever_becomes_of_a_file_it_changes_nothing_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(&dir);
    run(&session, &format!("{PLANNED}{STORY}"));
    let all = tree(dir.path());
    assert_eq!(all.len(), 7, "{all:#?}");
    let status = reply(&session, "gsd_status {\"milestone_id\": \"M01\"}");
    for (path, content) in &all {
        for damage in [
            None,
            Some(String::new()),
            Some(content.replace("[ ]", "[x]").replace("ada", "bob")),
        ] {
            match &damage {
                None => std::fs::remove_file(path).unwrap(),
                Some(text) => std::fs::write(path, text).unwrap(),
            }
            assert_eq!(
                reply(&session, "gsd_status {\"milestone_id\": \"M01\"}"),
                status,
                "{path}"
            );
            assert_eq!(
                reply(&session, "gsd_claims")["claims"][0]["owner"],
                "ada",
                "{path}"
            );
            let rendered = reply(&session, "gsd_render");
            assert_eq!(
                (&rendered["stale"], &rendered["written"]),
                (&json!(false), &json!(7))
            );
            assert_eq!(tree(dir.path()), all, "{path} {damage:?}");
        }
    }
    std::fs::remove_dir_all(dir.path().join(".gsd")).unwrap();
    assert_eq!(refusal(&session, "claim M01/S01 as bob").code, "NOT_CLAIM_OWNER");
    reply(&session, "gsd_render");
    run(&session, "- done M01/S01/T02 as ada");
    assert_eq!(read(&dir, "event-log.jsonl").lines().count(), 7);
}

#[test]
fn a_log_whose_file_was_touched_is_written_anew_by_the_next_change() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(&dir);
    run(&session, PLANNED);
    let whole = read(&dir, "event-log.jsonl");
    for damage in ["", &whole[..40]] {
        std::fs::write(dir.path().join(".gsd/event-log.jsonl"), damage).unwrap();
        run(&session, "- claim M01/S01 60 as ada");
        assert!(read(&dir, "event-log.jsonl").starts_with(&whole), "{damage:?}");
    }
    std::fs::remove_file(dir.path().join(".gsd/event-log.jsonl")).unwrap();
    run(&session, "- release M01/S01 as ada");
    assert_eq!(read(&dir, "event-log.jsonl").lines().count(), 5);
}

#[test]
fn without_a_grant_everything_else_works() {
    let dir = tempfile::tempdir().unwrap();
    let session = Session::new(&gsd::PACK).workspace(Workspace::new("app", dir.path()));
    let log = run(&session, &format!("{PLANNED}{STORY}"));
    assert!(!log.contains("stale\":true"), "{log}");
    assert_eq!(tree(dir.path()), []);
    let err = refusal(&session, "gsd_render");
    assert_eq!(err.code, "WORKSPACE_DENIED");
    let err = refusal(&session, "gsd_render {\"workspace\": \"nowhere\"}");
    assert_eq!(err.code, "WORKSPACE_UNKNOWN");
}

#[test]
fn a_directory_that_is_a_link_is_left_alone() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(outside.path(), dir.path().join(".gsd")).unwrap();
    let session = session(&dir);
    let planned = reply(&session, "plan M01 S01");
    assert_eq!(planned["stale"], true);
    assert!(!planned["warnings"].as_array().unwrap().is_empty());
    assert_eq!(tree(outside.path()), []);
    assert_eq!(
        reply(&session, "gsd_status")["milestones"][0]["milestone_id"],
        "M01"
    );
    let rendered = reply(&session, "gsd_render");
    assert_eq!(rendered["stale"], true);
    assert_eq!(rendered["written"], 0);
}

#[test]
fn a_file_in_the_way_makes_the_reply_stale() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(&dir);
    std::fs::create_dir_all(dir.path().join(".gsd/STATE.md")).unwrap();
    let planned = reply(&session, "plan M01 S01");
    assert_eq!(planned["stale"], true);
    // The others are there all the same.
    assert_eq!(
        parse_roadmap(&read(&dir, "milestones/M01/M01-ROADMAP.md")).len(),
        1
    );
    std::fs::remove_dir(dir.path().join(".gsd/STATE.md")).unwrap();
    assert_eq!(reply(&session, "gsd_render")["stale"], false);
    assert!(read(&dir, "STATE.md").contains("milestone M01"));
}

#[test]
fn every_title_survives_the_way_through_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(&dir);
    let titles = [
        "**",
        "\\",
        "a\\*b",
        "](x)",
        "- [x] **T09: fake**",
        "` `",
        "<!--",
        "x** risk:low depends:[]",
        "|a|b|",
        "# h",
        "日本 ✓",
    ];
    let slices: Vec<Value> = titles
        .iter()
        .enumerate()
        .map(|(number, title)| json!({"slice_id": format!("S{:02}", number + 1), "title": title, "demo": title, "goal": title}))
        .collect();
    let lists = json!(titles);
    let plan = json!({"milestone_id": "M01", "title": titles[4], "vision": titles.join("\n"), "slices": slices,
        "success_criteria": lists, "key_risks": lists, "definition_of_done": lists});
    run(&session, &format!("- gsd_plan_milestone {plan}"));
    let read_back = parse_roadmap(&read(&dir, "milestones/M01/M01-ROADMAP.md"));
    let back: Vec<_> = read_back.iter().map(|slice| slice.title.as_str()).collect();
    assert_eq!(back, titles);
    assert!(
        read_back
            .iter()
            .all(|slice| slice.demo == slice.title && slice.status == "pending")
    );
}

/// Removes a task that had a summary, and a slice that had a plan.
const REMOVED: [&str; 6] = [
    "- done M01/S01/T01 as ada",
    "- done M01/S01/T02 as ada",
    "- reopen M01/S01/T02 it never ran as ada",
    "- tasks M01/S02 T01",
    "- gsd_replan_slice {\"unit\": \"M01/S01\", \"blocker_task_id\": \"T01\", \"blocker_description\": \"b\", \
     \"what_changed\": \"no need\", \"removed_task_ids\": [\"T02\"]} as ada",
    "- close M01/S01 as ada",
];

#[test]
fn the_file_of_a_removed_unit_says_that_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(&dir);
    run(&session, PLANNED);
    for line in REMOVED {
        run(&session, line);
    }
    let reassess = json!({"milestone_id": "M01", "completed_slice_id": "S01", "verdict": "v", "assessment": "too\nbig",
        "slice_changes": {"removed": ["S02"]}});
    run(&session, &format!("- gsd_reassess_roadmap {reassess} as ada"));
    let summary = read(&dir, "milestones/M01/slices/S01/tasks/T02-SUMMARY.md");
    expect![[r#"
        # T02: task T02

        <!-- Written by Tollgate. Changes to this file are overwritten. gsd_status shows the current state. -->

        Unit: M01/S01/T02. Removed by ada at 2026-01-01T00:00:07.000Z: no need

        Its events are in event-log.jsonl.
    "#]]
    .assert_eq(&summary);
    let plan = || read(&dir, "milestones/M01/slices/S02/S02-PLAN.md");
    assert!(
        plan().contains("Removed by ada at 2026-01-01T00:00:09.000Z: too big"),
        "{}",
        plan()
    );
    assert_eq!(parse_plan(&plan()), Vec::new());
    let before = tree(dir.path());
    reply(&session, "gsd_render");
    assert_eq!(tree(dir.path()), before);
    // Planned again, the file is that of the new unit at once, and it can be removed again.
    let again = json!({"milestone_id": "M01", "completed_slice_id": "S01", "verdict": "v", "assessment": "after all",
        "slice_changes": {"added": [{"slice_id": "S02", "title": "smaller"}]}});
    run(&session, &format!("- gsd_reassess_roadmap {again}"));
    assert!(plan().starts_with("# S02: smaller"), "{}", plan());
    run(&session, &format!("- gsd_reassess_roadmap {reassess} as eve"));
    assert!(plan().contains("Removed by eve"), "{}", plan());
    let before = tree(dir.path());
    reply(&session, "gsd_render");
    assert_eq!(tree(dir.path()), before);
}
