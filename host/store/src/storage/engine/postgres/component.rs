//! Statements of components on PostgreSQL, with limits on their results.
//!
//! The server never gets a component's text, only what the translator printed. A failed statement would abort the
//! whole transaction, so each statement runs after a savepoint. If rows were written since the last savepoint, a new
//! one is sent with the statement in the same round trip, and so are the change to the component's role and the
//! change back. Between two round trips a session always has the host's own role, whatever the result of the
//! statement, because the savepoint is set under the host's role and restores it.

use std::borrow::Cow;
use std::sync::Arc;

use tollgate_sql::postgres::{Datum, Kind, Parameter, Statement as Translated, Unsaid, Verb, bind};

use super::error::Failure;
use super::settings::quoted;
use super::values::raw;
use super::wire::{Around, Caps, Over};
use super::{Postgres, Transaction};
use crate::storage::access::Namespace;
use crate::storage::component_sql::{MAX_BYTES, MAX_ROWS, NO_ACCESS, SqlError};
use crate::storage::engine::Sql;
use crate::storage::error::StoreFailure;
use crate::storage::value::{Statement, Value};

/// Limits on the result of one query.
const CAPS: Caps = Caps {
    rows: MAX_ROWS,
    bytes: MAX_BYTES,
};

impl Postgres {
    /// Runs a component's query.
    pub(in crate::storage) fn query_of(
        &self,
        namespace: &Namespace,
        sql: &str,
        params: &[Value],
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let statement = self.translated(namespace, sql)?;
        let (rows, _) = self.said(namespace, &statement, params)?;
        let read = |row: &tokio_postgres::Row| {
            let columns = statement.columns.iter().enumerate();
            let values = columns.map(|(at, kind)| value(*kind, raw(row, at)?));
            values.collect::<Option<Vec<Value>>>()
        };
        let read = rows.iter().map(read).collect::<Option<Vec<_>>>();
        read.ok_or_else(|| SqlError::Refused("a column holds a value outside its type's range".to_owned()))
    }

    /// Runs a component's statement and returns how many rows it changed.
    pub(in crate::storage) fn execute_of(
        &self,
        namespace: &Namespace,
        sql: &str,
        params: &[Value],
    ) -> Result<u64, SqlError> {
        let statement = self.translated(namespace, sql)?;
        if !statement.columns.is_empty() {
            return Err(SqlError::Refused(
                "the statement returns rows; run it as a query".to_owned(),
            ));
        }
        let (_, changed) = self.said(namespace, &statement, params)?;
        Ok(changed)
    }

    /// Runs statements in order. The first failure undoes all of them.
    pub(in crate::storage) fn batch_of(
        &self,
        namespace: &Namespace,
        statements: &[Statement],
    ) -> Result<Vec<u64>, SqlError> {
        self.within_transaction()?;
        let (guard, before) = (self.guard.get(), self.due_batch.take());
        let savepoint = self.beyond_guard("SAVEPOINT batch");
        let due = [before.clone(), Some(savepoint)].into_iter().flatten();
        self.due_batch.replace(Some(due.collect::<Vec<_>>().join("; ")));
        let result = statements
            .iter()
            .map(|statement| self.execute_of(namespace, &statement.sql, &statement.params))
            .collect::<Result<Vec<_>, _>>();
        match &result {
            // Nothing was sent.
            _ if self.due_batch.borrow().is_some() => {
                self.due_batch.replace(before);
                self.guard.set(guard);
                return result;
            }
            Ok(_) => {
                self.due_batch.replace(Some("RELEASE batch".to_owned()));
            }
            Err(_) if self.in_transaction() => {
                self.script("ROLLBACK TO batch; RELEASE batch")?;
                self.transaction.set(Transaction::Open);
            }
            // It was lost with the connection.
            Err(_) => {}
        }
        self.guard.set(Guard::None);
        result
    }

    fn translated(&self, namespace: &Namespace, sql: &str) -> Result<Arc<Translated>, SqlError> {
        let schema = self.server.schema_of(namespace.pack());
        let translator = namespace
            .translator(&schema)
            .map_err(|err| SqlError::Refused(format!("the migrations of the component: {err}")))?;
        translator.statement(sql).map_err(|err| match err {
            Unsaid::Refused(refusal) => SqlError::Refused(refusal.to_string()),
            differs @ Unsaid::Differs(_) => SqlError::Refused(differs.to_string()),
        })
    }

    fn within_transaction(&self) -> Result<(), SqlError> {
        match self.transaction.get() {
            Transaction::Open => Ok(()),
            Transaction::None | Transaction::Failed => {
                Err(SqlError::TransactionState("the transaction has ended".to_owned()))
            }
        }
    }

    /// Runs a statement, and counts the rows that it changed.
    fn said(
        &self,
        namespace: &Namespace,
        statement: &Translated,
        params: &[Value],
    ) -> Result<(Vec<tokio_postgres::Row>, u64), SqlError> {
        self.within_transaction()?;
        self.make_way_for_more()?;
        let bound = bound(&statement.parameters, params)?;
        let sent: Vec<Sql<'_>> = bound.iter().map(sql_of).collect();
        let role = self.role_of(namespace.pack()).map_err(SqlError::Internal)?;
        let prepared = self.prepared_of(role.as_deref(), statement)?;
        let deadline = self.deadline();
        let around = self.around(role.as_deref());
        let (came, over) = self
            .wire()
            .guarded(&around, (&prepared, &sent), deadline.as_ref(), CAPS);
        self.must_have_begun(&around)?;
        if matches!(&came, Err(failure) if failure.kind() == StoreFailure::Conflict) {
            self.give_way();
            return Err(SqlError::TransactionState(
                "another transaction conflicted with this one".to_owned(),
            ));
        }
        let came = self.seen_within(came);
        let came = match (over, came) {
            (Some(over), Ok(_) | Err(SqlError::Interrupted)) => {
                if statement.changes.is_some() {
                    // Rows that it changed may stay changed, and how many is not known.
                    self.add_row_changes(1);
                }
                return Err(too_large(over));
            }
            (_, came) => came?,
        };
        let Some(change) = &statement.changes else {
            return Ok((came.rows, came.changed));
        };
        self.guard.set(Guard::Passed);
        let (inserted, updated) = match &change.is_new {
            Some(_) => upserted(statement, &came.rows),
            None => (came.changed, 0),
        };
        self.count(&change.table, change.verb, inserted);
        self.count(&change.table, Verb::Update, updated);
        let rows = if statement.columns.is_empty() {
            Vec::new()
        } else {
            came.rows
        };
        Ok((rows, inserted + updated))
    }

    /// SQL around a component's statement: pending SQL, a savepoint if needed, and the role.
    fn around(&self, role: Option<&str>) -> Around {
        let mut around = self.take_due();
        if let Some(savepoint) = self.guard.get().savepoint() {
            around.push(savepoint);
        }
        if let Some(role) = role {
            around.push(&format!("SET LOCAL ROLE {}", quoted(role)));
            around.after = Some(RESET_ROLE);
        }
        around
    }

    fn must_have_begun(&self, around: &Around) -> Result<(), SqlError> {
        match self.has_begun(around) {
            true => Ok(()),
            false => Err(SqlError::TransactionState(
                "cannot begin the transaction".to_owned(),
            )),
        }
    }

    /// Prepares a statement in its own savepoint, unless it is prepared.
    fn prepared_of(
        &self,
        role: Option<&str>,
        statement: &Translated,
    ) -> Result<tokio_postgres::Statement, SqlError> {
        if let Some(kept) = self.kept(&statement.sql) {
            return Ok(kept);
        }
        let deadline = self.deadline();
        let types: Vec<_> = statement
            .parameters
            .iter()
            .map(|parameter| parameter.kind.unwrap_or(Kind::Text))
            .collect();
        let around = self.around(role);
        let prepared = self
            .wire()
            .prepare_guarded(&around, &counting(statement), &types, deadline.as_ref());
        self.must_have_begun(&around)?;
        let prepared = self.seen_within(prepared)?;
        self.statements.borrow_mut().keep(&statement.sql, &prepared);
        Ok(prepared)
    }

    /// Undoes a failed statement and nothing else.
    fn seen_within<T>(&self, result: Result<T, Failure>) -> Result<T, SqlError> {
        let failure = match result {
            Ok(came) => {
                self.guard.set(Guard::Fresh);
                if self.wire().is_closed() {
                    // The transaction is gone in any case. Unless the host itself gave it up, the call is not to
                    // blame.
                    self.was_lost.set(!self.wire().is_given_up());
                    self.transaction.set(Transaction::None);
                }
                return Ok(came);
            }
            Err(failure) => failure,
        };
        let told = of_failure(&failure);
        if is_breach(&failure) {
            self.server.wall.breached(&failure);
        }
        let failed = self.seen::<T>(Err(failure));
        if self.transaction.get() == Transaction::Failed {
            self.script(&format!("ROLLBACK TO statement; {RESET_ROLE}"))?;
            self.transaction.set(Transaction::Open);
            self.guard.set(Guard::Fresh);
        }
        match told {
            Some(told) => Err(told),
            None => failed.map_err(SqlError::Internal),
        }
    }

    /// SQL for another savepoint, which closes an open savepoint of the component's statements first.
    pub(super) fn beyond_guard(&self, savepoint: &str) -> String {
        match self.guard.replace(Guard::None) {
            Guard::None => savepoint.to_owned(),
            Guard::Fresh | Guard::Passed => format!("RELEASE statement; {savepoint}"),
        }
    }
}

/// State of the savepoint `statement`, to which a component's failed statement is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// There is no savepoint.
    None,
    /// Nothing was written since the savepoint.
    Fresh,
    /// Rows may have been written since the savepoint, so the next statement needs a new one.
    Passed,
}

impl Guard {
    /// SQL that must precede a component's statement.
    fn savepoint(self) -> Option<&'static str> {
        match self {
            Guard::None => Some("SAVEPOINT statement"),
            Guard::Fresh => None,
            Guard::Passed => Some("RELEASE statement; SAVEPOINT statement"),
        }
    }
}

/// SQL that returns to the host's role.
const RESET_ROLE: &str = "RESET ROLE";

/// Text of a statement as sent. An INSERT that may update rows also returns which it did.
fn counting(statement: &Translated) -> Cow<'_, str> {
    let sql = &statement.sql;
    let is_new = statement
        .changes
        .as_ref()
        .and_then(|change| change.is_new.as_ref());
    match is_new {
        None => Cow::Borrowed(sql),
        Some(is_new) if statement.columns.is_empty() => Cow::Owned(format!(
            "WITH changed AS ({sql} RETURNING {is_new} AS is_new)
             SELECT pg_catalog.count(*) FILTER (WHERE is_new), pg_catalog.count(*) FILTER (WHERE NOT is_new) FROM changed"
        )),
        Some(is_new) => Cow::Owned(format!("{sql}, {is_new}")),
    }
}

/// Numbers of rows that such a statement inserted and updated.
fn upserted(statement: &Translated, rows: &[tokio_postgres::Row]) -> (u64, u64) {
    fn bytes(row: &tokio_postgres::Row, at: usize) -> &[u8] {
        raw(row, at).flatten().unwrap_or_default()
    }
    if statement.columns.is_empty() {
        let count = |at| {
            let number = rows.first().and_then(|row| bytes(row, at).try_into().ok());
            number.map_or(0, u64::from_be_bytes)
        };
        return (count(0), count(1));
    }
    let is_new = |row: &&tokio_postgres::Row| bytes(row, statement.columns.len()) == [1];
    let inserted = rows.iter().filter(is_new).count() as u64;
    (inserted, rows.len() as u64 - inserted)
}

/// True if the server refused a statement for a name, right or syntax error, which the checker should have caught.
fn is_breach(failure: &Failure) -> bool {
    let code = failure.code().unwrap_or_default();
    code.starts_with("42") || code.starts_with("3F")
}

fn too_large(over: Over) -> SqlError {
    SqlError::TooLarge(match over {
        Over::Rows => format!("a query returns at most {MAX_ROWS} rows"),
        Over::Bytes => format!("a query returns at most {MAX_BYTES} bytes"),
    })
}

/// Values as sent, in the order of the translated statement.
fn bound<'v>(parameters: &[Parameter], params: &'v [Value]) -> Result<Vec<Datum<'v>>, SqlError> {
    let highest = parameters
        .iter()
        .map(|parameter| usize::from(parameter.number))
        .max();
    let highest = highest.unwrap_or_default();
    if params.len() < highest {
        return Err(SqlError::Refused(format!(
            "the statement has parameters up to ?{highest}, but {} values were given",
            params.len()
        )));
    }
    let values = parameters.iter().map(|parameter| {
        let value = &params[usize::from(parameter.number).saturating_sub(1)];
        bind(parameter, datum(value)).map_err(|misfit| SqlError::Refused(misfit.to_string()))
    });
    values.collect()
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

fn sql_of<'d>(datum: &'d Datum<'_>) -> Sql<'d> {
    match datum {
        Datum::Null => Sql::Null,
        Datum::Integer(number) => Sql::Int(*number),
        Datum::Real(number) => Sql::Real(*number),
        Datum::Text(text) => Sql::Text(text),
        Datum::Blob(bytes) => Sql::Blob(bytes),
    }
}

/// Value of a column with a kind, from the server's encoding.
fn value(kind: Kind, raw: Option<&[u8]>) -> Option<Value> {
    let Some(raw) = raw else {
        return Some(Value::Null);
    };
    Some(match kind {
        Kind::Integer => Value::Integer(i64::from_be_bytes(raw.try_into().ok()?)),
        // SQLite does not store the sign of zero.
        Kind::Real => Value::Real(f64::from_be_bytes(raw.try_into().ok()?) + 0.0),
        Kind::Text => Value::Text(std::str::from_utf8(raw).ok()?.to_owned()),
        Kind::Blob => Value::Blob(raw.to_owned()),
    })
}

/// Error as the component sees it. `None` if the host is responsible.
fn of_failure(failure: &Failure) -> Option<SqlError> {
    let code = failure.code().unwrap_or_default();
    let said = || failure.message().unwrap_or_default().to_owned();
    Some(match (code, code.get(..2).unwrap_or_default()) {
        (_, "23") => SqlError::Constraint(said()),
        ("25006", _) => SqlError::ReadOnly,
        ("53100", _) => SqlError::Full,
        ("53200", _) => SqlError::Memory,
        ("54000", _) => {
            SqlError::TooLarge("a value or statement exceeds the length limit of storage".to_owned())
        }
        ("42501" | "42P01" | "3F000", _) => SqlError::Refused(NO_ACCESS.to_owned()),
        (_, "21" | "22" | "42" | "0A" | "54") => SqlError::Refused(said()),
        _ if failure.kind() == StoreFailure::Interrupted => SqlError::Interrupted,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
