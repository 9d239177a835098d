//! System calls that fail: strace injects the failures into a running host.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Place, Session};
use crate::load::Load;

/// Makes system calls of a process fail until it is dropped.
struct Failing(Child);

impl Failing {
    fn attach(session: &Session, calls: &str, error: &str) -> Failing {
        let mut strace = Command::new("strace")
            .args(["--follow-forks", "--output=/dev/null"])
            .arg(format!("--trace={calls}"))
            .arg(format!("--inject={calls}:error={error}"))
            .arg(format!("--attach={}", session.pid()))
            .stderr(Stdio::piped())
            .spawn()
            .expect("the test needs strace (Debian: apt-get install strace)");
        let mut stderr = BufReader::new(strace.stderr.take().unwrap());
        let mut said = String::new();
        stderr.read_line(&mut said).unwrap();
        assert!(
            said.contains("attached"),
            "strace must be allowed to attach (kernel.yama.ptrace_scope=0, or run as root): {said}"
        );
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Failing(strace)
    }

    /// Lets the system calls succeed again.
    fn detach(mut self) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        self.0.wait().unwrap();
    }
}

/// Ends strace, which would otherwise wait forever for a killed host.
impl Drop for Failing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const CASES: &[(&str, &str, &str)] = &[
    ("fsync,fdatasync", "EIO", "OUTCOME_UNKNOWN"),
    ("fsync,fdatasync", "ENOSPC", "OUTCOME_UNKNOWN"),
    ("pwrite64", "EIO", "STORAGE_FAILED"),
    ("pwrite64", "ENOSPC", "STORAGE_FULL"),
];

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_fail_are_refused_and_leave_nothing() {
    let place = Place::new();
    let mut load = Load::default();
    let session = place.serve(&[]).await;
    load.create_many(&session, 3).await;
    for (calls, error, code) in CASES {
        let failing = Failing::attach(&session, calls, error);
        for _ in 0..3 {
            let refusal = load
                .create(&session)
                .await
                .expect("a disk that fails acknowledges nothing");
            assert_eq!(refusal["code"], *code, "{calls} {error}: {refusal:#}");
            session.ok("task_list", json!({})).await;
        }
        failing.detach();
        load.create_many(&session, 3).await;
    }
    session.close().await;
    load.check(&place.data());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_dies_while_its_disk_fails_keeps_its_word() {
    for (calls, error, _) in CASES {
        let place = Place::new();
        let mut load = Load::default();
        let session = place.serve(&[]).await;
        load.create_many(&session, 3).await;
        let failing = Failing::attach(&session, calls, error);
        let refusal = load.until_refused(&session).await;
        session.kill();
        drop(failing);
        let session = place.serve(&[]).await;
        load.create_many(&session, 3).await;
        session.close().await;
        if refusal["code"] == "OUTCOME_UNKNOWN" {
            load.forget_refusals();
        }
        load.check(&place.data());
    }
}
