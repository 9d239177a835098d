//! `convergence_status`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tier, Timestamp, Tool, ToolError};

use super::{default_workspace, scope};
use crate::cycle::Repetition;
use crate::store::{self, LastMutation, MutationCounts, RunCounts, Seen};

/// How many failures are told.
const SHOWN: u32 = 20;

/// Show whether the work on a workspace comes to anything: failures that stay, edits that change nothing or go in circles.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    /// The workspace.
    #[serde(default = "default_workspace")]
    #[schemars(length(max = 128))]
    workspace: String,
}

/// Whether the work comes to anything.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StatusView {
    /// The workspace.
    workspace: String,
    /// The envelope it is about; without one, calls outside of any.
    #[serde(skip_serializing_if = "Option::is_none")]
    envelope_id: Option<String>,
    /// The envelope's counters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counters: Vec<CounterView>,
    /// Seconds until the envelope's deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_sec: Option<u64>,
    /// Test runs that are remembered.
    test_runs: u64,
    /// How many of them failed.
    failed_test_runs: u64,
    /// The newest failure was there before, with a mutation in between, and still stands.
    non_progress: bool,
    /// The failures, the one seen last first.
    failures: Vec<FailureCount>,
    /// Recorded changes of files.
    mutations: Mutations,
    /// The verdict in a line.
    message: String,
}

/// One counter of the envelope.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CounterView {
    /// `mutations`, `test_runs`, or a configured budget.
    name: String,
    /// Used, or set aside by calls that are running.
    used: u64,
    /// Absent: counted, not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
}

/// A failure, and how often it was seen.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FailureCount {
    /// Its fingerprint.
    failure_fingerprint: String,
    /// How often it was seen.
    seen: u64,
    /// Mutations from its first time to its last.
    mutations: u64,
    /// When it was seen last.
    last_at: Timestamp,
    /// The same in words.
    text: String,
}

/// Recorded changes of files.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Mutations {
    /// How many were recorded.
    recorded: u64,
    /// How many changed nothing.
    no_ops: u64,
    /// How many brought back an earlier state.
    oscillations: u64,
    /// The newest one's fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_fingerprint: Option<String>,
    /// The newest one changed nothing.
    no_op: bool,
    /// The newest one brought back the state of so many records ago.
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<u32>,
}

impl Tool for Status {
    const NAME: &'static str = "convergence_status";
    const TITLE: &'static str = "Show progress";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = StatusView;

    fn run(self, cx: &Cx<'_>) -> Result<StatusView, ToolError> {
        let scope = scope(cx, &self.workspace);
        let runs = store::run_counts(&cx.db, &scope)?;
        let failures = store::failures(&cx.db, &scope, SHOWN)?;
        let mutations = store::mutation_counts(&cx.db, &scope)?;
        let last = store::last_mutation(&cx.db, &scope)?;
        let envelope = cx.budget().current();
        let standing = failures
            .first()
            .filter(|failure| Some(failure.last_id) == runs.last_id);
        let non_progress = standing.is_some_and(|failure| repetition(failure).non_progress);
        Ok(StatusView {
            message: verdict(&runs, standing, last.as_ref()),
            workspace: self.workspace,
            envelope_id: cx.envelope_id().map(str::to_owned),
            remaining_sec: envelope.as_ref().and_then(|envelope| envelope.remaining_seconds),
            counters: envelope
                .into_iter()
                .flat_map(|envelope| envelope.counters)
                .map(|counter| CounterView {
                    name: counter.name,
                    used: counter.used,
                    limit: counter.limit,
                })
                .collect(),
            test_runs: runs.all,
            failed_test_runs: runs.failed,
            non_progress,
            failures: failures.iter().map(FailureCount::of).collect(),
            mutations: Mutations::of(&mutations, last),
        })
    }

    fn text(output: &StatusView) -> Option<String> {
        Some(output.message.clone())
    }
}

impl FailureCount {
    fn of(failure: &Seen) -> FailureCount {
        let repetition = repetition(failure);
        FailureCount {
            failure_fingerprint: failure.fingerprint.clone(),
            seen: repetition.seen,
            mutations: repetition.mutations,
            last_at: failure.last_at,
            text: repetition.to_string(),
        }
    }
}

impl Mutations {
    fn of(counts: &MutationCounts, last: Option<LastMutation>) -> Mutations {
        Mutations {
            recorded: counts.all,
            no_ops: counts.no_ops,
            oscillations: counts.oscillations,
            no_op: last.as_ref().is_some_and(|last| last.no_op),
            period: last.as_ref().map(|last| last.period).filter(|&period| period > 0),
            last_fingerprint: last.map(|last| last.fingerprint),
        }
    }
}

fn repetition(failure: &Seen) -> Repetition {
    let mutations = failure.last_mutations.saturating_sub(failure.first_mutations);
    Repetition {
        non_progress: failure.seen > 1 && mutations > 0,
        seen: failure.seen,
        mutations,
    }
}

fn verdict(runs: &RunCounts, standing: Option<&Seen>, last: Option<&LastMutation>) -> String {
    let mut verdict = match (runs.all, standing) {
        (0, _) => "no test run yet".to_owned(),
        (_, Some(failure)) => repetition(failure).to_string(),
        (_, None) => "the last test run passed".to_owned(),
    };
    match last {
        Some(last) if last.no_op => verdict.push_str("; the last edit changed nothing"),
        Some(last) if last.period > 0 => {
            verdict.push_str(&format!("; edits go in circles of {}", last.period));
        }
        _ => {}
    }
    verdict
}
