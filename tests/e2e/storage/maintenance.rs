//! Backups, compaction and health checks while hosts run.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::harness::{Place, Session, until};

/// Runs a command that must succeed, and returns its output as JSON.
fn done(place: &Place, arguments: &[&str]) -> Value {
    let output = place.run(&[&["--json"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs a command that must fail, and returns its message.
fn refused(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(arguments);
    assert_ne!(output.status.code(), Some(0), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Every file and folder below a folder.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_beside_calls_that_write_is_whole_and_comes_back_elsewhere() {
    let place = Place::in_file("[artifacts]\nenabled = true\n");
    let server = place.serve_http(&[]);
    let session = Session::over_http(&server).await;
    session.ok("envelope_open", json!({"label": "before"})).await;
    let task = json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
        "actor": "somebody", "actor_role": "orchestrator"});
    session.ok("task_create", task).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writing = {
        let stop = Arc::clone(&stop);
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                session.ok("envelope_open", json!({"label": "during"})).await;
            }
        })
    };
    let kept = "ab".repeat(32);
    std::fs::write(place.data().join("artifacts").join(&kept), "a log").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("monday");
    let made = tokio::task::block_in_place(|| done(&place, &["backup", text(&backup)]));
    stop.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    for path in walk(&backup) {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
    assert!(backup.join("consent.key").exists() && !backup.join("cache.key").exists());
    assert_eq!(
        std::fs::read_to_string(backup.join("artifacts").join(&kept)).unwrap(),
        "a log"
    );
    assert!(refused(&place, &["backup", text(&backup)]).contains("already exists"));
    assert!(refused(&place, &["backup", text(&place.data().join("x"))]).contains("is in the data directory"));
    let inside = folder.path().join("inside");
    let workspace = format!("shop={}", folder.path().display());
    let within = ["--workspace", &workspace, "backup", text(&inside)];
    assert!(refused(&place, &within).contains("is in the workspace shop") && !inside.exists());
    // The host continues, and its ledger still has what was signed.
    let head = backup.join("head.json");
    assert!(
        place
            .run(&["ledger", "verify", "--head", text(&head)])
            .status
            .success()
    );
    assert!(refused(&place, &["restore", "--force", text(&backup)]).contains("is in use by 1 host;"));

    let other = Place::in_file("");
    std::fs::remove_dir_all(other.data()).unwrap();
    let key = made["head"]["public_key"].as_str().unwrap();
    let restored = done(&other, &["restore", text(&backup), "--public-key", key]);
    assert_eq!(
        (&restored["rows"], &restored["head"]),
        (&made["rows"], &made["head"])
    );
    assert!(
        other
            .run(&["ledger", "verify", "--head", text(&head)])
            .status
            .success()
    );
    let (code, listed) = other.call("envelope_list", &json!({"limit": 100}));
    assert_eq!(code, 0, "{listed}");
    assert!(other.data().join("artifacts").join(&kept).exists());
    assert_eq!(
        other.sql("SELECT count(*) FROM core_envelopes WHERE label = 'before'"),
        ["1"]
    );
}

#[test]
fn a_backup_that_is_not_what_was_saved_is_not_put_back() {
    let place = Place::in_file("");
    assert!(refused(&place, &["backup", "/nowhere/x"]).contains("no host has ever used"));
    place.call("envelope_open", &json!({"label": "x"}));
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("b");
    done(&place, &["backup", text(&backup)]);
    assert!(refused(&place, &["restore", text(&backup)]).contains("pass --force"));
    assert!(refused(&place, &["restore", "--force", text(folder.path())]).contains("is not a backup"));
    let foreign = "00".repeat(31) + "01";
    let foreign = refused(
        &place,
        &["restore", "--force", text(&backup), "--public-key", &foreign],
    );
    assert!(
        foreign.contains("public key") || foreign.contains("64 hex digits"),
        "{foreign}"
    );
    let before = std::fs::read(place.data().join("tollgate.db")).unwrap();
    let spoilt = folder.path().join("spoilt");
    type Spoil = fn(&Path);
    let spoils: [(&str, Spoil, &str); 5] = [
        (
            "a byte",
            |at| flip(&at.join("tollgate.db")),
            "tollgate.db differs from the saved file",
        ),
        (
            "no key",
            |at| std::fs::remove_file(at.join("ledger.key")).unwrap(),
            "ledger.key is missing",
        ),
        (
            "head",
            |at| flip(&at.join("head.json")),
            "head.json differs from the saved file",
        ),
        (
            "list",
            |at| edit(&at.join("backup.json"), "\"bytes\": ", "\"bytes\": 1"),
            "it was changed after it was signed",
        ),
        (
            "link",
            |at| {
                std::fs::remove_file(at.join("consent.key")).unwrap();
                std::os::unix::fs::symlink("/etc/hostname", at.join("consent.key")).unwrap();
            },
            "consent.key",
        ),
    ];
    for (what, spoil, expected) in spoils {
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .arg(&backup)
            .arg(&spoilt)
            .status();
        assert!(copied.unwrap().success());
        spoil(&spoilt);
        let said = refused(&place, &["restore", "--force", text(&spoilt)]);
        assert!(said.contains(expected), "{what}: {said}");
        std::fs::remove_dir_all(&spoilt).unwrap();
    }
    assert_eq!(
        std::fs::read(place.data().join("tollgate.db")).unwrap(),
        before,
        "nothing was changed"
    );
    let left = std::fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let unfinished: Vec<_> = left
        .filter(|name| name.to_string_lossy().contains("unfinished"))
        .collect();
    assert_eq!(unfinished, [] as [std::ffi::OsString; 0]);

    place.call("envelope_open", &json!({"label": "later"}));
    let restored = done(&place, &["restore", "--force", text(&backup)]);
    let kept = Path::new(restored["before"].as_str().unwrap());
    assert!(kept.join("tollgate.db").exists(), "what was there is kept");
    let (_, listed) = place.call("envelope_list", &json!({"limit": 100}));
    assert!(!listed.to_string().contains("later"), "{listed}");
}

fn flip(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

fn edit(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(file, text.replacen(from, to, 1)).unwrap();
}

#[tokio::test]
async fn compacting_gives_room_back_beside_a_host_and_calls_go_on() {
    let place = Place::in_file("[ledger]\nretention_days = 1\n");
    let server = place.serve_http(&[]);
    let session = Session::over_http(&server).await;
    session.ok("envelope_open", json!({"label": "x"})).await;
    // What pruning leaves behind: pages that belong to nobody.
    place.sql("CREATE TABLE core_filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) SELECT i, printf('%1000d', i) AS text FROM n");
    place.sql("DROP TABLE core_filler");
    let free = done(&place, &["ledger", "compact", "--dry-run"])["free_bytes"]
        .as_u64()
        .unwrap();
    assert!(free > 3 << 20, "{free}");
    // A machine that is busy may need more than the second that hosts wait.
    until(async || place.run(&["ledger", "compact"]).status.success()).await;
    session.ok("envelope_open", json!({"label": "y"})).await;
    assert_eq!(done(&place, &["ledger", "compact", "--dry-run"])["free_bytes"], 0);
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn a_health_check_says_by_its_exit_code_whether_a_server_works() {
    let place = Place::in_file("");
    let code = |arguments: &[&str]| place.run(arguments).status.code();
    assert_eq!(code(&["healthcheck"]), Some(1), "nothing is there");
    let server = place.serve_http(&[]);
    let address = server.at("").replace("http://", "");
    let port = address.rsplit(':').next().unwrap();
    for http in [address.as_str(), port, &format!("0.0.0.0:{port}")] {
        assert_eq!(code(&["healthcheck", "--http", http]), Some(0), "{http}");
    }
    assert_eq!(code(&["healthcheck"]), Some(0), "a host holds its lock");
    drop(server);
    assert_eq!(code(&["healthcheck", "--http", &address]), Some(1));
    assert_eq!(code(&["healthcheck"]), Some(1));
}

#[tokio::test]
async fn envelopes_are_closed_when_their_session_ends_and_when_the_host_stops() {
    let place = Place::in_file("");
    let server = place.serve_http(&[]);
    let gone = Session::over_http(&server).await;
    gone.ok("envelope_open", json!({})).await;
    gone.close().await;
    let there = Session::over_http(&server).await;
    there.ok("envelope_open", json!({})).await;
    let open = "SELECT count(*) FROM core_envelopes WHERE state = 'OPEN'";
    until(async || place.sql(open) == ["1"]).await;
    server.stop();
    assert_eq!(
        place.sql("SELECT state || ' ' || closed_by FROM core_envelopes ORDER BY opened_at"),
        [
            "CLOSED_INTERRUPTED DISCONNECTED",
            "CLOSED_INTERRUPTED HOST_STOPPED"
        ]
    );
}
