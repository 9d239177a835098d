//! A disk that takes no more, as any user can have one: this process may not make files longer than a few kilobytes.
#![allow(clippy::disallowed_methods, reason = "the tests look at files")]

use std::process::Command;

use serde_json::json;
use tollgate_sdk::native::{Session, Workspace};

use crate::harness::{reply, run};

/// Set in the process that has the limit.
const LIMITED: &str = "GSD_TEST_SMALL_FILES";

/// Runs a test once more in a process whose files have at most 8 blocks of 512 bytes, because a limit is for the
/// whole process. `true` in that process.
fn with_small_files(test: &str) -> bool {
    if std::env::var_os(LIMITED).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(LIMITED, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

#[test]
fn files_that_do_not_fit_are_stale_and_the_rest_is_there() {
    if !with_small_files("full_disk::files_that_do_not_fit_are_stale_and_the_rest_is_there") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let session = Session::new(&gsd::PACK).workspace(Workspace::new("app", dir.path()).write(".gsd/"));
    run(&session, "- plan M01 S01\n- tasks M01/S01 T01");
    let description = "Nothing is ever lost. ".repeat(370);
    let task = json!({"milestone_id": "M01", "slice_id": "S01", "task_id": "T02", "title": "two", "description": description});
    let planned = reply(&session, &format!("gsd_plan_task {task}"));
    assert_eq!(planned["stale"], true);
    let warnings = planned["warnings"].to_string();
    assert!(
        warnings.contains("S01-PLAN.md") && warnings.contains("event-log.jsonl"),
        "{warnings}"
    );
    // What is in the way of one file is not in the way of another.
    assert!(!warnings.contains("STATE.md"), "{warnings}");
    let state = std::fs::read_to_string(dir.path().join(".gsd/STATE.md")).unwrap();
    assert!(state.contains("T02 two"), "{state}");
    // The file that did not fit is whole, and old.
    let plan = dir.path().join(".gsd/milestones/M01/slices/S01/S01-PLAN.md");
    let plan = std::fs::read_to_string(plan).unwrap();
    assert!(plan.contains("T01") && !plan.contains("T02"), "{plan}");
    let tasks = session.sql("SELECT length(description) FROM gsd_tasks ORDER BY id");
    assert_eq!(tasks[1].get::<usize>(0).unwrap(), description.len());
    let rendered = reply(&session, "gsd_render");
    assert_eq!(rendered["stale"], true);
}
