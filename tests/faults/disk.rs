//! Full disks and files with a size limit: calls are refused clearly, nothing is lost, and hosts recover once there is
//! room.
#![allow(clippy::disallowed_methods, reason = "the tests fill disks")]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::harness::{Place, Session};
use crate::load::Load;

/// Script that mounts a small disk over the data directory, with the files that compiled components need.
const MOUNT: &str = r#"set -e
mkdir "$2"
mount --bind "$1/cache" "$2"
cp -p "$1/cache.key" "$3"
mount -t tmpfs -o "size=$4,mode=700" tmpfs "$1"
mkdir -m 700 "$1/cache"
mount --bind "$2" "$1/cache"
cp -p "$3" "$1/cache.key"
echo ready
exec cat"#;

/// A place whose data directory is on a small disk. Only processes in its mount namespace see that disk.
struct Small {
    place: Place,
    holder: Child,
}

impl Small {
    fn new(size: &str) -> Small {
        let place = Place::new();
        let (spare, key) = (place.path().join("spare"), place.path().join("key"));
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh"])
            .args([place.data(), spare, key])
            .arg(size)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a small disk needs `unshare` (Debian: util-linux)");
        let mut said = String::new();
        let mut stdout = BufReader::new(holder.stdout.take().unwrap());
        stdout.read_line(&mut said).unwrap();
        assert_eq!(
            said, "ready\n",
            "a small disk needs user namespaces and tmpfs; in a container, allow `unshare` and `mount`"
        );
        Small { place, holder }
    }

    /// Command that starts a program in the mount namespace of the disk.
    fn starter(&self) -> Vec<String> {
        let holder = self.holder.id().to_string();
        let words = [
            "nsenter",
            "--target",
            &holder,
            "--user",
            "--mount",
            "--preserve-credentials",
        ];
        words.map(str::to_owned).to_vec()
    }

    async fn serve(&self) -> Session {
        let starter = self.starter();
        let starter: Vec<&str> = starter.iter().map(String::as_str).collect();
        self.place.serve_by(&starter).await
    }

    /// Path of the data directory for processes outside the mount namespace.
    fn data(&self) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(self.place.data().strip_prefix("/").unwrap())
    }

    /// Fills the disk to the last byte.
    fn fill(&self) {
        let mut ballast = File::create(self.data().join("ballast")).unwrap();
        for size in [1 << 16, 1 << 10, 1] {
            while ballast.write_all(&vec![7; size]).is_ok() {}
        }
    }

    /// Checks a copy, because SQLite resolves the path to a folder that this process cannot see.
    fn check(&self, load: &Load) {
        let copy = tempfile::tempdir().unwrap();
        for name in ["tollgate.db", "tollgate.db-wal"] {
            let from = self.data().join(name);
            if from.exists() {
                std::fs::copy(from, copy.path().join(name)).unwrap();
            }
        }
        load.check(copy.path());
    }

    fn free(&self) {
        std::fs::remove_file(self.data().join("ballast")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[tokio::test]
async fn a_full_disk_refuses_what_it_cannot_hold_and_heals() {
    let small = Small::new("24m");
    let mut load = Load::default();
    let session = small.serve().await;
    load.create_many(&session, 5).await;
    for _ in 0..3 {
        small.fill();
        let refusal = load.until_refused(&session).await;
        assert_eq!(refusal["code"], "STORAGE_FULL", "{refusal:#}");
        assert_ne!(refusal["remediation"], "", "{refusal:#}");
        session.ok("task_list", json!({})).await;
        small.free();
        load.create_many(&session, 5).await;
    }
    session.close().await;
    small.check(&load);
}

#[tokio::test]
async fn a_host_that_dies_on_a_full_disk_leaves_what_it_acknowledged() {
    let small = Small::new("24m");
    let mut load = Load::default();
    let session = small.serve().await;
    load.create_many(&session, 5).await;
    small.fill();
    load.until_refused(&session).await;
    session.kill();
    // Another start on the full disk works or says why not.
    let serve = small.place.command(&["call", "task_list", "{}"]);
    let starter = small.starter();
    let output = Command::new(&starter[0])
        .args(&starter[1..])
        .arg(serve.get_program())
        .args(serve.get_args())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked"), "{said}");
    assert!(output.status.success() || said.contains("full"), "{said}");
    small.free();
    let session = small.serve().await;
    load.create_many(&session, 5).await;
    session.close().await;
    small.check(&load);
}

#[tokio::test]
async fn files_that_may_not_grow_end_calls_and_not_the_host() {
    let place = Place::new();
    let mut load = Load::default();
    let session = place.serve(&[]).await;
    load.create_many(&session, 5).await;
    session.close().await;
    let size = std::fs::metadata(place.data().join("tollgate.db")).unwrap().len();
    let limit = format!("--fsize={}", size + (300 << 10));
    let session = place.serve_by(&["prlimit", &limit, "--"]).await;
    let refusal = load.until_refused(&session).await;
    assert_eq!(refusal["code"], "STORAGE_FAILED", "{refusal:#}");
    session.ok("task_list", json!({})).await;
    load.until_refused(&session).await;
    session.close().await;
    let session = place.serve(&[]).await;
    load.create_many(&session, 5).await;
    session.close().await;
    load.check(&place.data());
}
