//! The tool `test_run`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Command, Cx, Effect, Ending, Hints, Outcome, TestResult, Tier, Tool, ToolError};

use super::{RunView, Tested, default_workspace, normaliser, record, remember, scope, sources};
use crate::config::Config;
use crate::readers::{self, Run};
use crate::report::Ended;
use crate::store::Source;
use crate::{error, store, text, work_tree};

/// Size limit of each stream, in bytes.
const MAX_OUTPUT: u32 = 1 << 20;
/// Longest end of the output in a reply, in bytes.
const MAX_TAIL: usize = 16 << 10;

/// Run a registered test command of a workspace. Reports a failure with its fingerprint, which is the same in every
/// run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-charge" = "test-run"))]
pub(crate) struct TestRun {
    /// Name of a registered workspace.
    #[serde(default = "default_workspace")]
    #[schemars(length(max = 128))]
    workspace: String,
    /// Name of a registered command.
    #[serde(default = "default_test")]
    #[schemars(length(max = 128))]
    test: String,
    /// Time limit of the run in seconds.
    #[schemars(range(min = 1, max = 86_400))]
    timeout_sec: Option<u32>,
    /// Bytes of output to show (default 2000).
    #[serde(default = "default_tail")]
    #[schemars(range(min = 0, max = 16_384))]
    tail_bytes: usize,
    /// Your name, for the ledger. Default: the identity that the transport proved.
    #[schemars(length(max = 128), extend("x-unlisted" = true))]
    #[expect(dead_code, reason = "the host reads it")]
    actor: Option<String>,
}

fn default_test() -> String {
    "default".to_owned()
}

fn default_tail() -> usize {
    2_000
}

/// Result of a test run.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Ran {
    /// Name of a registered workspace.
    workspace: String,
    /// Test command of the workspace.
    test: String,
    /// Result of the run.
    #[serde(flatten)]
    run: RunView,
    /// Duration in milliseconds.
    duration_ms: u64,
    /// True if the run was ended by the time limit.
    timed_out: bool,
    /// Signal that ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// End of the output.
    output_tail: String,
    /// Total size of the output in bytes.
    output_bytes: u64,
    /// Id of the artifact with the full output, for artifact_get.
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_id: Option<String>,
    /// Id of the operation in the ledger, for tasks_evidence_capture.
    #[serde(skip_serializing_if = "String::is_empty")]
    operation_id: String,
}

impl Tool for TestRun {
    const NAME: &'static str = "test_run";
    const TITLE: &'static str = "Run tests";
    const EFFECT: Effect = Effect::Run;
    const TIER: Tier = Tier::Core;
    const HINTS: Hints = Hints {
        open_world: true,
        ..Hints::ADDITIVE
    };
    type Output = Ran;

    fn run(self, cx: &Cx<'_>) -> Result<Ran, ToolError> {
        let config: Config = cx.config()?;
        let workspace = cx.workspace(&self.workspace)?;
        let Some(test) = workspace.info().test(&self.test) else {
            return Err(error::test_not_registered(&workspace, &self.test));
        };
        let words = test.argv.join(" ");
        let root = work_tree::root(&workspace);
        let seconds = self.timeout_sec.unwrap_or(u32::MAX).min(config.test_timeout_sec);
        let command = Command::test(test)
            .timeout(Duration::from_secs(u64::from(seconds)))
            .output_limit(MAX_OUTPUT);
        cx.progress(
            0,
            Some(2),
            &format!("running {} in {}", self.test, self.workspace),
        );
        let outcome = workspace.run(&command)?;
        cx.progress(1, Some(2), "reading the output");
        let output = output(&outcome);
        let mut report = readers::read(
            &Run {
                output: output.as_bytes(),
                exit_code: exit_code(&outcome),
                command: &words,
                reader: config.readers.get(&self.test).copied(),
            },
            &normaliser(&[root.as_deref()]),
        );
        report.ended = match outcome.ending {
            Ending::Exited(code) => Ended::Exited(code),
            Ending::Signalled(signal) => Ended::Signalled(signal),
            Ending::TimedOut => Ended::TimedOut,
        };
        sources::read(&mut report, &workspace, root.as_deref());
        let scope = scope(cx, &self.workspace);
        let tested = Tested {
            command: &self.test,
            words: Some(&words),
            source: Source::Host,
            report: &report,
            ran_sec: Some(u32::try_from(outcome.duration.as_secs()).map_or(seconds, |ran| ran.min(seconds))),
            // The time that the operator gives tests is part of what they are to keep to.
            is_cut_off: outcome.ending == Ending::TimedOut
                && outcome.duration < Duration::from_secs(u64::from(config.test_timeout_sec)),
        };
        let run = cx.transaction(|db| {
            if let Some(root) = &root {
                store::set_root(&db, &self.workspace, root)?;
            }
            remember(cx, &db, &scope, &tested)
        })?;
        let how = match outcome.ending {
            Ending::Exited(_) => None,
            Ending::Signalled(_) => Some(TestResult::Killed),
            Ending::TimedOut => Some(TestResult::TimedOut),
        };
        record(cx, &tested, &run, how)?;
        cx.progress(2, Some(2), "done");
        Ok(Ran {
            workspace: self.workspace,
            test: self.test,
            run,
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            timed_out: outcome.ending == Ending::TimedOut,
            signal: match outcome.ending {
                Ending::Signalled(signal) => Some(signal),
                _ => None,
            },
            output_tail: tail(&output, self.tail_bytes.min(MAX_TAIL)),
            output_bytes: outcome.stdout.total.saturating_add(outcome.stderr.total),
            artifact_id: outcome.artifact_id,
            operation_id: cx.op_id().to_owned(),
        })
    }

    fn text(output: &Ran) -> Option<String> {
        let tail = match output.output_tail.as_str() {
            "" => String::new(),
            tail => format!("\n\n{tail}"),
        };
        Some(format!("{}{tail}", output.run.text()))
    }
}

/// Both streams, concatenated.
fn output(outcome: &Outcome) -> String {
    let (stdout, stderr) = (outcome.stdout.text(), outcome.stderr.text());
    match (stdout.is_empty(), stderr.is_empty()) {
        (_, true) => stdout.into_owned(),
        (true, false) => stderr.into_owned(),
        (false, false) => format!("{stdout}\n{stderr}"),
    }
}

fn exit_code(outcome: &Outcome) -> Option<i32> {
    match outcome.ending {
        Ending::Exited(code) => Some(code),
        Ending::Signalled(_) | Ending::TimedOut => None,
    }
}

/// The end of an output, without colours, from the start of a line if there is one.
fn tail(output: &str, bytes: usize) -> String {
    let clean = text::strip_ansi(
        output
            .get(output.ceil_char_boundary(output.len().saturating_sub(4 * MAX_TAIL))..)
            .unwrap_or(output),
    );
    let clean = clean.trim_end();
    let start = clean.ceil_char_boundary(clean.len().saturating_sub(bytes));
    let end = clean.get(start..).unwrap_or_default();
    match end.split_once('\n') {
        Some((_, lines)) if start > 0 && !lines.is_empty() => lines.to_owned(),
        _ => end.to_owned(),
    }
}
