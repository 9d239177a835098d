//! Storage of native tests: SQLite behind the host's SQL parser.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};
use tollgate_sql::{Reader, Statement};

use super::Session;
use super::portable::Translation;
use super::tape::Tape;
use crate::{DbError, Effect, Migration, Pack, Row, Value};

/// Tables of one pack or policy.
pub(super) struct Storage {
    db: Connection,
    /// Parser of the statements, as in the host.
    reader: RefCell<Reader>,
    /// Number of applied migrations.
    migrated: Cell<usize>,
    /// Check of the statements for PostgreSQL, if a test enables it.
    pub(super) translation: Option<Translation>,
    /// Record of the statements, if enabled.
    tape: Tape,
}

/// Limits of the host's databases, so that statements that the host refuses fail in tests as well.
const LIMITS: [(Limit, i32); 9] = [
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 5),
    (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 8),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 100),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 10),
];

/// Maximum number of queries that a test may join with UNION when inspecting tables. Packs have a lower limit.
const JOINED_BY_TESTS: i32 = 500;

impl Storage {
    /// Opens an empty database as the host does, and applies some of the migrations. An unknown name in quotes is an
    /// error and not a text.
    pub(super) fn new(owner: &str, migrations: &[Migration], which: Range<usize>) -> Storage {
        let db = Connection::open_in_memory().expect("an in-memory database opens");
        for quoted in [
            DbConfig::SQLITE_DBCONFIG_DQS_DML,
            DbConfig::SQLITE_DBCONFIG_DQS_DDL,
        ] {
            db.set_db_config(quoted, false).expect("SQLite has the setting");
        }
        for (limit, value) in LIMITS {
            db.set_limit(limit, value).expect("SQLite has the limit");
        }
        Storage::over(db, owner, migrations, which)
    }

    fn over(db: Connection, owner: &str, migrations: &[Migration], which: Range<usize>) -> Storage {
        db.execute_batch("PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON;")
            .expect("pragmas are accepted");
        let migrated = Cell::new(which.end);
        let reader = RefCell::new(migrate(&db, owner, migrations, which));
        Storage {
            db,
            reader,
            migrated,
            translation: None,
            tape: Tape::of(owner),
        }
    }

    /// Makes tables read-only, unless the effect is that of a call that writes.
    pub(super) fn allow(&self, effect: Effect) {
        let query_only = if effect == Effect::Read { "ON" } else { "OFF" };
        self.batch(&format!("PRAGMA query_only = {query_only}"))
            .expect("SQLite has the pragma");
    }

    pub(super) fn begin(&self, name: &str) -> Result<(), DbError> {
        self.mark(&[&format!("SAVEPOINT {name}")])
    }

    pub(super) fn commit(&self, name: &str) -> Result<(), DbError> {
        self.mark(&[&format!("RELEASE {name}")])
    }

    pub(super) fn roll_back(&self, name: &str) -> Result<(), DbError> {
        self.mark(&[&format!("ROLLBACK TO {name}"), &format!("RELEASE {name}")])
    }

    pub(super) fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError> {
        self.rows(&self.read(sql, params)?.sql, params)
    }

    pub(super) fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, DbError> {
        let read = self.read(sql, params)?;
        let mut statement = self.db.prepare_cached(&read.sql).map_err(db_error)?;
        let changed = statement
            .execute(rusqlite::params_from_iter(params.iter().map(Param)))
            .map_err(db_error)?;
        Ok(changed as u64)
    }

    fn batch(&self, sql: &str) -> Result<(), DbError> {
        self.db.execute_batch(sql).map_err(db_error)
    }

    /// Prefix of the names of its tables.
    pub(super) fn prefix(&self) -> String {
        self.reader.borrow().prefix().to_owned()
    }

    /// Begins or ends a savepoint.
    fn mark(&self, commands: &[&str]) -> Result<(), DbError> {
        for command in commands {
            self.tape.mark(command);
        }
        self.batch(&commands.join("; "))
    }

    /// Parses a statement of the pack as the host does.
    fn read(&self, sql: &str, params: &[Value]) -> Result<Arc<Statement>, DbError> {
        let read = self.reader.borrow().statement(sql);
        let read = read.map_err(|refusal| DbError::Refused(refusal.to_string()))?;
        self.tape.statement(sql, params);
        if let Some(translation) = &self.translation {
            translation.check(sql, params)?;
        }
        Ok(read)
    }

    /// Runs a statement directly in SQLite.
    fn rows(&self, sql: &str, params: &[Value]) -> Result<Vec<Row>, DbError> {
        let mut statement = self.db.prepare_cached(sql).map_err(db_error)?;
        let columns = statement.column_count();
        let mut rows = statement
            .query(rusqlite::params_from_iter(params.iter().map(Param)))
            .map_err(db_error)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(db_error)? {
            let values = (0..columns)
                .map(|column| row.get_ref(column).map(value).map_err(db_error))
                .collect::<Result<_, _>>()?;
            all.push(Row::new(values));
        }
        Ok(all)
    }

    fn set_joined(&self, most: i32) -> i32 {
        self.db
            .set_limit(Limit::SQLITE_LIMIT_COMPOUND_SELECT, most)
            .expect("SQLite has the limit")
    }
}

impl Session {
    /// Opens the pack over any database and applies its migrations.
    ///
    /// # Panics
    /// If a migration fails.
    #[must_use]
    pub fn open(pack: &'static Pack, db: Connection) -> Session {
        let all = 0..pack.migrations.len();
        let storage = Storage::over(db, pack.name, pack.migrations, all);
        Session::over(pack, storage)
    }

    /// Opens the pack over an empty database and applies only its first migrations, as an earlier version would have.
    /// [`migrate`](Session::migrate) applies the others to the existing rows.
    ///
    /// ```
    /// # use tollgate_sdk::{Migration, Pack, native::Session};
    /// const PACK: Pack = Pack {
    ///     name: "notes",
    ///     migrations: &[
    ///         Migration { name: "0001_init", sql: "CREATE TABLE notes_notes (text TEXT NOT NULL);" },
    ///         Migration { name: "0002_tag", sql: "ALTER TABLE notes_notes ADD COLUMN tag TEXT NOT NULL DEFAULT 'none';" },
    ///     ],
    ///     ..Pack::EMPTY
    /// };
    /// let session = Session::migrated_to(&PACK, 1);
    /// session.sql("INSERT INTO notes_notes (text) VALUES ('old')");
    /// session.migrate();
    /// assert_eq!(session.sql("SELECT text FROM notes_notes WHERE tag = 'none'").len(), 1);
    /// ```
    ///
    /// # Panics
    /// If a migration fails.
    #[must_use]
    pub fn migrated_to(pack: &'static Pack, migrations: usize) -> Session {
        let applied = migrations.min(pack.migrations.len());
        let storage = Storage::new(pack.name, pack.migrations, 0..applied);
        Session::over(pack, storage)
    }

    /// Applies the migrations that [`migrated_to`](Session::migrated_to) left out.
    ///
    /// # Panics
    /// If a migration fails.
    pub fn migrate(&self) {
        let all = self.pack.migrations;
        let storage = &self.backend.storage;
        storage.allow(Effect::Write);
        let reader = migrate(
            &storage.db,
            self.pack.name,
            all,
            storage.migrated.get()..all.len(),
        );
        storage.reader.replace(reader);
        storage.migrated.set(all.len());
    }

    /// Runs SQL outside any tool, for inspecting or preparing tables.
    ///
    /// # Panics
    /// If the SQL fails.
    pub fn sql(&self, sql: &str) -> Vec<Row> {
        let storage = &self.backend.storage;
        storage.allow(Effect::Write);
        let joined = storage.set_joined(JOINED_BY_TESTS);
        let rows = storage.rows(sql, &[]);
        storage.set_joined(joined);
        rows.unwrap_or_else(|err| panic!("{sql}: {err}"))
    }
}

/// Applies some of a pack's migrations to a database, parsed and printed as the host does. Returns the parser for the
/// pack's statements.
fn migrate(db: &Connection, owner: &str, migrations: &[Migration], which: Range<usize>) -> Reader {
    let prefix = format!("{}_", owner.replace('-', "_"));
    let schema = tollgate_sql::schema::read(&prefix, steps(migrations))
        .unwrap_or_else(|problems| panic!("migrations of {owner} cannot be run: {problems}"));
    let read = migrations.iter().zip(&schema.steps);
    for (step, commands) in read.skip(which.start).take(which.len()) {
        for sql in commands.iter().filter_map(|command| command.sql.as_ref()) {
            db.execute_batch(sql)
                .unwrap_or_else(|err| panic!("migration {} fails: {err}", step.name));
        }
    }
    Reader::new(&prefix, schema.append_only().clone(), "")
}

/// Converts migrations to the type of `tollgate-sql`.
pub(super) fn steps(migrations: &[Migration]) -> Vec<tollgate_sql::Step<'_>> {
    let steps = migrations.iter().map(|step| tollgate_sql::Step {
        name: step.name,
        sql: step.sql,
    });
    steps.collect()
}

/// Parameter as rusqlite expects it.
struct Param<'a>(&'a Value);

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(rusqlite::types::ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
    }
}

fn db_error(err: rusqlite::Error) -> DbError {
    match err.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => DbError::Constraint(err.to_string()),
        Some(ErrorCode::ReadOnly) => DbError::ReadOnly,
        Some(ErrorCode::DiskFull) => DbError::Full,
        _ => DbError::Refused(err.to_string()),
    }
}
