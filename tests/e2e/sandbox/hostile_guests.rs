//! Each kind of hostile guest beside a neighbour: a typed error, one row, bounded memory, and a neighbour that still
//! works.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::harness::{Place, Session, params, until};
use crate::workspace_access::{Meddling, result};

/// Largest memory that a call of a component may cost the host: its own memory, its largest message, and as much again
/// for copies.
const ALLOWED_KIB: u64 = (64 + 4 + 4 + 24) << 10;

/// Tool of a hostile guest, its arguments, and the expected error code.
const CASES: &[(&str, &str, &str)] = &[
    ("call_limits_spin", "{}", "DEADLINE_EXCEEDED"),
    ("call_limits_spin_writing", "{}", "DEADLINE_EXCEEDED"),
    ("call_limits_spin_running", "{}", "DEADLINE_EXCEEDED"),
    ("call_limits_spin_in_sql", "{}", "DEADLINE_EXCEEDED"),
    ("call_limits_grow", "{}", "MEMORY_LIMIT"),
    ("call_limits_recurse", "{}", "STACK_OVERFLOW"),
    ("call_limits_panic", "{}", "GUEST_TRAPPED"),
    ("call_limits_babble", "{}", "BAD_REPLY"),
    ("tables_grow", "{}", "TABLE_LIMIT"),
    ("limit_handles_take", "{}", "HANDLE_LIMIT"),
    ("limit_random_draw", r#"{"bytes":1073741824}"#, "GUEST_TRAPPED"),
    (
        "limit_random_draw",
        r#"{"bytes":18446744073709551615}"#,
        "GUEST_TRAPPED",
    ),
    ("limit_transfer_pass", r#"{"load":"line"}"#, "GUEST_TRAPPED"),
    ("limit_transfer_pass", r#"{"load":"value"}"#, "GUEST_TRAPPED"),
    ("limit_transfer_pass", r#"{"load":"values"}"#, "GUEST_TRAPPED"),
    ("limit_transfer_pass", r#"{"load":"names"}"#, "GUEST_TRAPPED"),
    ("reply_invalid_list", "{}", "BAD_REPLY"),
    ("reply_invalid_twice", "{}", "BAD_REPLY"),
    ("reply_invalid_surrogate", "{}", "BAD_REPLY"),
    ("reply_invalid_bytes", "{}", "GUEST_TRAPPED"),
    ("reply_invalid_refuse", "{}", "FINE"),
];

fn place() -> Place {
    let place = Place::with_guests(&[
        "call-limits",
        "tables",
        "limit-handles",
        "limit-random",
        "limit-transfer",
        "reply-invalid",
    ]);
    let mut config = std::fs::read_to_string(place.config()).unwrap();
    config = config.replace(
        "[packs.tables]",
        "limits = { read_ms = 3000, write_ms = 3000, run_ms = 3000 }\n[packs.tables]",
    );
    std::fs::write(place.config(), config).unwrap();
    place
}

async fn neighbour(session: &Session) {
    session.ok("task_list", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_is_told_what_it_did_and_costs_one_row_and_bounded_memory() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    // What every call needs is there before the memory is looked at.
    session.ok("call_limits_answer", json!({})).await;
    neighbour(&session).await;
    let before = session.peak_memory();
    for (tool, arguments, code) in CASES {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let (refusal, ()) = tokio::join!(session.refused(tool, arguments), neighbour(&session));
        assert_eq!(refusal["code"], *code, "{tool}: {refusal:#}");
        assert!(refusal.to_string().len() < 8 << 10, "{tool}: {refusal:#}");
    }
    let grown = session.peak_memory() - before;
    assert!(grown < ALLOWED_KIB, "the host's memory grew by {grown} KiB");
    session.close().await;
    let rows = place.ledger();
    let hostile: Vec<&String> = rows
        .iter()
        .filter(|row| !row.starts_with("task_list ") && !row.ends_with(" ok"))
        .collect();
    assert_eq!(hostile.len(), CASES.len(), "{rows:#?}");
    for (tool, _, code) in CASES {
        let wanted = CASES.iter().filter(|case| case.0 == *tool && case.2 == *code);
        let found = hostile
            .iter()
            .filter(|row| row.starts_with(&format!("{tool} ")) && row.ends_with(&format!(" {code}")));
        assert_eq!(found.count(), wanted.count(), "{tool}: {rows:#?}");
    }
    let verified = place.run(&["ledger", "verify"]);
    assert!(verified.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbours_are_answered_while_it_still_runs() {
    // Guests that only end when they are told to: whoever is answered meanwhile did not wait for them.
    let forever = "limits = { read_ms = 600000, write_ms = 600000, run_ms = 600000 }\n";
    let call_limits = crate::harness::guest("call-limits");
    let place = Place::with(&format!(
        "[packs.call-limits]\nsource = {call_limits:?}\n{forever}"
    ));
    let session = place.serve(&["--tier", "full"]).await;
    for tool in [
        "call_limits_spin",
        "call_limits_spin_in_sql",
        "call_limits_spin_running",
        "call_limits_spin_writing",
    ] {
        let stalled = session.begin(tool, json!({})).await;
        for _ in 0..20 {
            neighbour(&session).await;
        }
        if tool != "call_limits_spin_writing" {
            session.ok("envelope_open", json!({})).await;
        }
        stalled.cancel(None).await.unwrap();
        let row = format!("{tool} % CANCELLED");
        let rows = format!(
            "SELECT count(*) FROM core_operations WHERE tool || ' ' || effect || ' ' || error_code LIKE '{row}'"
        );
        until(async || place.sql(&rows) == ["1"]).await;
    }
    session.close().await;
}

#[tokio::test]
async fn a_manifest_that_lies_gains_nothing() {
    let place = Place::with_guests(&["reply-invalid"]);
    let session = place.serve(&["--tier", "full"]).await;
    let told = session.client().peer_info().unwrap().instructions.clone();
    let told = told.unwrap_or_default();
    assert!(
        !told.contains(['\u{1b}', '\u{202e}']),
        "control characters reach no client: {told:?}"
    );
    // What says that it reads cannot write, and a tool that no manifest names is not there.
    let written = session.ok("reply_invalid_write", json!({})).await;
    assert_eq!(written["result"], "refused");
    let hidden = session
        .client()
        .call_tool(params("reply_invalid_hidden", json!({})))
        .await;
    assert!(hidden.is_err());
    let refusal = session.refused("reply_invalid_refuse", json!({})).await;
    assert_eq!(refusal.get("next_call"), None, "{refusal:#}");
    let message = refusal["message"].as_str().unwrap();
    assert!(
        !message.contains(['\u{7}', '\u{202e}']) && message.len() <= 4 << 10,
        "{message:?}"
    );
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM reply_invalid_rows"), ["0"]);
    assert_eq!(
        place.ledger(),
        ["reply_invalid_write read ok", "reply_invalid_refuse read FINE"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_turns_into_a_link_between_check_and_use_leads_nowhere() {
    let meddling = Meddling::new();
    let (main, outside) = (meddling.main(), meddling.place.path().join("outside"));
    std::fs::create_dir(main.join("out")).unwrap();
    std::fs::write(main.join("out/file"), "inside").unwrap();
    std::fs::write(outside.join("file"), "secret").unwrap();
    std::os::unix::fs::symlink(&outside, main.join("link")).unwrap();
    let session = meddling.serve().await;
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let swapping = {
        let (one, other) = (main.join("out"), main.join("link"));
        std::thread::spawn(move || {
            let mut swaps = 0_u64;
            while is_over.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) || swaps % 2 == 1 {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        })
    };
    let mut seen = String::new();
    for round in 0..10 {
        let files: Vec<Value> = (0..40)
            .map(|number| json!({"path": format!("out/{round}-{number}"), "content": "x"}))
            .collect();
        let looks = json!({"how": "read", "paths": vec!["out/file"; 200]});
        seen += &result(&session, "workspace_access_look", looks).await;
        let run = json!({"program": "echo", "files": files});
        seen += &result(&session, "workspace_access_run", run).await;
        session
            .call_raw("workspace_access_write", json!({"files": files}))
            .await;
    }
    drop(over);
    assert!(swapping.join().unwrap() > 0);
    assert!(!seen.contains("secret"), "{seen}");
    let left: Vec<_> = std::fs::read_dir(outside).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    session.close().await;
}
