//! Statements of components.

use thiserror::Error;

use super::access::Namespace;
use super::engine::Engine;
use super::engine::sqlite::SQL_MEMORY;
use super::error::StoreError;
use super::handles::Components;
use super::value::{Statement, Value};

/// Most rows in one query's result.
pub(super) const MAX_ROWS: usize = 10_000;
/// Most bytes of text and blobs in one query's result.
pub(super) const MAX_BYTES: usize = 4 << 20;
/// Message to a component about tables that do not exist or that it may not access. Deliberately the same.
pub(super) const NO_ACCESS: &str = "no such table or no access";

/// Reason for which a component's statement did not run.
#[derive(Debug, Error)]
pub enum SqlError {
    /// The statement is malformed or not allowed.
    #[error("{0}")]
    Refused(String),
    /// A constraint or trigger refused it.
    #[error("{0}")]
    Constraint(String),
    /// A write in a read-only session.
    #[error("this tool is read-only")]
    ReadOnly,
    /// The result has too many rows or bytes.
    #[error("{0}")]
    TooLarge(String),
    /// The quota is used up, or the disk is full.
    #[error("storage is full")]
    Full,
    /// The deadline passed.
    #[error("the statement exceeded its time limit")]
    Interrupted,
    /// The statement needs more memory than the SQL of one call may use.
    #[error(
        "the statement needs more memory than the {} MiB that the SQL of one call may use; sort, group or \
         join fewer rows at once, or use an index",
        SQL_MEMORY >> 20
    )]
    Memory,
    /// A statement outside a transaction, or a nested transaction.
    #[error("{0}")]
    TransactionState(String),
    /// Any other error, which the host is responsible for.
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

    /// Runs statements in order. The first failure undoes all of them.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tollgate_core::deadline::{Cancel, Deadline};

    use super::super::{MigrationStep, fixture};
    use super::*;

    #[test]
    fn the_number_of_row_changes_grows_exactly_if_rows_change() {
        let (_place, database) = fixture::database();
        let steps = [MigrationStep {
            name: "0001_init".to_owned(),
            sql: "CREATE TABLE shop_items (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)".to_owned(),
        }];
        let namespace = Namespace::of_pack("shop").with_tables(&steps).unwrap();
        database.migrate(&namespace, &steps).unwrap();
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        session.enter(
            &namespace,
            &Deadline::after(Duration::from_secs(20), Cancel::default()),
        );
        for (sql, is_change) in [
            ("SELECT count(*) FROM shop_items", false),
            ("INSERT INTO shop_items (name) VALUES ('pen')", true),
            ("INSERT INTO shop_items (name) VALUES ('pen')", false),
            (
                "INSERT INTO shop_items (name) VALUES ('pen') ON CONFLICT (name) DO NOTHING",
                false,
            ),
            ("INSERT INTO shop_items (name) VALUES ('ink') RETURNING id", true),
            (
                "UPDATE shop_items SET name = 'cap' WHERE name = 'none' RETURNING id",
                false,
            ),
            // The counted changes of SQLite leave this out.
            ("DELETE FROM shop_items", true),
            ("DELETE FROM shop_items", false),
        ] {
            let before = session.row_changes();
            let _ = session.components().query(&namespace, sql, &[]);
            assert_eq!(session.row_changes() != before, is_change, "{sql}");
        }
        session.leave();
        session.commit().unwrap();
    }
}
