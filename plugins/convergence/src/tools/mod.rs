//! The tools and their shared parts.

pub(crate) mod mutation;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod status;

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::{Cx, Db, DbError, Event, TestOutcome, TestResult, ToolError};

use crate::cycle::{Repetition, Sighting};
use crate::report::{Failure, Outcome, TestReport};
use crate::store::{self, Scope, Seen};
use crate::{Normaliser, cycle, fingerprint};

/// Most failing tests, and most other errors, in a reply.
const SHOWN: usize = 20;
/// Longest message in a reply, in characters.
const MAX_MESSAGE: usize = 500;
/// Most stack frames in a reply.
const MAX_FRAMES: usize = 10;
/// Size limit of names in the ledger, in bytes.
const MAX_NAMES: usize = 24 << 10;
/// Longest name in the ledger, in bytes.
const MAX_NAME: usize = 500;

fn default_workspace() -> String {
    "default".to_owned()
}

/// A failing test or another error.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FailureView {
    /// Name of the test. For an error, its file, crate or package.
    name: String,
    /// Type of the exception, or the closest equivalent.
    #[serde(skip_serializing_if = "Option::is_none")]
    exception_type: Option<String>,
    /// The first lines of the message, normalised.
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    /// Stack frames, normalised.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stack: Vec<String>,
}

impl From<&Failure> for FailureView {
    fn from(failure: &Failure) -> FailureView {
        FailureView {
            name: failure.name.clone(),
            exception_type: failure.exception_type.clone(),
            message: failure.message_head.chars().take(MAX_MESSAGE).collect(),
            stack: failure.stack.iter().take(MAX_FRAMES).cloned().collect(),
        }
    }
}

/// Numbers of tests by result, as far as the tool reports them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CountsView {
    /// Tests that passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<u64>,
    /// Tests that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<u64>,
    /// Tests that were skipped, ignored or expected to fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    /// Total number of tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
}

/// Result of a test run, and whether its failure repeats.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunView {
    /// True if the run passed.
    passed: bool,
    /// passed, failed, error (the run itself failed, for example to compile) or no_tests.
    outcome: String,
    /// Reader that parsed the output.
    reader: String,
    /// Numbers of tests by result.
    counts: CountsView,
    /// Failing tests, at most 20.
    failing_tests: Vec<FailureView>,
    /// Number of failing tests that are not listed.
    more_failing_tests: u64,
    /// Errors outside of tests, at most 20.
    errors: Vec<FailureView>,
    /// Number of errors that are not listed.
    more_errors: u64,
    /// Exit code of the run, if it ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Fingerprint of the failure: equal whenever the same tests fail in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_fingerprint: Option<String>,
    /// True if the same failure was seen before and persists after at least one mutation.
    non_progress: bool,
    /// Number of sightings of the failure, including this one.
    failure_seen: u64,
    /// Number of mutations since the first sighting.
    failure_mutations: u64,
    /// Verdict in one line.
    message: String,
}

impl RunView {
    fn of(report: &TestReport, failure: Option<String>, repetition: Repetition) -> RunView {
        let shown = |failures: &[Failure]| failures.iter().take(SHOWN).map(FailureView::from).collect();
        let more = |failures: &[Failure], more: u64| {
            more.saturating_add(failures.len().saturating_sub(SHOWN) as u64)
        };
        RunView {
            passed: !report.is_failure(),
            outcome: text(&report.outcome),
            reader: text(&report.reader),
            counts: CountsView {
                passed: report.counts.passed,
                failed: report.counts.failed,
                skipped: report.counts.skipped,
                total: report.counts.total,
            },
            failing_tests: shown(&report.failing_tests),
            more_failing_tests: more(&report.failing_tests, report.more_failing_tests),
            errors: shown(&report.errors),
            more_errors: more(&report.errors, report.more_errors),
            exit_code: report.exit_code,
            message: verdict(report, failure.is_some(), repetition),
            failure_fingerprint: failure,
            non_progress: repetition.non_progress,
            failure_seen: repetition.seen,
            failure_mutations: repetition.mutations,
        }
    }

    /// Failing tests as text for people.
    fn text(&self) -> String {
        let mut text = self.message.clone();
        for failure in self.failing_tests.iter().chain(&self.errors) {
            text.push_str(&format!("\n- {}", failure.name));
            if let Some(kind) = &failure.exception_type {
                text.push_str(&format!(" ({kind})"));
            }
            if let Some(line) = failure.message.lines().next() {
                text.push_str(&format!(": {line}"));
            }
        }
        text
    }
}

fn verdict(report: &TestReport, failed: bool, repetition: Repetition) -> String {
    let counted = |name: &str, count: Option<u64>| count.map(|count| format!("{count} {name}"));
    let counts: Vec<String> = [
        counted("passed", report.counts.passed),
        counted("failed", report.counts.failed),
        counted("skipped", report.counts.skipped),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut verdict = text(&report.outcome).replace('_', " ");
    if !counts.is_empty() {
        verdict.push_str(&format!(": {}", counts.join(", ")));
    }
    if failed && repetition.seen > 1 {
        verdict.push_str(&format!("; {repetition}"));
    }
    if repetition.non_progress {
        verdict.push_str("; no progress");
    }
    verdict
}

/// Name of a unit variant, as serde writes it.
fn text(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

/// Scope of comparison.
fn scope(cx: &Cx<'_>, workspace: &str) -> Scope {
    Scope {
        envelope: cx.envelope_id().unwrap_or_default().to_owned(),
        workspace: workspace.to_owned(),
    }
}

/// Mutations so far: the envelope's, otherwise the recorded ones.
fn mutations(cx: &Cx<'_>, db: &Db<'_>, scope: &Scope) -> Result<u64, DbError> {
    match cx.budget().current() {
        Some(envelope) => Ok(envelope.counter("mutations").map_or(0, |counter| counter.used)),
        None => Ok(store::mutation_counts(db, scope)?.all),
    }
}

/// Stores a test run, and determines whether its failure repeats.
fn remember(
    cx: &Cx<'_>,
    db: &Db<'_>,
    scope: &Scope,
    command: &str,
    report: &TestReport,
) -> Result<RunView, DbError> {
    let failure = fingerprint::failure(report);
    let mutations = mutations(cx, db, scope)?;
    let repetition = match &failure {
        Some(failure) => {
            let before = store::seen(db, scope, failure)?;
            repeated(failure, mutations, before.as_ref())
        }
        None => Repetition::default(),
    };
    let run = store::Run {
        command,
        outcome: &text(&report.outcome),
        failure_fingerprint: failure.as_deref(),
        mutations,
    };
    store::add_run(db, scope, &run, cx.now())?;
    Ok(RunView::of(report, failure, repetition))
}

fn repeated(failure: &str, mutations: u64, before: Option<&Seen>) -> Repetition {
    let now = Sighting {
        fingerprint: failure,
        mutations,
    };
    let Some(before) = before else {
        return cycle::failure(now, []);
    };
    let first = Sighting {
        fingerprint: failure,
        mutations: before.first_mutations,
    };
    Repetition {
        seen: before.seen.saturating_add(1),
        ..cycle::failure(now, [first])
    }
}

/// Writes the result of a test run to the ledger. `how` is how the run ended, if not by itself.
fn record(cx: &Cx<'_>, report: &TestReport, run: &RunView, how: Option<TestResult>) -> Result<(), ToolError> {
    let event = match &run.failure_fingerprint {
        None => Event::new("test.passed"),
        Some(failure) => {
            let event = if run.non_progress {
                Event::new("test.non_progress")
            } else {
                Event::new("test.failed")
            };
            event.failure(
                failure,
                names(report.failing_tests.iter().map(|test| test.name.as_str())),
            )
        }
    };
    cx.ledger().set_test_outcome(&outcome(report, how))?;
    Ok(cx.ledger().append(&event.note(run.message.clone()))?)
}

/// Outcome of a run for its row in the ledger.
fn outcome(report: &TestReport, how: Option<TestResult>) -> TestOutcome {
    let count = |count: Option<u64>| count.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let first = report.failing_tests.first().or(report.errors.first());
    let message = first.map(|failure| {
        let message = match (failure.name.as_str(), failure.message_head.as_str()) {
            (name, "") => name.to_owned(),
            ("", message) => message.to_owned(),
            (name, message) => format!("{name}: {message}"),
        };
        let line = message.lines().collect::<Vec<_>>().join(" ");
        line[..line.floor_char_boundary(MAX_MESSAGE)].to_owned()
    });
    TestOutcome {
        result: how.unwrap_or(match report.outcome {
            Outcome::Passed => TestResult::Passed,
            Outcome::Failed => TestResult::Failed,
            Outcome::Error => TestResult::Error,
            Outcome::NoTests => TestResult::NoTests,
        }),
        failed: count(report.counts.failed),
        total: count(report.counts.total),
        message,
    }
}

/// As many names as fit into the ledger.
fn names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut bytes = 0;
    names
        .map(|name| {
            name.get(..name.floor_char_boundary(MAX_NAME))
                .unwrap_or(name)
                .to_owned()
        })
        .take_while(|name| {
            bytes += name.len();
            bytes <= MAX_NAMES
        })
        .collect()
}

/// Normaliser for runs in a workspace.
fn normaliser(roots: &[Option<&str>]) -> Normaliser {
    Normaliser::new(roots.iter().flatten().copied())
}
