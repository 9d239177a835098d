//! The ledger on the command line: follow, export, verify, prune, mirror and report.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::altered_component::altered;
use crate::harness::{Place, guest, until};

const CREATE: &str = r##"{"title":"T","spec_markdown":"# Goal\ng","workspace":"w","initial_phase":"spec_draft","actor":"ada","actor_role":"orchestrator"}"##;

fn create(place: &Place) {
    assert!(place.run(&["call", "task_create", CREATE]).status.success());
}

fn print(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A process that prints lines, and these lines.
struct Printing {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Printing {
    fn start(place: &Place, arguments: &[&str]) -> Printing {
        let mut child = place
            .command(arguments)
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Printing { child, lines }
    }

    fn next(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "it ended");
        line
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

#[test]
fn tail_follows_the_rows_of_every_host_and_ends_when_asked() {
    let place = Place::new();
    create(&place);
    for signal in [Signal::INT, Signal::TERM] {
        let mut tail = Printing::start(&place, &["--json", "ledger", "tail", "-n", "1", "-f"]);
        let first: Value = serde_json::from_str(&tail.next()).unwrap();
        // Each call is a host of its own.
        for after in 1..=2 {
            create(&place);
            let next: Value = serde_json::from_str(&tail.next()).unwrap();
            assert_eq!(next["seq"], first["seq"].as_i64().unwrap() + after);
            assert_eq!(
                (&next["tool"], &next["success"]),
                (&json!("task_create"), &json!(true))
            );
        }
        tail.signal(signal);
        let mut rest = String::new();
        tail.lines.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), tail.end().code()), ("", Some(0)));
    }
}

#[test]
fn tail_ends_when_nobody_reads_any_more() {
    let place = Place::new();
    create(&place);
    let mut tail = Printing::start(&place, &["ledger", "tail", "-f"]);
    assert!(tail.next().starts_with("SEQ"));
    assert!(tail.next().contains("task_create"));
    let Printing { mut child, lines } = tail;
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Runs a command with a terminal as its standard output.
fn on_a_terminal(place: &Place, arguments: &[&str], no_colour: &str) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let other = fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
    let mut command = place.command(arguments);
    command
        .stdout(other)
        .env("TERM", "xterm")
        .env("NO_COLOR", no_colour);
    let mut child = command.spawn().unwrap();
    // The command holds the other end as well until it goes.
    drop(command);
    let mut shown = Vec::new();
    let mut terminal = fs::File::from(terminal);
    let mut part = [0; 4096];
    // Reading fails once nobody has the other end.
    while let Ok(length @ 1..) = terminal.read(&mut part) {
        shown.extend_from_slice(&part[..length]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8(shown).unwrap()
}

#[test]
fn colours_are_for_terminals_without_no_color() {
    let place = Place::new();
    create(&place);
    place.call("task_get", &json!({"task_id": "x"}));
    let tail = ["ledger", "tail"];
    let shown = on_a_terminal(&place, &tail, "");
    assert!(shown.contains("\u{1b}[32mok\u{1b}[0m"), "{shown:?}");
    assert!(shown.contains("\u{1b}[31mNOT_FOUND\u{1b}[0m"), "{shown:?}");
    assert!(!on_a_terminal(&place, &tail, "1").contains('\u{1b}'));
    assert!(!on_a_terminal(&place, &["--json", "ledger", "tail"], "").contains('\u{1b}'));
    assert!(!print(&place, &tail).contains('\u{1b}'));
}

#[test]
fn a_signed_head_finds_what_was_rewritten_before_it() {
    let place = Place::in_file("");
    for _ in 0..3 {
        create(&place);
    }
    let key = place.data().join("ledger.key");
    let output = place.run(&["ledger", "export", "--sign"]);
    let exported = String::from_utf8(output.stdout).unwrap();
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let head: Value = serde_json::from_str(exported.lines().last().unwrap()).unwrap();
    let public = head["head"]["public_key"].as_str().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains(public));
    let row: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    assert_eq!(row["args_hash"].as_str().unwrap().len(), 64, "rows are whole");
    let file = place.path().join("head.ndjson");
    fs::write(&file, &exported).unwrap();
    let file = file.to_str().unwrap();
    let verify = ["ledger", "verify", "--head", file, "--public-key", public];
    create(&place);
    assert!(print(&place, &verify).contains("the rows up to the signed head 3 are unchanged"));

    // A head that was changed, is somebody else's, or is not signed proves nothing.
    let other = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let bad = place.path().join("bad.ndjson");
    let bad = bad.to_str().unwrap();
    for (content, key, said) in [
        (exported.replace("\"seq\":3", "\"seq\":2"), public, "changed"),
        (exported.clone(), other, "not one of the accepted keys"),
        (print(&place, &["ledger", "export"]), public, "not signed"),
        ("{}".to_owned(), public, "not a line of an export"),
    ] {
        fs::write(bad, content).unwrap();
        let output = place.run(&["ledger", "verify", "--head", bad, "--public-key", key]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{said}");
    }

    // History from row 2 on, copied from a ledger that went another way: its rows fit each other.
    let fork = Place::in_file("");
    for _ in 0..3 {
        create(&fork);
    }
    place.replace_ledger(&fork);
    let output = place.run(&verify);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("row 1: the row differs from the exported row"));
}

#[tokio::test]
async fn pruning_removes_what_is_over_and_the_chain_still_holds() {
    let place = Place::with("[ledger]\nretention_days = 1\nretention_envelopes = 1\n");
    let session = place.serve(&["--tier", "full"]).await;
    let mut envelopes = Vec::new();
    for _ in 0..3 {
        let opened = session.ok("envelope_open", json!({})).await;
        session
            .ok("task_create", serde_json::from_str(CREATE).unwrap())
            .await;
        let id = opened["id"].clone();
        session
            .ok("envelope_close", json!({"envelope_id": id, "outcome": "success"}))
            .await;
        envelopes.push(id);
    }
    session.close().await;
    let head = place.path().join("head.ndjson");
    fs::write(
        &head,
        print(&place, &["ledger", "export", "--sign", "--head-only"]),
    )
    .unwrap();

    let rows = place.ledger().len();
    let dry: Value =
        serde_json::from_str(&print(&place, &["--json", "ledger", "prune", "--dry-run"])).unwrap();
    assert_eq!(
        dry["pruned"],
        json!({"envelopes": 2, "rows_in_envelopes": 6, "rows_outside": 0})
    );
    assert_eq!(place.ledger().len(), rows);
    assert!(print(&place, &["ledger", "prune"]).starts_with("removed: 2 envelopes with 6 operations"));
    assert_eq!(place.ledger().len(), rows - 6);
    assert_eq!(
        place.sql("SELECT id FROM core_envelopes"),
        [envelopes[2].as_str().unwrap()]
    );
    let said = print(&place, &["ledger", "verify", "--head", head.to_str().unwrap()]);
    assert!(said.contains("pruned since: 6 rows"), "{said}");
    // Without the key nobody can say who pruned.
    fs::rename(place.data().join("ledger.key"), place.path().join("key")).unwrap();
    let output = place.run(&["ledger", "verify"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout);
    // A server knows all keys. There it is the noted heads that nobody can check.
    let why = match place.is_in_file() {
        true => "no key of this ledger",
        false => "ledger.key is missing, although it signed the recorded heads",
    };
    assert!(said.contains(why), "{said}");
}

#[tokio::test]
async fn a_host_prunes_when_it_starts() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    for _ in 0..3 {
        let opened = session.ok("envelope_open", json!({})).await;
        session
            .ok("task_create", serde_json::from_str(CREATE).unwrap())
            .await;
        session
            .ok(
                "envelope_close",
                json!({"envelope_id": opened["id"], "outcome": "failed"}),
            )
            .await;
    }
    fs::write(place.config(), "[ledger]\nretention_envelopes = 1\n").unwrap();
    let later = place.serve(&[]).await;
    until(async || place.sql("SELECT count(*) FROM core_envelopes") == ["1"]).await;
    // The other host goes on writing after the anchors.
    session
        .ok("task_create", serde_json::from_str(CREATE).unwrap())
        .await;
    session.close().await;
    later.close().await;
    print(&place, &["ledger", "verify"]);
    assert_ne!(place.sql("SELECT count(*) FROM core_anchors"), ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mirror_has_each_row_once_whoever_wrote_it() {
    let place = Place::with("[ledger]\nmirror = true\n");
    let (one, other) = (place.serve(&[]).await, place.serve(&[]).await);
    let call: Value = serde_json::from_str(CREATE).unwrap();
    for _ in 0..5 {
        let (one, other) = (
            one.ok("task_create", call.clone()),
            other.ok("task_create", call.clone()),
        );
        tokio::join!(one, other);
    }
    one.close().await;
    other.close().await;
    let mirrored = || -> Vec<String> {
        let mut lines = Vec::new();
        for entry in fs::read_dir(place.data().join("ledger")).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            lines.extend(fs::read_to_string(path).unwrap().lines().map(str::to_owned));
        }
        lines.sort_by_key(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_i64());
        lines
    };
    let exported = || {
        let text = print(&place, &["ledger", "export"]);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.pop();
        lines
    };
    assert_eq!(exported().len(), 10);
    until(async || mirrored() == exported()).await;

    // What a crash took from a file's end is made good by the next host.
    let file = fs::read_dir(place.data().join("ledger"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some())
        .unwrap();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 300]).unwrap();
    create(&place);
    assert_eq!(mirrored(), exported());
    // And what was written into it by hand goes when it is made anew.
    fs::write(&file, "{\"seq\":1}\n").unwrap();
    fs::write(place.data().join("ledger/2020-01-01.ndjson"), "{\"seq\":1}\n").unwrap();
    assert!(print(&place, &["ledger", "mirror"]).starts_with("11 operations in 1 file in "));
    assert_eq!(mirrored(), exported());
}

#[tokio::test]
async fn reads_leave_rows_unless_the_operator_says_otherwise() {
    let place = Place::with("[ledger]\nreads = false\n");
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_list", json!({})).await;
    session.refused("task_get", json!({"task_id": "x"})).await;
    session
        .ok("task_create", serde_json::from_str(CREATE).unwrap())
        .await;
    session.close().await;
    assert_eq!(
        place.ledger(),
        ["task_get read NOT_FOUND", "task_create write ok"]
    );
}

#[tokio::test]
async fn a_report_tells_how_it_went() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let opened = session
        .ok(
            "envelope_open",
            json!({"label": "try", "limits": {"max_mutations": 2}}),
        )
        .await;
    let call: Value = serde_json::from_str(CREATE).unwrap();
    session.ok("task_create", call.clone()).await;
    session.ok("task_create", call.clone()).await;
    session.refused("task_create", call).await;
    let told = session
        .ok("ledger_report", json!({"envelope_id": opened["id"]}))
        .await;
    session.close().await;
    let text = print(&place, &["ledger", "report"]);
    assert_eq!(told["text"].as_str().unwrap(), text.trim_end());
    for part in [
        "\"try\"",
        ", closed as failed at ",
        ": its mutations were used up.",
        "Limits: 2 of 2 mutations, 0 test runs (no limit).",
        "task_create by claimed:ada via rmcp/",
        ", 2 times: done",
        "MUTATION_BUDGET_EXHAUSTED, once: task_create",
        "task_store/tsk_",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let id = opened["id"].as_str().unwrap();
    let report: Value = serde_json::from_str(&print(&place, &["--json", "ledger", "report", id])).unwrap();
    assert_eq!((&report["operations"], &report["failed"]), (&json!(4), &json!(1)));
    assert_eq!(
        place.run(&["ledger", "report", "env_none"]).status.code(),
        Some(2)
    );
}

#[tokio::test]
async fn what_blocks_the_ledger_is_named_and_can_be_repaired() {
    let place = Place::in_file("");
    create(&place);
    let stranger = |sql: &str| {
        let db = rusqlite::Connection::open(place.data().join("tollgate.db")).unwrap();
        db.execute_batch(sql).unwrap();
    };
    let session = place.serve(&[]).await;
    for (sql, name) in [
        (
            "CREATE TABLE SHARK_bite (x TEXT REFERENCES core_operations (tool) DEFERRABLE INITIALLY DEFERRED)",
            "SHARK_bite",
        ),
        (
            "CREATE TRIGGER core_quiet BEFORE INSERT ON core_operations BEGIN SELECT RAISE(IGNORE); END",
            "core_quiet",
        ),
        (
            "CREATE TRIGGER other BEFORE INSERT ON core_operations BEGIN SELECT RAISE(IGNORE); END",
            "other",
        ),
    ] {
        stranger(sql);
        let rows = place.ledger().len();
        let refused = session
            .refused("task_create", serde_json::from_str(CREATE).unwrap())
            .await;
        assert_eq!(refused["code"], "STORAGE_FAILED", "{refused:#}");
        assert!(refused["message"].as_str().unwrap().contains(name), "{refused:#}");
        assert_eq!(place.ledger().len(), rows);
        let verify = place.run(&["ledger", "verify"]);
        let said = String::from_utf8_lossy(&verify.stdout);
        assert!(verify.status.code() == Some(1) && said.contains(name), "{said}");
        let doctor = place.run(&["doctor"]);
        let said = String::from_utf8_lossy(&doctor.stdout);
        assert!(
            doctor.status.code() == Some(1) && said.contains("--repair") && said.contains(name),
            "{said}"
        );
        let repair = place.run(&["doctor", "--repair"]);
        let said = String::from_utf8_lossy(&repair.stdout);
        assert!(repair.status.success() && said.contains(name), "{said}");
        print(&place, &["ledger", "verify"]);
        session
            .ok("task_create", serde_json::from_str(CREATE).unwrap())
            .await;
        assert_eq!(place.ledger().len(), rows + 1);
    }
    session.close().await;
}

#[test]
fn a_claimed_actor_is_not_among_the_rows_of_who_proves_to_be_it() {
    let place = Place::new();
    for actor in ["ada", "token:ada"] {
        let create = CREATE.replace("\"ada\"", &format!("{actor:?}"));
        assert!(place.run(&["call", "task_create", &create]).status.success());
    }
    assert_eq!(
        place.sql("SELECT actor FROM core_operations ORDER BY seq"),
        ["claimed:ada", "claimed:token:ada"]
    );
    let found = |actor: &str| -> Vec<Value> {
        let (_, page) = place.call("ledger_query", &json!({"actor": actor}));
        let operations = page["operations"].as_array().unwrap();
        operations
            .iter()
            .map(|operation| operation["actor"].clone())
            .collect()
    };
    assert_eq!(found("token:ada"), [] as [Value; 0]);
    assert_eq!(found("claimed:token:ada"), ["claimed:token:ada"]);
    assert_eq!(found("ada"), ["claimed:ada"]);
    assert_eq!(found("claimed:ada"), ["claimed:ada"]);
    print(&place, &["ledger", "verify"]);
}

#[tokio::test]
async fn a_tool_with_the_name_of_a_test_run_is_charged_by_what_it_is() {
    let bytes = fs::read(guest("reserve")).unwrap();
    let pack = altered(&bytes, "reserve_run", "test_report");
    let place = Place::with(&format!(
        "[envelope]\nbudgets = {{ approvals = 9 }}\n[packs.convergence]\nenabled = false\n\
         [packs.reserve]\nsource = {:?}\ngrants = {{ ledger = true, budgets = [\"*\"] }}\n",
        pack.path()
    ));
    let session = place.serve(&["--tier", "full"]).await;
    let opened = session
        .ok(
            "envelope_open",
            json!({"limits": {"max_mutations": 2, "max_test_runs": 9}}),
        )
        .await;
    let run = json!({"budget": "approvals", "reserve": 1, "ending": "return", "envelope_id": opened["id"]});
    session.ok("test_report", run.clone()).await;
    session.ok("test_report", run.clone()).await;
    let refused = session.refused("test_report", run).await;
    assert_eq!(refused["code"], "MUTATION_BUDGET_EXHAUSTED", "{refused:#}");
    session.close().await;
    assert_eq!(
        place.sql("SELECT DISTINCT op_type FROM core_operations WHERE tool = 'test_report'"),
        ["mutation"]
    );
    assert_eq!(place.sql("SELECT test_run_count FROM core_envelopes"), ["0"]);
}
