//! `tollgate ledger export`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_sdk::Timestamp;
use tollgate_store::ledger::head::ExportedHead;
use tollgate_store::ledger::key::LedgerKey;
use tollgate_store::storage::Session;

use super::{Global, PAGE_ROWS, open_used};
use crate::cli::out;

/// Print every operation as a line of JSON, and the head of the chain last
#[derive(Debug, Args)]
pub(in crate::cli) struct Export {
    /// Sign the head with the ledger's key, so that it can be kept elsewhere and compared with the ledger
    /// later
    #[arg(long)]
    sign: bool,
    /// Print the head only
    #[arg(long)]
    head_only: bool,
}

impl Export {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let opened = open_used(global)?;
        let session = &opened.session;
        // One snapshot, so that the head matches the rows.
        session.begin_read()?;
        let is_read = self.head_only || rows(session)?;
        let pruned = session.ledger().pruned_rows()?;
        let head = session.ledger().head()?;
        session.commit()?;
        let head = if self.sign {
            let key = LedgerKey::open(&opened.data)?;
            out::warn(&format!("signed with the public key {}", key.public()));
            let now = Timestamp::from_ms(SystemClock.now_ms()).to_string();
            ExportedHead::sign(head, pruned, now, &key)
        } else {
            ExportedHead { head, seal: None }
        };
        if is_read {
            out::try_print_json(&json!({ "head": head }).to_string());
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints every row. Returns whether the reader stayed until the end.
fn rows(session: &Session) -> anyhow::Result<bool> {
    let mut last = 0;
    loop {
        let page = session.ledger().export(last, PAGE_ROWS)?;
        let Some(end) = page.last() else {
            return Ok(true);
        };
        last = end.seq;
        if !page.iter().all(|row| out::try_print_json(&row.json)) {
            return Ok(false);
        }
    }
}
