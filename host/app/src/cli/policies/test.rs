//! `tollgate policies test`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::policy_test::{self, Case, Ran};
use tollgate::sources;
use tollgate_core::text::counted;

use crate::cli::{self, Global, out};

/// Each case has its own settings, ledger and tables, and states the expected verdict; docs/policies.md
/// describes the format. All cases run, even if one fails.
#[derive(Debug, Args)]
pub(in crate::cli) struct Test {
    /// A component, or the name of a policy that is built in or configured
    policy: String,
    /// A file of cases; may be repeated
    #[arg(long = "case", value_name = "FILE", required = true)]
    cases: Vec<PathBuf>,
    /// Time limit of all cases together
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    time: u64,
}

impl Test {
    /// Exit code 1 if the policy says something else than a case expects.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let cases = self.read()?;
        let config = Config::load(global.config.as_deref())?;
        let source = sources::named_policy(&config, &self.policy)?;
        let context = cli::context(global, &config)?;
        let ran = policy_test::run(&context, source, &cases, Duration::from_secs(self.time)).await?;
        let failed = ran.iter().filter(|ran| !ran.passed).count();
        if global.json {
            let passed = ran.len() - failed;
            out::print_json(
                &json!({ "policy": self.policy, "passed": passed, "failed": failed, "cases": ran }),
            );
        } else {
            let lines: Vec<String> = ran.iter().flat_map(lines).collect();
            let summary = format!(
                "{} of {} as expected",
                ran.len() - failed,
                counted(ran.len(), "case")
            );
            out::print(&format!("{}\n{summary}", lines.join("\n")));
        }
        Ok(if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    /// Cases of all files. All mistakes in them are reported at once.
    fn read(&self) -> anyhow::Result<Vec<Case>> {
        let mut cases = Vec::new();
        let mut wrong = Vec::new();
        for file in &self.cases {
            #[allow(clippy::disallowed_methods, reason = "the user names the file")]
            let text = std::fs::read_to_string(file);
            let text = text.with_context(|| format!("cannot read {}", file.display()))?;
            match policy_test::read(&text) {
                Ok(read) => cases.extend(read),
                Err(bad) => {
                    let problems = bad
                        .0
                        .iter()
                        .map(|problem| format!("  {}:{problem}", file.display()));
                    wrong.extend(problems);
                }
            }
        }
        anyhow::ensure!(
            wrong.is_empty(),
            "the cases have {}, so no case was tried:\n{}",
            counted(wrong.len(), "mistake"),
            wrong.join("\n")
        );
        Ok(cases)
    }
}

fn lines(ran: &Ran) -> Vec<String> {
    let took = ran.us.map_or_else(String::new, |us| format!("  ({us} µs)"));
    let word = if ran.passed { "ok" } else { "FAILED" };
    let mut lines = vec![format!("{word:<7} {}{took}", ran.name)];
    lines.extend(
        ran.differences
            .iter()
            .map(|difference| format!("        {difference}")),
    );
    lines
        .iter()
        .map(|line| tollgate_core::text::clean(line))
        .collect()
}
