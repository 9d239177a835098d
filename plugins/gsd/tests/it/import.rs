//! Logs that came with Git: nothing is written over them, and they can be imported.
#![allow(clippy::disallowed_methods, reason = "the tests look at files")]

use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate_sdk::native::{Session, Workspace};

use crate::harness::{PLANNED, refusal, reply, run};

pub(crate) const EVENTS: &str = ".gsd/event-log.jsonl";
pub(crate) const AUDIT: &str = ".gsd/audit-log.jsonl";

pub(crate) fn session(dir: &Path) -> Session {
    Session::new(&gsd::PACK).workspace(Workspace::new("app", dir).write(".gsd/"))
}

pub(crate) fn read(dir: &TempDir, path: &str) -> String {
    std::fs::read_to_string(dir.path().join(path)).unwrap_or_else(|err| panic!("{path}: {err}"))
}

/// Copies the files of one directory to another, as Git does.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        match path.is_dir() {
            true => copy(&path, &to.join(name)),
            false => drop(std::fs::copy(&path, to.join(name)).unwrap()),
        }
    }
}

/// Everything that is stored about units and claims, without ids of events.
pub(crate) fn state(session: &Session) -> Vec<String> {
    let rows = session.sql(
        "SELECT 'm' || id || title || vision || status || depends_on_json || success_criteria_json || coalesce(summary_json, '') \
         || coalesce(closed_by, '') || coalesce(closed_hash, '') || coalesce(reopen_json, '') || coalesce(verdict, '') || created_at \
         || coalesce(validation_event >= changed_event, '') FROM gsd_milestones \
         UNION ALL SELECT 's' || milestone_id || id || title || risk || depends_json || demo || goal || status \
         || coalesce(summary_json, '') || coalesce(closed_by, '') || coalesce(reopen_json, '') FROM gsd_slices \
         UNION ALL SELECT 't' || milestone_id || slice_id || id || title || description || files_json || verify || status \
         || coalesce(started_by, '') || coalesce(summary_json, '') || coalesce(reopen_json, '') || reopened FROM gsd_tasks \
         UNION ALL SELECT 'c' || unit || owner || claimed_at || coalesce(expires_at, '') FROM gsd_claims \
         UNION ALL SELECT 'a' || completed_slice_id || verdict || assessment || assessed_at FROM gsd_assessments \
         UNION ALL SELECT 'r' || slice_id || blocker_task_id || what_changed || replanned_at FROM gsd_replans \
         UNION ALL SELECT 'e' || cmd || unit || ts || hash || actor_name || coalesce(trigger_reason, '') || session_id \
         || version FROM gsd_events",
    );
    rows.iter()
        .map(|row| row.get::<Option<String>>(0).unwrap().unwrap_or_default())
        .collect()
}

/// A story with every command, in a directory.
pub(crate) fn told() -> (TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let session = session(dir.path());
    let replan = json!({"unit": "M01/S01", "blocker_task_id": "T01", "blocker_description": "no disk", "what_changed": "T03",
        "updated_tasks": [{"task_id": "T03", "title": "three"}], "removed_task_ids": ["T02"], "trigger_reason": "why not"});
    let assess = json!({"milestone_id": "M01", "completed_slice_id": "S01", "verdict": "adjusted", "assessment": "More.",
        "slice_changes": {"added": [{"slice_id": "S03", "title": "three"}], "modified": [{"slice_id": "S02", "clear": ["depends"]}]}});
    run(
        &session,
        &format!(
            "{PLANNED}
             - gsd_plan_task {{\"unit\": \"M01/S01/T01\", \"description\": \"Do.\", \"verify\": \"make\"}}
             - claim M01/S01 900 as ada
             - start M01/S01/T01 as ada
             - done M01/S01/T01 as ada
             - reopen M01/S01/T01 it never ran as ada
             - done M01/S01/T01 as ada
             - gsd_replan_slice {replan} as ada
             - done M01/S01/T03 as ada
             - release M01/S01 as ada
             close M01/S02
             - close M01/S01 as ada
             - gsd_reassess_roadmap {assess}
             - skip M01/S02
             - skip M01/S03
             - validate M01 pass
             - finish M01
             - reopen M01 more to do
             - reopen M01/S03 more to do
             - tasks M01/S03 T01
             - claim M01/S03/T01 as bob"
        ),
    );
    (dir, session)
}

#[test]
fn a_clone_refuses_to_write_imports_and_goes_on() {
    let (origin, first) = told();
    let clone = tempfile::tempdir().unwrap();
    copy(origin.path(), clone.path());
    let second = session(clone.path());
    // A newcomer is told what to do, and nothing is written over the logs.
    let status = reply(&second, "gsd_status {}");
    assert_eq!(
        status["next"][0]["next_call"],
        json!({"tool": "gsd_import", "arguments": {"workspace": "app"}})
    );
    for line in ["plan M09", "start M01/S03/T01 as bob", "done M07/S01/T01"] {
        let err = refusal(&second, line);
        assert_eq!(err.code, "LOG_AHEAD");
        assert_eq!(err.next_call.unwrap().tool, "gsd_import");
    }
    expect![
        "the logs in .gsd/ of workspace app contain lines that are not stored here (events: 21, audit entries: 22)"
    ]
    .assert_eq(&refusal(&second, "plan M09").message);
    assert_eq!(read(&clone, EVENTS), read(&origin, EVENTS));
    assert_eq!(read(&clone, AUDIT), read(&origin, AUDIT));
    assert_eq!(state(&second), Vec::<String>::new());
    // The import rebuilds the state, and does nothing the second time.
    let imported = reply(&second, "gsd_import");
    assert_eq!(
        (&imported["imported"], &imported["stale"]),
        (&json!(21), &json!(false)),
        "{imported}"
    );
    assert_eq!(state(&second), state(&first));
    assert_eq!(read(&clone, EVENTS), read(&origin, EVENTS));
    let again = reply(&second, "gsd_import");
    assert_eq!((&again["imported"], &again["entries"]), (&json!(0), &json!(0)));
    assert_eq!(state(&second), state(&first));
    for path in [
        ".gsd/unit-claims.json",
        ".gsd/STATE.md",
        ".gsd/milestones/M01/M01-ROADMAP.md",
    ] {
        assert_eq!(read(&clone, path), read(&origin, path), "{path}");
    }
    run(&second, "- start M01/S03/T01 as bob");
    assert!(read(&clone, EVENTS).starts_with(&read(&origin, EVENTS)));
}

/// Two directories with the same plan, in one of which Ada works and in the other Bob, whose clock is a minute ahead.
pub(crate) fn two_clones() -> ((TempDir, Session), (TempDir, Session)) {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (ada, bob) = (session(one.path()), session(two.path()));
    run(&ada, PLANNED);
    copy(one.path(), two.path());
    reply(&bob, "gsd_import");
    bob.advance_ms(60_000);
    ((one, ada), (two, bob))
}

#[test]
fn two_directories_exchange_their_work() {
    let ((one, ada), (two, bob)) = two_clones();
    // Both work on different tasks; a merge has the lines of both, and the marks of a conflict.
    run(&bob, "- done M01/S01/T02 as bob");
    run(&ada, "- done M01/S01/T01 as ada");
    let (ours, theirs) = (read(&one, EVENTS), read(&two, EVENTS));
    let common = ours
        .lines()
        .zip(theirs.lines())
        .take_while(|(one, two)| one == two)
        .count();
    let lines = |text: &str| {
        text.lines()
            .skip(common)
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let start: String = ours
        .lines()
        .take(common)
        .map(|line| format!("{line}\n"))
        .collect();
    let merged = format!(
        "{start}<<<<<<< HEAD\n{}=======\n{}>>>>>>> theirs\n",
        lines(&ours),
        lines(&theirs)
    );
    std::fs::write(one.path().join(EVENTS), &merged).unwrap();
    assert_eq!(refusal(&ada, "start M01/S01/T02 as ada").code, "LOG_AHEAD");
    let imported = reply(&ada, "gsd_import");
    assert_eq!(imported["imported"], 1, "{imported}");
    let status = reply(&ada, "gsd_status");
    assert_eq!(status["slices"][0]["tasks_closed"], 2);
    let text = read(&one, EVENTS);
    assert_eq!(text.lines().count(), common + 2, "{text}");
    assert!(lines(&theirs).lines().all(|line| text.contains(line)), "{text}");
    // The other side imports the merge, and both have the same lines.
    std::fs::copy(one.path().join(EVENTS), two.path().join(EVENTS)).unwrap();
    assert_eq!(reply(&bob, "gsd_import")["imported"], 1);
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(read(&one, EVENTS)), sorted(read(&two, EVENTS)));
}

#[test]
fn contradicting_work_is_refused_or_kept_unapplied() {
    let ((one, ada), (two, bob)) = two_clones();
    run(&bob, "- done M01/S01/T01 as bob");
    run(&ada, "- done M01/S01/T01 as ada");
    std::fs::copy(two.path().join(EVENTS), one.path().join(EVENTS)).unwrap();
    let before = state(&ada);
    let err = refusal(&ada, "gsd_import");
    expect!["LOG_CONFLICT: line 3 of the event log, complete-task of M01/S01/T01 by bob, contradicts what is stored: Task T01 is already complete"].assert_eq(&err.to_string());
    assert_eq!(err.next_call.unwrap().tool, "gsd_show");
    assert_eq!(state(&ada), before);
    let imported = reply(&ada, "gsd_import {\"on_conflict\": \"skip\"}");
    assert_eq!(
        (&imported["imported"], &imported["skipped"]),
        (&json!(0), &json!(1)),
        "{imported}"
    );
    let text = read(&one, EVENTS);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(
        text.lines()
            .last()
            .unwrap()
            .ends_with(",\"v\":2,\"skipped\":true}"),
        "{text}"
    );
    let completed = reply(&ada, "gsd_events {\"unit\": \"M01/S01/T01\"}");
    assert_eq!(completed["events"].as_array().unwrap().len(), 2);
    run(&ada, "- done M01/S01/T02 as ada");
    // A third directory does the same with the same log.
    let three = tempfile::tempdir().unwrap();
    copy(one.path(), three.path());
    let eve = session(three.path());
    let imported = reply(&eve, "gsd_import");
    assert_eq!(
        (&imported["imported"], &imported["skipped"]),
        (&json!(4), &json!(1))
    );
    assert_eq!(state(&eve), state(&ada));
}

#[test]
fn a_damaged_log_is_named_and_left_alone() {
    let (origin, _) = told();
    let whole = read(&origin, EVENTS);
    let cases = [
        // One word of an argument, so that the hash is wrong.
        (
            whole.replacen("it runs", "it walks", 1),
            "LOG_DAMAGED",
            "LOG_DAMAGED",
        ),
        (format!("{whole}not an event\n"), "LOG_DAMAGED", "LOG_DAMAGED"),
        // Only what gsd never wrote, as another tool may have.
        ("{\"cmd\":\"plan\"}\n".to_owned(), "LOG_FOREIGN", "LOG_DAMAGED"),
    ];
    for (text, write, import) in cases {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".gsd")).unwrap();
        std::fs::write(dir.path().join(EVENTS), &text).unwrap();
        let session = session(dir.path());
        assert_eq!(refusal(&session, "plan M05").code, write);
        assert_eq!(refusal(&session, "gsd_import").code, import);
        assert_eq!(reply(&session, "gsd_render")["stale"], true);
        assert_eq!(read(&dir, EVENTS), text);
        assert_eq!(state(&session), Vec::<String>::new());
    }
}

#[test]
fn a_forged_command_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".gsd")).unwrap();
    let params = json!({"milestone_id": "M01"});
    let text = format!("{{\"cmd\":\"drop-all\",\"params\":{params}}}");
    let hash = sha(&text);
    let line = json!({"cmd": "drop-all", "params": params, "ts": "2026-01-01T00:00:00.000Z", "hash": hash});
    std::fs::write(dir.path().join(EVENTS), format!("{line}\n")).unwrap();
    let err = refusal(&session(dir.path()), "gsd_import");
    assert_eq!(err.code, "LOG_CONFLICT");
    assert!(
        err.message.contains("`drop-all` is not a command of gsd"),
        "{err}"
    );
    // The status would lead to the import again.
    assert_eq!(err.next_call.unwrap().tool, "gsd_events");
}

fn sha(text: &str) -> String {
    use std::io::Write as _;
    let mut child = std::process::Command::new("sha256sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = child.wait_with_output().unwrap().stdout;
    String::from_utf8(said).unwrap()[..16].to_owned()
}

#[test]
fn an_older_branch_is_brought_up_to_date_and_a_torn_line_is_mended() {
    let dir = tempfile::tempdir().unwrap();
    let session = session(dir.path());
    run(&session, PLANNED);
    let older = read(&dir, EVENTS);
    run(&session, "- start M01/S01/T01 as ada");
    let whole = read(&dir, EVENTS);
    // The older branch, the newer one with a torn end, CRLF, and no file.
    let torn = whole[..whole.len() - 30].to_owned();
    for text in [older.clone(), torn, whole.replace('\n', "\r\n"), String::new()] {
        std::fs::write(dir.path().join(EVENTS), &text).unwrap();
        let before = read_events(&session);
        run(&session, "- claim M01/S02 900 as ada");
        assert_eq!(read(&dir, EVENTS).lines().count(), before + 1);
        assert!(read(&dir, EVENTS).starts_with(&whole));
    }
    // As long as the last one that was written, but another branch's.
    let mut lines: Vec<String> = read(&dir, EVENTS).lines().map(str::to_owned).collect();
    let last = lines.pop().unwrap();
    lines.push(last.replace("\"ts\":\"2026-01-01", "\"ts\":\"2026-01-02"));
    let other = lines.join("\n") + "\n";
    std::fs::write(dir.path().join(EVENTS), &other).unwrap();
    assert_eq!(refusal(&session, "claim M01/S02 as ada").code, "LOG_AHEAD");
    assert_eq!(read(&dir, EVENTS), other);
}

fn read_events(session: &Session) -> usize {
    session.sql("SELECT count(id) FROM gsd_events")[0].get(0).unwrap()
}

#[test]
fn files_that_changed_between_commit_and_rendering_keep_their_lines() {
    let (origin, other) = told();
    run(&other, "- plan M02");
    let pulled = read(&origin, EVENTS);
    let (dir, session) = told();
    // The host was killed after its commit, and a pull came before the next host renders.
    std::fs::write(dir.path().join(EVENTS), &pulled).unwrap();
    let rendered = reply(&session, "gsd_render");
    assert_eq!(rendered["stale"], true);
    let warnings = rendered["warnings"].to_string();
    assert!(
        warnings.contains("event-log.jsonl: the logs in .gsd/"),
        "{warnings}"
    );
    assert_eq!(read(&dir, EVENTS), pulled);
    assert_eq!(reply(&session, "gsd_import")["imported"], 1);
    assert_eq!(reply(&session, "gsd_render")["stale"], false);
}

#[test]
fn events_of_the_first_version_are_read_as_they_were_meant() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".gsd")).unwrap();
    let events: Vec<Value> = vec![
        json!({"milestone_id": "M01", "title": "one", "vision": "Wide", "key_risks": ["load"],
            "slices": [{"slice_id": "S01", "title": "s", "risk": "high", "demo": "d", "goal": "g"}]}),
        // This emptied vision and risks, and the slice's demo and goal.
        json!({"milestone_id": "M01", "title": "renamed", "vision": "",
            "slices": [{"slice_id": "S01", "title": "s", "risk": "medium", "demo": "", "goal": ""}]}),
    ];
    let lines = events.iter().map(|params| {
        let canonical = format!("{{\"cmd\":\"plan-milestone\",\"params\":{}}}", sorted(params));
        let line = json!({"cmd": "plan-milestone", "params": params, "ts": "2026-01-01T00:00:00.000Z", "hash": sha(&canonical),
            "actor": "agent", "actor_name": "agent", "session_id": "s"});
        format!("{line}\n")
    });
    std::fs::write(dir.path().join(EVENTS), lines.collect::<String>()).unwrap();
    let session = session(dir.path());
    assert_eq!(reply(&session, "gsd_import")["imported"], 2);
    let rows = session.sql(
        "SELECT title || '|' || vision || '|' || key_risks_json FROM gsd_milestones \
         UNION ALL SELECT title || '|' || risk || '|' || demo || '|' || goal FROM gsd_slices",
    );
    let rows: Vec<String> = rows.iter().map(|row| row.get(0).unwrap()).collect();
    assert_eq!(rows, ["renamed||[]", "s|medium||"]);
}

fn sorted(value: &Value) -> String {
    tollgate_sdk::canonical_json(value)
}
