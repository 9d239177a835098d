//! Target for SQL of components, through the parser, the authorizer and all limits.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;
use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_sql::read::{Owner, statement};
use tollgate_sql::{schema, sqlite};
use tollgate_store::storage::{Database, MigrationStep, Namespace, Session};

/// Timeout of one statement, well below the fuzzer's limit for an endless loop.
const STATEMENT_TIMEOUT: Duration = Duration::from_millis(200);
/// Query for everything that a component must not change.
const REST: &str = "SELECT (SELECT count(*) || coalesce(max(hash), '') FROM core_operations)
    || (SELECT count(*) || coalesce(max(line), '') FROM mine_log)
    || (SELECT group_concat(name || sql) FROM sqlite_master) || (SELECT count(*) FROM other_rows)";

struct Fixture {
    session: Session,
    namespace: Namespace,
    outside: Connection,
    rest: String,
    _place: TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let place = crate::ledger::place();
        let path: PathBuf = place.path().join("t.db");
        let database = Database::open(&path).expect("a database");
        for pack in ["mine", "other"] {
            let outside = Connection::open(&path).expect("a connection");
            let tables = format!(
                "CREATE TABLE {pack}_rows (id INTEGER PRIMARY KEY, body BLOB, line TEXT) STRICT;
                 CREATE INDEX {pack}_by_line ON {pack}_rows (line);
                 INSERT INTO {pack}_rows (body, line) VALUES (x'00', 'one'), (NULL, 'two')"
            );
            outside.execute_batch(&tables).expect("tables");
        }
        let outside = Connection::open(&path).expect("a connection");
        let table = "CREATE TABLE mine_log (id INTEGER PRIMARY KEY, line TEXT) STRICT;
                   INSERT INTO mine_log VALUES (1, 'first')";
        outside.execute_batch(table).expect("a log");
        Fixture {
            session: database.write_session().expect("a session"),
            namespace: Namespace::of_pack("mine").with_tables(&[log()]).expect("a log"),
            rest: rest(&outside),
            outside,
            _place: place,
        }
    }
}

/// Migration of the component, which creates an append-only log.
fn log() -> MigrationStep {
    MigrationStep {
        name: "0001_init".to_owned(),
        sql: "CREATE TABLE mine_log (id INTEGER PRIMARY KEY, line TEXT) WITH (append_only = true)".to_owned(),
    }
}

fn rest(outside: &Connection) -> String {
    outside
        .query_row(REST, [], |row| row.get(0))
        .expect("the host's own tables")
}

thread_local! {
    static FIXTURE: OnceCell<Fixture> = const { OnceCell::new() };
}

/// Checks that a component changes only its own tables, inside the call's transaction.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(sql) = std::str::from_utf8(bytes) else {
        return;
    };
    round_trip(sql);
    FIXTURE.with(|fixture| one(fixture.get_or_init(Fixture::new), sql));
}

/// Checks that printed statements are parsed to the same statements, and that migrations are parsed or refused.
fn round_trip(sql: &str) {
    let append_only = BTreeSet::from(["mine_log".to_owned()]);
    let owner = Owner {
        prefix: "mine_",
        append_only: &append_only,
    };
    if let Ok(tree) = statement(sql, owner) {
        let printed = sqlite::statement(&tree);
        assert_eq!(
            statement(&printed, owner).as_ref(),
            Ok(&tree),
            "{sql:?} became {printed:?}"
        );
    }
    let step = |sql| schema::Step { name: "0001", sql };
    if let Ok(schema) = schema::read("mine_", [step(sql)]) {
        for printed in schema
            .steps
            .iter()
            .flatten()
            .filter_map(|command| command.sql.as_ref())
        {
            // The host sets the table's properties, and `STRICT` is only for SQLite.
            let again = schema::read("mine_", [step(printed.trim_end_matches(" STRICT"))]);
            let again = again.map(|schema| schema.steps[0][0].sql.clone());
            let known = again.as_ref().is_ok_and(|again| again.as_ref() == Some(printed));
            assert!(known, "{sql:?} became {printed:?}, and that {again:?}");
        }
    }
}

fn one(fixture: &Fixture, sql: &str) {
    let Fixture {
        session, namespace, ..
    } = fixture;
    session.begin_write().expect("nobody else writes");
    session.enter(namespace, &Deadline::after(STATEMENT_TIMEOUT, Cancel::default()));
    let queried = session.components().query(namespace, sql, &[]);
    let executed = session.components().execute(namespace, sql, &[]);
    session.leave();
    for table in session.take_changes().into_keys() {
        assert!(table.starts_with(namespace.prefix()), "{sql:?} changed {table}");
    }
    let failed = queried.is_err() || executed.is_err();
    assert!(
        session.in_transaction() || failed,
        "{sql:?} ended the transaction"
    );
    if session.in_transaction() {
        session.rollback().expect("a transaction is open");
    }
    session.end_turn();
    assert_eq!(
        rest(&fixture.outside),
        fixture.rest,
        "{sql:?} changed what is not its own"
    );
}
