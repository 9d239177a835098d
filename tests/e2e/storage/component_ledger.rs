//! Events that components add to the ledger, and queries of the ledger by components.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Place, Session, guest};

fn place() -> Place {
    Place::with(&format!(
        "[packs.reserve]\nsource = {:?}\ngrants = {{ ledger = true, budgets = [\"*\"] }}\n",
        guest("reserve")
    ))
}

async fn open(session: &Session) -> String {
    let opened = session.ok("envelope_open", json!({})).await;
    opened["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn events_reach_their_columns_even_from_failing_calls() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session).await;
    let (failure, mutation) = ("f".repeat(64), "1".repeat(64));
    let event = |fail: bool| json!({"event_type": "thing.changed", "changed": ["thing/1"], "failure": failure, "mutation": mutation, "fail": fail});
    // The row of a read commits with the next write.
    session.ok("reserve_notice", event(false)).await;
    session.ok("reserve_record", event(false)).await;
    session.refused("reserve_record", event(true)).await;
    let found = session
        .ok(
            "ledger_query",
            json!({"failure_fingerprint": failure, "pack": "reserve"}),
        )
        .await;
    assert_eq!(found["operations"].as_array().unwrap().len(), 3, "{found:#}");
    let shown = session.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(shown["last_failure_fingerprint"], failure.as_str());
    assert_eq!(shown["last_mutation_fingerprint"], mutation.as_str());
    session.close().await;
    let rows = place.sql(
        "SELECT tool || ' ' || success || ' ' || changed_paths || ' ' || failing_tests || ' ' || events || ' '
             || CAST(failure_fingerprint IS NOT NULL AS INTEGER) || CAST(mutation_fingerprint IS NOT NULL AS INTEGER)
         FROM core_operations WHERE pack = 'reserve' ORDER BY seq",
    );
    expect![[r#"
        reserve_notice 1 ["thing/1"] ["it fails"] [{"type":"thing.changed","note":"noted"}] 11
        reserve_record 1 ["thing/1"] ["it fails"] [{"type":"thing.changed","note":"noted"}] 11
        reserve_record 0 ["thing/1"] ["it fails"] [{"type":"thing.changed","note":"noted"}] 11"#]]
    .assert_eq(&rows.join("\n"));
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn an_event_that_is_too_large_or_malformed_is_refused() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    let mut log = String::new();
    for event in [
        json!({"event_type": "Not A Type"}),
        json!({"event_type": "t", "failure": "short"}),
        json!({"event_type": "t", "changed": ["x".repeat(501)]}),
        json!({"event_type": "t", "changed": vec!["x"; 1001]}),
        json!({"event_type": "t", "times": 101}),
    ] {
        let refusal = session.refused("reserve_record", event).await;
        log += &format!("{} {}\n", refusal["code"], refusal["message"]);
    }
    expect![[r#"
        "LEDGER_EVENT_INVALID" "the event is not well-formed: event-type must be a dotted name in lower case"
        "LEDGER_EVENT_INVALID" "the event is not well-formed: a fingerprint must be 64 hex digits in lower case"
        "LEDGER_EVENT_INVALID" "the event is too large: one name, in bytes: 501; at most 500 are allowed"
        "LEDGER_EVENT_INVALID" "the event is too large: changed entities of a call: 1001; at most 1000 are allowed"
        "LEDGER_EVENT_INVALID" "the event is too large: events of a call: 101; at most 100 are allowed"
    "#]]
    .assert_eq(&log);
    session.close().await;
}

#[tokio::test]
async fn queries_are_bounded_and_go_on_where_they_ended() {
    let place = place();
    let session = place.serve(&["--tier", "full"]).await;
    for failure in ["a", "b", "a", "b", "a"] {
        let event = json!({"event_type": "t", "failure": failure.repeat(64)});
        session.ok("reserve_record", event).await;
    }
    let query = async |arguments: Value| session.ok("reserve_query", arguments).await["result"].clone();
    let mut log = String::new();
    for arguments in [
        json!({"limit": 2}),
        json!({"limit": 0, "after": 2}),
        json!({"limit": 10, "failure": "a".repeat(64)}),
        json!({"limit": 10, "failure": "a".repeat(64), "after": 3}),
        json!({"limit": 10, "of_tool": "nothing"}),
        json!({"limit": 4_000_000_000_u32, "after": u64::MAX}),
    ] {
        log += &format!("{}\n", query(arguments).await);
    }
    expect![[r#"
        "1 reserve_record, 2 reserve_record"
        "3 reserve_record"
        "1 reserve_record, 3 reserve_record, 5 reserve_record"
        "5 reserve_record"
        ""
        ""
    "#]]
    .assert_eq(&log);
    session.close().await;
    if place.is_in_file() {
        let plan = place.sql(
            "EXPLAIN QUERY PLAN SELECT seq FROM core_operations WHERE failure_fingerprint = 'x' AND seq > 3 ORDER BY seq",
        );
        assert_eq!(plan.len(), 1);
    }
}
