//! Limits of SQL: time and memory of a call, and the time that a call may hold the write lock.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Place, Session, guest};

/// Timeout of an answer on a busy machine. Each attack would otherwise take minutes, or all memory.
const PATIENCE: Duration = Duration::from_secs(10);

async fn start(limits: &str) -> (Place, Session) {
    let place = Place::in_file(&format!(
        "[packs.limit-sql]\nsource = {:?}\nlimits = {{ {limits} }}\n[packs.sql-access]\nsource = {:?}\n",
        guest("limit-sql"),
        guest("sql-access")
    ));
    let session = place.serve(&["--tier", "full"]).await;
    (place, session)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_sql_function_stalls_a_call_or_its_neighbours_past_the_deadline() {
    let (place, session) = start("read_ms = 500, write_ms = 500").await;
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(";
    for call in [
        "length(ltrim(?1, ?2)) + i",
        "length(rtrim(?1, ?2)) + i",
        "instr(?1, ?2) + i",
        "length(replace(?2, ?1, 'x')) + i",
        "(?2 LIKE '%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%ab') + i",
    ] {
        let arguments = json!({"sql": format!("{numbers}{call}) FROM n WHERE ?1 <> ?2"), "length": 900_000});
        for tool in ["limit_sql_read", "limit_sql_write"] {
            let started = Instant::now();
            let (refused, noted) = tokio::join!(
                session.refused(tool, arguments.clone()),
                session.ok("limit_sql_note", json!({}))
            );
            assert_eq!(refused["code"], "DEADLINE_EXCEEDED", "{call}: {refused:#}");
            assert_eq!(noted["result"], "noted");
            assert!(
                started.elapsed() < PATIENCE,
                "{call} in {tool}: {:?}",
                started.elapsed()
            );
        }
    }
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM limit_sql_rows"), ["10"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_statement_takes_more_of_the_hosts_memory_than_the_sql_of_a_call_may() {
    let (_place, session) = start("read_ms = 20000, write_ms = 20000").await;
    session.ok("limit_sql_note", json!({})).await;
    let before = session.peak_memory();
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000000)";
    for sql in [
        "SELECT count(*) FROM (SELECT DISTINCT ?1 || i FROM n)",
        "SELECT count(*) FROM (SELECT ?1 || i AS t FROM n ORDER BY t LIMIT 1000000)",
        "SELECT count(*) FROM (SELECT ?1 || i FROM n UNION SELECT ?2 || i FROM n)",
        "SELECT count(*) FROM (SELECT ?1 || i AS t, count(*) FROM n GROUP BY t)",
    ] {
        let arguments = json!({"sql": format!("{numbers} {sql} WHERE ?1 <> ?2"), "length": 1_000});
        for tool in ["limit_sql_read", "limit_sql_write"] {
            let refused = session.refused(tool, arguments.clone()).await;
            let message = refused["message"].as_str().unwrap();
            assert!(message.contains("15 MiB"), "{sql}: {refused:#}");
            session.ok("limit_sql_note", json!({})).await;
        }
    }
    let grown = session.peak_memory() - before;
    assert!(grown < 64 << 10, "{grown} KiB more than before");
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_tool_keeps_the_write_lock_no_longer_than_a_write() {
    let (place, session) = start("write_ms = 500, run_ms = 60000").await;
    for how in ["spin", "query"] {
        let started = Instant::now();
        let (refused, filled) = tokio::join!(
            session.refused("limit_sql_hold", json!({"how": how})),
            session.ok("sql_access_fill", json!({"rows": 1, "bytes": 1}))
        );
        assert_eq!(refused["code"], "TRANSACTION_LIMIT", "{how}: {refused:#}");
        assert_eq!(refused["context"]["limit_ms"], 500, "{how}: {refused:#}");
        assert_eq!(filled["result"], "filled");
        assert!(started.elapsed() < PATIENCE, "{how}: {:?}", started.elapsed());
    }
    session.ok("limit_sql_hold", json!({"how": "end"})).await;
    session.close().await;
    let held = "SELECT count(*) FROM limit_sql_rows WHERE body = 'held'";
    assert_eq!(place.sql(held), ["1"], "what was cut short is undone");
}

#[test]
fn a_migration_that_does_not_end_is_refused_and_so_is_its_check() {
    let place = Place::with_guests(&["migration-hang", "sql-access"]);
    let started = Instant::now();
    let output = place.run(&["--json", "call", "sql_access_fill", r#"{"rows": 1, "bytes": 1}"#]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("did not finish within 10 s"), "{said}");
    let checked = place.run(&["packs", "check", guest("migration-hang").to_str().unwrap()]);
    assert!(!checked.status.success(), "{checked:?}");
    let said = [checked.stdout, checked.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("did not finish within 10 s"), "{said}");
    assert!(started.elapsed() < 12 * PATIENCE, "{:?}", started.elapsed());
    assert_eq!(
        place.sql("SELECT count(*) FROM sqlite_master WHERE name LIKE 'migration_hang%'"),
        ["0"]
    );
}
