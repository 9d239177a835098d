//! The tool `convergence_status`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, SeenWorkTree, Tier, Timestamp, Tool, ToolError};

use super::{default_workspace, is_false, scope};
use crate::cycle::{Repetition, Unit};
use crate::store::mutations::{LastMutation, MutationCounts};
use crate::store::{self, RunCounts, Seen, Verdict};

/// Most failures in a reply.
const MAX_SHOWN_FAILURES: u32 = 20;

/// Report whether work in a workspace is converging: test failures that persist, edits without effect, edits
/// that restore an earlier state.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    /// Name of a registered workspace.
    #[serde(default = "default_workspace")]
    #[schemars(length(max = 128))]
    workspace: String,
}

/// Convergence of the work.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StatusView {
    /// Name of a registered workspace.
    workspace: String,
    /// Id of the envelope. Absent outside of envelopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    envelope_id: Option<String>,
    /// Counters of the envelope.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counters: Vec<CounterView>,
    /// Seconds until the envelope's deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_sec: Option<u64>,
    /// Number of stored test runs.
    test_runs: u64,
    /// Number of failed test runs.
    failed_test_runs: u64,
    /// True if the newest failure was seen before, persists after a mutation and is not resolved.
    non_progress: bool,
    /// True if the newest run had another result than the one before it, without an edit in between.
    #[serde(skip_serializing_if = "is_false")]
    flaky: bool,
    /// True if the newest run failed after one that passed, with an edit in between.
    #[serde(skip_serializing_if = "is_false")]
    regression: bool,
    /// Edits of the work tree in the envelope, by calls and by others.
    #[serde(skip_serializing_if = "Option::is_none")]
    edits: Option<u64>,
    /// Edits of the work tree that no call made.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_edits: Option<u64>,
    /// Reason why edits of the work tree are not detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    unobserved: Option<String>,
    /// Failures, latest first.
    failures: Vec<FailureCount>,
    /// Recorded states of files.
    mutations: Mutations,
    /// Verdict in one line.
    message: String,
}

/// Counter of the envelope.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CounterView {
    /// Name: `mutations`, `test_runs` or a configured budget.
    name: String,
    /// Amount that is used or reserved by running calls.
    used: u64,
    /// Limit of the counter, absent if unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
}

/// A failure with its number of sightings.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FailureCount {
    /// Fingerprint of the newest failure.
    failure_fingerprint: String,
    /// Number of sightings.
    seen: u64,
    /// Number of edits or mutations between the first and last sighting.
    mutations: u64,
    /// Time of the last sighting.
    last_at: Timestamp,
    /// Summary in words.
    text: String,
}

/// Recorded states of files.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Mutations {
    /// Number of recorded states.
    recorded: u64,
    /// Number of records without a change.
    no_ops: u64,
    /// Number of records that restored an earlier state.
    oscillations: u64,
    /// Fingerprint of the newest state.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_fingerprint: Option<String>,
    /// True if the newest record changed nothing.
    no_op: bool,
    /// Number of records since the state that the newest one restored.
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
        let failures = store::failures(&cx.db, &scope, MAX_SHOWN_FAILURES)?;
        let mutations = store::mutations::mutation_counts(&cx.db, &scope)?;
        let last = store::mutations::last_mutation(&cx.db, &scope)?;
        let envelope = cx.budget().current();
        let standing = failures
            .first()
            .filter(|failure| Some(failure.last_id) == runs.last_id);
        let told = store::last_verdict(&cx.db, &scope)?;
        let seen = cx.ledger().seen_work_tree(&self.workspace)?;
        Ok(StatusView {
            message: verdict(&runs, standing, told, last.as_ref(), seen.oscillation),
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
            non_progress: told.non_progress,
            flaky: told.flaky,
            regression: told.regression,
            edits: seen.state.as_ref().map(|_| seen.edits),
            observed_edits: seen.state.as_ref().map(|_| seen.observed_edits),
            unobserved: seen.unseen.clone(),
            failures: failures.iter().map(FailureCount::of).collect(),
            mutations: Mutations::of(&mutations, last, &seen),
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
    /// Counts mutations. If the host sees the work tree, its states show repetitions, whoever made the edits.
    fn of(counts: &MutationCounts, last: Option<LastMutation>, seen: &SeenWorkTree) -> Mutations {
        let no_op = last.as_ref().is_some_and(|last| last.no_op);
        let recorded = last.as_ref().map(|last| last.period).filter(|&period| period > 0);
        Mutations {
            recorded: counts.all,
            no_ops: counts.no_ops,
            oscillations: counts.oscillations,
            no_op,
            period: match seen.state {
                Some(_) => seen.oscillation.filter(|_| !no_op),
                None => recorded,
            },
            last_fingerprint: last.map(|last| last.fingerprint),
        }
    }
}

fn repetition(failure: &Seen) -> Repetition {
    Repetition {
        seen: failure.seen,
        mutations: failure.last_changes.saturating_sub(failure.first_changes),
        unit: match failure.by_edits {
            true => Unit::Edit,
            false => Unit::Mutation,
        },
        ..Repetition::default()
    }
}

fn verdict(
    runs: &RunCounts,
    standing: Option<&Seen>,
    told: Verdict,
    last: Option<&LastMutation>,
    oscillation: Option<u32>,
) -> String {
    let mut verdict = match (runs.all, standing) {
        (0, _) => "no test run yet".to_owned(),
        (_, Some(failure)) => repetition(failure).to_string(),
        (_, None) if runs.is_empty => "the last test run found no tests".to_owned(),
        (_, None) => "the last test run passed".to_owned(),
    };
    for (holds, words) in [(told.flaky, "flaky"), (told.regression, "regression")] {
        if holds {
            verdict.push_str(&format!("; {words}"));
        }
    }
    let recorded = last.map(|last| last.period).filter(|&period| period > 0);
    match (last, oscillation.or(recorded)) {
        (Some(last), _) if last.no_op => verdict.push_str("; the last edit had no effect"),
        (_, Some(period)) => verdict.push_str(&format!("; edits repeat with period {period}")),
        _ => {}
    }
    verdict
}
