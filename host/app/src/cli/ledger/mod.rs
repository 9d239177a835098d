//! `tollgate ledger`: inspecting and maintaining the ledger without adding rows to it.

mod compact;
mod export;
mod mirror;
mod prune;
mod query;
mod report;
mod tail;
mod verify;

use std::collections::HashMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;
use tollgate::config::Config;
use tollgate_core::text;
use tollgate_store::data_dir::DataDir;
use tollgate_store::storage::{Database, SaidByPolicy, Session, StoredOperation};

use super::{Global, out};

/// Number of operations read at once.
const PAGE_ROWS: u32 = 500;

#[derive(Debug, Subcommand)]
pub(super) enum Ledger {
    /// Show the last operations
    Tail(tail::Tail),
    /// Show matching operations, newest first
    Query(query::Query),
    /// Report what happened in an envelope
    Report(report::Report),
    /// Check that no row was changed, removed, inserted or replaced
    Verify(verify::Verify),
    /// Print every operation as a line of JSON, and the head of the chain last
    Export(export::Export),
    /// Remove rows that are past their retention, as hosts do every hour
    Prune(prune::Prune),
    /// Return free pages of the database file to the disk
    Compact(compact::Compact),
    /// Rewrite the files of the mirror
    Mirror(mirror::Mirror),
}

impl Ledger {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self {
            Ledger::Tail(tail) => tail.run(global).await,
            Ledger::Query(query) => query.run(global),
            Ledger::Report(report) => report.run(global),
            Ledger::Verify(verify) => verify.run(global),
            Ledger::Export(export) => export.run(global),
            Ledger::Prune(prune) => prune.run(global),
            Ledger::Compact(compact) => compact.run(global),
            Ledger::Mirror(mirror) => mirror.run(global),
        }
    }
}

/// An opened ledger.
pub(super) struct Opened {
    pub(super) config: Config,
    pub(super) data: DataDir,
    pub(super) database: Database,
    /// Session for reading.
    pub(super) session: Session,
}

pub(super) fn open(global: &Global) -> anyhow::Result<Opened> {
    let config = Config::load(global.config.as_deref())?;
    let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
    let database = global.database(&config, &data)?;
    let session = database.read_session()?;
    Ok(Opened {
        config,
        data,
        database,
        session,
    })
}

/// Opens a ledger that a host has used. A directory without one is more likely a typing mistake than an empty ledger,
/// so nothing is created there.
fn open_used(global: &Global) -> anyhow::Result<Opened> {
    let config = Config::load(global.config.as_deref())?;
    let data_dir = config.data_dir(global.data_dir.as_deref())?;
    let is_used = data_dir.exists() && global.has_database(&config, &DataDir::existing(&data_dir)?)?;
    anyhow::ensure!(
        is_used,
        "there is no ledger in {}; no host has ever used this directory; name another directory with --data-dir",
        data_dir.display()
    );
    if let Some(server) = global.server(&config)? {
        // Opening the database in the usual way would create its tables.
        let there = Database::on(server.clone()).read_session()?;
        anyhow::ensure!(
            there.maintenance().is_made()?,
            "{server} has no Tollgate tables in this URL's schema; start a host on it first, or check the URL"
        );
    }
    open(global)
}

/// Explains why a table has no rows, if a person reads it.
fn tell_none(is_empty: bool, wanted: &str, data: &DataDir) {
    if is_empty {
        out::warn(&format!("no {wanted} in {}", data.path().display()));
    }
}

/// Columns of a table of operations.
const COLUMN_TITLES: &[&str] = &[
    "SEQ", "TIME", "TOOL", "ACTOR", "OUTCOME", "MS", "ENVELOPE", "VERDICTS",
];

/// Choice of the verdicts that a table shows.
#[derive(Debug, Args)]
struct Shown {
    /// Show all verdicts of policies, including those that pass
    #[arg(long)]
    verdicts: bool,
    /// Only operations that this policy evaluated, with all of its verdicts
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
}

impl Shown {
    /// Verdicts on an operation that are shown.
    fn verdicts(&self, operation: &StoredOperation) -> String {
        let is_shown = |said: &&SaidByPolicy| match &self.policy {
            Some(policy) => said.policy == *policy,
            None => self.verdicts || said.verdict != "pass",
        };
        let said = operation.verdicts.iter().filter(is_shown);
        said.map(SaidByPolicy::in_short).collect::<Vec<_>>().join("; ")
    }
}

/// Tasks of operations, by operation: calls whose clients do not wait for the reply.
type Tasks = HashMap<String, String>;

fn tasks_of(session: &Session, operations: &[StoredOperation]) -> anyhow::Result<Tasks> {
    let ids = operations.iter().map(|operation| operation.op_id.as_str());
    Ok(session.tasks().of_operations(ids)?)
}

fn cells(operation: &StoredOperation, tasks: &Tasks, shown: &Shown) -> Vec<String> {
    let outcome = match (operation.success, &operation.error_code) {
        (Some(true), _) => "ok",
        (Some(false), Some(code)) => code,
        (Some(false), None) => "failed",
        (None, _) => "unknown",
    };
    vec![
        operation.seq.to_string(),
        operation.timestamp.clone(),
        operation.tool.clone(),
        operation.actor.as_deref().map(text::named).unwrap_or_default(),
        [
            Some(outcome.to_owned()),
            operation.outcome.as_ref().map(|tests| tests.in_short()),
            tasks.get(&operation.op_id).cloned(),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; "),
        format!("{:.3}", operation.duration_ms),
        operation.envelope_id.clone().unwrap_or_default(),
        shown.verdicts(operation),
    ]
}

fn line(operation: &StoredOperation, tasks: &Tasks) -> String {
    let mut said = json!(operation);
    if let Some(task) = tasks.get(&operation.op_id) {
        said["task_id"] = json!(task);
    }
    said.to_string()
}
