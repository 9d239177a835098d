//! Abstraction over the database engines that run the host's statements.
//!
//! Handles write one SQL text for every engine, pass values as [`Sql`] and read rows as [`Row`]. Nothing outside this
//! module names an engine's library.

pub(super) mod migrate;
pub(super) mod misplaced;
pub(super) mod postgres;
pub(super) mod sqlite;
pub(super) mod steps;

mod row;
mod value;

use std::ops::ControlFlow;

pub(super) use self::postgres::Postgres;
pub(super) use self::row::{Column, Row};
pub(super) use self::sqlite::Sqlite;
pub(super) use self::value::{AsSql, Sql, borrowed, sql};
use super::error::{StoreError, StoreResult, exactly_one};

/// Engine of a session.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each session, and nothing is between a handle and SQLite"
)]
pub(super) enum Engine {
    /// A SQLite file.
    Sqlite(Sqlite),
    /// A database on a PostgreSQL server.
    Postgres(Box<Postgres>),
}

/// A statement with different texts for the engines. Most statements have the same text for all.
#[derive(Clone, Copy)]
pub(super) struct Dialects<'t> {
    pub(super) sqlite: &'t str,
    pub(super) postgres: &'t str,
}

/// Text of a statement. A session caches most prepared statements.
#[derive(Clone, Copy)]
pub(super) struct Text<'t> {
    sql: &'t str,
    is_kept: bool,
}

/// Text of a rare statement that is not cached.
pub(super) struct Once<'t>(pub(super) &'t str);

impl<'t> From<&'t str> for Text<'t> {
    fn from(sql: &'t str) -> Text<'t> {
        Text { sql, is_kept: true }
    }
}

impl<'t> From<&'t String> for Text<'t> {
    fn from(sql: &'t String) -> Text<'t> {
        Text { sql, is_kept: true }
    }
}

impl<'t> From<Once<'t>> for Text<'t> {
    fn from(once: Once<'t>) -> Text<'t> {
        Text {
            sql: once.0,
            is_kept: false,
        }
    }
}

/// A prepared statement for repeated use. It borrows the engine.
pub(super) enum Prepared<'e> {
    Sqlite(sqlite::Prepared<'e>),
    Postgres(postgres::Prepared<'e>),
}

impl Engine {
    /// Text for this engine.
    pub(super) fn text<'t>(&self, of: Dialects<'t>) -> &'t str {
        match self {
            Engine::Sqlite(_) => of.sqlite,
            Engine::Postgres(_) => of.postgres,
        }
    }

    /// Name of a table in the host's statements. The table belongs to a component, or to the host if `owner` is
    /// `core`. The name must not need quotes.
    pub(super) fn table_of(&self, owner: &str, table: &str) -> String {
        match self {
            Engine::Sqlite(_) => table.to_owned(),
            Engine::Postgres(postgres) => postgres.table_of(owner, table),
        }
    }

    /// Prepares a statement for repeated use.
    pub(super) fn prepare<'t>(&self, sql: impl Into<Text<'t>>) -> StoreResult<Prepared<'_>> {
        match self {
            Engine::Sqlite(sqlite) => sqlite.prepare(sql.into()).map(Prepared::Sqlite),
            Engine::Postgres(postgres) => postgres.prepare(sql.into()).map(Prepared::Postgres),
        }
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(super) fn run<'t>(&self, sql: impl Into<Text<'t>>, params: &[Sql<'_>]) -> StoreResult<usize> {
        self.prepare(sql)?.run(params)
    }

    /// Runs a statement that must change exactly one row.
    pub(super) fn change_one<'t>(&self, sql: impl Into<Text<'t>>, params: &[Sql<'_>]) -> StoreResult<()> {
        self.run(sql, params).and_then(exactly_one)
    }

    /// Reads the first row. Fails without one.
    pub(super) fn one<'t, T>(
        &self,
        sql: impl Into<Text<'t>>,
        params: &[Sql<'_>],
        read: impl FnOnce(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<T> {
        self.prepare(sql)?.one(params, read)
    }

    /// Reads the first row, if there is one.
    pub(super) fn maybe<'t, T>(
        &self,
        sql: impl Into<Text<'t>>,
        params: &[Sql<'_>],
        read: impl FnOnce(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<Option<T>> {
        self.prepare(sql)?.maybe(params, read)
    }

    /// True if there is a row.
    pub(super) fn exists<'t>(&self, sql: impl Into<Text<'t>>, params: &[Sql<'_>]) -> StoreResult<bool> {
        self.prepare(sql)?.exists(params)
    }

    /// Makes other transactions that request the same lock wait until this transaction ends. With a file there are no
    /// concurrent writers.
    pub(super) fn hold(&self, lock: &str) -> StoreResult<()> {
        match self {
            Engine::Sqlite(_) => Ok(()),
            Engine::Postgres(postgres) => {
                let key = postgres::lock_key(postgres.schema(), lock);
                let sql = format!("SELECT 1 FROM pg_advisory_xact_lock({key})");
                self.exists(Once(&sql), &[]).map(drop)
            }
        }
    }

    /// Reads every row.
    pub(super) fn all<'t, T, C: FromIterator<T>>(
        &self,
        sql: impl Into<Text<'t>>,
        params: &[Sql<'_>],
        read: impl FnMut(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<C> {
        self.prepare(sql)?.all(params, read)
    }

    /// Visits every row in order.
    pub(super) fn each<'t>(
        &self,
        sql: impl Into<Text<'t>>,
        params: &[Sql<'_>],
        mut visit: impl FnMut(&Row<'_>) -> StoreResult<()>,
    ) -> StoreResult<()> {
        self.each_until(sql, params, |row| visit(row).map(ControlFlow::Continue))
    }

    /// Visits rows in order until `visit` breaks.
    pub(super) fn each_until<'t>(
        &self,
        sql: impl Into<Text<'t>>,
        params: &[Sql<'_>],
        visit: impl FnMut(&Row<'_>) -> StoreResult<ControlFlow<()>>,
    ) -> StoreResult<()> {
        self.prepare(sql)?.each_until(params, visit)
    }
}

impl Prepared<'_> {
    /// Runs the statement and returns the number of rows that it changed.
    pub(super) fn run(&mut self, params: &[Sql<'_>]) -> StoreResult<usize> {
        match self {
            Prepared::Sqlite(prepared) => prepared.run(params),
            Prepared::Postgres(prepared) => prepared.run(params),
        }
    }

    /// Reads the first row. Fails without one.
    pub(super) fn one<T>(
        &mut self,
        params: &[Sql<'_>],
        read: impl FnOnce(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<T> {
        self.maybe(params, read)?.ok_or_else(StoreError::no_row)
    }

    /// Reads the first row, if there is one.
    pub(super) fn maybe<T>(
        &mut self,
        params: &[Sql<'_>],
        read: impl FnOnce(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<Option<T>> {
        match self {
            Prepared::Sqlite(prepared) => prepared.maybe(params, read),
            Prepared::Postgres(prepared) => prepared.maybe(params, read),
        }
    }

    /// True if there is a row.
    pub(super) fn exists(&mut self, params: &[Sql<'_>]) -> StoreResult<bool> {
        Ok(self.maybe(params, |_| Ok(()))?.is_some())
    }

    /// Reads every row.
    pub(super) fn all<T, C: FromIterator<T>>(
        &mut self,
        params: &[Sql<'_>],
        read: impl FnMut(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<C> {
        match self {
            Prepared::Sqlite(prepared) => prepared.all(params, read),
            Prepared::Postgres(prepared) => prepared.all(params, read),
        }
    }

    /// Visits rows in order until `visit` breaks.
    pub(super) fn each_until(
        &mut self,
        params: &[Sql<'_>],
        visit: impl FnMut(&Row<'_>) -> StoreResult<ControlFlow<()>>,
    ) -> StoreResult<()> {
        match self {
            Prepared::Sqlite(prepared) => prepared.each_until(params, visit),
            Prepared::Postgres(prepared) => prepared.each_until(params, visit),
        }
    }
}
