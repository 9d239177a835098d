//! Programs through the whole host: permissions, environment, and cleanup.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{is_running, until};
use crate::workspace_access::{Meddling, result, sh};

/// Waits until a program has written a file, and returns its content.
async fn written(path: &Path) -> String {
    let mut text = String::new();
    until(async || {
        text = std::fs::read_to_string(path).unwrap_or_default();
        text.ends_with('\n')
    })
    .await;
    text
}

#[tokio::test]
async fn only_what_was_granted_runs_and_nothing_is_expanded() {
    let meddling = Meddling::new();
    std::fs::write(
        meddling.main().join("git"),
        "#!/bin/sh\necho from the workspace\n",
    )
    .unwrap();
    let session = meddling.serve().await;
    let run = async |arguments: Value| result(&session, "workspace_access_run", arguments).await;
    let words = json!(["$(id)", "`id`", "; id", "| id", "$HOME", "*", "a b", "'\""]);
    let mut log = run(json!({"program": "echo", "arguments": words})).await;
    for arguments in [
        json!({"program": "python3"}),
        json!({"program": "/bin/sh"}),
        json!({"program": "./git"}),
        json!({"program": "no-such-program"}),
        json!({"program": "echo", "arguments": ["a\u{2400}b"]}),
        json!({"program": "echo", "workspace": "main", "in_transaction": true}),
        json!({"program": "git", "arguments": ["push"]}),
        json!({"program": "git", "arguments": ["commit", "-m", "x"]}),
        json!({"program": "sh", "arguments": ["-c", "exit 3"]}),
        json!({"program": "sh", "arguments": ["-c", "kill -9 $$"]}),
        json!({"program": "sh", "arguments": ["-c", "cat; pwd | sed 's/.*tmp[^/]*//'"], "stdin": "fed "}),
    ] {
        log += "\n";
        log += &run(arguments).await;
    }
    let log = log.replace(&meddling.place.path().display().to_string(), "PLACE");
    expect![[r#"
        Exited(0) 36 0 [$(id) `id` ; id | id $HOME * a b '"
        ] []
        not allowed: `python3` is neither a program granted to the pack nor, with these arguments, a registered test of `main`; to register the command as a test, add `tests.NAME = ["python3"]` to [workspaces.main]
        not allowed: `/bin/sh` is neither a program granted to the pack nor, with these arguments, a registered test of `main`; to register the command as a test, add `tests.NAME = ["/bin/sh"]` to [workspaces.main]
        not allowed: `./git` is neither a program granted to the pack nor, with these arguments, a registered test of `main`; to register the command as a test, add `tests.NAME = ["./git"]` to [workspaces.main]
        not started: there is no `no-such-program` on the host's PATH
        invalid command: an argument contains a NUL character
        a transaction is open; run programs outside of transactions
        not allowed: `git push` is not one of the subcommands that packs may run: blame, cat-file, check-ignore, config, describe, diff, diff-files, diff-index, diff-tree, for-each-ref, hash-object, log, ls-files, ls-tree, merge-base, name-rev, rev-list, rev-parse, shortlog, show, show-ref, status, var, version, add, branch, commit, reset, restore, rm, switch, tag
        not allowed: `git commit` writes, but git may only read here; set `git = "write"` in [workspaces.NAME], for a pack that requests it
        Exited(3) 0 0 [] []
        Signalled(9) 0 0 [] []
        Exited(0) 10 0 [fed /main
        ] []"#]].assert_eq(&log);
    let known = "BABEL_DISABLE_CACHE CARGO_HOME HOME LANG LC_ALL LOGNAME MYPY_CACHE_DIR NODE_DISABLE_COMPILE_CACHE OLDPWD PATH \
        PWD PYTHONPYCACHEPREFIX RUFF_CACHE_DIR RUSTUP_HOME SHLVL TERM TMPDIR TSX_DISABLE_CACHE USER _";
    let environment = sh(&session, "env | cut -d= -f1").await;
    let names = environment.split_once('[').unwrap().1.split(']').next().unwrap();
    let unknown = names
        .lines()
        .find(|name| !known.split(' ').any(|known| known == *name));
    assert_eq!(unknown, None, "{environment}");
    let own = std::process::Command::new("sh")
        .args(["-c", "umask"])
        .output()
        .unwrap();
    let own = String::from_utf8(own.stdout).unwrap();
    assert!(
        sh(&session, "umask").await.contains(&format!("[{own}]")),
        "the user's own umask"
    );
    session.close().await;
}

#[tokio::test]
async fn nothing_survives_its_program() {
    let meddling = Meddling::new();
    let session = meddling.serve().await;
    let scripts = [
        // A child in the group, one that left it, and one that also holds the output open.
        "sleep 1000 >/dev/null 2>&1 & echo $! >pid",
        "setsid sleep 1000 >/dev/null 2>&1 & echo $! >pid",
        "(setsid sh -c 'echo $$ >pid; exec sleep 1000') & while [ ! -s pid ]; do :; done",
        // One that ends at once and leaves a successor in a session of its own, again and again.
        "echo 'echo $$ >>pid; setsid sh respawn &' >respawn; sh respawn; for i in 1 2 3; do cat pid; done",
        "trap '' TERM HUP INT; sleep 1000 & echo $! >pid; exit 1",
    ];
    for script in scripts {
        sh(&session, script).await;
        let pids = written(&meddling.main().join("pid")).await;
        assert!(!pids.lines().any(is_running), "{script}");
        std::fs::remove_file(meddling.main().join("pid")).unwrap();
    }
}

#[tokio::test]
async fn a_program_ends_with_its_time_and_its_output_is_bounded() {
    let meddling = Meddling::new();
    let session = meddling.serve().await;
    let endless = json!({"program": "sh", "arguments": ["-c", "sleep 1000"], "timeout_ms": 300});
    let seen = result(&session, "workspace_access_run", endless).await;
    assert_eq!(seen, "TimedOut 0 0 [] []");
    let before = session.peak_memory();
    let flood = json!({"program": "sh", "output_limit": 16,
        "arguments": ["-c", "echo first; head -c 300000000 /dev/zero; echo; echo last"]});
    let seen = result(&session, "workspace_access_run", flood).await;
    let (start, end) = (seen.find("[first").unwrap(), seen.ends_with("last\n] []"));
    assert!(
        seen.starts_with("Exited(0) 300000012 0 ") && start < 40 && end,
        "{seen:?}"
    );
    let grown = session.peak_memory() - before;
    assert!(grown < 64 << 10, "300 MB of output took {grown} KiB");
    let forks = json!({"program": "sh", "timeout_ms": 500,
        "arguments": ["-c", "for i in $(seq 50); do (while :; do sleep 0.01; done) & done; wait"]});
    assert!(
        result(&session, "workspace_access_run", forks)
            .await
            .starts_with("TimedOut")
    );
    session.close().await;
    assert_eq!(meddling.place.ledger(), ["workspace_access_run run ok"; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbours_are_answered_while_programs_never_end() {
    let meddling = Meddling::new();
    let session = meddling.serve().await;
    let mut stalled = Vec::new();
    for script in ["sleep 1000", "cat /dev/zero", "while :; do (:) & wait; done"] {
        let run = json!({"program": "sh", "arguments": ["-c", format!("echo >started; {script}")]});
        stalled.push(session.begin("workspace_access_run", run).await);
        written(&meddling.main().join("started")).await;
        std::fs::remove_file(meddling.main().join("started")).unwrap();
    }
    let before = session.peak_memory();
    for _ in 0..20 {
        session.ok("task_list", json!({})).await;
        session.ok("envelope_open", json!({})).await;
    }
    let grown = session.peak_memory() - before;
    assert!(grown < 64 << 10, "programs that never end took {grown} KiB");
    for call in stalled {
        call.cancel(None).await.unwrap();
    }
    let cancelled = "SELECT count(*) FROM core_operations WHERE error_code = 'CANCELLED'";
    until(async || meddling.place.sql(cancelled) == ["3"]).await;
    session.close().await;
}

#[tokio::test]
async fn git_reads_without_hooks_or_configured_programs() {
    let meddling = Meddling::new();
    let main = meddling.main();
    let git = |arguments: &[&str]| {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(arguments)
            .current_dir(&main)
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    std::fs::write(main.join("a"), "one\n").unwrap();
    std::fs::write(main.join(".gitattributes"), "a diff=evil\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "one"]);
    std::fs::write(main.join("a"), "two\n").unwrap();
    let evil = "sh -c 'touch ran-by-git'";
    for key in [
        "diff.evil.textconv",
        "diff.evil.command",
        "core.fsmonitor",
        "core.pager",
        "diff.external",
    ] {
        git(&["config", key, evil]);
    }
    let session = meddling.serve().await;
    let seen = result(
        &session,
        "workspace_access_run",
        json!({"program": "git", "arguments": ["diff"]}),
    )
    .await;
    assert!(seen.contains("+two"), "{seen}");
    let seen = result(
        &session,
        "workspace_access_run",
        json!({"program": "git", "arguments": ["status", "--porcelain"]}),
    )
    .await;
    assert_eq!(seen, "Exited(0) 5 0 [ M a\n] []");
    assert!(!main.join("ran-by-git").exists());
}

/// A unique number for the arguments of a process.
fn mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("98{}{count}", std::process::id())
}

/// The processes with a mark in their arguments, without zombies.
fn marked(mark: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap();
    let pids = processes.filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let pids = pids.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()));
    let has_mark = |pid: &String| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark) && is_running(pid)
    };
    pids.filter(has_mark).collect()
}

/// Ways to escape a supervisor, each of which leaves a process that sleeps for `MARK` seconds. Ways that kill the
/// supervisor are killed with it.
const ESCAPES: &[(&str, &str)] = &[
    ("it kills its supervisor", "kill -9 $PPID; exec sleep MARK"),
    ("it stops its supervisor", "kill -STOP $PPID; exec sleep MARK"),
    (
        "a session of its own, and then the supervisor killed",
        "setsid sleep MARK >/dev/null 2>&1 & sleep 0.1; kill -9 $PPID; sleep MARK",
    ),
    (
        "a session of its own, and then the supervisor stopped",
        "setsid sleep MARK & sleep 0.1; kill -STOP $PPID; exit 0",
    ),
    (
        "two forks, an empty environment and no signals, and then the supervisor killed",
        "(env -i setsid sh -c 'trap \"\" TERM HUP INT; sleep MARK & sleep MARK' </dev/null >/dev/null 2>&1 &) ; \
         sleep 0.1; kill -9 $PPID; sleep MARK",
    ),
    (
        "one that waits until its supervisor is dead",
        "p=$PPID; setsid sh -c \"while kill -0 $p 2>/dev/null; do :; done; exec sleep MARK\" & kill -9 $PPID",
    ),
    (
        "one that always starts the next, and then the supervisor killed",
        "echo 'setsid sh ./respawn MARK &' >respawn; setsid sh ./respawn MARK & sleep 0.05; kill -9 $PPID; sleep MARK",
    ),
    (
        "full pipes, and then the supervisor stopped",
        "kill -STOP $PPID; setsid sh -c 'yes MARK' & exec yes MARK",
    ),
    (
        "namespaces of its own, and then the supervisor killed",
        "(unshare -Urpf sh -c 'setsid sleep MARK & sleep MARK' || setsid sleep MARK) >/dev/null 2>&1 & \
         sleep 0.3; kill -9 $PPID; sleep MARK",
    ),
    (
        "no more files for its supervisor, and a session of its own",
        "prlimit --pid $PPID --nofile=0 2>/dev/null; setsid sleep MARK >/dev/null 2>&1 & exit 0",
    ),
];

#[tokio::test]
async fn nothing_survives_its_call_whatever_it_does_to_its_supervisor() {
    let meddling = Meddling::new();
    let session = meddling.serve().await;
    for (what, script) in ESCAPES {
        let mark = mark();
        let run = json!({"program": "sh", "arguments": ["-c", script.replace("MARK", &mark)]});
        let started = Instant::now();
        // How it ended is said, however that was.
        let said = result(&session, "workspace_access_run", run).await;
        assert!(!said.contains("TimedOut"), "{what}: {said}");
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{what}: {:?}",
            started.elapsed()
        );
        assert_eq!(marked(&mark), [""; 0], "{what}: {said}");
        if script.contains("kill -") && !script.contains("exit 0") {
            assert!(said.starts_with("Signalled(9)"), "{what}: {said}");
        }
    }
    // No supervisor is left either, as a process or as a zombie.
    for thread in std::fs::read_dir(format!("/proc/{}/task", session.pid())).unwrap() {
        let children = std::fs::read_to_string(thread.unwrap().path().join("children"));
        assert_eq!(children.unwrap_or_default(), "");
    }
    assert_eq!(sh(&session, "echo fine").await, "Exited(0) 5 0 [fine\n] []");
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_supervisor_costs_no_other_program_anything() {
    let meddling = Meddling::new();
    let session = meddling.serve().await;
    let mark = mark();
    let innocent = "setsid sh -c 'sleep 2; echo survived >>log' & sleep 1; wait; sleep 1.5; cat log";
    let attack = format!("setsid sleep {mark} & sleep 0.2; kill -9 $PPID; sleep {mark}");
    let attacks = async {
        for _ in 0..3 {
            assert!(sh(&session, &attack).await.starts_with("Signalled(9)"));
        }
    };
    let (innocent, ()) = tokio::join!(sh(&session, innocent), attacks);
    assert_eq!(innocent, "Exited(0) 9 0 [survived\n] []");
    assert_eq!(marked(&mark), [""; 0]);
    session.close().await;
}

#[tokio::test]
async fn a_program_inherits_nothing_and_cannot_look_into_its_supervisor() {
    let meddling = Meddling::new();
    let session = meddling.serve().await;
    // The third is the directory that is being listed.
    let files = sh(&session, "ls /proc/self/fd | tr '\\n' ' '").await;
    assert_eq!(files, "Exited(0) 8 0 [0 1 2 3 ] []");
    // Root may look at everything.
    if !rustix::process::geteuid().is_root() {
        let looked = sh(&session, "cat /proc/$PPID/environ || ls /proc/$PPID/fd").await;
        assert!(looked.contains("ermission denied"), "{looked}");
    }
    session.close().await;
}

#[tokio::test]
async fn what_outlives_its_host_does_not_outlive_it_for_long() {
    let meddling = Meddling::new();
    let session = meddling.serve().await;
    let mark = mark();
    let script = format!("setsid sleep {mark} & echo >started; sleep {mark}");
    let run = json!({"program": "sh", "arguments": ["-c", script]});
    let sent = session.begin("workspace_access_run", run).await;
    written(&meddling.main().join("started")).await;
    session.kill();
    until(async || marked(&mark).is_empty()).await;
    drop(sent);
}
