//! `tollgate ledger report`

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tollgate_core::clock::Clock as _;
use tollgate_gate::core_tools;
use tollgate_store::storage::EnvelopeFilter;

use super::{Global, open};
use crate::cli::out;

/// Report what happened in an envelope
#[derive(Debug, Args)]
pub(in crate::cli) struct Report {
    /// Envelope to report on [default: the newest]
    envelope: Option<String>,
}

impl Report {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let opened = open(global)?;
        let boot_ms = opened.database.clock()?.boot_ms();
        let session = opened.session;
        session.begin_read()?;
        let envelope = match &self.envelope {
            Some(id) => session
                .envelopes()
                .get(id)?
                .with_context(|| format!("there is no envelope {id}; `tollgate envelopes` lists them"))?,
            None => session
                .envelopes()
                .list(&EnvelopeFilter::default(), 1)?
                .pop()
                .context("there are no envelopes yet; `tollgate ledger tail` shows all calls")?,
        };
        let report = core_tools::report(&session, envelope, boot_ms)?;
        session.commit()?;
        if global.json {
            out::print_json(&json!(report));
        } else {
            out::print(&report.text);
        }
        Ok(ExitCode::SUCCESS)
    }
}
