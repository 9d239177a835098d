//! Execution of the host's own statements on SQLite.

use std::ops::ControlFlow;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Statement, ToSql, params_from_iter};

use super::Sqlite;
use crate::storage::engine::{Column, Row, Sql, Text};
use crate::storage::error::{StoreError, StoreResult};

/// A prepared statement of the host.
pub(in crate::storage) enum Prepared<'e> {
    /// Returns to the session's cache afterwards.
    Kept(CachedStatement<'e>),
    /// Dropped afterwards.
    Once(Statement<'e>),
}

impl Sqlite {
    /// Gets a statement from the cache, or prepares it.
    pub(in crate::storage) fn prepare(&self, sql: Text<'_>) -> StoreResult<Prepared<'_>> {
        Ok(match sql.is_kept {
            true => Prepared::Kept(self.db.prepare_cached(sql.sql)?),
            false => Prepared::Once(self.db.prepare(sql.sql)?),
        })
    }
}

impl<'e> Prepared<'e> {
    fn statement(&mut self) -> &mut Statement<'e> {
        match self {
            Prepared::Kept(statement) => statement,
            Prepared::Once(statement) => statement,
        }
    }

    /// Runs the statement and returns the number of rows that it changed.
    pub(in crate::storage) fn run(&mut self, params: &[Sql<'_>]) -> StoreResult<usize> {
        Ok(self.statement().execute(params_from_iter(params))?)
    }

    /// Reads the first row, if there is one.
    pub(in crate::storage) fn maybe<T>(
        &mut self,
        params: &[Sql<'_>],
        read: impl FnOnce(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<Option<T>> {
        let mut rows = self.statement().query(params_from_iter(params))?;
        rows.next()?.map(|row| read(&Row::Sqlite(row))).transpose()
    }

    /// Reads every row.
    pub(in crate::storage) fn all<T, C: FromIterator<T>>(
        &mut self,
        params: &[Sql<'_>],
        mut read: impl FnMut(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<C> {
        let mut rows = self.statement().query(params_from_iter(params))?;
        let next = || match rows.next() {
            Ok(row) => row.map(|row| read(&Row::Sqlite(row))),
            Err(err) => Some(Err(StoreError::from(err))),
        };
        std::iter::from_fn(next).collect()
    }

    /// Visits rows in order until `visit` breaks.
    pub(in crate::storage) fn each_until(
        &mut self,
        params: &[Sql<'_>],
        mut visit: impl FnMut(&Row<'_>) -> StoreResult<ControlFlow<()>>,
    ) -> StoreResult<()> {
        let mut rows = self.statement().query(params_from_iter(params))?;
        while let Some(row) = rows.next()? {
            if visit(&Row::Sqlite(row))?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl ToSql for Sql<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Sql::Null => ValueRef::Null,
            Sql::Int(number) => ValueRef::Integer(number),
            Sql::Real(number) => ValueRef::Real(number),
            Sql::Text(text) => ValueRef::Text(text.as_bytes()),
            Sql::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl<'a> From<ValueRef<'a>> for Column<'a> {
    fn from(value: ValueRef<'a>) -> Column<'a> {
        match value {
            ValueRef::Null => Column::Null,
            ValueRef::Integer(number) => Column::Int(number),
            ValueRef::Real(number) => Column::Real(number),
            ValueRef::Text(bytes) => Column::Text(bytes),
            ValueRef::Blob(bytes) => Column::Blob(bytes),
        }
    }
}
