//! The tools, and what several of them share.

pub(crate) mod mutation;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod status;

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::{Cx, Db, DbError, Event, ToolError};

use crate::cycle::{Repetition, Sighting};
use crate::report::{Failure, TestReport};
use crate::store::{self, Scope, Seen};
use crate::{Normaliser, cycle, fingerprint};

/// How many failing tests, and how many other errors, a reply tells in full.
const SHOWN: usize = 20;
/// How much of a message is told, in characters.
const MAX_MESSAGE: usize = 500;
/// How many frames of a stack are told.
const MAX_FRAMES: usize = 10;
/// How many bytes of names go into the ledger.
const MAX_NAMES: usize = 24 << 10;
/// How long a name in the ledger may be, in bytes.
const MAX_NAME: usize = 500;

fn default_workspace() -> String {
    "default".to_owned()
}

/// A failing test, or something else that went wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FailureView {
    /// The test. Of an error, the file, crate or package it is in.
    name: String,
    /// The type of the exception, or what comes closest to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    exception_type: Option<String>,
    /// The first lines of the message, normalised.
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    /// Where it happened, normalised.
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

/// How many tests did what, as far as the tool says it.
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
    /// All of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
}

/// What a test run came to, and whether it repeats.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunView {
    /// Whether there is nothing to fix.
    passed: bool,
    /// passed, failed, error (the run itself went wrong) or no_tests.
    outcome: String,
    /// Which reader read the output.
    reader: String,
    /// How many tests did what.
    counts: CountsView,
    /// The failing tests.
    failing_tests: Vec<FailureView>,
    /// How many more failed.
    more_failing_tests: u64,
    /// What went wrong outside of any test.
    errors: Vec<FailureView>,
    /// How many more there were.
    more_errors: u64,
    /// What the run ended with, if it ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The same wherever and whenever the same tests fail in the same way.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_fingerprint: Option<String>,
    /// The same failure was there before, and at least one mutation since did not change it.
    non_progress: bool,
    /// How often the failure was seen, with this time.
    failure_seen: u64,
    /// Mutations from its first time to this.
    failure_mutations: u64,
    /// The verdict in a line.
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

    /// The failing tests as a person reads them.
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

/// The name of a unit variant, as serde has it.
fn text(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

/// What is compared with each other.
fn scope(cx: &Cx<'_>, workspace: &str) -> Scope {
    Scope {
        envelope: cx.envelope_id().unwrap_or_default().to_owned(),
        workspace: workspace.to_owned(),
    }
}

/// Mutations so far: those of the envelope, or else the recorded ones.
fn mutations(cx: &Cx<'_>, db: &Db<'_>, scope: &Scope) -> Result<u64, DbError> {
    match cx.budget().current() {
        Some(envelope) => Ok(envelope.counter("mutations").map_or(0, |counter| counter.used)),
        None => Ok(store::mutation_counts(db, scope)?.all),
    }
}

/// Remembers a test run, and says whether its failure repeats.
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

/// Tells the ledger what a test run came to.
fn record(cx: &Cx<'_>, report: &TestReport, run: &RunView) -> Result<(), ToolError> {
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
    Ok(cx.ledger().append(&event.note(run.message.clone()))?)
}

/// As many names as the ledger takes.
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

/// The normaliser for what ran in a workspace, wherever that is.
fn normaliser(roots: &[Option<&str>]) -> Normaliser {
    Normaliser::new(roots.iter().flatten().copied())
}
