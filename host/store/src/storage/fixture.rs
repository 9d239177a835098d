//! Small ledgers for tests of the storage.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;
use tollgate_core::envelope::State;

use super::engine::sqlite::schema::{Object, pristine};
use super::engine::{Dialects, Engine, sql};
use super::error::StoreResult;
use super::{
    Broken, Database, Ending, Envelope, Head, Operation, PruneError, Pruned, Retention, Server, Session,
    Sighting,
};
use crate::key::LedgerKey;

/// URL of a PostgreSQL server on which tests of both engines run, in place of SQLite.
const SERVER_VARIABLE: &str = "TOLLGATE_TEST_DATABASE";

/// True if tests of both engines run on PostgreSQL.
pub(crate) fn on_postgres() -> bool {
    std::env::var_os(SERVER_VARIABLE).is_some()
}

/// Place of a test's database, which goes with it.
pub(crate) struct Place {
    _dir: Option<TempDir>,
    schema: Option<(Server, String)>,
}

impl Place {
    /// The server of a database on one.
    pub(crate) fn server(&self) -> Server {
        self.schema.as_ref().unwrap().0.clone()
    }

    fn on_server(url: &str) -> (Place, Database) {
        static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{number}", std::process::id());
        let joint = if url.contains('?') { '&' } else { '?' };
        let server = Server::from_url(&format!("{url}{joint}schema={schema}")).unwrap();
        let place = Place {
            _dir: None,
            schema: Some((server.clone(), schema)),
        };
        (place, Database::connect(server).unwrap())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((server, schema)) = self.schema.take() {
            // A test that failed may leave things behind that are in the way.
            let dropped = Session::on_server(&server, super::session::Access::Write)
                .map_err(super::OpenError::into_cause)
                .and_then(|session| {
                    let sql = "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE ?1";
                    let components = server.schemas_of_components();
                    let found: Vec<String> = session.engine.all(sql, sql![components], |row| row.get(0))?;
                    let found = found
                        .iter()
                        .map(|name| format!(", \"{name}\""))
                        .collect::<String>();
                    change(&session, &format!("DROP SCHEMA {schema}{found} CASCADE"))?;
                    let sql = "SELECT r.rolname::text FROM pg_roles AS r JOIN pg_database AS d ON d.datname = current_database()
                        WHERE starts_with(r.rolname, 'tollgate_' || to_hex(d.oid::bigint) || '_' || ?1 || '/')";
                    let roles: Vec<String> = session.engine.all(sql, sql![schema], |row| row.get(0))?;
                    for role in roles {
                        change(&session, &format!("DROP ROLE \"{role}\""))?;
                    }
                    Ok(())
                });
            assert!(dropped.is_ok() || std::thread::panicking(), "{dropped:?}");
        }
    }
}

/// An empty database of the engine that tests run on.
pub(crate) fn database() -> (Place, Database) {
    match std::env::var(SERVER_VARIABLE) {
        Ok(url) => Place::on_server(&url),
        Err(_) => {
            let (dir, database) = in_file::database();
            let place = Place {
                _dir: Some(dir),
                schema: None,
            };
            (place, database)
        }
    }
}

/// A session with an empty database of its own.
pub(crate) struct Alone {
    session: Session,
    _place: Place,
}

impl Deref for Alone {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

/// A session with an empty database of its own, of the engine that tests run on.
pub(crate) fn session() -> Alone {
    let (place, database) = database();
    Alone {
        session: database.write_session().unwrap(),
        _place: place,
    }
}

/// Databases that are files of SQLite, whatever engine other tests run on.
pub(crate) mod in_file {
    use super::{Database, Session, TempDir};

    pub(crate) fn database() -> (TempDir, Database) {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("t.db")).unwrap();
        (dir, database)
    }

    /// [`ledger`](super::ledger) in a file.
    pub(crate) fn ledger(rows: &str) -> (TempDir, Session) {
        let (dir, database) = database();
        (dir, super::ledger_in(&database, rows))
    }
}

/// Runs statements with the rights of the host, but without its checks.
pub(crate) fn change(session: &Session, sql: &str) -> StoreResult<()> {
    match &session.engine {
        Engine::Sqlite(sqlite) => Ok(sqlite.db.execute_batch(sql)?),
        Engine::Postgres(postgres) => postgres.run_script(sql),
    }
}

pub(crate) const NOW: &str = "2026-03-01T00:00:00.000Z";
pub(crate) const CUTOFF: &str = "2026-02-01T00:00:00.000Z";
pub(crate) const OLD: &str = "2026-01-01T00:00:00.000Z";
pub(crate) const YOUNG: &str = "2026-02-28T00:00:00.000Z";

pub(crate) fn key() -> LedgerKey {
    LedgerKey::of_seed(1)
}

pub(crate) fn retention() -> Retention {
    Retention {
        cutoff: CUTOFF.to_owned(),
        envelopes: 500,
    }
}

pub(crate) fn operation(number: usize, envelope: Option<&str>, timestamp: &str) -> Operation {
    Operation::for_tests(number, envelope, timestamp)
}

pub(crate) fn envelope(id: &str, closed_at: Option<&str>) -> Envelope {
    Envelope {
        id: id.to_owned(),
        opened_at: OLD.to_owned(),
        closed_at: closed_at.map(str::to_owned),
        host_id: "h".to_owned(),
        connection: "c".to_owned(),
        ..Envelope::default()
    }
}

/// A ledger with one row for each letter: `o` old and outside, `y` young and outside, `k` of an open
/// envelope, `c` of a closed old one.
pub(crate) fn ledger(rows: &str) -> (Place, Session) {
    let (place, database) = database();
    (place, ledger_in(&database, rows))
}

pub(crate) fn ledger_in(database: &Database, rows: &str) -> Session {
    let session = database.write_session().unwrap();
    session.begin_write().unwrap();
    session.envelopes().open(&envelope("env_k", None)).unwrap();
    session.envelopes().open(&envelope("env_c", None)).unwrap();
    session
        .envelopes()
        .close("env_c", Ending::by_host(State::ClosedSuccess, "TEST", OLD, 0))
        .unwrap();
    add(&session, rows, 0);
    session.commit().unwrap();
    session
}

pub(crate) fn add(session: &Session, rows: &str, from: usize) {
    for (number, kind) in rows.chars().enumerate() {
        let (envelope, timestamp) = match kind {
            'o' => (None, OLD),
            'k' => (Some("env_k"), OLD),
            'c' => (Some("env_c"), OLD),
            _ => (None, YOUNG),
        };
        session
            .ledger()
            .record(&operation(from + number, envelope, timestamp))
            .unwrap();
    }
}

/// Adds rows to a ledger in their own transaction.
pub(crate) fn next(session: &Session, rows: &str, from: usize) {
    session.begin_write().unwrap();
    add(session, rows, from);
    session.commit().unwrap();
}

/// An empty ledger with an open envelope besides those of [`ledger`], in a write transaction.
pub(crate) fn writing_in(envelope_id: &str) -> (Place, Session) {
    let (place, session) = ledger("");
    session.begin_write().unwrap();
    session.envelopes().open(&envelope(envelope_id, None)).unwrap();
    (place, session)
}

/// A scan of the workspace `one`.
pub(crate) fn seen(state: &str, looked_boot_ms: i64) -> Sighting {
    Sighting {
        workspace: "one".to_owned(),
        state: state.to_owned(),
        looked_boot_ms,
        ..Sighting::default()
    }
}

/// Number of rows in a stretch.
pub(crate) fn rows_between(session: &Session, first: i64, last: i64) -> i64 {
    let count = "SELECT count(*) FROM core_operations WHERE seq BETWEEN ?1 AND ?2";
    session
        .engine
        .one(count, sql![first, last], |row| row.get(0))
        .unwrap()
}

/// Prunes in batches of this many rows.
pub(crate) fn prune(session: &Session, limit: u32) -> Result<Pruned, PruneError> {
    let mut after = 0;
    let mut all = Pruned::default();
    loop {
        let batch = session
            .maintenance()
            .plan_prune(&retention(), &mut after, limit, &key(), NOW)?;
        if batch.is_empty() {
            return Ok(all);
        }
        session.begin_write()?;
        session.maintenance().prune(&batch)?;
        session.commit()?;
        all.add(batch.pruned);
    }
}

pub(crate) fn verify(session: &Session, head: Option<&Head>) -> Option<Broken> {
    session.ledger().verify(head, &[key().public()]).unwrap().broken
}

/// Differences between the ledger and the tables derived from it, one message each.
pub(crate) fn faults(session: &Session) -> Vec<String> {
    session.ledger().verify(None, &[key().public()]).unwrap().around
}

/// Picture of the remaining rows: `#` for a row, `_` for a pruned one.
pub(crate) fn picture(session: &Session) -> String {
    let head = session.ledger().head().unwrap();
    let mut picture = vec!['#'; usize::try_from(head.seq).unwrap()];
    for anchor in session.ledger().anchors().unwrap() {
        for seq in anchor.first_seq..=anchor.last_seq {
            picture[usize::try_from(seq).unwrap() - 1] = '_';
        }
    }
    picture.into_iter().collect()
}

/// Lets rows be changed past foreign keys, as external tools do.
pub(crate) fn without_keys(session: &Session) {
    let sql = session.engine.text(Dialects {
        sqlite: "PRAGMA foreign_keys = OFF",
        postgres: "SET session_replication_role = replica",
    });
    change(session, sql).unwrap();
}

/// Drops what keeps SQL from changing the ledger.
pub(crate) fn disarm(session: &Session) {
    arm(session, "DISABLE", |guard| format!("DROP TRIGGER {}", guard.name));
}

pub(crate) fn rearm(session: &Session) {
    arm(session, "ENABLE", |guard| guard.sql.clone().unwrap());
}

fn arm(session: &Session, triggers: &str, guard: impl Fn(&Object) -> String) {
    let sql = match &session.engine {
        Engine::Sqlite(_) => guards().map(guard).collect::<Vec<_>>().join(";\n"),
        Engine::Postgres(_) => ["core_operations", "core_anchors"]
            .map(|table| format!("ALTER TABLE {table} {triggers} TRIGGER USER"))
            .join(";\n"),
    };
    change(session, &sql).unwrap();
}

fn guards() -> impl Iterator<Item = &'static Object> {
    let all = pristine().unwrap().iter();
    all.filter(|object| object.kind == "trigger")
}
