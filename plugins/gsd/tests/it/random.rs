//! Random calls: nothing panics, what is closed holds only what is closed, and the files say what is stored.
#![allow(clippy::disallowed_methods, reason = "the tests look at files")]

use gsd::grammar::{parse_plan, parse_roadmap};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use tollgate_kit_test::{Arguments, never_panics};
use tollgate_sdk::native::{Session, Workspace};

use crate::harness::{PLANNED, run, script};

fn unit() -> impl Strategy<Value = &'static str> {
    select(vec!["M01/S01/T01", "M01/S01/T02", "M01/S02/T01", "M02/S01/T01"])
}

fn slice() -> impl Strategy<Value = &'static str> {
    select(vec!["M01/S01", "M01/S02", "M02/S01"])
}

fn milestone() -> impl Strategy<Value = &'static str> {
    select(vec!["M01", "M02"])
}

/// A line of a script. Most fit the story that the units tell; many are refused.
fn line() -> impl Strategy<Value = String> {
    let actor = || select(vec!["", "", " as ada", " as bob"]);
    prop_oneof![
        2 => select(vec!["plan M01 S01 S02<S01", "plan M01 S03", "plan M02<M01 S01", "plan M02 S01"]).prop_map(str::to_owned),
        3 => (slice(), select(vec!["T01", "T01 T02", "T02"])).prop_map(|(slice, tasks)| format!("tasks {slice} {tasks}")),
        4 => (unit(), actor()).prop_map(|(unit, actor)| format!("start {unit}{actor}")),
        8 => (unit(), actor()).prop_map(|(unit, actor)| format!("done {unit}{actor}")),
        6 => (slice(), actor()).prop_map(|(slice, actor)| format!("close {slice}{actor}")),
        2 => (slice(), actor()).prop_map(|(slice, actor)| format!("skip {slice}{actor}")),
        3 => milestone().prop_map(|milestone| format!("validate {milestone} pass")),
        3 => milestone().prop_map(|milestone| format!("finish {milestone}")),
        2 => (unit(), actor()).prop_map(|(unit, actor)| format!("reopen {unit} again{actor}")),
        2 => (slice(), actor()).prop_map(|(slice, actor)| format!("reopen {slice} again{actor}")),
        1 => milestone().prop_map(|milestone| format!("reopen {milestone} again")),
        2 => (unit(), select(vec!["ada", "bob"])).prop_map(|(unit, actor)| format!("claim {unit} 30 as {actor}")),
        1 => (slice(), select(vec!["ada", "bob"])).prop_map(|(slice, actor)| format!("take {slice} mine as {actor}")),
        1 => (slice(), select(vec!["ada", "bob"])).prop_map(|(slice, actor)| format!("release {slice} as {actor}")),
        1 => slice().prop_map(|slice| {
            let (milestone, slice) = slice.split_once('/').unwrap();
            let changes = json!({"removed": ["S03"], "added": [{"slice_id": "S04", "title": "four"}]});
            format!("gsd_reassess_roadmap {}", json!({"milestone_id": milestone, "completed_slice_id": slice,
                "verdict": "v", "assessment": "a", "slice_changes": changes}))
        }),
        1 => unit().prop_map(|unit| {
            let ids: Vec<&str> = unit.split('/').collect();
            format!("gsd_replan_slice {}", json!({"milestone_id": ids[0], "slice_id": ids[1], "blocker_task_id": ids[2],
                "blocker_description": "b", "what_changed": "c", "updated_tasks": [{"task_id": "T03", "title": "three"}],
                "removed_task_ids": ["T02"]}))
        }),
    ]
}

fn count(session: &Session, sql: &str) -> i64 {
    session.sql(sql)[0].get(0).unwrap()
}

/// What has to hold after every call.
fn invariants(session: &Session, line: &str) {
    for (what, sql) in [
        (
            "an open task in a closed slice",
            "SELECT count(*) FROM gsd_tasks t JOIN gsd_slices s ON s.workspace = t.workspace \
             AND s.milestone_id = t.milestone_id AND s.id = t.slice_id \
             WHERE s.status IN ('complete', 'skipped') AND t.status IN ('pending', 'in_progress')",
        ),
        (
            "an open slice in a complete milestone",
            "SELECT count(*) FROM gsd_slices s JOIN gsd_milestones m ON m.workspace = s.workspace AND m.id = s.milestone_id \
             WHERE m.status = 'complete' AND s.status IN ('pending', 'in_progress')",
        ),
        (
            "a task under way in a pending slice",
            "SELECT count(*) FROM gsd_tasks t JOIN gsd_slices s ON s.workspace = t.workspace \
             AND s.milestone_id = t.milestone_id AND s.id = t.slice_id \
             WHERE s.status = 'pending' AND t.status IN ('in_progress', 'complete')",
        ),
        (
            "a complete slice without tasks",
            "SELECT count(*) FROM gsd_slices s WHERE s.status = 'complete' AND NOT EXISTS (SELECT 1 FROM gsd_tasks t \
             WHERE t.workspace = s.workspace AND t.milestone_id = s.milestone_id AND t.slice_id = s.id)",
        ),
        (
            "a claim on what is closed",
            "SELECT count(*) FROM gsd_claims c JOIN gsd_tasks t ON c.workspace = t.workspace \
             AND c.unit = t.milestone_id || '/' || t.slice_id || '/' || t.id WHERE t.status IN ('complete', 'skipped')",
        ),
        (
            "a complete milestone whose validation is missing or older than the change before its completion",
            "SELECT count(*) FROM gsd_milestones m WHERE m.status = 'complete' AND (m.verdict IS NULL OR m.verdict <> 'pass' \
             OR EXISTS (SELECT 1 FROM gsd_events e WHERE e.id > m.validation_event AND e.id < m.changed_event \
             AND e.cmd NOT IN ('claim-unit', 'release-unit', 'validate-milestone') \
             AND (e.unit = m.id OR e.unit LIKE m.id || '/%')))",
        ),
    ] {
        assert_eq!(count(session, sql), 0, "{what} after {line}");
    }
}

/// Runs one line: a refusal changes nothing but the audit log, a change is one event and one entry.
fn step(session: &Session, line: &str) {
    let state = "SELECT (SELECT count(id) || ':' || coalesce(group_concat(status || coalesce(closed_hash, '') || reopened), '') \
        FROM gsd_tasks) || (SELECT coalesce(group_concat(status || coalesce(closed_hash, '')), '') FROM gsd_slices) \
        || (SELECT coalesce(group_concat(status || changed_event), '') FROM gsd_milestones) \
        || (SELECT coalesce(group_concat(unit || owner), '') FROM gsd_claims)";
    let rows = |session: &Session| session.sql(state)[0].get::<String>(0).unwrap();
    let events = "SELECT count(id) FROM gsd_events";
    let info = "SELECT count(id) FROM gsd_audit WHERE severity = 'info'";
    let errors = "SELECT count(id) FROM gsd_audit WHERE severity = 'error'";
    let before = (
        rows(session),
        count(session, events),
        count(session, info),
        count(session, errors),
    );
    let result = script(session).call(line);
    let after = (
        rows(session),
        count(session, events),
        count(session, info),
        count(session, errors),
    );
    match result {
        Ok(_) => assert_eq!(
            (after.1, after.2, after.3),
            (before.1 + 1, before.2 + 1, before.3),
            "{line}"
        ),
        Err(err) => assert_eq!(
            after,
            (before.0, before.1, before.2, before.3 + 1),
            "{line}: {err}"
        ),
    }
    invariants(session, line);
}

/// The plans and roadmaps of a directory say what is stored.
fn files_agree(session: &Session, dir: &std::path::Path) {
    let slices = session.sql("SELECT milestone_id, id, title, status FROM gsd_slices");
    for row in &slices {
        let [milestone, id, title, status]: [String; 4] = [0, 1, 2, 3].map(|column| row.get(column).unwrap());
        let path = dir.join(format!(".gsd/milestones/{milestone}/{milestone}-ROADMAP.md"));
        let lines = parse_roadmap(&std::fs::read_to_string(path).unwrap());
        let line = lines.iter().find(|line| line.id == id).unwrap();
        assert_eq!((&line.title, &line.status), (&title, &status));
        assert_eq!(line.closed, matches!(status.as_str(), "complete" | "skipped"));
    }
    for row in &session.sql("SELECT milestone_id, slice_id, id, title, status FROM gsd_tasks") {
        let [milestone, slice, id, title, status]: [String; 5] =
            [0, 1, 2, 3, 4].map(|column| row.get(column).unwrap());
        let path = dir.join(format!(
            ".gsd/milestones/{milestone}/slices/{slice}/{slice}-PLAN.md"
        ));
        let lines = parse_plan(&std::fs::read_to_string(path).unwrap());
        let line = lines.iter().find(|line| line.id == id).unwrap();
        assert_eq!((&line.title, &line.status), (&title, &status));
    }
    for (log, table) in [("event-log", "gsd_events"), ("audit-log", "gsd_audit")] {
        let text = std::fs::read_to_string(dir.join(format!(".gsd/{log}.jsonl"))).unwrap_or_default();
        let lines = i64::try_from(text.lines().count()).unwrap();
        assert_eq!(
            lines,
            count(session, &format!("SELECT count(id) FROM {table}")),
            "{log}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_keeps_the_invariants(lines in prop::collection::vec(line(), 1..60)) {
        let session = Session::new(&gsd::PACK);
        for line in &lines {
            step(&session, line);
        }
    }

    #[test]
    fn any_sequence_leaves_files_that_agree(lines in prop::collection::vec(line(), 1..30)) {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::new(&gsd::PACK).workspace(Workspace::new("app", dir.path()).write(".gsd/"));
        for line in &lines {
            let _ = script(&session).call(line);
        }
        files_agree(&session, dir.path());
    }
}

#[test]
fn whatever_the_arguments_are_the_answer_is_a_reply_or_a_refusal() {
    let words = &["M01", "S01", "T01", "T02", "app", "ada", "complete", "pass"];
    let arguments = Arguments::of(words).fixed("workspace", json!("app"));
    never_panics(&gsd::PACK, 48, &arguments, || {
        let session = Session::new(&gsd::PACK);
        run(&session, PLANNED);
        session
    });
}
