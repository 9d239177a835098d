//! Imports of long logs in parts, and of logs with damaged lines.
#![allow(clippy::disallowed_methods, reason = "the tests look at files")]

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate_sdk::native::Session;

use crate::harness::{call, refusal, reply, run, tree};
use crate::import::{AUDIT, EVENTS, copy, read, session, state, told, two_clones};

fn count(session: &Session, table: &str) -> usize {
    session.sql(&format!("SELECT count(id) FROM {table}"))[0]
        .get(0)
        .unwrap()
}

/// A clone of a story, in a data directory that knows nothing of it.
fn clone_of(origin: &TempDir) -> (TempDir, Session) {
    let clone = tempfile::tempdir().unwrap();
    copy(origin.path(), clone.path());
    let session = session(clone.path());
    (clone, session)
}

#[test]
fn a_long_log_is_imported_in_parts_that_each_commit() {
    let (origin, first) = told();
    let (clone, second) = clone_of(&origin);
    let mut next = json!({"workspace": "app", "limit": 5});
    let (mut events, mut entries, mut parts) = (0, 0, 0);
    loop {
        let part = call(&second, "gsd_import", &next.to_string()).unwrap();
        let part: Value = serde_json::from_str(&part.structured).unwrap();
        let number = |name: &str| usize::try_from(part[name].as_u64().unwrap()).unwrap();
        events += number("imported");
        entries += number("entries");
        parts += 1;
        assert!(number("imported") + number("entries") <= 5, "{part}");
        assert_eq!(count(&second, "gsd_events"), events, "{part}");
        assert_eq!(
            (number("left_events"), number("left_entries")),
            (21 - events, 22 - entries)
        );
        let call = &part["next_call"];
        if events == 21 {
            assert_eq!(
                (call["tool"].as_str(), &part["stale"]),
                (Some("gsd_status"), &json!(false))
            );
            break;
        }
        assert_eq!(
            (call["tool"].as_str(), &part["stale"]),
            (Some("gsd_import"), &json!(true)),
            "{part}"
        );
        assert_eq!(refusal(&second, "plan M09").code, "LOG_AHEAD");
        assert_eq!(read(&clone, EVENTS), read(&origin, EVENTS));
        next = call["arguments"].clone();
        assert_eq!(next, json!({"workspace": "app", "limit": 5}));
    }
    // The fifth part takes the last two entries and the first three events.
    assert_eq!((entries, parts), (22, 9));
    assert_eq!(state(&second), state(&first));
    assert_eq!(read(&clone, EVENTS), read(&origin, EVENTS));
    run(&second, "- start M01/S03/T01 as bob");
}

#[test]
fn a_refused_import_says_what_was_imported_before() {
    let ((one, ada), (two, bob)) = two_clones();
    run(&bob, "- done M01/S01/T02 as bob\n- done M01/S01/T01 as bob");
    run(&ada, "- done M01/S01/T01 as ada");
    std::fs::copy(two.path().join(EVENTS), one.path().join(EVENTS)).unwrap();
    let err = refusal(&ada, "gsd_import");
    assert_eq!(err.code, "LOG_CONFLICT");
    let told = "; before this line, the call imported events (1) and audit entries (0), and kept events unapplied (0)";
    assert!(err.message.ends_with(told), "{err}");
    assert_eq!(err.context["imported"], 1);
    assert_eq!(reply(&ada, "gsd_status")["slices"][0]["tasks_closed"], 2);
}

#[test]
fn files_are_written_from_where_the_call_before_stopped() {
    let (origin, first) = told();
    run(&first, "- plan M02\n- plan M03");
    let (clone, second) = clone_of(&origin);
    reply(&second, "gsd_import");
    let path = |id: &str| clone.path().join(format!(".gsd/milestones/{id}/{id}-ROADMAP.md"));
    std::fs::remove_file(path("M01")).unwrap();
    std::fs::remove_file(path("M02")).unwrap();
    // Files that have their content are left alone.
    let old = SystemTime::now() - Duration::from_secs(3_600);
    let file = std::fs::File::options().write(true).open(path("M03")).unwrap();
    file.set_modified(old).unwrap();
    reply(&second, "gsd_import {\"files_after\": \"M01\"}");
    assert_eq!((path("M01").exists(), path("M02").exists()), (false, true));
    let written = std::fs::metadata(path("M03")).unwrap().modified().unwrap();
    assert!(written <= old + Duration::from_secs(1));
    reply(&second, "gsd_import");
    assert!(path("M01").exists());
}

#[test]
fn a_damaged_line_is_named_and_can_be_restored_or_set_aside() {
    let (origin, _) = told();
    let (clone, session) = clone_of(&origin);
    let whole = read(&origin, EVENTS);
    let edited = whole.replacen("Do.", "Did.", 1);
    std::fs::write(clone.path().join(EVENTS), &edited).unwrap();
    let message = "line 3 of .gsd/event-log.jsonl was edited: its hash does not match its command and arguments \
                   (plan-task of M01/S01/T01 at 2026-01-01T00:00:03.000Z)";
    for line in ["plan M09", "gsd_import"] {
        let err = refusal(&session, line);
        assert_eq!(
            (err.code.as_str(), err.message.as_str()),
            ("LOG_DAMAGED", message),
            "{line}"
        );
        assert_eq!(
            (&err.context["line"], &err.context["damaged_lines"]),
            (&json!(3), &json!(1))
        );
        assert!(
            err.remediation.contains("git log -p -- .gsd/event-log.jsonl"),
            "{err:?}"
        );
        assert!(err.remediation.contains("on_damaged=set_aside"), "{err:?}");
        assert_eq!(err.next_call.unwrap().tool, "gsd_status");
    }
    // Nothing was imported, and the suggested look suggests nothing that is refused.
    assert_eq!(
        (count(&session, "gsd_events"), count(&session, "gsd_audit")),
        (0, 0)
    );
    let status = reply(&session, "status");
    assert_eq!(status["next"], json!([]));
    assert_eq!(status["blockers"][0]["code"], "LOG_DAMAGED");
    assert_eq!(status["blockers"][0]["message"], message);
    assert_eq!(read(&clone, EVENTS), edited);
    // One way on: without the line.
    let imported = reply(&session, "gsd_import {\"on_damaged\": \"set_aside\"}");
    assert_eq!(
        (&imported["imported"], &imported["set_aside"]),
        (&json!(20), &json!(1)),
        "{imported}"
    );
    assert_eq!(imported["stale"], false, "{imported}");
    let line = edited.lines().nth(2).unwrap();
    assert_eq!(read(&clone, ".gsd/event-log.damaged.jsonl"), format!("{line}\n"));
    assert!(!read(&clone, EVENTS).contains(line));
    run(&session, "- plan M09");
    // The other: with the line of before.
    let (other, third) = clone_of(&origin);
    std::fs::write(other.path().join(EVENTS), &edited).unwrap();
    refusal(&third, "gsd_import");
    std::fs::write(other.path().join(EVENTS), &whole).unwrap();
    assert_eq!(reply(&third, "gsd_import")["imported"], 21);
    run(&third, "- plan M09");
}

#[test]
fn an_edited_line_whose_event_is_stored_is_restored_by_an_import() {
    let (origin, other) = told();
    let (dir, session) = told();
    let known = read(&dir, EVENTS);
    run(&other, "- plan M02");
    let pulled = read(&origin, EVENTS).replacen("Do.", "Did.", 1);
    std::fs::write(dir.path().join(EVENTS), &pulled).unwrap();
    assert_eq!(refusal(&session, "plan M03").code, "LOG_AHEAD");
    let imported = reply(&session, "gsd_import");
    assert_eq!(
        (&imported["imported"], imported.get("set_aside")),
        (&json!(1), None),
        "{imported}"
    );
    assert!(read(&dir, EVENTS).starts_with(&known));
    assert!(!dir.path().join(".gsd/event-log.damaged.jsonl").exists());
}

/// A log whose own events are all stored, and the same log with a colleague's line after them.
fn pulled() -> (TempDir, Session, String, String) {
    let (origin, other) = told();
    let (dir, session) = told();
    let own = read(&dir, EVENTS);
    run(&other, "- plan M07 as eve");
    let line = read(&origin, EVENTS).lines().last().unwrap().to_owned();
    (dir, session, own, line)
}

#[test]
fn a_damaged_line_of_a_colleague_stops_every_writer() {
    let (_, _, _, line) = pulled();
    let edited = line.replace("milestone M07", "milestone M0");
    assert_ne!(line, edited);
    for damaged in [
        edited.as_str(),
        &line[..60],
        &line.replacen("\",\"", "\"\"", 1),
        "{\"hello\":1}",
        "# a remark",
    ] {
        let (dir, session, own, _) = pulled();
        let (first, rest) = own.split_once('\n').unwrap();
        let logs = [
            format!("{own}{damaged}\n"),
            format!("{own}{damaged}"),
            format!("{first}\n{damaged}\n{rest}"),
        ];
        for text in logs {
            std::fs::write(dir.path().join(EVENTS), &text).unwrap();
            for line in ["gsd_import", "plan M02", "done M07/S01/T01"] {
                assert_eq!(refusal(&session, line).code, "LOG_DAMAGED", "{line}: {text}");
            }
            let rendered = reply(&session, "gsd_render");
            assert_eq!(
                (&rendered["stale"], &rendered["next_call"]["tool"]),
                (&json!(true), &json!("gsd_status")),
                "{rendered}"
            );
            assert_eq!(read(&dir, EVENTS), text);
        }
        // An unknown audit entry beside it does not hide the damage.
        let audit = read(&dir, AUDIT);
        let entry = audit.lines().last().unwrap().replace("2026-01-01", "2026-01-02");
        std::fs::write(dir.path().join(AUDIT), format!("{audit}{entry}\n")).unwrap();
        assert_eq!(refusal(&session, "plan M02").code, "LOG_DAMAGED");
        let imported = reply(&session, "gsd_import {\"on_damaged\": \"set_aside\"}");
        assert_eq!(
            (&imported["set_aside"], &imported["entries"]),
            (&json!(1), &json!(1)),
            "{imported}"
        );
        assert_eq!(read(&dir, ".gsd/event-log.damaged.jsonl"), format!("{damaged}\n"));
        assert_eq!(read(&dir, EVENTS), own);
        run(&session, "- plan M02");
    }
}

#[test]
fn damage_to_a_stored_line_is_mended() {
    let (dir, session) = told();
    let known = read(&dir, EVENTS);
    let (before, last) = known.trim_end().rsplit_once('\n').unwrap();
    for text in [
        // A letter of an argument, the form of the line, and a torn end.
        known.replacen("Do.", "Did.", 1),
        known.replacen("\"params\":{", "\"params\":", 1),
        format!("{before}\n{}", &last[..30]),
    ] {
        std::fs::write(dir.path().join(EVENTS), text).unwrap();
        assert_eq!(reply(&session, "gsd_import").get("set_aside"), None);
        assert_eq!(read(&dir, EVENTS), known);
    }
    // A torn end that is a part of stored lines only, which the log has all.
    let torn = format!("{known}{}", &last[..30]);
    std::fs::write(dir.path().join(EVENTS), torn).unwrap();
    assert_eq!(refusal(&session, "gsd_import").code, "LOG_DAMAGED");
}

#[test]
fn a_damaged_audit_line_is_moved_and_not_lost_by_a_change() {
    let (dir, session) = told();
    let audit = read(&dir, AUDIT);
    std::fs::write(dir.path().join(AUDIT), format!("scribble\n{audit}")).unwrap();
    let err = refusal(&session, "plan M09");
    assert_eq!(
        (err.code.as_str(), err.next_call.unwrap().tool.as_str()),
        ("LOG_AHEAD", "gsd_import")
    );
    assert!(
        err.message.ends_with(", damaged audit lines: 1)"),
        "{}",
        err.message
    );
    reply(&session, "gsd_import");
    assert_eq!(read(&dir, ".gsd/audit-log.damaged.jsonl"), "scribble\n");
    run(&session, "- plan M09");
}

#[test]
fn a_damaged_audit_line_is_moved_and_stops_nobody() {
    let (origin, _) = told();
    let (clone, session) = clone_of(&origin);
    let audit = format!("scribble\n{}", read(&origin, AUDIT));
    std::fs::write(clone.path().join(AUDIT), &audit).unwrap();
    assert_eq!(refusal(&session, "plan M09").code, "LOG_AHEAD");
    let imported = reply(&session, "gsd_import");
    assert_eq!(imported["stale"], false, "{imported}");
    assert_eq!(
        imported["warnings"],
        json!(["line 1 of .gsd/audit-log.jsonl was moved to .gsd/audit-log.damaged.jsonl"])
    );
    assert_eq!(read(&clone, ".gsd/audit-log.damaged.jsonl"), "scribble\n");
    run(&session, "- plan M09");
}

#[test]
fn a_foreign_log_can_be_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(".gsd")).unwrap();
    std::fs::write(dir.path().join(EVENTS), "{\"cmd\":\"plan\"}\n").unwrap();
    let session = session(dir.path());
    let err = refusal(&session, "plan M01");
    assert_eq!(err.code, "LOG_FOREIGN");
    assert!(err.message.contains(".gsd/event-log.jsonl"), "{err}");
    reply(&session, "gsd_import {\"on_damaged\": \"set_aside\"}");
    run(&session, "- plan M01");
    assert_eq!(read(&dir, EVENTS).lines().count(), 1);
}

#[test]
fn rendering_leaves_the_files_of_an_unimported_clone_alone() {
    let (origin, _) = told();
    let (clone, session) = clone_of(&origin);
    let before = tree(clone.path());
    let rendered = reply(&session, "gsd_render");
    assert_eq!(
        (&rendered["stale"], &rendered["written"]),
        (&json!(true), &json!(0)),
        "{rendered}"
    );
    assert_eq!(rendered["next_call"]["tool"], "gsd_import");
    assert_eq!(tree(clone.path()), before);
}

#[test]
fn nothing_is_suggested_that_a_log_ahead_refuses() {
    let (origin, other) = told();
    let (dir, session) = told();
    run(&other, "- plan M02");
    std::fs::copy(origin.path().join(EVENTS), dir.path().join(EVENTS)).unwrap();
    let status = reply(&session, "status");
    let tools: Vec<&Value> = status["next"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["tool"])
        .collect();
    assert_eq!(tools, ["gsd_import"]);
}
