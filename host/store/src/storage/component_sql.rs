//! Statements of components.

use thiserror::Error;

use super::access::Namespace;
use super::engine::Engine;
use super::engine::sqlite::SQL_MEMORY;
use super::error::StoreError;
use super::handles::Components;
use super::value::{Statement, Value};

/// Rows one query may return.
pub(super) const MAX_ROWS: usize = 10_000;
/// Bytes of text and blobs one query may return.
pub(super) const MAX_BYTES: usize = 4 << 20;
/// Message to a component about tables that do not exist and about those it may not see: the same.
pub(super) const NO_ACCESS: &str = "no such table or no access";

/// Reason why a component's statement did not run.
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
    /// More memory than the SQL of one call may take.
    #[error(
        "the statement needs more memory than the {} MiB that the SQL of one call may take; sort, group or join \
         fewer rows at once, or let an index do it",
        SQL_MEMORY >> 20
    )]
    Memory,
    /// A statement outside a transaction, or a second transaction.
    #[error("{0}")]
    TransactionState(String),
    /// Anything else, which is the host's problem.
    #[error("storage failed")]
    Internal(#[source] StoreError),
}

impl Components<'_> {
    /// Runs a component's query. The session must have [entered](super::Session::enter) its namespace.
    pub fn query(
        self,
        namespace: &Namespace,
        sql: &str,
        params: &[Value],
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        match &self.0.engine {
            Engine::Sqlite(sqlite) => sqlite.query_of(namespace, sql, params),
            Engine::Postgres(postgres) => postgres.query_of(namespace, sql, params),
        }
    }

    /// Runs a component's statement and returns how many rows it changed.
    pub fn execute(self, namespace: &Namespace, sql: &str, params: &[Value]) -> Result<u64, SqlError> {
        match &self.0.engine {
            Engine::Sqlite(sqlite) => sqlite.execute_of(namespace, sql, params),
            Engine::Postgres(postgres) => postgres.execute_of(namespace, sql, params),
        }
    }

    /// Runs statements in order; the first failure undoes all of them.
    pub fn batch(self, namespace: &Namespace, statements: &[Statement]) -> Result<Vec<u64>, SqlError> {
        match &self.0.engine {
            Engine::Sqlite(sqlite) => sqlite.batch_of(namespace, statements),
            Engine::Postgres(postgres) => postgres.batch_of(namespace, statements),
        }
    }
}

impl From<StoreError> for SqlError {
    fn from(err: StoreError) -> SqlError {
        match err.into_sqlite() {
            Ok(failure) => failure.into(),
            Err(err) => SqlError::Internal(err),
        }
    }
}
