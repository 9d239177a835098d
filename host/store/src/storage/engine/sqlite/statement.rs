//! Execution of a component's statements, with limits on their results.

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, ErrorCode, StatementStatus};

use super::memory::{self, Charged, Denial};
use super::{Failure, Sqlite};
use crate::storage::access::Namespace;
use crate::storage::component_sql::{MAX_BYTES, MAX_ROWS, NO_ACCESS, SqlError};
use crate::storage::engine::AsSql;
use crate::storage::value::{Statement, Value};

/// Size limit of a cached statement in bytes. A session caches hundreds.
const MAX_KEPT: i32 = 32 << 10;

impl Sqlite {
    /// Runs a component's query.
    pub(in crate::storage) fn query_of(
        &self,
        namespace: &Namespace,
        sql: &str,
        params: &[Value],
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        self.with_statement(namespace, sql, |statement| rows(statement, params))
    }

    /// Runs a component's statement and returns how many rows it changed.
    pub(in crate::storage) fn execute_of(
        &self,
        namespace: &Namespace,
        sql: &str,
        params: &[Value],
    ) -> Result<u64, SqlError> {
        let changed =
            self.with_statement(namespace, sql, |statement| Ok(statement.execute(bind(params))?))?;
        Ok(changed as u64)
    }

    /// Prepares a component's statement and runs it, both within the memory limit of its call.
    fn with_statement<T>(
        &self,
        namespace: &Namespace,
        sql: &str,
        run: impl FnOnce(&mut CachedStatement<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        // SQLite never gets the component's text, only the printed form of the parsed statement.
        let read = namespace
            .read(sql)
            .map_err(|refusal| SqlError::Refused(refusal.to_string()))?;
        self.name_with(&read.with);
        let _armed = self.bound_memory();
        let done = self
            .prepare_tagged(&read.sql)
            .and_then(|statement| self.run_prepared(&read.sql, statement, run));
        done.map_err(|err| match (err, memory::denied()) {
            (SqlError::Interrupted | SqlError::Memory, Some(Denial::Memory)) => SqlError::Memory,
            (SqlError::Memory, Some(Denial::Time)) => SqlError::Interrupted,
            (err, _) => err,
        })
    }

    /// Runs statements in order. The first failure undoes all of them.
    pub(in crate::storage) fn batch_of(
        &self,
        namespace: &Namespace,
        statements: &[Statement],
    ) -> Result<Vec<u64>, SqlError> {
        self.as_host(|| self.host_statement("SAVEPOINT batch"))?;
        let result = statements
            .iter()
            .map(|statement| self.execute_of(namespace, &statement.sql, &statement.params))
            .collect::<Result<Vec<_>, _>>();
        self.as_host(|| match &result {
            Ok(_) => self.host_statement("RELEASE batch"),
            // If SQLite rolled back the transaction itself, there is no savepoint left to undo.
            Err(_) if !self.in_transaction() => Ok(()),
            Err(_) => {
                self.host_statement("ROLLBACK TO batch")?;
                self.host_statement("RELEASE batch")
            }
        })?;
        result
    }

    /// Prepared statement for a text with the component's comment in front. The comment separates the cached
    /// statements of components, because the authorizer is not asked again about a cached statement.
    fn prepare_tagged(&self, tagged: &str) -> Result<CachedStatement<'_>, SqlError> {
        // Some failures make SQLite roll back the whole transaction. Later statements would then commit by
        // themselves, outside the savepoint and the ledger.
        if !self.in_transaction() {
            return Err(SqlError::TransactionState("the transaction has ended".to_owned()));
        }
        Ok(self.db.prepare_cached(tagged)?)
    }

    /// Runs a statement, and caches it for later calls unless it is large or has very many steps.
    fn run_prepared<T>(
        &self,
        tagged: &str,
        mut statement: CachedStatement<'_>,
        run: impl FnOnce(&mut CachedStatement<'_>) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        // A cached statement was checked before.
        if statement.get_status(StatementStatus::Run) > 0 {
            return run(&mut statement);
        }
        let narrow = self.narrow(tagged, &statement)?;
        let is_kept = narrow.is_none() && statement.get_status(StatementStatus::MemUsed) <= MAX_KEPT;
        let done = run(&mut statement).map_err(|err| match (err, &narrow) {
            (SqlError::TooLarge(why), Some(narrow)) => SqlError::TooLarge(format!(
                "{why}; a statement with this many terms works on values of at most {} bytes",
                narrow.longest
            )),
            (err, _) => err,
        });
        if !is_kept {
            statement.discard();
        }
        done
    }
}

/// All rows of a query, within the limits.
fn rows(statement: &mut CachedStatement<'_>, params: &[Value]) -> Result<Vec<Vec<Value>>, SqlError> {
    let columns = statement.column_count();
    let mut rows = statement.query(bind(params))?;
    let mut all = Vec::new();
    let mut bytes = 0_usize;
    let mut charged = Charged::default();
    while let Some(row) = rows.next()? {
        if all.len() == MAX_ROWS {
            return Err(SqlError::TooLarge(format!(
                "a query returns at most {MAX_ROWS} rows"
            )));
        }
        // Allocations for reading a value cannot fail.
        let values = memory::exempt(|| {
            let values = (0..columns).map(|column| {
                let value = row.get_ref(column)?;
                // Counted before the copy, because one row may have a hundred long values.
                bytes += length(value);
                if bytes > MAX_BYTES {
                    return Err(SqlError::TooLarge(format!(
                        "a query returns at most {MAX_BYTES} bytes"
                    )));
                }
                read(value)
            });
            values.collect::<Result<Vec<_>, _>>()
        })?;
        if !charged.add(held(&values)) {
            return Err(SqlError::Memory);
        }
        all.push(values);
    }
    Ok(all)
}

/// Bytes of memory that a row takes.
fn held(values: &Vec<Value>) -> usize {
    let contents = values.iter().map(|value| match value {
        Value::Null | Value::Integer(_) | Value::Real(_) => 0,
        Value::Text(text) => text.capacity(),
        Value::Blob(bytes) => bytes.capacity(),
    });
    // Vectors grow by doubling, so the capacity may be twice the length.
    2 * size_of_val(values) + values.capacity() * size_of::<Value>() + contents.sum::<usize>()
}

fn bind(params: &[Value]) -> impl rusqlite::Params + '_ {
    rusqlite::params_from_iter(params.iter().map(AsSql::as_sql))
}

fn read(value: ValueRef<'_>) -> Result<Value, SqlError> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => {
                return Err(SqlError::Refused(
                    "a text column holds ill-formed UTF-8".to_owned(),
                ));
            }
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
    })
}

fn length(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 16,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
    }
}

impl From<Failure> for SqlError {
    fn from(failure: Failure) -> SqlError {
        failure.0.into()
    }
}

impl From<rusqlite::Error> for SqlError {
    fn from(err: rusqlite::Error) -> SqlError {
        let message = match &err {
            rusqlite::Error::SqlInputError { msg, .. } => return refused(msg),
            rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
            other => other.to_string(),
        };
        match err.sqlite_error_code() {
            Some(ErrorCode::AuthorizationForStatementDenied) => refused(NO_ACCESS),
            Some(ErrorCode::ConstraintViolation) => SqlError::Constraint(message),
            Some(ErrorCode::ReadOnly) => SqlError::ReadOnly,
            Some(ErrorCode::DiskFull) => SqlError::Full,
            Some(ErrorCode::OperationInterrupted) => SqlError::Interrupted,
            Some(ErrorCode::OutOfMemory) => SqlError::Memory,
            Some(ErrorCode::TooBig) => {
                SqlError::TooLarge("a value or statement exceeds the length limit of storage".to_owned())
            }
            // Errors without a code come from the library: wrong parameter count, several statements.
            None | Some(ErrorCode::Unknown | ErrorCode::TypeMismatch | ErrorCode::ParameterOutOfRange) => {
                refused(&message)
            }
            Some(_) => SqlError::Internal(err.into()),
        }
    }
}

/// Refusal that does not distinguish a missing table from an inaccessible one.
fn refused(message: &str) -> SqlError {
    let hidden =
        message.contains("no such table") || message.contains("prohibited") || message == "not authorized";
    SqlError::Refused(if hidden {
        NO_ACCESS.to_owned()
    } else {
        message.to_owned()
    })
}
