//! `tollgate envelopes`

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use tollgate_core::clock::{self, Clock as _};
use tollgate_core::envelope::State;
use tollgate_store::storage::{Envelope, EnvelopeFilter};

use super::call::call;
use super::{Filters, Global, ledger, out};

/// Show the envelopes, newest first; open and close them for several connections
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Envelopes {
    #[command(subcommand)]
    change: Option<Change>,
    /// Show only open envelopes
    #[arg(long)]
    open: bool,
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: u32,
}

/// Changes of envelopes.
#[derive(Debug, Subcommand)]
enum Change {
    /// Open an envelope that stays open when this command ends; other connections name its id
    Open(Open),
    /// Close an envelope
    Close(Close),
}

#[derive(Debug, Args)]
struct Open {
    /// Maximum time that the envelope stays open: `30m`, `2h`, `1d`
    #[arg(long = "for", value_name = "TIME")]
    duration: String,
    /// Registered workspace that the work is about
    #[arg(long, value_name = "NAME")]
    about: Option<String>,
    /// A few words for readers of the ledger
    #[arg(long)]
    label: Option<String>,
    /// Maximum number of calls that may change something
    #[arg(long, value_name = "N")]
    max_mutations: Option<u32>,
    /// Maximum number of test runs
    #[arg(long, value_name = "N")]
    max_test_runs: Option<u32>,
    /// Maximum number of work-tree edits that no call made
    #[arg(long, value_name = "N")]
    max_edits: Option<u32>,
}

#[derive(Debug, Args)]
struct Close {
    /// The envelope's id
    id: String,
    /// Outcome of the work
    #[arg(long, value_parser = ["success", "failed"], default_value = "success")]
    outcome: String,
    /// A few words for readers of the ledger
    #[arg(long)]
    note: Option<String>,
}

impl Change {
    /// Tool that makes the change, and its arguments.
    fn call(self) -> anyhow::Result<(String, Map<String, Value>)> {
        let (tool, arguments) = match self {
            Change::Open(open) => {
                let span_ms = clock::span_ms(&open.duration).filter(|&span_ms| span_ms >= 1_000);
                let seconds =
                    span_ms.context("--for is not a length of time, such as 30m, 2h or 1d")? / 1_000;
                let limits = json!({
                    "max_duration_sec": seconds,
                    "max_mutations": open.max_mutations,
                    "max_test_runs": open.max_test_runs,
                    "max_edits": open.max_edits,
                });
                let arguments = json!({
                    "detached": true, "workspace": open.about, "label": open.label, "limits": limits,
                });
                ("envelope_open", arguments)
            }
            Change::Close(close) => {
                let arguments =
                    json!({"envelope_id": close.id, "outcome": close.outcome, "note": close.note});
                ("envelope_close", arguments)
            }
        };
        Ok((tool.to_owned(), given(arguments)))
    }
}

/// Object without null members at any depth, which are options that were not given.
fn given(arguments: Value) -> Map<String, Value> {
    let Value::Object(arguments) = arguments else {
        return Map::new();
    };
    let there = arguments.into_iter().filter(|(_, value)| !value.is_null());
    there
        .map(|(name, value)| match value {
            Value::Object(_) => (name, Value::Object(given(value))),
            other => (name, other),
        })
        .collect()
}

impl Envelopes {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        if let Some(change) = self.change {
            return call(global, &Filters::default(), change.call()?).await;
        }
        let opened = ledger::open(global)?;
        let filter = EnvelopeFilter {
            state: self.open.then_some(State::Open),
            boot_ms: opened.database.clock()?.boot_ms(),
            ..EnvelopeFilter::default()
        };
        let envelopes = opened.session.envelopes().list(&filter, self.limit)?;
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
            out::warn(&format!(
                "there is no {kind}; to open an envelope, call the tool envelope_open"
            ));
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
        "edits": standing.edits,
        "max_edits": standing.limits.max_edits,
        "max_test_runs": standing.limits.max_test_runs,
    })
}
