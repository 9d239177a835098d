//! Running a component's statements, with caps on what comes back.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, ErrorCode, ToSql};
use thiserror::Error;

use super::access::Namespace;
use super::session::Session;
use crate::sandbox::bindings::tollgate::host::storage::{Statement, Value};

/// Rows one query may return.
const MAX_ROWS: usize = 10_000;
/// Bytes of text and blobs one query may return.
const MAX_BYTES: usize = 4 << 20;
/// What a component is told of tables that are not there and of those it may not see: the same.
const NO_ACCESS: &str = "no such table or no access";

/// Why a component's statement did not run.
#[derive(Debug, Error)]
pub enum SqlError {
    /// Malformed, out of reach or not allowed.
    #[error("{0}")]
    Refused(String),
    /// A constraint or trigger said no.
    #[error("{0}")]
    Constraint(String),
    /// A write in a session that only reads.
    #[error("this tool only reads")]
    ReadOnly,
    /// More rows or bytes than a component gets at once.
    #[error("{0}")]
    TooLarge(String),
    /// Quota or disk.
    #[error("storage is full")]
    Full,
    /// The deadline passed.
    #[error("the statement ran out of time")]
    Interrupted,
    /// A statement outside a transaction, or a second transaction.
    #[error("{0}")]
    TransactionState(String),
    /// Anything else, which is the host's problem.
    #[error("storage failed")]
    Internal(#[source] rusqlite::Error),
}

impl Session {
    /// Runs a component's query. The session must have [entered](Session::enter) its namespace.
    pub fn query(
        &self,
        namespace: &Namespace,
        sql: &str,
        params: &[Value],
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let mut statement = self.prepare(namespace, sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(bind(params))?;
        let mut all = Vec::new();
        let mut bytes = 0_usize;
        while let Some(row) = rows.next()? {
            if all.len() == MAX_ROWS {
                return Err(SqlError::TooLarge(format!(
                    "a query returns at most {MAX_ROWS} rows"
                )));
            }
            let values = (0..columns)
                .map(|column| read(row.get_ref(column)?))
                .collect::<Result<Vec<_>, _>>()?;
            bytes += values.iter().map(size).sum::<usize>();
            if bytes > MAX_BYTES {
                return Err(SqlError::TooLarge(format!(
                    "a query returns at most {MAX_BYTES} bytes"
                )));
            }
            all.push(values);
        }
        Ok(all)
    }

    /// Runs a component's statement and returns how many rows it changed.
    pub fn execute(&self, namespace: &Namespace, sql: &str, params: &[Value]) -> Result<u64, SqlError> {
        let changed = self.prepare(namespace, sql)?.execute(bind(params))?;
        Ok(changed as u64)
    }

    /// Runs statements in order; the first failure undoes all of them.
    pub fn batch(&self, namespace: &Namespace, statements: &[Statement]) -> Result<Vec<u64>, SqlError> {
        self.as_host(|| self.host_statement("SAVEPOINT batch"))?;
        let result = statements
            .iter()
            .map(|statement| self.execute(namespace, &statement.sql, &statement.params))
            .collect::<Result<Vec<_>, _>>();
        self.as_host(|| match &result {
            Ok(_) => self.host_statement("RELEASE batch"),
            // If SQLite rolled the transaction back itself, there is no savepoint left to undo.
            Err(_) if !self.in_transaction() => Ok(()),
            Err(_) => {
                self.host_statement("ROLLBACK TO batch")?;
                self.host_statement("RELEASE batch")
            }
        })?;
        result
    }

    fn prepare(&self, namespace: &Namespace, sql: &str) -> Result<CachedStatement<'_>, SqlError> {
        // Some failures make SQLite roll the whole transaction back. What came after would commit by
        // itself, past the savepoint and the ledger.
        if !self.in_transaction() {
            return Err(SqlError::TransactionState("the transaction is over".to_owned()));
        }
        // SQLite never sees the component's text, but what was read of it. The comment that leads it keeps one
        // component's cached statements from another, which the authorizer would never be asked about again.
        let read = namespace
            .read(sql)
            .map_err(|refusal| SqlError::Refused(refusal.to_string()))?;
        Ok(self.db.prepare_cached(&read.sql)?)
    }
}

fn bind(params: &[Value]) -> impl rusqlite::Params + '_ {
    rusqlite::params_from_iter(params.iter().map(Param))
}

struct Param<'a>(&'a Value);

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Real(number) => ValueRef::Real(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
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

fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Integer(_) | Value::Real(_) => 16,
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
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
            Some(ErrorCode::TooBig) => {
                SqlError::TooLarge("a value or statement is longer than storage takes".to_owned())
            }
            // Without a code it is not SQLite's: wrong parameter count, several statements.
            None | Some(ErrorCode::Unknown | ErrorCode::TypeMismatch | ErrorCode::ParameterOutOfRange) => {
                refused(&message)
            }
            Some(_) => SqlError::Internal(err),
        }
    }
}

/// A refusal that does not tell an absent table from one that is out of reach.
fn refused(message: &str) -> SqlError {
    let hidden =
        message.contains("no such table") || message.contains("prohibited") || message == "not authorized";
    SqlError::Refused(if hidden {
        NO_ACCESS.to_owned()
    } else {
        message.to_owned()
    })
}
