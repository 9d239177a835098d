//! `tollgate ledger compact`

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;
use tollgate_store::liveness;

use super::{Global, open};
use crate::cli::out;

/// Maximum time that hosts may wait for the database, shorter than the timeout of writing calls.
const HOST_WAIT_LIMIT: Duration = Duration::from_secs(1);
/// Disk space that must stay free in addition to the written data.
const RESERVED_BYTES: u64 = 16 << 20;

/// Return space that pruning freed in the file to the disk. While hosts run, this takes at most a second, or changes
/// nothing
#[derive(Debug, Args)]
pub(in crate::cli) struct Compact {
    /// Only show how much is free in the file
    #[arg(long)]
    dry_run: bool,
}

impl Compact {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let opened = open(global)?;
        global.only_file(&opened.config, "the server's autovacuum keeps the database small")?;
        let free = opened.session.maintenance().free_bytes()?;
        if self.dry_run {
            if global.json {
                out::print_json(&json!({ "dry_run": true, "free_bytes": free }));
            } else {
                out::print(&format!("{} KiB of the file can be freed", free >> 10));
            }
            return Ok(ExitCode::SUCCESS);
        }
        let used =
            u64::try_from(opened.session.pages()?).unwrap_or_default() * tollgate_store::storage::PAGE_BYTES;
        let room = opened
            .data
            .free_bytes()
            .context("cannot determine the free space of the disk")?;
        // The new file is written twice: to temporary files, and to the log beside the database.
        ensure!(
            room > used * 2 + RESERVED_BYTES,
            "the disk has {} MiB free, and rewriting the database needs up to {}; free space first",
            room >> 20,
            (used * 2 + RESERVED_BYTES) >> 20
        );
        let hosts = liveness::hosts_alive(&opened.data)?;
        drop(opened.session);
        let patience = (!hosts.is_empty()).then_some(HOST_WAIT_LIMIT);
        let compacted = opened.database.compact(patience);
        let compacted = compacted.with_context(|| match hosts.len() {
            0 => "the database was not compacted".to_owned(),
            hosts => format!(
                "this data directory is in use (hosts: {hosts}); stop the hosts, or try again when they are idle"
            ),
        })?;
        let freed = compacted.before.saturating_sub(compacted.after);
        if global.json {
            out::print_json(&json!({
                "dry_run": false,
                "before_bytes": compacted.before,
                "after_bytes": compacted.after,
                "freed_bytes": freed,
            }));
        } else {
            out::print(&format!(
                "freed {} KiB: the database had {} KiB and now has {}",
                freed >> 10,
                compacted.before >> 10,
                compacted.after >> 10
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
