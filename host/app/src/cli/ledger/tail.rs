//! `tollgate ledger tail`

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tollgate_store::storage::{OperationFilter, Session, StoredOperation};

use super::{COLUMN_TITLES, Global, Opened, PAGE_ROWS, Shown, Tasks, cells, line, open, tasks_of, tell_none};
use crate::cli::out::{self, Table};

/// Interval at which `-f` looks for new rows.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum widths of columns when rows are to follow.
const MIN_COLUMN_WIDTHS: &[usize] = &[6, 24, 24, 12, 24, 9, 30, 0];

/// Show the last operations
#[derive(Debug, Args)]
pub(in crate::cli) struct Tail {
    /// Number of rows
    #[arg(short = 'n', long, default_value_t = 20)]
    lines: u32,
    /// Follow new operations as they arrive, from every host of the data directory
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    shown: Shown,
}

impl Tail {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let Opened { session, data, .. } = open(global)?;
        session.begin_read()?;
        let mut last = session.ledger().head()?.seq;
        let filter = OperationFilter {
            policy: self.shown.policy.clone(),
            ..OperationFilter::default()
        };
        let mut operations = session.operations().list(&filter, self.lines)?;
        let tasks = tasks_of(&session, &operations)?;
        session.commit()?;
        operations.reverse();
        let rows: Vec<Vec<String>> = operations
            .iter()
            .map(|operation| cells(operation, &tasks, &self.shown))
            .collect();
        let least = if self.follow { MIN_COLUMN_WIDTHS } else { &[] };
        let printer = Printer {
            table: (!global.json).then(|| Table::fit(COLUMN_TITLES, &rows, least)),
            shown: &self.shown,
        };
        if !global.json && !self.follow {
            tell_none(rows.is_empty(), "call has been recorded yet", &data);
        }
        let mut goes_on = printer.head() && printer.rows(&operations, &tasks);
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        while self.follow && goes_on {
            tokio::select! {
                _ = interrupted.recv() => break,
                _ = terminated.recv() => break,
                () = tokio::time::sleep(FOLLOW_INTERVAL) => {}
            }
            goes_on = out::is_open() && printer.news(&session, &mut last)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints rows, and tracks whether the reader is still there.
struct Printer<'a> {
    /// `None` to print rows as lines of JSON.
    table: Option<Table<'a>>,
    shown: &'a Shown,
}

impl Printer<'_> {
    fn head(&self) -> bool {
        self.table
            .as_ref()
            .is_none_or(|table| out::try_print(&table.head()))
    }

    fn rows(&self, operations: &[StoredOperation], tasks: &Tasks) -> bool {
        operations.iter().all(|operation| match &self.table {
            Some(table) => out::try_print(&table.line(&cells(operation, tasks, self.shown))),
            None => out::try_print_json(&line(operation, tasks)),
        })
    }

    /// Prints new rows.
    fn news(&self, session: &Session, last: &mut i64) -> anyhow::Result<bool> {
        loop {
            let filter = OperationFilter {
                after: Some(*last),
                policy: self.shown.policy.clone(),
                ..OperationFilter::default()
            };
            let operations = session.operations().list(&filter, PAGE_ROWS)?;
            let Some(newest) = operations.last() else {
                return Ok(true);
            };
            *last = newest.seq;
            if !self.rows(&operations, &tasks_of(session, &operations)?) {
                return Ok(false);
            }
        }
    }
}
