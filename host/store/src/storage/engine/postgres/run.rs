//! Execution of the host's own statements on PostgreSQL.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_postgres::Statement;

use super::Postgres;
use super::error::Failure;
use super::turns::not_begun;
use super::wire::{Around, Chunks};
use crate::storage::engine::{Row, Sql, Text, borrowed};
use crate::storage::error::StoreResult;
use crate::storage::value::Value;

/// Transaction setting with the id of the row that was appended last.
pub(in crate::storage) const ROW_SETTING: &str = "tollgate.row";

/// A prepared statement of the host.
pub(in crate::storage) struct Prepared<'e> {
    postgres: &'e Postgres,
    statement: Statement,
}

/// Rows of a statement that are still to be visited.
pub(super) struct Rows {
    /// Absent once all rows have arrived.
    stream: Option<Chunks>,
    here: VecDeque<tokio_postgres::Row>,
}

/// Rows that other statements can fetch ahead, so that these can run during a visit: the server sends the results of
/// a session's statements one after another.
pub(super) type Shared = Arc<Mutex<Rows>>;

impl Postgres {
    /// Gets a statement from the cache, or prepares it.
    pub(in crate::storage) fn prepare(&self, sql: Text<'_>) -> StoreResult<Prepared<'_>> {
        let kept = sql.is_kept.then(|| self.kept(sql.sql)).flatten();
        let statement = match kept {
            Some(statement) => statement,
            None => self.prepare_anew(sql)?,
        };
        Ok(Prepared {
            postgres: self,
            statement,
        })
    }

    /// Next row of a statement.
    fn next(&self, rows: &Shared) -> StoreResult<Option<tokio_postgres::Row>> {
        let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.here.is_empty() {
            self.fetch(&mut rows)?;
        }
        Ok(rows.here.pop_front())
    }

    /// Fetches more rows. Returns `false` if there are none.
    fn fetch(&self, rows: &mut Rows) -> StoreResult<bool> {
        let Some(stream) = &mut rows.stream else {
            return Ok(false);
        };
        let more = self.seen(self.wire().rows(stream, self.deadline().as_ref()));
        let is_last = more.as_ref().map_or(true, Vec::is_empty);
        if is_last {
            rows.stream = None;
        }
        rows.here.extend(more?);
        Ok(!is_last)
    }

    /// Sends pending SQL, and fetches all rows of a statement that is being visited.
    pub(super) fn make_way(&self) -> StoreResult<()> {
        self.make_way_for_more()?;
        self.send_due()
    }

    /// Fetches all rows of a statement that is being visited, and sends the pending row. Other pending SQL is sent
    /// with the next statement.
    pub(super) fn make_way_for_more(&self) -> StoreResult<()> {
        if self.must_begin_anew() {
            // If the caller did not notice, each statement would commit by itself.
            return Err(not_begun());
        }
        self.take_over()?;
        self.send_row()
    }

    /// Fetches all rows of a statement that is being visited.
    pub(super) fn take_over(&self) -> StoreResult<()> {
        let Some(rows) = self.visited() else {
            return Ok(());
        };
        let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
        while self.fetch(&mut rows)? {}
        Ok(())
    }
}

/// A row of the ledger that is sent with the end of the transaction, or before anything else.
pub(super) struct LastRow {
    statement: Statement,
    values: Vec<Value>,
    /// SQL that commits the transaction, unless the row is missing.
    commit: String,
}

impl Postgres {
    /// Appends a row of the ledger with the end of the transaction, in the same round trip, because all hosts wait
    /// for the end of the ledger meanwhile. The statement stores the row's id in the setting [`ROW_SETTING`], and fails
    /// unless the row is stored as expected.
    pub(in crate::storage) fn add_last(
        &self,
        sql: Text<'_>,
        op_id: &str,
        params: &[Sql<'_>],
    ) -> StoreResult<()> {
        self.pass_guard();
        self.make_way()?;
        let Prepared { statement, .. } = self.prepare(sql)?;
        let commit = format!(
            "SELECT 1 / CASE WHEN current_setting('{ROW_SETTING}', true) = '{op_id}' THEN 1 ELSE 0 END; COMMIT"
        );
        self.last_row.replace(Some(LastRow {
            statement,
            values: params.iter().map(|value| (*value).into()).collect(),
            commit,
        }));
        Ok(())
    }

    /// Sends the pending row separately, because more statements follow.
    pub(super) fn send_row(&self) -> StoreResult<()> {
        let Some(row) = self.last_row.take() else {
            return Ok(());
        };
        let mut stream =
            self.seen(
                self.wire()
                    .query(&Around::default(), &row.statement, &borrowed(&row.values), None),
            )?;
        while !self.seen(self.wire().rows(&mut stream, None))?.is_empty() {}
        Ok(())
    }

    /// Commits the transaction, with the pending row if there is one.
    pub(super) fn commit_with_row(&self) -> Result<(), Failure> {
        match self.last_row.take() {
            Some(row) => self
                .wire()
                .commit_after(&row.statement, &borrowed(&row.values), &row.commit),
            None => self.wire().commit(),
        }
    }
}

impl Prepared<'_> {
    /// Runs the statement and returns the number of rows that it changed.
    pub(in crate::storage) fn run(&mut self, params: &[Sql<'_>]) -> StoreResult<usize> {
        let postgres = self.postgres;
        postgres.pass_guard();
        postgres.make_way_for_more()?;
        let deadline = postgres.deadline();
        let is_alone = !postgres.in_transaction();
        let around = postgres.take_due();
        let changed = postgres
            .wire()
            .execute(&around, &self.statement, params, deadline.as_ref());
        let changed = postgres.of_trip(
            &around,
            match is_alone {
                true => changed.map_err(Failure::of_alone),
                false => changed,
            },
        )?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// Reads the first row, if there is one.
    pub(in crate::storage) fn maybe<T>(
        &mut self,
        params: &[Sql<'_>],
        read: impl FnOnce(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<Option<T>> {
        let mut read = Some(read);
        let mut found = None;
        self.each_until(params, |row| {
            if let Some(read) = read.take() {
                found = Some(read(row)?);
            }
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Reads every row.
    pub(in crate::storage) fn all<T, C: FromIterator<T>>(
        &mut self,
        params: &[Sql<'_>],
        mut read: impl FnMut(&Row<'_>) -> StoreResult<T>,
    ) -> StoreResult<C> {
        let mut found = Vec::new();
        self.each_until(params, |row| {
            found.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found.into_iter().collect())
    }

    /// Visits rows in order until `visit` breaks. The visitor may run other statements.
    pub(in crate::storage) fn each_until(
        &mut self,
        params: &[Sql<'_>],
        visit: impl FnMut(&Row<'_>) -> StoreResult<ControlFlow<()>>,
    ) -> StoreResult<()> {
        let postgres = self.postgres;
        postgres.pass_guard();
        postgres.make_way_for_more()?;
        let deadline = postgres.deadline();
        let around = postgres.take_due();
        let stream = postgres
            .wire()
            .query(&around, &self.statement, params, deadline.as_ref());
        let stream = postgres.of_trip(&around, stream)?;
        let rows = Arc::new(Mutex::new(Rows {
            stream: Some(stream),
            here: VecDeque::new(),
        }));
        let outer = postgres.visit_now(Some(Arc::clone(&rows)));
        let visited = self.visit(&rows, visit);
        // The rest must be fetched in any case: a statement can fail at its last row, and the transaction with it.
        let rest = postgres.forget_rest(&rows);
        postgres.visit_now(outer);
        visited.and(rest)
    }

    fn visit(
        &self,
        rows: &Shared,
        mut visit: impl FnMut(&Row<'_>) -> StoreResult<ControlFlow<()>>,
    ) -> StoreResult<()> {
        while let Some(row) = self.postgres.next(rows)? {
            if visit(&Row::Postgres(&row))?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Postgres {
    /// Drops the rows of a statement that are no longer visited.
    fn forget_rest(&self, rows: &Shared) -> StoreResult<()> {
        let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            rows.here.clear();
            if !self.fetch(&mut rows)? {
                return Ok(());
            }
        }
    }
}
