//! Components that misbehave: a typed error, one row, and no effect on the others.

use serde_json::{Value, json};

use crate::harness::{Place, Session};

async fn start(place: &Place) -> Session {
    place.serve(&["--tier", "full"]).await
}

#[tokio::test]
async fn each_excess_is_a_typed_error_with_one_row() {
    let config = format!(
        "[packs.call-limits]\nsource = {:?}\nlimits = {{ read_ms = 1000, write_ms = 1000 }}\n",
        crate::harness::guest("call-limits")
    );
    let place = Place::with(&config);
    let session = start(&place).await;
    let cases = [
        ("call_limits_spin", "DEADLINE_EXCEEDED"),
        ("call_limits_spin_writing", "DEADLINE_EXCEEDED"),
        ("call_limits_spin_in_sql", "DEADLINE_EXCEEDED"),
        ("call_limits_grow", "MEMORY_LIMIT"),
        ("call_limits_recurse", "STACK_OVERFLOW"),
        ("call_limits_panic", "GUEST_TRAPPED"),
        ("call_limits_babble", "BAD_REPLY"),
    ];
    for (tool, code) in cases {
        let refusal = session.refused(tool, json!({})).await;
        assert_eq!(refusal["code"], code, "{tool}: {refusal:#}");
        session.ok("call_limits_answer", json!({})).await;
    }
    session.ok("call_limits_flood", json!({})).await;
    session.close().await;
    let ledger = place.ledger();
    for (tool, code) in cases {
        let rows = ledger
            .iter()
            .filter(|row| row.starts_with(&format!("{tool} ")))
            .count();
        assert_eq!(rows, 1, "{tool}: {ledger:#?}");
        assert!(
            ledger.iter().any(|row| row.ends_with(code)),
            "{tool}: {ledger:#?}"
        );
    }
}

#[test]
fn what_a_component_prints_is_logged_up_to_a_bound_and_is_no_reply() {
    let place = Place::with_guests(&["call-limits"]);
    let output = place.run(&["--json", "--log", "debug", "call", "call_limits_flood", "{}"]);
    assert!(output.status.success());
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["result"], "flooded");
    let printed = output.stderr.iter().filter(|byte| **byte == b'x').count();
    // It printed ten million; some of the log's own words have an x, too.
    assert!(
        (1_000..=(64 << 10) + 100).contains(&printed),
        "{printed} bytes are in the log"
    );
    assert_eq!(place.ledger(), ["call_limits_flood read ok"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbours_go_on_while_guests_spin() {
    let place = Place::with_guests(&["call-limits"]);
    let session = start(&place).await;
    let spinning = futures::future::join_all((0..4).map(|_| session.call_raw("call_limits_spin", json!({}))));
    let neighbours = async {
        for _ in 0..50 {
            session.ok("call_limits_answer", json!({})).await;
        }
    };
    tokio::select! {
        _ = spinning => panic!("fifty quick calls waited for guests that spin"),
        () = neighbours => {}
    }
    session.kill();
}

async fn execute(session: &Session, sql: &str) -> String {
    let body = session.ok("sql_access_execute", json!({"sql": [sql]})).await;
    body["result"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn sql_reaches_the_components_own_tables_and_nothing_else() {
    let place = Place::with_guests(&["sql-access"]);
    let session = start(&place).await;
    assert_eq!(
        execute(&session, "INSERT INTO sql_access_rows (body) VALUES (NULL)").await,
        "changed 1"
    );
    let hidden = "the statement was refused: no such table or no access";
    let before = session.peak_memory();
    for sql in [
        "INSERT INTO core_operations (seq) VALUES (1)",
        "DELETE FROM core_operations",
        "INSERT INTO task_store_tasks (id) VALUES ('x')",
        "INSERT INTO sql_access_rows (body) SELECT tool FROM core_operations",
        "DELETE FROM nowhere",
        "INSERT INTO SQL_ACCESS_rows (body) VALUES (NULL)",
        "UPDATE sqlite_master SET sql = ''",
        "INSERT INTO sql_access_rows (body) SELECT name FROM pragma_table_list",
        "WITH mine AS (SELECT tool FROM core_operations) INSERT INTO sql_access_rows (body) SELECT tool FROM mine",
    ] {
        assert_eq!(execute(&session, sql).await, hidden, "{sql}");
    }
    for sql in [
        "ATTACH 'other.db' AS other",
        "DETACH main",
        "PRAGMA user_version = 3",
        "PRAGMA recursive_triggers = OFF",
        "CREATE TABLE sql_access_more (id INTEGER)",
        "CREATE TEMP TABLE sql_access_temp (id INTEGER)",
        "CREATE TRIGGER sql_access_t BEFORE INSERT ON sql_access_rows BEGIN SELECT 1; END",
        "DROP TABLE sql_access_rows",
        "ALTER TABLE sql_access_rows RENAME TO sql_access_other",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT other",
        "RELEASE call",
        "ROLLBACK TO call",
        "ANALYZE",
        "REINDEX",
        "CREATE VIRTUAL TABLE sql_access_v USING fts5(x)",
        "WITH core_operations AS (SELECT 1) INSERT INTO sql_access_rows (body) SELECT 1 FROM core_operations",
        "INSERT INTO main.sql_access_rows (body) VALUES (NULL)",
        "INSERT INTO sql_access_rows (rowid) VALUES (1)",
        "INSERT INTO sql_access_rows (body) SELECT value FROM json_each('[1]')",
        "INSERT INTO sql_access_rows (body) VALUES (load_extension('x'))",
        "INSERT INTO sql_access_rows (body) VALUES (randomblob(10))",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "SELECT 1; SELECT 2",
        "nonsense",
        "INSERT INTO sql_access_rows (body) VALUES (?1)",
    ] {
        let result = execute(&session, sql).await;
        assert!(result.starts_with("the statement was refused"), "{sql}: {result}");
        assert_ne!(result, hidden, "{sql}: nothing is said of what is allowed");
    }
    let grown = session.peak_memory() - before;
    assert!(grown < 16 << 10, "refusals took {grown} KiB");
    session.ok("task_list", json!({})).await;
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_rows"), ["1"]);
    let rows = place.ledger();
    assert_eq!(rows.len(), 1 + 9 + 29 + 1, "one for each call: {rows:#?}");
}

#[tokio::test]
async fn append_only_tables_stay_so() {
    let place = Place::in_file(&format!(
        "[packs.sql-access]\nsource = {:?}\n",
        crate::harness::guest("sql-access")
    ));
    let session = start(&place).await;
    execute(
        &session,
        "INSERT INTO sql_access_log (id, line) VALUES (1, 'first')",
    )
    .await;
    for sql in [
        "INSERT OR REPLACE INTO sql_access_log (id, line) VALUES (1, 'second')",
        "REPLACE INTO sql_access_log (id, line) VALUES (1, 'second')",
        "UPDATE OR REPLACE sql_access_log SET line = 'second'",
        "DROP TABLE sql_access_log",
        "ALTER TABLE sql_access_log RENAME TO sql_access_rest",
        "INSERT INTO sql_access_log (id, line) VALUES (1, 'second')",
    ] {
        let result = execute(&session, sql).await;
        assert!(!result.starts_with("changed"), "{sql}: {result}");
    }
    for sql in [
        "UPDATE sql_access_log SET line = 'second'",
        "UPDATE sql_access_LOG SET line = 'second'",
        "WITH gone AS (SELECT 1) DELETE FROM \"sql_access_Log\"",
        "DELETE FROM sql_access_log",
        "INSERT INTO sql_access_log (id, line) VALUES (1, 'second') ON CONFLICT (id) DO UPDATE SET line = excluded.line",
    ] {
        let result = execute(&session, sql).await;
        assert!(result.contains("append-only"), "{sql}: {result}");
    }
    session.close().await;
    assert_eq!(place.sql("SELECT line FROM sql_access_log"), ["first"]);
}

#[tokio::test]
async fn a_read_tool_cannot_write() {
    let place = Place::with_guests(&["sql-access"]);
    let session = start(&place).await;
    let query = json!({"sql": "INSERT INTO sql_access_rows (body) VALUES (NULL) RETURNING id"});
    let body = session.ok("sql_access_query", query).await;
    assert_eq!(body["result"], "this tool is read-only");
    session.close().await;
}

#[tokio::test]
async fn a_failed_call_takes_its_rows_back() {
    let place = Place::with_guests(&["sql-access"]);
    let session = start(&place).await;
    let insert = "INSERT INTO sql_access_rows (body) VALUES (NULL)";
    session
        .refused(
            "sql_access_execute",
            json!({"sql": [insert, insert], "fail": true}),
        )
        .await;
    session.ok("sql_access_execute", json!({"sql": [insert]})).await;
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_rows"), ["1"]);
    assert_eq!(
        place.ledger(),
        [
            "sql_access_execute write ASKED_TO_FAIL",
            "sql_access_execute write ok"
        ]
    );
}

#[tokio::test]
async fn a_run_tool_reaches_storage_through_a_transaction_only() {
    let place = Place::with_guests(&["sql-access"]);
    let session = start(&place).await;
    let body = session.ok("sql_access_run", json!({})).await;
    let result = body["result"].as_str().unwrap();
    assert!(
        result.starts_with("wrong transaction state") && result.ends_with("changed 1"),
        "{result}"
    );
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_rows"), ["1"]);
}

/// A statement that SQLite interrupts, or that fills the quota, rolls back the whole transaction. Calls that share the
/// transaction must not be affected.
#[tokio::test(flavor = "multi_thread")]
async fn neighbours_in_one_commit_survive_a_lost_transaction() {
    let config = format!(
        "[packs.sql-access]\nsource = {:?}\nlimits = {{ write_ms = 800, storage_mib = 1 }}\n",
        crate::harness::guest("sql-access")
    );
    let place = Place::in_file(&config);
    let session = start(&place).await;
    let endless = "INSERT INTO sql_access_rows (body) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT nullif(i, i) FROM n WHERE i < 0";
    let calls = (0..24).map(|number| {
        let session = &session;
        async move {
            match number % 8 {
                3 => session
                    .refused("sql_access_execute", json!({"sql": [endless]}))
                    .await["code"]
                    .clone(),
                6 => session
                    .refused("sql_access_fill", json!({"rows": 4000, "bytes": 1000}))
                    .await["code"]
                    .clone(),
                _ => {
                    let insert = "INSERT INTO sql_access_log (line) VALUES ('kept')";
                    session.ok("sql_access_execute", json!({"sql": [insert]})).await["result"].clone()
                }
            }
        }
    });
    let results: Vec<Value> = futures::future::join_all(calls).await;
    for (number, result) in results.iter().enumerate() {
        match number % 8 {
            3 => assert_eq!(result, "DEADLINE_EXCEEDED"),
            6 => assert_eq!(result, "STORAGE_FULL"),
            _ => assert_eq!(result, "changed 1"),
        }
    }
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_log"), ["18"]);
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_rows"), ["0"]);
    assert_eq!(place.ledger().len(), 24);
}

#[tokio::test]
async fn a_full_quota_refuses_growth_and_nothing_else() {
    let config = format!(
        "[packs.sql-access]\nsource = {:?}\nlimits = {{ storage_mib = 1 }}\n",
        crate::harness::guest("sql-access")
    );
    let place = Place::in_file(&config);
    let session = start(&place).await;
    session
        .ok("sql_access_fill", json!({"rows": 500, "bytes": 1000}))
        .await;
    let refusal = session
        .refused("sql_access_fill", json!({"rows": 1000, "bytes": 1000}))
        .await;
    assert_eq!(refusal["code"], "STORAGE_FULL", "{refusal:#}");
    session.ok("task_list", json!({})).await;
    assert_eq!(
        execute(&session, "DELETE FROM sql_access_rows").await,
        "changed 500"
    );
    session
        .ok("sql_access_fill", json!({"rows": 500, "bytes": 1000}))
        .await;
    session.close().await;
}
