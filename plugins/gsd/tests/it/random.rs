//! Random calls: nothing panics, what is closed holds only what is closed, the files are those of a full rendering,
//! and every suggested call is accepted. `TOLLGATE_LONG=1` runs thousands of calls.
#![allow(clippy::disallowed_methods, reason = "the tests look at files")]

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::json;
use tollgate_kit_test::{Arguments, edges_never_fail, never_panics};
use tollgate_sdk::native::{Session, Workspace};

use crate::grammar::{parse_plan, parse_roadmap};
use crate::harness::{PLANNED, follow, run, script, tree};

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
        2 => edit(),
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

/// A line that edits plans.
fn edit() -> impl Strategy<Value = String> {
    let milestone_edit = (
        milestone(),
        select(vec![
            json!({"title": "renamed"}),
            json!({"parked": true}),
            json!({"parked": false}),
            json!({"vision": "wide", "key_risks": ["load"], "slices": [{"slice_id": "S01", "title": "new", "goal": "go"}]}),
            json!({"vision": "", "slices": [{"slice_id": "S02", "clear": ["depends", "demo"]}]}),
            json!({"clear": ["vision", "depends_on"]}),
        ]),
    );
    let task_edit = (
        unit(),
        select(vec![
            json!({"title": "renamed"}),
            json!({"description": "Do.", "files": ["a.rs"], "verify": "make"}),
            json!({"clear": ["description", "files"]}),
        ]),
    );
    prop_oneof![
        milestone_edit.prop_map(|(id, mut edit)| {
            edit["milestone_id"] = json!(id);
            format!("gsd_plan_milestone {edit}")
        }),
        task_edit.prop_map(|(unit, mut edit)| {
            edit["unit"] = json!(unit);
            format!("gsd_plan_task {edit}")
        }),
        slice().prop_map(|unit| format!("gsd_plan_slice {}", json!({"unit": unit, "goal": "reach it"}))),
    ]
}

/// Runs sequences of lines from a fixed seed: `few` of them, or `many` if the environment asks for it.
fn sequences(few: u32, many: u32, longest: usize, test: impl Fn(&[String])) {
    let is_long = std::env::var_os("TOLLGATE_LONG").is_some();
    let config = ProptestConfig {
        cases: if is_long { many } else { few },
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, random);
    let outcome = runner.run(&prop::collection::vec(line(), 1..longest), |lines| {
        test(&lines);
        Ok(())
    });
    if let Err(err) = outcome {
        panic!("{err}");
    }
}

fn count(session: &Session, sql: &str) -> i64 {
    session.sql(sql)[0].get(0).unwrap()
}

/// Checks the invariants after a call.
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
            "a complete slice over an open dependency",
            "SELECT count(*) FROM gsd_slices s, json_each(s.depends_json) d JOIN gsd_slices o ON o.workspace = s.workspace \
             AND o.milestone_id = s.milestone_id AND o.id = d.value \
             WHERE s.status = 'complete' AND o.status IN ('pending', 'in_progress')",
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
             AND e.cmd NOT IN ('claim-unit', 'release-unit', 'validate-milestone') AND e.skipped = 0 \
             AND (e.unit = m.id OR e.unit LIKE m.id || '/%')))",
        ),
    ] {
        assert_eq!(count(session, sql), 0, "{what} after {line}");
    }
}

/// Runs one line: a refusal changes nothing but the audit log, a change is one event and one entry, and what changes
/// nothing is no event.
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
        Ok(reply) => {
            let events = i64::from(reply.structured.contains("\"event_id\":"));
            assert_eq!(
                (after.1, after.2, after.3),
                (before.1 + events, before.2 + 1, before.3),
                "{line}"
            );
            assert!(events == 1 || after.0 == before.0, "{line} changed something");
        }
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
}

#[test]
fn after_every_call_the_files_are_those_of_a_full_rendering() {
    sequences(8, 150, 60, |lines| {
        let dir = tempfile::tempdir().unwrap();
        let session = Session::new(&gsd::PACK).workspace(Workspace::new("app", dir.path()).write(".gsd/"));
        for line in lines {
            // No claim ends between the call and the rendering.
            let line = line.replace(" 30 as ", " 30000 as ");
            let _ = script(&session).call(&line);
            // Before the first change there is only the log of refusals.
            if count(&session, "SELECT count(id) FROM gsd_events") == 0 {
                continue;
            }
            let written = tree(dir.path());
            script(&session).reply("gsd_render");
            let rendered = tree(dir.path());
            let differ = rendered.iter().find(|file| !written.contains(file));
            assert_eq!(differ, None, "after {line}");
            let more = written.iter().filter(|file| !rendered.contains(file)).count();
            assert_eq!(more, 0, "after {line}");
        }
        files_agree(&session, dir.path());
    });
}

#[test]
fn every_suggested_call_is_accepted() {
    let followed = std::cell::Cell::new(0);
    sequences(40, 400, 60, |lines| {
        let session = Session::new(&gsd::PACK);
        for line in lines {
            let outcome = script(&session).call(line);
            followed.set(followed.get() + follow(&session, line, &outcome));
        }
        let outcome = script(&session).call("gsd_status");
        follow(&session, "gsd_status", &outcome);
    });
    assert!(followed.get() > 300, "{}", followed.get());
}

#[test]
fn a_log_of_any_sequence_rebuilds_the_state() {
    sequences(10, 200, 60, |lines| {
        let (dir, clone) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let session = Session::new(&gsd::PACK).workspace(Workspace::new("app", dir.path()).write(".gsd/"));
        for line in lines {
            let _ = script(&session).call(line);
        }
        let log = dir.path().join(".gsd/event-log.jsonl");
        if !log.exists() {
            return;
        }
        std::fs::create_dir(clone.path().join(".gsd")).unwrap();
        std::fs::copy(log, clone.path().join(".gsd/event-log.jsonl")).unwrap();
        let other = Session::new(&gsd::PACK).workspace(Workspace::new("app", clone.path()).write(".gsd/"));
        script(&other).reply("gsd_import");
        invariants(&other, "the import");
        assert_eq!(units(&other), units(&session));
    });
}

/// Everything about units that does not depend on ids of events. Claims may have ended, and are left out.
fn units(session: &Session) -> Vec<String> {
    let rows = session.sql(
        "SELECT id || title || vision || status || depends_on_json || key_risks_json || coalesce(summary_json, '') \
         || coalesce(closed_by, '') || coalesce(reopen_json, '') || coalesce(verdict, '') || created_at FROM gsd_milestones \
         UNION ALL SELECT milestone_id || id || title || risk || depends_json || demo || goal || status \
         || coalesce(summary_json, '') || coalesce(closed_by, '') || coalesce(reopen_json, '') FROM gsd_slices \
         UNION ALL SELECT milestone_id || slice_id || id || title || description || files_json || verify || status \
         || coalesce(started_by, '') || coalesce(summary_json, '') || coalesce(reopen_json, '') || reopened FROM gsd_tasks \
         UNION ALL SELECT completed_slice_id || verdict || slice_changes_json FROM gsd_assessments \
         UNION ALL SELECT slice_id || blocker_task_id || what_changed FROM gsd_replans",
    );
    rows.iter().map(|row| row.get(0).unwrap()).collect()
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

#[test]
fn edges_of_arguments_are_taken_or_refused() {
    let arguments = Arguments::of(&["M01", "S01", "T01"]).fixed("workspace", json!("app"));
    edges_never_fail(&gsd::PACK, &arguments, || {
        let session = Session::new(&gsd::PACK);
        run(&session, PLANNED);
        session
    });
}
