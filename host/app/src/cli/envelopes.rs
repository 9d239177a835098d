//! `tollgate envelopes`

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tollgate_core::envelope::State;
use tollgate_store::storage::{Envelope, EnvelopeFilter};

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
        if global.json {
            out::print_json(&json!(envelopes.iter().map(as_json).collect::<Vec<_>>()));
            return Ok(ExitCode::SUCCESS);
        }
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
        out::print(&out::table(
            &["ENVELOPE", "STATE", "MUTATIONS", "TEST RUNS", "OPENED", "LABEL"],
            &rows,
        ));
        if rows.is_empty() {
            let kind = if self.open {
                "open envelope"
            } else {
                "envelope yet"
            };
            out::warn(&format!("there is no {kind}; the tool envelope_open opens one"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn as_json(envelope: &Envelope) -> Value {
    let standing = &envelope.standing;
    json!({
        "id": envelope.id,
        "state": standing.state.as_str(),
        "label": envelope.label,
        "opened_at": envelope.opened_at,
        "mutations": standing.mutations,
        "max_mutations": standing.limits.max_mutations,
        "test_runs": standing.test_runs,
        "max_test_runs": standing.limits.max_test_runs,
    })
}
