//! `tollgate policies backtest`

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use globset::Glob;
use serde_json::json;
use tollgate::config::Config;
use tollgate::host::HostContext;
use tollgate::policy_test::{self, Missing, Replay};
use tollgate::sources;
use tollgate_core::text::counted;
use tollgate_store::data_dir::DATABASE;
use tollgate_store::storage::OperationFilter;

use crate::cli::{self, Global, file, out};

/// Advice if no recorded calls can be shown to a policy.
const RECORDING_ADVICE: &str =
    "To record arguments from now on, which may hold secrets: [artifacts] enabled = true, arguments = true";

/// Nothing in the data directory is changed, and hosts may keep running. The policy sees only calls whose arguments
/// were recorded: [artifacts] enabled = true and arguments = true, and results = true for policies that evaluate
/// results. Both may hold secrets, and are off unless you switch them on.
#[derive(Debug, Args)]
pub(in crate::cli) struct Backtest {
    /// A component, or the name of a policy that is built in or configured; a configured one has its settings
    policy: String,
    /// Earliest time: `30m`, `24h`, `7d`, or RFC 3339
    #[arg(long, default_value = "7d", value_name = "TIME", value_parser = cli::time)]
    since: String,
    /// Settings of the policy: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    settings: Option<String>,
    /// Only calls of tools that match a pattern
    #[arg(long, value_delimiter = ',', value_name = "GLOB,…")]
    tools: Vec<String>,
    /// Number of examples to show for each tool
    #[arg(long, default_value_t = 3, value_name = "NUMBER")]
    examples: usize,
    /// Time limit of the whole backtest
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    time: u64,
}

impl Backtest {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        let mut source = sources::named_policy(&config, &self.policy)?;
        if let Some(settings) = &self.settings {
            source.config = file::object(settings).context("the settings are not a JSON object")?;
        }
        if !self.tools.is_empty() {
            for pattern in &self.tools {
                Glob::new(pattern).with_context(|| format!("{pattern:?} is not a tool pattern"))?;
            }
            source.tools.clone_from(&self.tools);
        }
        let data_dir = config.data_dir(global.data_dir.as_deref())?;
        ensure!(
            global.server(&config)?.is_some() || data_dir.join(DATABASE).is_file(),
            "{} has no ledger, so there are no calls to replay; run a host there first, or select its directory with \
             --data-dir",
            data_dir.display()
        );
        let context = HostContext::frozen(&data_dir, cli::authority(global, &config)?)?;
        // Checked first, because compiling takes longer.
        if !has_calls(&context, &self.since)? {
            out::warn(&format!(
                "the ledger has no calls since {}. {RECORDING_ADVICE}",
                self.since
            ));
            if global.json {
                let nothing = json!({ "since": self.since, "tools": [], "missing": {}, "without_result": 0, "not_judged": 0 });
                out::print_json(&json!({ "policy": self.policy, "backtest": nothing }));
            }
            return Ok(ExitCode::SUCCESS);
        }
        let workspaces = cli::workspaces(global, &config, &data_dir)?;
        let time = Duration::from_secs(self.time);
        let replay = policy_test::replay(
            &context,
            &config,
            &workspaces,
            source,
            self.since,
            self.examples,
            time,
        )
        .await?;
        if global.json {
            out::print_json(&json!({ "policy": self.policy, "backtest": replay }));
        } else {
            out::print(&tell(&replay));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns whether the ledger has calls since a time.
fn has_calls(context: &HostContext, since: &str) -> anyhow::Result<bool> {
    let filter = OperationFilter {
        since: Some(since.to_owned()),
        ..OperationFilter::default()
    };
    let found = context.database().read_session()?.operations().list(&filter, 1)?;
    Ok(!found.is_empty())
}

fn tell(replay: &Replay) -> String {
    let rows: Vec<Vec<String>> = replay
        .tools
        .iter()
        .map(|tool| {
            let counts = [tool.calls, tool.denied, tool.amended, tool.asked, tool.failed];
            let times = [tool.median_us, tool.p99_us];
            let name = std::iter::once(tool.tool.clone());
            name.chain(counts.iter().chain(&times).map(u64::to_string))
                .collect()
        })
        .collect();
    let titles = [
        "TOOL",
        "CALLS",
        "DENIED",
        "AMENDED",
        "ASKED",
        "FAILED",
        "MEDIAN µs",
        "P99 µs",
    ];
    let mut parts = vec![out::table(&titles, &rows)];
    let examples: Vec<String> = replay
        .tools
        .iter()
        .flat_map(|tool| {
            let lines = tool.examples.iter();
            lines.map(|example| {
                let line = format!(
                    "{}  {}  {}: {}",
                    example.timestamp,
                    example.op_id,
                    tool.tool,
                    example.line()
                );
                tollgate_core::text::clean(&line)
            })
        })
        .collect();
    if !examples.is_empty() {
        parts.push(examples.join("\n"));
    }
    parts.push(notes(replay).join("\n"));
    parts.join("\n\n")
}

/// Notes below the table.
fn notes(replay: &Replay) -> Vec<String> {
    let calls: u64 = replay.tools.iter().map(|tool| tool.calls).sum();
    let mut notes = vec![format!(
        "Replayed {} since {}.",
        counted(calls, "call"),
        replay.since
    )];
    let missing: u64 = replay.missing.values().sum();
    if missing > 0 {
        let why = replay
            .missing
            .iter()
            .map(|(why, count)| format!("  {count}: {}", why.phrase()));
        notes.push(format!("Could not replay {}:", counted(missing, "call")));
        notes.extend(why);
    }
    if replay.without_result > 0 {
        notes.push(format!(
            "For {}, only the request was evaluated: the result was not recorded, or does not come from the tool.",
            counted(replay.without_result, "call")
        ));
    }
    let too_slow: u64 = replay.tools.iter().map(|tool| tool.too_slow).sum();
    if too_slow > 0 {
        notes.push(format!(
            "For {}, the policy took longer than its time limit; a host would have denied these calls.",
            counted(too_slow, "call")
        ));
    }
    if replay.not_judged > 0 {
        notes.push(format!(
            "Not replayed: {} to tools or in phases that the policy does not evaluate.",
            counted(replay.not_judged, "call")
        ));
    }
    if replay.missing.contains_key(&Missing::NotRecorded) {
        notes.push(RECORDING_ADVICE.to_owned());
    }
    notes
}
