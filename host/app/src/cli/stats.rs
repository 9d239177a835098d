//! `tollgate stats`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate_store::storage::{PolicyTally, TallyQuery};

use super::{Global, ledger, out};

/// Counted from the ledger: calls by tool, and verdicts by policy and mode. A server over HTTP has its own counters under /metrics.
#[derive(Debug, Args)]
pub(super) struct Stats {
    /// Since when: `30m`, `24h`, `7d`, or RFC 3339
    #[arg(long, default_value = "24h", value_name = "TIME", value_parser = super::time)]
    since: String,
    /// Only this pack's tools, `core` being the host's own
    #[arg(long)]
    pack: Option<String>,
}

impl Stats {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let since = self.since;
        let session = ledger::open(global)?.session;
        let stats = session.stats().of_tools(&since, self.pack.as_deref())?;
        let query = TallyQuery {
            since: since.clone(),
            pack: self.pack,
            ..TallyQuery::default()
        };
        let policies = session.stats().policy_tallies(&query)?.rows;
        if global.json {
            out::print_json(&json!({ "since": since, "tools": stats, "policies": policies }));
            return Ok(ExitCode::SUCCESS);
        }
        if stats.is_empty() {
            out::print(&format!("no tool was called since {since}"));
            return Ok(ExitCode::SUCCESS);
        }
        let rows: Vec<Vec<String>> = stats
            .iter()
            .map(|tool| {
                let most = tool.errors.iter().max_by_key(|(_, count)| **count);
                vec![
                    tool.pack.clone(),
                    tool.tool.clone(),
                    tool.calls.to_string(),
                    tool.failed.to_string(),
                    tool.tests_failed.to_string(),
                    tool.unknown.to_string(),
                    format!("{:.3}", tool.median_ms),
                    format!("{:.3}", tool.p95_ms),
                    format!("{:.3}", tool.longest_ms),
                    most.map(|(code, count)| format!("{code} {count}×"))
                        .unwrap_or_default(),
                ]
            })
            .collect();
        out::print(&out::table(
            &[
                "PACK",
                "TOOL",
                "CALLS",
                "FAILED",
                "TESTS FAILED",
                "UNKNOWN",
                "MEDIAN MS",
                "P95 MS",
                "LONGEST MS",
                "MOSTLY",
            ],
            &rows,
        ));
        if !policies.is_empty() {
            out::print(&format!("\n{}", verdicts(&policies)));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Verdicts of each policy in each mode.
fn verdicts(policies: &[PolicyTally]) -> String {
    let rows: Vec<Vec<String>> = policies
        .iter()
        .map(|policy| {
            let counts = [
                policy.judged,
                policy.denied,
                policy.asked,
                policy.amended,
                policy.failed,
            ];
            let times = [policy.median_us, policy.p99_us];
            let times = times.map(|time| time.map_or_else(String::new, milliseconds));
            let named = [policy.policy.clone(), policy.mode.clone()];
            let counts = counts.iter().map(i64::to_string);
            named.into_iter().chain(counts).chain(times).collect()
        })
        .collect();
    let titles = [
        "POLICY",
        "MODE",
        "JUDGED",
        "DENIED",
        "ASKED",
        "AMENDED",
        "FAILED",
        "MEDIAN MS",
        "P99 MS",
    ];
    out::table(&titles, &rows)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a verdict takes less than 2^53 microseconds"
)]
fn milliseconds(microseconds: i64) -> String {
    format!("{:.3}", microseconds as f64 / 1000.0)
}
