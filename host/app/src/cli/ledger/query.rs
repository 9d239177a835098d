//! `tollgate ledger query`

use std::process::ExitCode;

use clap::Args;
use tollgate_store::storage::OperationFilter;

use super::{COLUMN_TITLES, Global, Shown, cells, line, open, tasks_of, tell_none};
use crate::cli::{out, time};

/// Show matching operations, newest first
#[derive(Debug, Args)]
pub(in crate::cli) struct Query {
    #[arg(long, value_name = "ID")]
    envelope: Option<String>,
    #[arg(long)]
    pack: Option<String>,
    #[arg(long)]
    tool: Option<String>,
    #[arg(long)]
    actor: Option<String>,
    /// Only operations that were refused or failed
    #[arg(long)]
    failed: bool,
    /// Only runs of tests that failed, or that passed
    #[arg(long, value_name = "OUTCOME", value_parser = ["failed", "passed"])]
    tests: Option<String>,
    /// Only operations with this failure: a fingerprint, or the first digits of one
    #[arg(long, value_name = "HASH")]
    fingerprint: Option<String>,
    /// Earliest time: `30m`, `24h`, `7d`, or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<String>,
    /// Latest time, in the same form
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<String>,
    #[arg(short = 'n', long, default_value_t = 50)]
    limit: u32,
    #[command(flatten)]
    shown: Shown,
}

impl Query {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let limit = self.limit;
        let opened = open(global)?;
        let operations = opened.session.operations().list(&self.filter(), limit)?;
        let tasks = tasks_of(&opened.session, &operations)?;
        if global.json {
            operations
                .iter()
                .all(|operation| out::try_print_json(&line(operation, &tasks)));
        } else {
            let rows: Vec<Vec<String>> = operations
                .iter()
                .map(|operation| cells(operation, &tasks, &self.shown))
                .collect();
            out::print(&out::table(COLUMN_TITLES, &rows));
            tell_none(rows.is_empty(), "matching operation", &opened.data);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn filter(&self) -> OperationFilter {
        OperationFilter {
            envelope_id: self.envelope.clone(),
            pack: self.pack.clone(),
            tool: self.tool.clone(),
            actor: self.actor.clone(),
            success: self.failed.then_some(false),
            tests_passed: self.tests.as_deref().map(|outcome| outcome == "passed"),
            failure_fingerprint: self.fingerprint.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
            policy: self.shown.policy.clone(),
            ..OperationFilter::default()
        }
    }
}
