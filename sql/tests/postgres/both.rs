//! One component on both engines: its tables, its statements, and their outcomes.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::error::Error as _;
use std::rc::Rc;

use postgres::error::SqlState;
use postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use postgres::{Client, Row, fallible_iterator::FallibleIterator as _};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::Value;
use rusqlite::{Connection, ffi};
use tollgate_sql::postgres::{Catalog, Datum, Difference, Kind, MAX_VALUE, Statement, bind, migrations};
use tollgate_sql::read::{Owner, statement};
use tollgate_sql::{Step, schema, sqlite};

use crate::server::database;

/// Outcome of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Rows(Vec<Vec<Value>>),
    /// Rows that it changed.
    Changed(u64),
    /// A constraint, by its kind.
    Constraint(&'static str),
    /// Anything else that an engine refuses while it runs.
    Failed(String),
    /// The translation or a value was refused.
    Refused(String),
}

/// A component with its tables in both engines.
pub(crate) struct Both {
    pub(crate) sqlite: Connection,
    pub(crate) postgres: Client,
    pub(crate) catalog: Catalog,
    prefix: String,
    append_only: BTreeSet<String>,
    /// Statements by their text: sessions repeat them.
    known: HashMap<String, Rc<Known>>,
    /// Tables that number their rows, and the SQL that continues after the greatest number.
    numbered: Vec<(String, String)>,
}

/// A statement for each engine.
struct Known {
    sqlite: String,
    translated: Result<Statement, Difference>,
    prepared: Prepared,
}

/// The server's statement, once it was prepared.
type Prepared = OnceCell<postgres::Statement>;

/// Statements that are kept. Random ones are different each time.
const MAX_KNOWN: usize = 500;

impl Both {
    /// With the tables of a component whose names start with `prefix`.
    pub(crate) fn new(prefix: &str, steps: &[Step<'_>]) -> Both {
        Both::on(database(), "shop", prefix, steps)
    }

    pub(crate) fn on(mut client: Client, name: &str, prefix: &str, steps: &[Step<'_>]) -> Both {
        let schema =
            schema::read(prefix, steps.iter().copied()).unwrap_or_else(|problems| panic!("{problems}"));
        let sqlite = sqlite();
        for command in schema.steps.iter().flatten() {
            if let Some(sql) = &command.sql {
                sqlite
                    .execute_batch(sql)
                    .unwrap_or_else(|err| panic!("{sql}: {err}"));
            }
        }
        client
            .batch_execute(&format!("CREATE SCHEMA \"{name}\""))
            .unwrap();
        let migrated = migrations(name, &schema).unwrap_or_else(|unfit| panic!("{prefix}: {unfit:?}"));
        for sql in migrated.steps.iter().flatten().flatten() {
            client
                .batch_execute(sql)
                .unwrap_or_else(|err| panic!("{sql}: {err:?}"));
        }
        Both {
            sqlite,
            postgres: client,
            numbered: numbered(&migrated.catalog),
            catalog: migrated.catalog,
            prefix: prefix.to_owned(),
            append_only: schema.append_only().clone(),
            known: HashMap::new(),
        }
    }

    /// Lets PostgreSQL number rows as SQLite does, in the tables that a statement names: after the greatest number there is.
    pub(crate) fn renumber(&mut self, text: &str) {
        let named = self.numbered.iter().filter(|(table, _)| text.contains(table));
        for (_, sql) in named {
            self.postgres
                .batch_execute(sql)
                .unwrap_or_else(|err| panic!("{sql}: {err:?}"));
        }
    }

    /// True if a text is of the subset.
    pub(crate) fn reads(&self, text: &str) -> bool {
        let owner = Owner {
            prefix: &self.prefix,
            append_only: &self.append_only,
        };
        statement(text, owner).is_ok()
    }

    pub(crate) fn translate(&self, text: &str) -> (String, Result<Statement, Difference>) {
        let owner = Owner {
            prefix: &self.prefix,
            append_only: &self.append_only,
        };
        let tree = statement(text, owner).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
        (sqlite::statement(&tree), self.catalog.statement(&tree))
    }

    /// Runs a statement on both engines.
    pub(crate) fn run(&mut self, text: &str, values: &[Value]) -> (Outcome, Outcome) {
        let known = self.known(text);
        let one = on_sqlite(&self.sqlite, &known.sqlite, values);
        let other = match &known.translated {
            Err(difference) => Outcome::Refused(difference.to_string()),
            Ok(translated) => on_prepared(&mut self.postgres, translated, &known.prepared, values),
        };
        (one, other)
    }

    fn known(&mut self, text: &str) -> Rc<Known> {
        if let Some(known) = self.known.get(text) {
            return Rc::clone(known);
        }
        if self.known.len() == MAX_KNOWN {
            self.known.clear();
        }
        let (sqlite, translated) = self.translate(text);
        let known = Rc::new(Known {
            sqlite,
            translated,
            prepared: Prepared::new(),
        });
        self.known.insert(text.to_owned(), Rc::clone(&known));
        known
    }

    /// Runs a statement whose outcome has to be the same.
    pub(crate) fn same(&mut self, text: &str, values: &[Value]) -> Outcome {
        let (one, other) = self.run(text, values);
        assert!(
            alike(text, &one, &other),
            "{text}\n{values:?}\n{:?}\nSQLite: {one:?}\nPostgreSQL: {other:?}",
            self.translate(text).1
        );
        one
    }
}

fn numbered(catalog: &Catalog) -> Vec<(String, String)> {
    let tables = catalog.tables().filter_map(|(table, relation)| {
        let field = relation.fields.iter().find(|field| field.numbered)?;
        let (name, column) = (catalog.name(table), &field.name);
        let sql = format!(
            "SELECT setval(pg_get_serial_sequence('{name}', '{column}'), coalesce(max(\"{column}\"), 0) + 1, false) FROM {name}"
        );
        Some((table.to_owned(), sql))
    });
    tables.collect()
}

/// SQLite with the settings of a host that decide what a statement means.
fn sqlite() -> Connection {
    let sqlite = Connection::open_in_memory().unwrap();
    sqlite.execute_batch("PRAGMA foreign_keys = ON").unwrap();
    for setting in [
        DbConfig::SQLITE_DBCONFIG_DQS_DML,
        DbConfig::SQLITE_DBCONFIG_DQS_DDL,
    ] {
        sqlite.set_db_config(setting, false).unwrap();
    }
    let length = i32::try_from(MAX_VALUE).unwrap();
    sqlite.set_limit(Limit::SQLITE_LIMIT_LENGTH, length).unwrap();
    sqlite.set_prepared_statement_cache_capacity(MAX_KNOWN);
    sqlite
}

/// True if two outcomes are the same. Rows come in any order if none is told.
pub(crate) fn alike(text: &str, one: &Outcome, other: &Outcome) -> bool {
    match (one, other) {
        (Outcome::Rows(one), Outcome::Rows(other)) if !is_ordered(text) => {
            let sorted = |rows: &Vec<Vec<Value>>| {
                let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
                rows.sort();
                rows
            };
            sorted(one) == sorted(other)
        }
        (one, other) => one == other,
    }
}

/// True if a statement is a query that tells the order of its rows. That of changed rows is open.
fn is_ordered(text: &str) -> bool {
    let is_change = ["INSERT", "UPDATE", "DELETE"]
        .iter()
        .any(|verb| text.starts_with(verb));
    text.contains("ORDER BY") && !is_change
}

fn plain(value: Value) -> Value {
    match value {
        // Zero has a sign that SQLite does not keep.
        Value::Real(number) => Value::Real(number + 0.0),
        value => value,
    }
}

pub(crate) fn on_sqlite(db: &Connection, sql: &str, values: &[Value]) -> Outcome {
    let came = || -> rusqlite::Result<Outcome> {
        let mut statement = db.prepare_cached(sql)?;
        let columns = statement.column_count();
        let values = rusqlite::params_from_iter(values.iter().take(statement.parameter_count()));
        if columns == 0 {
            return Ok(Outcome::Changed(statement.execute(values)? as u64));
        }
        let mut rows = statement.query(values)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(
                (0..columns)
                    .map(|place| row.get(place).map(plain))
                    .collect::<Result<_, _>>()?,
            );
        }
        Ok(Outcome::Rows(all))
    };
    came().unwrap_or_else(|err| match err.sqlite_error().map(|err| err.extended_code) {
        Some(
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID,
        ) => Outcome::Constraint("unique"),
        Some(ffi::SQLITE_CONSTRAINT_NOTNULL) => Outcome::Constraint("not null"),
        Some(ffi::SQLITE_CONSTRAINT_CHECK) => Outcome::Constraint("check"),
        Some(ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => Outcome::Constraint("foreign key"),
        _ => Outcome::Failed(err.to_string()),
    })
}

fn datum(value: &Value) -> Datum<'_> {
    match value {
        Value::Null => Datum::Null,
        Value::Integer(number) => Datum::Integer(*number),
        Value::Real(number) => Datum::Real(*number),
        Value::Text(text) => Datum::Text(Cow::Borrowed(text)),
        Value::Blob(bytes) => Datum::Blob(Cow::Borrowed(bytes)),
    }
}

pub(crate) fn on_postgres(client: &mut Client, statement: &Statement, values: &[Value]) -> Outcome {
    on_prepared(client, statement, &Prepared::new(), values)
}

fn on_prepared(client: &mut Client, statement: &Statement, prepared: &Prepared, values: &[Value]) -> Outcome {
    let mut sent = Vec::new();
    for parameter in &statement.parameters {
        let value = values
            .get(usize::from(parameter.number) - 1)
            .unwrap_or(&Value::Null);
        match bind(parameter, datum(value)) {
            Ok(value) => sent.push(Sent(value)),
            Err(misfit) => return Outcome::Refused(misfit.to_string()),
        }
    }
    match rows(client, statement, prepared, &sent) {
        Ok(came) => came,
        Err(err) => {
            let code = err.code().unwrap_or_else(|| panic!("{}: {err:?}", statement.sql));
            match CONSTRAINTS.iter().find(|(constraint, _)| constraint == code) {
                Some((_, kind)) => Outcome::Constraint(kind),
                None => Outcome::Failed(format!(
                    "{} {}",
                    code.code(),
                    err.source().map(ToString::to_string).unwrap_or_default()
                )),
            }
        }
    }
}

/// Constraints, as both engines tell them apart.
const CONSTRAINTS: [(SqlState, &str); 4] = [
    (SqlState::UNIQUE_VIOLATION, "unique"),
    (SqlState::NOT_NULL_VIOLATION, "not null"),
    (SqlState::CHECK_VIOLATION, "check"),
    (SqlState::FOREIGN_KEY_VIOLATION, "foreign key"),
];

fn rows(
    client: &mut Client,
    statement: &Statement,
    prepared: &Prepared,
    sent: &[Sent<'_>],
) -> Result<Outcome, postgres::Error> {
    if prepared.get().is_none() {
        let _ = prepared.set(prepare(client, statement)?);
    }
    let sent = sent.iter().map(|value| value as &dyn ToSql);
    let mut rows = client.query_raw(prepared.get().unwrap(), sent)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = statement.columns.iter().enumerate();
        let values = columns.map(|(place, column)| cell(&row, place, *column));
        all.push(values.collect());
    }
    if statement.columns.is_empty() {
        return Ok(Outcome::Changed(rows.rows_affected().unwrap_or_default()));
    }
    Ok(Outcome::Rows(all))
}

fn prepare(client: &mut Client, statement: &Statement) -> Result<postgres::Statement, postgres::Error> {
    let prepared = client.prepare(&statement.sql)?;
    // What the translation says of a statement is what the server makes of it.
    let wanted: Vec<Type> = statement
        .parameters
        .iter()
        .map(|parameter| kind(parameter.kind))
        .collect();
    assert_eq!(prepared.params(), wanted, "{}", statement.sql);
    let columns: Vec<Type> = prepared
        .columns()
        .iter()
        .map(|column| column.type_().clone())
        .collect();
    let wanted: Vec<Type> = statement
        .columns
        .iter()
        .map(|column| kind(Some(*column)))
        .collect();
    assert_eq!(columns, wanted, "{}", statement.sql);
    Ok(prepared)
}

fn cell(row: &Row, place: usize, kind: Kind) -> Value {
    match kind {
        Kind::Integer => row.get::<_, Option<i64>>(place).map(Value::Integer),
        Kind::Real => row.get::<_, Option<f64>>(place).map(Value::Real).map(plain),
        Kind::Text => row.get::<_, Option<String>>(place).map(Value::Text),
        Kind::Blob => row.get::<_, Option<Vec<u8>>>(place).map(Value::Blob),
    }
    .unwrap_or(Value::Null)
}

fn kind(kind: Option<Kind>) -> Type {
    match kind {
        Some(Kind::Integer) => Type::INT8,
        Some(Kind::Real) => Type::FLOAT8,
        Some(Kind::Text) | None => Type::TEXT,
        Some(Kind::Blob) => Type::BYTEA,
    }
}

/// A bound value on its way to the server.
#[derive(Debug)]
struct Sent<'a>(Datum<'a>);

impl ToSql for Sent<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match &self.0 {
            Datum::Null => Ok(IsNull::Yes),
            Datum::Integer(number) => number.to_sql(kind, out),
            Datum::Real(number) => number.to_sql(kind, out),
            Datum::Text(text) => text.as_ref().to_sql(kind, out),
            Datum::Blob(bytes) => bytes.as_ref().to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
