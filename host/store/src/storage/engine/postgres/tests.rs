//! Tests of a session on a server, as the host uses it. Without a server the tests do nothing.

mod append;

use std::time::{Duration, Instant};

use tollgate_core::deadline::{Cancel, Deadline};

use super::super::sqlite::schema::pristine;
use super::{Server, ServerError};
use crate::storage::engine::{Engine, Once, Text, sql};
use crate::storage::error::{StoreError, StoreFailure};
use crate::storage::fixture::{self, NOW, Place, change, on_postgres, operation};
use crate::storage::session::Among;
use crate::storage::{Database, Session, scratch};

/// A database on the server, if there is one.
fn database() -> Option<(Place, Database)> {
    on_postgres().then(fixture::database)
}

fn number<'t>(session: &Session, sql: impl Into<Text<'t>>) -> i64 {
    session.engine.one(sql, &[], |row| row.get(0)).unwrap()
}

fn after(ms: u64) -> Deadline {
    Deadline::after(Duration::from_millis(ms), Cancel::default())
}

/// Number of the server's process that serves a session.
fn backend(session: &Session) -> i64 {
    number(session, Once("SELECT pg_backend_pid()"))
}

fn terminate(by: &Session, backend: i64) {
    let sql = "SELECT pg_terminate_backend(?1, 5000)";
    let is_gone: bool = by.engine.one(sql, sql![backend], |row| row.get(0)).unwrap();
    assert!(is_gone);
}

#[test]
fn tables_on_a_server_are_those_of_sqlite() {
    let Some((_place, database)) = database() else {
        return;
    };
    let session = database.read_session().unwrap();
    let sql = "SELECT table_name, column_name, data_type, is_nullable = 'NO' FROM information_schema.columns
        WHERE table_schema = current_schema() ORDER BY table_name, column_name COLLATE \"C\"";
    let mut found: Vec<(String, String, String, bool)> = session
        .engine
        .all(Once(sql), &[], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    let of_servers = [
        "core_streams",
        "core_hosts",
        "core_keys",
        "core_secrets",
        "core_contents",
        "core_content_puts",
    ];
    found.retain(|(table, ..)| !of_servers.contains(&table.as_str()));
    let sqlite = scratch(std::iter::empty()).unwrap();
    let mut wanted = Vec::new();
    for table in pristine().unwrap().iter().filter(|object| object.kind == "table") {
        let sql = "SELECT name, type, \"notnull\" OR pk > 0 FROM pragma_table_info(?1) ORDER BY name";
        let columns: Vec<(String, String, bool)> = sqlite
            .engine
            .all(Once(sql), sql![table.name], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        wanted.extend(columns.into_iter().map(|(name, kind, is_set)| {
            let kind = match kind.as_str() {
                "INTEGER" => "bigint",
                "REAL" => "double precision",
                "TEXT" => "text",
                other => panic!("{other}"),
            };
            (table.name.clone(), name, kind.to_owned(), is_set)
        }));
    }
    wanted.sort();
    found.sort();
    assert_eq!(found, wanted);
    let sql = "SELECT count(*) FROM information_schema.columns WHERE table_schema = current_schema()
        AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'";
    assert_eq!(number(&session, Once(sql)), 0, "text is compared by bytes");
    let sql = "SELECT relname::text FROM pg_class WHERE relkind = 'i' AND relnamespace = current_schema()::regnamespace";
    let found: Vec<String> = session.engine.all(Once(sql), &[], |row| row.get(0)).unwrap();
    for index in pristine()
        .unwrap()
        .iter()
        .filter(|object| object.kind == "index" && object.sql.is_some())
    {
        assert!(found.contains(&index.name), "{}", index.name);
    }
}

#[test]
fn a_server_is_brought_up_to_date_once() {
    let Some((place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    let steps = "SELECT count(*) FROM core_migrations";
    let before = number(&session, steps);
    let again = Database::connect(place.server()).unwrap();
    assert_eq!(number(&again.read_session().unwrap(), steps), before);
    change(
        &session,
        "UPDATE core_migrations SET hash = 'x' WHERE name = '0001_init'",
    )
    .unwrap();
    let refused = Database::connect(place.server()).unwrap_err().to_string();
    assert!(refused.contains("was changed after it was applied"), "{refused}");
    change(
        &session,
        "UPDATE core_migrations SET name = '9999_later' WHERE name = '0001_init'",
    )
    .unwrap();
    let refused = Database::connect(place.server()).unwrap_err().to_string();
    assert!(refused.contains("this version does not know"), "{refused}");
}

#[test]
fn a_server_that_is_not_there_is_an_error_wherever_it_is_asked() {
    let server = Server::from_url("postgres://ada@127.0.0.1:1/t").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let refused = runtime.block_on(async { Database::connect(server).map(drop) });
    let said = tollgate_core::text::chain(&refused.unwrap_err());
    assert!(
        said.contains("postgres://127.0.0.1:1/t cannot be reached"),
        "{said}"
    );
}

#[test]
fn a_session_goes_from_thread_to_thread() {
    fn goes<T: Send>() {}
    goes::<Session>();
    goes::<Database>();
}

#[test]
fn a_transaction_on_a_server_ends_whole_or_not_at_all() {
    let Some((_place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    let consents = "SELECT count(*) FROM core_consents";
    let add = |id: &str| {
        let sql = "INSERT INTO core_consents (id, used_at) VALUES (?1, 1)";
        session.engine.run(sql, sql![id])
    };
    session.begin_write().unwrap();
    add("a").unwrap();
    session.savepoint().unwrap();
    add("b").unwrap();
    session.undo().unwrap();
    session.savepoint().unwrap();
    add("c").unwrap();
    session.release().unwrap();
    session.commit().unwrap();
    assert_eq!(number(&session, consents), 2);
    // A statement that fails takes the whole with it, and COMMIT says so.
    session.begin_write().unwrap();
    add("d").unwrap();
    add("a").unwrap_err();
    assert!(add("e").is_err() && session.in_transaction());
    let refused = session.commit().unwrap_err().to_string();
    assert!(
        refused.contains("so the transaction was rolled back"),
        "{refused}"
    );
    assert!(!session.in_transaction());
    assert_eq!(number(&session, consents), 2);
    // Unless what failed is undone by itself.
    session.begin_write().unwrap();
    add("d").unwrap();
    session.savepoint().unwrap();
    add("a").unwrap_err();
    session.undo().unwrap();
    add("e").unwrap();
    session.commit().unwrap();
    assert_eq!(number(&session, consents), 4);
    session.begin_write().unwrap();
    session.rollback().unwrap();
    assert!(session.rollback().is_err() && session.commit().is_err());
}

#[test]
fn a_statement_on_a_server_may_run_while_rows_of_another_are_visited() {
    let Some((_place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    let engine = &session.engine;
    let many = "SELECT n FROM generate_series(1, 2000) AS n";
    let mut seen = Vec::new();
    engine
        .each(many, &[], |outer| {
            let n: i64 = outer.get(0)?;
            if n % 500 == 0 {
                // Another in it, and one more in that, which ends before its rows do.
                engine.each(many, &[], |inner| {
                    let m: i64 = inner.get(0)?;
                    if m % 1000 == 0 {
                        seen.push((n, m, engine.one(many, &[], |row| row.get::<i64>(0))?));
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })
        .unwrap();
    let wanted: Vec<_> = [500, 1000, 1500, 2000]
        .iter()
        .flat_map(|n| [(*n, 1000, 1), (*n, 2000, 1)])
        .collect();
    assert_eq!(seen, wanted);
    // Whoever breaks off learns of a failure at the last row all the same: the transaction has failed by then.
    session.begin_write().unwrap();
    let sql = "SELECT 1 / (2000 - n) FROM generate_series(1, 2000) AS n";
    assert!(engine.maybe(sql, &[], |row| row.get::<i64>(0)).is_err());
    assert!(session.commit().is_err());
    assert_eq!(number(&session, "SELECT 7"), 7);
}

#[test]
fn one_session_on_a_server_writes_at_a_time() {
    let Some((_place, database)) = database() else {
        return;
    };
    let (one, other) = (
        database.write_session().unwrap(),
        database.write_session().unwrap(),
    );
    one.begin_write().unwrap();
    let began = Instant::now();
    let busy = other.begin_write_before(&after(100)).unwrap_err();
    assert_eq!(busy.failure(), StoreFailure::Busy, "{busy}");
    assert!(began.elapsed() < Duration::from_secs(2) && !other.in_transaction());
    let reader = database.read_session().unwrap();
    reader.begin_read().unwrap();
    assert_eq!(reader.ledger().head().unwrap().seq, 0);
    one.ledger().record(&operation(1, None, NOW)).unwrap();
    let version = reader.data_version().unwrap();
    one.commit().unwrap();
    assert_eq!(reader.ledger().head().unwrap().seq, 0, "a snapshot stays");
    reader.commit().unwrap();
    assert_ne!(reader.data_version().unwrap(), version);
    other.begin_write().unwrap();
    other.ledger().record(&operation(2, None, NOW)).unwrap();
    other.commit().unwrap();
    assert_eq!(reader.ledger().head().unwrap().seq, 2);
    let refused = change(&reader, "DELETE FROM core_consents").unwrap_err();
    assert_eq!(refused.failure(), StoreFailure::NotWritable, "{refused}");
}

#[test]
fn rows_of_many_sessions_on_a_server_are_one_chain() {
    let Some((_place, database)) = database() else {
        return;
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let database = &database;
            scope.spawn(move || {
                let session = database.write_session().unwrap();
                for number in 0..20 {
                    session.begin_write().unwrap();
                    let row = operation(thread * 100 + number, None, NOW);
                    session.ledger().record(&row).unwrap();
                    session.commit().unwrap();
                }
            });
        }
    });
    let session = database.read_session().unwrap();
    assert_eq!(fixture::verify(&session, None), None);
    assert_eq!(session.ledger().head().unwrap().seq, 80);
}

#[test]
fn a_statement_on_a_server_ends_at_its_deadline() {
    let Some((_place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    let began = Instant::now();
    session.limit_time(&after(100));
    let late = session.engine.run("SELECT pg_sleep(30)", &[]).unwrap_err();
    assert_eq!(late.failure(), StoreFailure::Interrupted, "{late}");
    session.leave();
    // So it does when the caller gives up.
    let cancel = Cancel::default();
    session.limit_time(&Deadline::after(Duration::from_secs(30), cancel.clone()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(29)%'";
            let watcher = database.read_session().unwrap();
            while number(&watcher, sleeps) == 0 {}
            cancel.cancel();
        });
        let late = session.engine.run("SELECT pg_sleep(29)", &[]).unwrap_err();
        assert_eq!(late.failure(), StoreFailure::Interrupted, "{late}");
    });
    assert!(began.elapsed() < Duration::from_secs(20));
    session.leave();
    assert_eq!(number(&session, "SELECT 7"), 7, "the connection is as before");
}

#[test]
fn rows_that_come_after_the_deadline_cost_no_connection() {
    let Some((_place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    let here = backend(&session);
    session.limit_time(&after(50));
    let late = session
        .engine
        .each(
            "SELECT generate_series(1, 200000000) AS n, repeat('x', 1000)",
            &[],
            |_| Ok(()),
        )
        .unwrap_err();
    assert_eq!(late.failure(), StoreFailure::Interrupted, "{late}");
    session.leave();
    assert_eq!(backend(&session), here);
}

#[test]
fn nobody_knows_of_a_statement_that_commits_by_itself_when_its_connection_is_lost() {
    let Some((_place, database)) = database() else {
        return;
    };
    let (session, other) = (
        database.write_session().unwrap(),
        database.write_session().unwrap(),
    );
    session.approvals().use_consent("a", 1).unwrap();
    terminate(&other, backend(&session));
    let unknown = session.approvals().use_consent("b", 1).unwrap_err();
    assert_eq!(unknown.failure(), StoreFailure::Unknown, "{unknown}");
}

#[test]
fn a_failed_transaction_says_so_until_it_is_undone() {
    let Some((_place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    session.begin_write().unwrap();
    session.savepoint().unwrap();
    assert!(!session.is_failed());
    change(&session, "SELECT 1 / 0").unwrap_err();
    assert!(session.is_failed());
    session.undo().unwrap();
    assert!(!session.is_failed());
    session.commit().unwrap();
}

#[test]
fn a_lost_connection_to_a_server_is_made_anew() {
    let Some((_place, database)) = database() else {
        return;
    };
    let (session, other) = (
        database.write_session().unwrap(),
        database.write_session().unwrap(),
    );
    let consents = "SELECT count(*) FROM core_consents";
    session.begin_write().unwrap();
    session.approvals().use_consent("a", 1).unwrap();
    terminate(&other, backend(&session));
    let lost = session.approvals().use_consent("b", 1).unwrap_err();
    assert_eq!(lost.failure(), StoreFailure::Lost, "{lost}");
    assert!(!session.in_transaction(), "the server undid it");
    session.begin_write().unwrap();
    session.approvals().use_consent("b", 1).unwrap();
    session.commit().unwrap();
    assert_eq!(number(&other, consents), 1);
    // So is one that was lost while nobody used it.
    let lost = backend(&session);
    terminate(&other, lost);
    session.begin_read().unwrap();
    assert_ne!(backend(&session), lost);
    session.commit().unwrap();
}

#[test]
fn nobody_knows_of_a_commit_whose_answer_a_server_did_not_give() {
    let Some((_place, database)) = database() else {
        return;
    };
    let (session, other) = (
        database.write_session().unwrap(),
        database.write_session().unwrap(),
    );
    session.begin_write().unwrap();
    session.approvals().use_consent("a", 1).unwrap();
    terminate(&other, backend(&session));
    let unknown = session.commit().unwrap_err();
    assert_eq!(unknown.failure(), StoreFailure::Unknown, "{unknown}");
    assert!(!session.in_transaction());
    session.begin_write().unwrap();
    assert!(
        session.approvals().use_consent("a", 1).unwrap(),
        "it was not committed"
    );
    session.commit().unwrap();
}

#[test]
fn a_session_on_a_server_works_and_ends_within_another_runtime() {
    let Some((_place, database)) = database() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        session.ledger().record(&operation(1, None, NOW)).unwrap();
        session.commit().unwrap();
        drop(session);
    });
    assert_eq!(database.read_session().unwrap().ledger().head().unwrap().seq, 1);
}

#[test]
fn values_come_back_from_a_server_as_they_went() {
    let Some((_place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    for text in ["", "häßlich ✓", "a'b\"c\\d?1$1", "\u{1}\n\t"] {
        let found: String = session
            .engine
            .one("SELECT CAST(?1 AS text)", sql![text], |row| row.get(0))
            .unwrap();
        assert_eq!(found, text);
    }
    for number in [0, -1, i64::MIN, i64::MAX] {
        let found: i64 = session
            .engine
            .one("SELECT CAST(?1 AS bigint)", sql![number], |row| row.get(0))
            .unwrap();
        assert_eq!(found, number);
        let summed: i64 = session
            .engine
            .one("SELECT sum(CAST(?1 AS bigint))", sql![number], |row| row.get(0))
            .unwrap();
        assert_eq!(summed, number);
    }
    let found: f64 = session
        .engine
        .one("SELECT CAST(?1 AS double precision)", sql![0.1], |row| row.get(0))
        .unwrap();
    assert!((found - 0.1).abs() < f64::EPSILON);
    let nul = session.approvals().use_consent("a\0b", 1).unwrap_err();
    assert!(format!("{nul:?}").contains("Nul"), "{nul:?}");
    assert!(
        session.approvals().use_consent("a", 1).unwrap(),
        "nothing was sent"
    );
}

#[test]
fn what_only_sqlite_has_is_refused_on_a_server() {
    let Some((_place, database)) = database() else {
        return;
    };
    let file = std::env::temp_dir().join("nowhere.db");
    let says = "only available with SQLite";
    let refused = [
        database.copy_to(&file).map_err(|err| format!("{err:?}")),
        database.compact(None).map(drop).map_err(|err| format!("{err:?}")),
        database.repair().map(drop).map_err(|err| format!("{err:?}")),
    ];
    for refused in refused {
        assert!(
            refused.as_ref().is_err_and(|err| err.contains("OfSqliteAlone")),
            "{refused:?}"
        );
    }
    assert_eq!(StoreError::of_sqlite_alone().to_string(), says);
}

#[test]
fn a_server_that_cannot_be_relied_on_is_refused() {
    let Some((place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    let Engine::Postgres(postgres) = &session.engine else {
        panic!("not on a server");
    };
    let refused = |sql: &str| -> ServerError {
        change(&session, sql).unwrap();
        super::settings::check(&place.server(), &postgres.wire()).unwrap_err()
    };
    let off = refused("SET session_replication_role = replica");
    assert!(
        matches!(&off, ServerError::TriggersOff(role) if role == "replica"),
        "{off}"
    );
    change(&session, "SET session_replication_role = origin").unwrap();
    super::settings::check(&place.server(), &postgres.wire()).unwrap();
    change(
        &session,
        "ALTER TABLE core_operations DISABLE TRIGGER core_operations_in_order",
    )
    .unwrap();
    let refused = Database::connect(place.server()).unwrap_err();
    let cause = format!("{refused:?}");
    assert!(cause.contains("NoTriggers"), "{cause}");
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    let server = Server::from_url("postgres://ada:secret@127.0.0.1:1/t").unwrap();
    let refused = Database::connect(server).unwrap_err();
    let told = format!("{refused}: {refused:?}");
    assert!(
        told.contains("postgres://127.0.0.1:1/t") && !told.contains("secret"),
        "{told}"
    );
    let cause = std::error::Error::source(&refused).unwrap().to_string();
    assert!(cause.contains("cannot be reached"), "{cause}");
}
