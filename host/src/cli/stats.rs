//! `tollgate stats`

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tollgate::clock::{Clock as _, SystemClock};
use tollgate_sdk::Timestamp;

use super::{Global, ledger, out};

/// Counted from the ledger. A server over HTTP has its own counters under /metrics.
#[derive(Debug, Args)]
pub(super) struct Stats {
    /// Since when: `30m`, `24h`, `7d`, or RFC 3339
    #[arg(long, default_value = "24h", value_name = "TIME")]
    since: String,
    /// Only this pack's tools, `core` being the host's own
    #[arg(long)]
    pack: Option<String>,
}

impl Stats {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let since = since(&self.since, SystemClock.now_ms())?;
        let stats = ledger::open(global)?
            .session
            .stats(&since, self.pack.as_deref())?;
        if global.json {
            out::print_json(&json!({ "since": since, "tools": stats }));
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
                "UNKNOWN",
                "MEDIAN MS",
                "P95 MS",
                "LONGEST MS",
                "MOSTLY",
            ],
            &rows,
        ));
        Ok(ExitCode::SUCCESS)
    }
}

/// A time, or so long before now, as the ledger writes it.
fn since(text: &str, now_ms: i64) -> anyhow::Result<String> {
    let unit = |text: &str| {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        number
            .parse::<u32>()
            .ok()
            .map(|number| i64::from(number) * seconds * 1_000)
    };
    if let Some(ago) = unit(text) {
        return Ok(Timestamp::from_ms(now_ms.saturating_sub(ago)).to_string());
    }
    let time = Timestamp::parse(text)
        .with_context(|| format!("{text:?} is no time; write 30m, 24h, 7d, or 2026-11-21T06:00:00Z"))?;
    Ok(time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_before_now_or_said_outright() {
        assert_eq!(
            since("1h", 7_200_000).unwrap(),
            Timestamp::from_ms(3_600_000).to_string()
        );
        assert_eq!(
            since("1970-01-01T00:00:01Z", 0).unwrap(),
            Timestamp::from_ms(1_000).to_string()
        );
        for text in ["", "h", "1w", "yesterday", "-1h", "é"] {
            assert!(since(text, 0).is_err(), "{text}");
        }
    }
}
