//! Directories without write access: a full disk, and a read-only one. Rows are right, files are outdated, and the
//! reply says so.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::{at, completion, place, plan};
use crate::harness::{Place, Session};

/// Commands that start a program with private mounts: as root, and as any user where the system permits it.
const ALONE: [&[&str]; 2] = [
    &["unshare", "--mount"],
    &["unshare", "--user", "--map-root-user", "--mount"],
];

/// The first of these commands that works on this machine.
fn alone() -> &'static [&'static str] {
    let works = |starter: &&&[&str]| {
        let mut probe = Command::new(starter[0]);
        probe
            .args(&starter[1..])
            .args(["mount", "-t", "tmpfs", "none", "/mnt"]);
        probe.output().is_ok_and(|done| done.status.success())
    };
    ALONE.iter().find(works).expect(
        "this test mounts a small file system: run it as root, or allow user namespaces \
         (util-linux, and kernel.apparmor_restrict_unprivileged_userns=0 where AppArmor forbids them)",
    )
}

/// A server with a small file system mounted at `app`, and the path of that file system for other processes. The script
/// runs there before the file system is remounted with the options.
async fn on_file_system(script: &str, options: &str) -> (Place, Session, PathBuf) {
    let (place, app) = place();
    let mount = format!(
        "mount -t tmpfs -o size=256k none \"$0\" && cd \"$0\" && {script} && cd / && mount -o remount,{options} \"$0\" && exec \"$@\""
    );
    let shell = ["sh", "-c", &mount, app.to_str().unwrap()];
    let client = place.serve_by(&[alone(), &shell].concat()).await;
    let seen = PathBuf::from(format!("/proc/{}/root", client.pid())).join(app.strip_prefix("/").unwrap());
    (place, client, seen)
}

/// Works on stale files: every reply says why they are stale, and everything is stored.
async fn work_on_stale_files(client: &Session) {
    let planned = client
        .ok("gsd_plan_milestone", at("M02", json!({"title": "Ship it"})))
        .await;
    assert_stale(&planned);
    plan(client, "M01").await;
    let done = client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    assert_stale(&done);
    assert_eq!(done["status"], "complete");
    // A refusal is what it is, whatever becomes of the files.
    let again = client
        .refused("gsd_task_complete", completion("M01/S01/T01"))
        .await;
    assert_eq!(again["code"], "ALREADY_COMPLETE");
    let status = client.ok("gsd_status", json!({"milestone_id": "M01"})).await;
    let statuses: Vec<&Value> = status["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| &task["status"])
        .collect();
    assert_eq!(statuses, ["complete", "pending"]);
    let rendered = client.ok("gsd_render", json!({"workspace": "app"})).await;
    assert_stale(&rendered);
}

fn assert_stale(reply: &Value) {
    assert_eq!(reply["stale"], true, "{reply:#}");
    let warnings = reply["warnings"].as_array().unwrap();
    assert!(
        warnings
            .iter()
            .any(|warning| warning.as_str().unwrap().contains(".gsd/")),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_full_disk_makes_files_stale_until_there_is_room() {
    let fill = "{ cat /dev/zero > ballast 2> /dev/null || true; }";
    let (place, client, app) = on_file_system(fill, "rw").await;
    work_on_stale_files(&client).await;
    std::fs::remove_file(app.join("ballast")).unwrap();
    let rendered = client.ok("gsd_render", json!({"workspace": "app"})).await;
    assert_eq!(rendered["stale"], false, "{rendered:#}");
    let plan = std::fs::read_to_string(app.join(".gsd/milestones/M01/slices/S01/S01-PLAN.md")).unwrap();
    assert!(plan.contains("- [x] **T01: Schema**"), "{plan}");
    let events = std::fs::read_to_string(app.join(".gsd/event-log.jsonl")).unwrap();
    let stored = place.sql("SELECT count(*) FROM gsd_events");
    assert_eq!(events.lines().count().to_string(), stored[0]);
}

#[tokio::test]
async fn a_read_only_directory_makes_files_stale_and_nothing_else() {
    let (place, client, app) = on_file_system("mkdir .gsd", "ro").await;
    work_on_stale_files(&client).await;
    assert_eq!(std::fs::read_dir(app.join(".gsd")).unwrap().count(), 0);
    assert_eq!(
        place.sql("SELECT count(*) FROM gsd_audit WHERE code = 'ALREADY_COMPLETE'"),
        ["1"]
    );
}
