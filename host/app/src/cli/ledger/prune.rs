//! `tollgate ledger prune`

use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_core::text::counted;
use tollgate_store::ledger::retention::{self, Taken};

use super::{Global, open};
use crate::cli::out;

/// Remove rows that are past their retention, as hosts do every hour
#[derive(Debug, Args)]
pub(in crate::cli) struct Prune {
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
}

impl Prune {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let opened = open(global)?;
        let now_ms = SystemClock.now_ms();
        let retention = opened.config.ledger.retention(now_ms);
        let pruned = if self.dry_run {
            opened.session.maintenance().prunable(&retention)?
        } else {
            let session = opened.database.write_session()?;
            retention::prune(&opened.data, &opened.database, &retention, now_ms, |batch| {
                session.begin_write()?;
                let since = Instant::now();
                session.maintenance().prune(&batch)?;
                session.commit()?;
                Ok(Taken::Out(since.elapsed()))
            })?
        };
        if global.json {
            out::print_json(&json!({ "dry_run": self.dry_run, "pruned": pruned }));
        } else {
            out::print(&format!(
                "{}: {} with {}, and {} outside envelopes, closed or recorded before {}",
                if self.dry_run {
                    "would be removed"
                } else {
                    "removed"
                },
                counted(pruned.envelopes, "envelope"),
                counted(pruned.rows_in_envelopes, "operation"),
                counted(pruned.rows_outside, "operation"),
                retention.cutoff,
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
