//! `tollgate envelopes`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate::envelope::State;
use tollgate::storage::EnvelopeFilter;

use super::{Global, ledger, out};

/// Show the envelopes, newest first
#[derive(Debug, Args)]
pub(super) struct Envelopes {
    /// Only those that are open
    #[arg(long)]
    open: bool,
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: u32,
}

impl Envelopes {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let filter = EnvelopeFilter {
            state: self.open.then_some(State::Open),
            ..EnvelopeFilter::default()
        };
        let envelopes = ledger::open(global)?.session.envelopes(&filter, self.limit)?;
        let of = |used: i64, limit: Option<i64>| {
            limit.map_or_else(|| used.to_string(), |limit| format!("{used}/{limit}"))
        };
        let rows: Vec<Vec<String>> = envelopes
            .iter()
            .map(|envelope| {
                vec![
                    envelope.id.clone(),
                    envelope.standing.state.as_str().to_owned(),
                    of(
                        envelope.standing.mutations,
                        envelope.standing.limits.max_mutations,
                    ),
                    of(
                        envelope.standing.test_runs,
                        envelope.standing.limits.max_test_runs,
                    ),
                    envelope.opened_at.clone(),
                    envelope.label.clone().unwrap_or_default(),
                ]
            })
            .collect();
        if global.json {
            let keys = ["id", "state", "mutations", "test_runs", "opened_at", "label"];
            let objects: Vec<serde_json::Map<String, serde_json::Value>> = rows
                .iter()
                .map(|row| {
                    keys.iter()
                        .zip(row)
                        .map(|(key, cell)| ((*key).to_owned(), cell.as_str().into()))
                        .collect()
                })
                .collect();
            out::print_json(&json!(objects));
        } else {
            out::print(&out::table(
                &["ENVELOPE", "STATE", "MUTATIONS", "TEST RUNS", "OPENED", "LABEL"],
                &rows,
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
