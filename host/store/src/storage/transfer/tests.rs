//! Tests of copies between a file and a server. Without a server the tests do nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;
use tollgate_core::clock::Clock as _;
use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_core::envelope::State;

use super::{Transfer, TransferError, Transferred, plan};
use crate::storage::endings::opened;
use crate::storage::engine::sqlite::migrate::tests::earlier;
use crate::storage::engine::steps::MigrationStep;
use crate::storage::engine::{Engine, Once, sql};
use crate::storage::fixture::{
    self, Place, add, change, disarm, in_file, key, ledger_in, on_postgres, prune,
};
use crate::storage::value::Value;
use crate::storage::{Database, Ending, Namespace, Operation, Session};

/// A component with columns of all types, keys that number themselves, and keys that lead to the table itself.
const STEPS: &str = "
    CREATE TABLE shop_orders (id TEXT PRIMARY KEY, before TEXT REFERENCES shop_orders (id));
    CREATE TABLE shop_items (
        id INTEGER PRIMARY KEY,
        \"end\" BIGINT,
        price DOUBLE,
        Name TEXT,
        image BLOB,
        order_id TEXT REFERENCES shop_orders (id)
    );
    CREATE TABLE shop_kinds (name TEXT PRIMARY KEY);
    INSERT INTO shop_kinds (name) VALUES ('fruit');
    CREATE TABLE shop_log (line TEXT) WITH (append_only = true);";

fn steps() -> Vec<MigrationStep> {
    vec![MigrationStep {
        name: "0001_init".to_owned(),
        sql: STEPS.to_owned(),
    }]
}

fn shop() -> Namespace {
    Namespace::of_pack("shop").with_tables(&steps()).unwrap()
}

/// A file with a ledger and the component's tables.
fn file(rows: &str) -> (TempDir, Database) {
    let (dir, database) = in_file::database();
    database.migrate(&shop(), &steps()).unwrap();
    drop(ledger_in(&database, rows));
    (dir, database)
}

/// Closes the envelope that the fixture leaves open, so that a copy adds no row about it.
fn close_all(database: &Database) {
    let session = database.write_session().unwrap();
    session.begin_write().unwrap();
    let ending = Ending::by_host(State::ClosedFailed, "TEST", fixture::NOW, 0);
    session.envelopes().close("env_k", ending).unwrap();
    session.commit().unwrap();
}

/// An empty database on the server, if there is one.
fn server() -> Option<(Place, Database)> {
    on_postgres().then(fixture::database)
}

fn written(database: &Database, statements: &[(&str, Vec<Value>)]) {
    let (session, namespace) = (database.write_session().unwrap(), shop());
    session.begin_write().unwrap();
    session.enter(
        &namespace,
        &Deadline::after(Duration::from_secs(60), Cancel::default()),
    );
    for (sql, params) in statements {
        session.components().execute(&namespace, sql, params).unwrap();
    }
    session.leave();
    session.commit().unwrap();
}

fn copy(source: &Database, target: &Database) -> Result<Transferred, TransferError> {
    copy_beside(source, target, &[], &|| None)
}

fn copy_beside(
    source: &Database,
    target: &Database,
    leave_out: &[String],
    others: &(dyn Fn() -> Option<String> + Sync),
) -> Result<Transferred, TransferError> {
    let (namespace, steps) = (shop(), steps());
    let components = [(&namespace, steps.as_slice())];
    Transfer {
        source,
        target,
        components: if leave_out.is_empty() { &components } else { &[] },
        leave_out,
        host: "hst_1",
        head: None,
        keys: &[key().public()],
        others,
    }
    .run()
}

fn told(result: Result<Transferred, TransferError>) -> String {
    tollgate_core::text::chain(&result.unwrap_err())
}

/// Fails if a database has rows of the ledger or tables of the component.
fn assert_empty(database: &Database) {
    let session = database.read_session().unwrap();
    assert_eq!(session.ledger().head().unwrap().seq, 0);
    assert_eq!(database.packs_with_tables().unwrap(), [] as [&str; 0]);
}

fn number(session: &Session, sql: &str) -> i64 {
    session.engine.one(Once(sql), &[], |row| row.get(0)).unwrap()
}

#[test]
fn envelopes_have_the_time_left_that_they_had() {
    let Some((_place, server)) = server() else {
        return;
    };
    let (_dir, first) = in_file::database();
    first.migrate(&shop(), &steps()).unwrap();
    let session = first.write_session().unwrap();
    let mut envelope = fixture::envelope("env_open", None);
    envelope.opened_at = fixture::NOW.to_owned();
    envelope.standing.opened_boot_ms = first.clock().unwrap().boot_ms() - 600_000;
    let events = serde_json::json!([opened(&envelope, &BTreeMap::new())]).to_string();
    session.begin_write().unwrap();
    session.envelopes().open(&envelope).unwrap();
    let row = Operation {
        events: Some(events),
        ..fixture::operation(77, Some("env_open"), fixture::NOW)
    };
    session.ledger().record(&row).unwrap();
    session.commit().unwrap();
    let used_ms = |database: &Database| {
        let session = database.read_session().unwrap();
        let found = session.envelopes().get("env_open").unwrap().unwrap();
        database.clock().unwrap().boot_ms() - found.standing.opened_boot_ms
    };
    copy(&first, &server).unwrap();
    let (_there, back) = in_file::database();
    copy(&server, &back).unwrap();
    for database in [&first, &server, &back] {
        let used_ms = used_ms(database);
        assert!((600_000..660_000).contains(&used_ms), "{used_ms}");
        // The row says the time as well, so that the envelope is what the ledger says of it.
        let faults = database.read_session().unwrap().envelopes().faults().unwrap();
        assert!(
            faults.iter().all(|fault| !fault.contains("env_open")),
            "{faults:?}"
        );
    }
}

#[test]
fn a_database_is_the_same_on_a_server_and_back_in_a_file() {
    let Some((_place, server)) = server() else {
        return;
    };
    let (_dir, first) = file("ooykcooyok");
    let session = first.write_session().unwrap();
    assert!(prune(&session, 3).unwrap().rows_outside > 0);
    add(&session, "oy", 100);
    let picture = fixture::picture(&session);
    assert!(picture.contains('_'), "{picture}");
    let text = |text: &str| Value::Text(text.to_owned());
    written(
        &first,
        &[
            // The later row is the parent of the earlier one.
            ("INSERT INTO shop_orders (id, before) VALUES ('a', NULL)", vec![]),
            ("INSERT INTO shop_orders (id, before) VALUES ('b', 'a')", vec![]),
            ("UPDATE shop_orders SET before = 'b' WHERE id = 'a'", vec![]),
            (
                "INSERT INTO shop_items (id, \"end\", price, name, image, order_id) VALUES (70, ?1, ?2, ?3, ?4, 'b')",
                vec![
                    Value::Integer(i64::MIN),
                    Value::Real(0.1),
                    text("ä\n\u{1f980}"),
                    Value::Blob(vec![0, 1, 255]),
                ],
            ),
            (
                "INSERT INTO shop_items (price) VALUES (?1)",
                vec![Value::Real(-0.0)],
            ),
            ("INSERT INTO shop_log (line) VALUES ('one')", vec![]),
        ],
    );
    close_all(&first);
    let copied = copy(&first, &server).unwrap();
    let session = server.write_session().unwrap();
    assert_eq!(fixture::picture(&session), picture);
    assert_eq!(fixture::verify(&session, Some(&copied.head)), None);
    assert_eq!(
        copied.head,
        first.read_session().unwrap().ledger().head().unwrap()
    );
    let rows = |table: &str| {
        let found = copied.tables.iter().find(|copied| copied.table == table);
        found.unwrap().rows
    };
    assert_eq!(
        [
            rows("shop_items"),
            rows("shop_orders"),
            rows("shop_kinds"),
            rows("shop_log")
        ],
        [2, 2, 1, 1]
    );
    // The server goes on where the file was.
    add(&session, "y", 200);
    written(
        &server,
        &[("INSERT INTO shop_items (price) VALUES (2.5)", vec![])],
    );
    let items = session.engine.table_of("shop", "shop_items");
    assert_eq!(number(&session, &format!("SELECT max(id) FROM {items}")), 72);
    let keys = "SELECT count(*) FROM pg_constraint WHERE condeferrable";
    assert_eq!(number(&session, keys), 0, "keys are as they were made");

    let (_dir, second) = in_file::database();
    let back = copy(&server, &second).unwrap();
    assert_eq!(back.rows, copied.rows + 2);
    let session = second.write_session().unwrap();
    assert_eq!(fixture::verify(&session, Some(&copied.head)), None);
    assert!(session.components().used_pages(&shop()).unwrap() > 0);
    add(&session, "y", 300);
    assert_eq!(fixture::verify(&session, Some(&back.head)), None);
}

#[test]
fn a_file_of_an_earlier_version_is_upgraded_and_moves() {
    let Some((_place, server)) = server() else {
        return;
    };
    // What that version knows of is in rows of today as well.
    let (folder, today) = file("okcy");
    close_all(&today);
    let head = today.read_session().unwrap().ledger().head().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.db");
    earlier(&path, &[]);
    let db = rusqlite::Connection::open(&path).unwrap();
    let other = folder.path().join("t.db");
    db.execute("ATTACH ?1 AS today", [other.to_str().unwrap()])
        .unwrap();
    for table in ["core_envelopes", "core_operations"] {
        let columns = "SELECT group_concat(name, ', ') FROM pragma_table_info(?1, 'main')";
        let columns: String = db.query_row(columns, [table], |row| row.get(0)).unwrap();
        db.execute_batch(&format!(
            "INSERT INTO main.{table} ({columns}) SELECT {columns} FROM today.{table}"
        ))
        .unwrap();
    }
    drop(db);
    let source = Database::open(&path).unwrap();
    source.migrate(&shop(), &steps()).unwrap();
    written(
        &source,
        &[("INSERT INTO shop_items (id, name) VALUES (7, 'pear')", vec![])],
    );
    let copied = copy(&source, &server).unwrap();
    assert_eq!(copied.head, head);
    let session = server.write_session().unwrap();
    assert_eq!(fixture::verify(&session, Some(&head)), None);
    let items = session.engine.table_of("shop", "shop_items");
    let pears = format!("SELECT count(*) FROM {items} WHERE id = 7 AND name = 'pear'");
    assert_eq!(number(&session, &pears), 1);
    let closed = "SELECT count(*) FROM core_envelopes WHERE state <> 'OPEN'";
    assert_eq!(number(&session, closed), 2);
    add(&session, "y", 100);
    assert_eq!(fixture::verify(&session, Some(&head)), None);
}

#[test]
fn rows_of_all_types_stay_what_they_are() {
    let Some(_) = server() else {
        return;
    };
    let text = "[^\0]{0,40}".prop_map(Value::Text);
    let some = |value: BoxedStrategy<Value>| prop_oneof![1 => Just(Value::Null), 4 => value];
    let integer = some(any::<i64>().prop_map(Value::Integer).boxed());
    let real = some(
        any::<f64>()
            .prop_filter("SQLite stores none", |real| !real.is_nan())
            .prop_map(Value::Real)
            .boxed(),
    );
    let blob = some(
        prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(Value::Blob)
            .boxed(),
    );
    let row = (integer, real, some(text.boxed()), blob).prop_map(|(a, b, c, d)| vec![a, b, c, d]);
    let rows = prop::collection::vec(row, 0..120);
    let mut runner = TestRunner::new(Config::with_cases(4));
    runner
        .run(&rows, |rows| {
            let (_dir, first) = file("y");
            close_all(&first);
            let insert = "INSERT INTO shop_items (\"end\", price, name, image) VALUES (?1, ?2, ?3, ?4)";
            let statements: Vec<_> = rows.iter().map(|row| (insert, row.clone())).collect();
            written(&first, &statements);
            let (_place, server) = server().unwrap();
            let there = copy(&first, &server).unwrap();
            let (_dir, second) = in_file::database();
            let back = copy(&server, &second).unwrap();
            prop_assert_eq!(there.tables, back.tables);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_database_in_use_is_no_target() {
    let Some((_place, server)) = server() else {
        return;
    };
    let (_dir, first) = file("yy");
    copy(&first, &server).unwrap();
    let again = told(copy(&first, &server));
    assert!(again.contains("the target database is in use: table"), "{again}");
    let (_dir, second) = file("");
    let back = told(copy(&server, &second));
    assert!(back.contains("table core_envelopes has rows"), "{back}");
    let (_dir, third) = in_file::database();
    third.migrate(&shop(), &steps()).unwrap();
    let back = told(copy(&server, &third));
    assert!(back.contains("table shop_kinds has rows"), "{back}");
}

#[test]
fn a_value_that_does_not_fit_is_named_and_nothing_is_kept() {
    let Some((_place, server)) = server() else {
        return;
    };
    let (_dir, first) = file("y");
    let insert = "INSERT INTO shop_items (id, name) VALUES (?1, ?2)";
    let row = |id: i64, name: &str| (insert, vec![Value::Integer(id), Value::Text(name.to_owned())]);
    written(&first, &[row(5, "a"), row(77, "b\0")]);
    let refused = told(copy(&first, &server));
    assert_eq!(
        refused,
        "table shop_items, column name, row rowid 77: the text has a NUL character at byte 1, which PostgreSQL cannot store; \
         nothing was kept"
    );
    assert_empty(&server);
    written(&first, &[("DELETE FROM shop_items WHERE id = 77", vec![])]);
    copy(&first, &server).unwrap();
    let items = server.write_session().unwrap();
    let name = items.engine.table_of("shop", "shop_items");
    change(&items, &format!("UPDATE {name} SET price = 'NaN'")).unwrap();
    let (_dir, second) = in_file::database();
    let refused = told(copy(&server, &second));
    assert!(
        refused.contains("table shop_items, column price, row ctid (0,"),
        "{refused}"
    );
    assert_empty(&second);
}

#[test]
fn rows_that_the_server_refuses_are_named() {
    let Some((_place, server)) = server() else {
        return;
    };
    let (_dir, first) = file("y");
    // Pseudo-random, so that it cannot be compressed into an entry of an index.
    let long: String = (0..200_u8)
        .map(|number| tollgate_core::hash::sha256_hex(&[number]))
        .collect();
    written(
        &first,
        &[(
            "INSERT INTO shop_kinds (name) VALUES (?1)",
            vec![Value::Text(long)],
        )],
    );
    let refused = told(copy(&first, &server));
    assert!(
        refused.contains("table shop_kinds: the target refused one of the rows 1 to 2")
            && refused.contains("index"),
        "{refused}"
    );
    assert_empty(&server);
}

#[test]
fn a_copy_that_does_not_end_well_leaves_nothing() {
    let Some((place, server)) = server() else {
        return;
    };
    let (_dir, first) = file("yyk");
    close_all(&first);
    let others = || Some("host hst_1 started".to_owned());
    let refused = told(copy_beside(&first, &server, &[], &others));
    assert_eq!(refused, "host hst_1 started; nothing was kept");
    assert_empty(&server);
    // The last moment before the end: the server loses the session.
    let killer = place.server();
    let kill = || {
        let session = Database::on(killer.clone()).write_session().unwrap();
        let sql = "SELECT count(pg_terminate_backend(a.pid, 5000)) FROM pg_stat_activity AS a
            WHERE a.state = 'idle in transaction' AND a.pid IN (SELECT l.pid FROM pg_locks AS l
                WHERE l.relation = 'core_operations'::regclass AND l.mode = 'RowExclusiveLock')";
        let killed: i64 = session.engine.one(Once(sql), &[], |row| row.get(0)).unwrap();
        assert_eq!(killed, 1);
        None
    };
    let lost = told(copy_beside(&first, &server, &[], &kill));
    assert!(lost.contains("lost") || lost.contains("terminat"), "{lost}");
    assert_empty(&server);
    assert_eq!(copy(&first, &server).unwrap().head.seq, 3);
}

#[test]
fn rows_of_a_component_that_is_not_loaded_stay_behind_only_if_that_is_said() {
    let Some((_place, server)) = server() else {
        return;
    };
    let (_dir, first) = file("y");
    let nothing: [(&Namespace, &[MigrationStep]); 0] = [];
    let transfer = Transfer {
        source: &first,
        target: &server,
        components: &nothing,
        leave_out: &[],
        host: "hst_1",
        head: None,
        keys: &[],
        others: &|| None,
    };
    let refused = told(transfer.run());
    assert!(
        refused.contains("has tables of shop, which is not loaded"),
        "{refused}"
    );
    assert_empty(&server);
    let copied = copy_beside(&first, &server, &["shop".to_owned()], &|| None).unwrap();
    assert!(copied.tables.iter().all(|table| table.table.starts_with("core_")));
}

#[test]
fn a_ledger_that_was_changed_is_not_copied() {
    let Some((_place, server)) = server() else {
        return;
    };
    let (_dir, first) = file("yyy");
    let session = first.write_session().unwrap();
    disarm(&session);
    change(
        &session,
        "UPDATE core_operations SET actor = 'mallory' WHERE seq = 2",
    )
    .unwrap();
    fixture::rearm(&session);
    drop(session);
    let refused = told(copy(&first, &server));
    assert!(
        refused.contains("the ledger of the source database failed verification: row 2: the row was changed"),
        "{refused}"
    );
    assert_empty(&server);
}

#[test]
fn every_table_of_the_host_on_a_server_is_copied_or_known() {
    let Some((_place, server)) = server() else {
        return;
    };
    let (_dir, first) = file("");
    let session = server.read_session().unwrap();
    let Engine::Postgres(postgres) = &session.engine else {
        panic!();
    };
    let sql = "SELECT tablename::text FROM pg_tables WHERE schemaname = ?1 ORDER BY 1";
    let found: Vec<String> = session
        .engine
        .all(Once(sql), sql![postgres.schema()], |row| row.get(0))
        .unwrap();
    let file = first.read_session().unwrap();
    let mut known: Vec<String> = plan::tables(&file, super::Side::Source, &[])
        .unwrap()
        .into_iter()
        .map(|table| table.name)
        .collect();
    // A server alone has the ends of chains, which follow from the rows, what its hosts tell each other, and content that
    // is in files otherwise.
    let of_servers = [
        "core_content_puts",
        "core_contents",
        "core_hosts",
        "core_keys",
        "core_migrations",
        "core_secrets",
        "core_streams",
        "core_usage",
    ];
    known.extend(of_servers.map(str::to_owned));
    known.sort();
    assert_eq!(found, known);
}
