//! The tools and their shared parts.

pub(crate) mod mutation;
pub(crate) mod report;
pub(crate) mod run;
mod sources;
pub(crate) mod status;
pub(crate) mod told;

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_kit::test_runs;
use tollgate_sdk::{Cx, Db, DbError, TestResult, Timestamp, ToolError};

use crate::cycle::{Repetition, Unit};
use crate::report::{Ended, Failure, Outcome, TestReport};
use crate::store::{self, Earlier, Scope, Source, Verdict};
use crate::{Normaliser, cycle, fingerprint};

/// Most failing tests, and most other errors, in a reply.
const MAX_SHOWN_FAILURES: usize = 20;
/// Longest message in a reply, in characters.
const MAX_MESSAGE: usize = 500;
/// Most stack frames in a reply.
const MAX_FRAMES: usize = 10;

/// Scope of a `write` tool: it decides on runs and states of its workspace alone, so that calls about others run beside
/// it on other hosts.
const OF_WORKSPACE: [&str; 1] = ["workspace"];

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
    /// True if tests ran and all passed. False if there were none.
    passed: bool,
    /// passed, failed, error (the run itself failed, for example because the code did not compile) or no_tests.
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
    /// Fingerprint of the failure's messages, which differs for another failing assertion of the same test.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail_fingerprint: Option<String>,
    /// True if the same failure was seen before and persists after at least one edit or mutation.
    non_progress: bool,
    /// True if the same tests fail in the same way as before, but with another message, which can be progress within a
    /// test.
    #[serde(skip_serializing_if = "is_false")]
    same_test_other_failure: bool,
    /// True if the last run of the command had another result, without an edit in between.
    #[serde(skip_serializing_if = "is_false")]
    flaky: bool,
    /// True if the last run of the command passed, and an edit was made since.
    #[serde(skip_serializing_if = "is_false")]
    regression: bool,
    /// Number of sightings of the failure, including this one.
    failure_seen: u64,
    /// Number of edits since the first sighting, or of mutations if the work tree is not read.
    failure_mutations: u64,
    /// Number of edits since the work tree was last in its present state, if edits restored this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    oscillation_period: Option<u32>,
    /// Number of other envelopes in which the failure was seen.
    #[serde(skip_serializing_if = "is_zero")]
    earlier_envelopes: u64,
    /// Time of the first sighting in another envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_seen: Option<Timestamp>,
    /// Number of edits over all envelopes since the first sighting of the same failure in another envelope, after the
    /// command last passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_edits: Option<u64>,
    /// Edits of the work tree in this envelope that no call made.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_edits: Option<u64>,
    /// Reason why edits of the work tree are not detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    unobserved: Option<String>,
    /// Verdict in one line.
    message: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Facts about a run beside its report.
#[derive(Debug, Default)]
struct Known {
    failure: Option<String>,
    detail: Option<String>,
    /// Fingerprint of the source of the assertions that failed, if known.
    place: Option<String>,
    repetition: Repetition,
    verdict: Verdict,
    earlier: Earlier,
    /// Edits since the first sighting in another envelope.
    earlier_edits: Option<u64>,
}

/// A test run: its command, its report and how long it took, if known.
struct Tested<'a> {
    command: &'a str,
    /// Words of a registered command.
    words: Option<&'a str>,
    source: Source,
    report: &'a TestReport,
    ran_sec: Option<u32>,
    /// True if the caller's time limit or the envelope's ended the run, which says nothing of the tests then.
    is_cut_off: bool,
}

impl Tested<'_> {
    /// Outcome in words.
    fn in_words(&self) -> String {
        match (self.report.ended, self.ran_sec) {
            (Ended::TimedOut, Some(seconds)) => format!("timed out after {seconds} s"),
            (Ended::TimedOut, None) => "timed out".to_owned(),
            (Ended::Signalled(signal), _) => format!("killed by signal {signal}"),
            _ => text(&self.report.outcome).replace('_', " "),
        }
    }
}

impl RunView {
    fn of(tested: &Tested<'_>, known: Known, changes: &Changes, now: Timestamp) -> RunView {
        let report = tested.report;
        let shown = |failures: &[Failure]| {
            failures
                .iter()
                .take(MAX_SHOWN_FAILURES)
                .map(FailureView::from)
                .collect()
        };
        let more = |failures: &[Failure], more: u64| {
            more.saturating_add(failures.len().saturating_sub(MAX_SHOWN_FAILURES) as u64)
        };
        RunView {
            passed: report.outcome == Outcome::Passed,
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
            message: verdict(tested, &known, changes.oscillation, now),
            failure_fingerprint: known.failure,
            detail_fingerprint: known.detail,
            non_progress: known.verdict.non_progress,
            same_test_other_failure: known.repetition.same_test_other_failure,
            flaky: known.verdict.flaky,
            regression: known.verdict.regression,
            failure_seen: known.repetition.seen,
            failure_mutations: known.repetition.mutations,
            oscillation_period: changes.oscillation,
            earlier_envelopes: known.earlier.envelopes,
            first_seen: known.earlier.first_at,
            earlier_edits: known.earlier_edits,
            observed_edits: changes.observed_edits,
            unobserved: changes.unobserved.clone(),
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

fn verdict(tested: &Tested<'_>, known: &Known, oscillation: Option<u32>, now: Timestamp) -> String {
    let report = tested.report;
    let counted = |name: &str, count: Option<u64>| count.map(|count| format!("{count} {name}"));
    let counts: Vec<String> = [
        counted("passed", report.counts.passed),
        counted("failed", report.counts.failed),
        counted("skipped", report.counts.skipped),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut verdict = tested.in_words();
    if !counts.is_empty() {
        verdict.push_str(&format!(": {}", counts.join(", ")));
    }
    let repetition = known.repetition;
    if known.failure.is_some() && repetition.seen > 1 {
        verdict.push_str(&format!("; {repetition}"));
    }
    let earlier = &known.earlier;
    if let Some(first) = earlier.first_at.filter(|_| earlier.envelopes > 0) {
        let envelopes = match earlier.envelopes {
            1 => "1 earlier envelope".to_owned(),
            many => format!("{many} earlier envelopes"),
        };
        let edits = match known.earlier_edits {
            None => String::new(),
            Some(1) => " across 1 edit".to_owned(),
            Some(many) => format!(" across {many} edits"),
        };
        verdict.push_str(&format!(
            "; seen in {envelopes}{edits}, first {}",
            ago(first, now)
        ));
    }
    // Tools that print no position tell two assertions with one expectation in the same words.
    let is_sure = known.place.is_some() || report.failing_tests.is_empty();
    for (holds, words) in [
        (known.verdict.non_progress && is_sure, "no progress"),
        (
            known.verdict.non_progress && !is_sure,
            "no progress, unless another assertion with the same expectation failed",
        ),
        (
            repetition.same_test_other_failure,
            "another failure of the same tests",
        ),
        (
            known.verdict.flaky,
            "flaky: the previous run had another result, without an edit of this workspace in between",
        ),
        (known.verdict.regression, "regression: the last run passed"),
    ] {
        if holds {
            verdict.push_str(&format!("; {words}"));
        }
    }
    if let Some(period) = oscillation {
        verdict.push_str(&format!("; edits repeat with period {period}"));
    }
    verdict
}

/// Time since then, in words.
fn ago(then: Timestamp, now: Timestamp) -> String {
    let minutes = now.as_ms().saturating_sub(then.as_ms()).max(0) / 60_000;
    let counted = |count: i64, one: &str| match count {
        1 => format!("1 {one} ago"),
        many => format!("{many} {one}s ago"),
    };
    match minutes {
        0 => "less than a minute ago".to_owned(),
        1..60 => counted(minutes, "minute"),
        60..1_440 => counted(minutes / 60, "hour"),
        _ => counted(minutes / 1_440, "day"),
    }
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
        oldest: store::oldest(cx.now()),
    }
}

/// Changes so far: edits of the work tree if the host sees them, else the envelope's mutations, otherwise recorded
/// states.
#[derive(Debug)]
struct Changes {
    count: u64,
    unit: Unit,
    observed_edits: Option<u64>,
    /// Edits of the workspace over all envelopes.
    of_workspace: Option<u64>,
    /// Edits since the work tree was last in its newest state.
    oscillation: Option<u32>,
    unobserved: Option<String>,
}

impl Changes {
    fn of(cx: &Cx<'_>, db: &Db<'_>, scope: &Scope) -> Result<Changes, ToolError> {
        let envelope = cx.budget().current();
        let seen = cx.ledger().seen_work_tree(&scope.workspace)?;
        if seen.state.is_some() {
            return Ok(Changes {
                count: seen.edits,
                unit: Unit::Edit,
                observed_edits: cx.envelope_id().map(|_| seen.observed_edits),
                of_workspace: cx.ledger().edits_over_envelopes(&scope.workspace)?,
                oscillation: seen.oscillation.filter(|&period| period > 1),
                unobserved: seen.unseen,
            });
        }
        let count = match &envelope {
            Some(envelope) => envelope.counter("mutations").map_or(0, |counter| counter.used),
            None => store::mutations::mutation_counts(db, scope)?.all,
        };
        Ok(Changes {
            count,
            unit: Unit::Mutation,
            observed_edits: None,
            of_workspace: None,
            oscillation: None,
            unobserved: seen.unseen,
        })
    }
}

/// Stores a test run, and determines whether its failure repeats.
fn remember(cx: &Cx<'_>, db: &Db<'_>, scope: &Scope, tested: &Tested<'_>) -> Result<RunView, ToolError> {
    let changes = Changes::of(cx, db, scope)?;
    let known = known(db, scope, tested, &changes)?;
    let run = store::Run {
        command: tested.command,
        words: tested.words,
        is_cut_off: tested.is_cut_off,
        outcome: &text(&tested.report.outcome),
        failure_fingerprint: known.failure.as_deref(),
        detail_fingerprint: known.detail.as_deref(),
        place_fingerprint: known.place.as_deref(),
        changes: changes.count,
        by_edits: changes.unit == Unit::Edit,
        workspace_edits: changes.of_workspace,
        verdict: known.verdict,
        source: tested.source,
    };
    store::add_run(db, scope, &run, cx.now())?;
    Ok(RunView::of(tested, known, &changes, cx.now()))
}

/// Compares a run with those before it.
fn known(db: &Db<'_>, scope: &Scope, tested: &Tested<'_>, changes: &Changes) -> Result<Known, DbError> {
    let (command, report) = (tested.command, tested.report);
    let mut known = Known {
        failure: fingerprint::failure(report),
        detail: fingerprint::detail(report),
        place: fingerprint::place(report),
        ..Known::default()
    };
    if let Some(failure) = &known.failure {
        // Outside of envelopes nothing else begins anew: what failed before the command passed is another story.
        let since = match (scope.envelope.as_str(), changes.unit) {
            ("", Unit::Edit) => Some(store::last_passed(db, scope, command)?),
            _ => None,
        };
        let before = store::sightings(db, scope, failure, since)?;
        let detail = known.detail.as_deref().unwrap_or_default();
        let place = known.place.as_deref();
        known.repetition = cycle::failure((detail, place), changes.count, changes.unit, &before);
        known.earlier = store::earlier(db, scope, command, (failure, detail, place))?;
        let first = known.earlier.first_edits;
        known.earlier_edits = changes
            .of_workspace
            .zip(first)
            .map(|(now, first)| now.saturating_sub(first));
    }
    let outlives = known.earlier_edits.is_some_and(|edits| edits > 0);
    let (passes, fails) = (report.outcome == Outcome::Passed, known.failure.is_some());
    let turn = turn(db, scope, tested, changes)?.filter(|turn| match turn.passed {
        true => fails,
        false => turn.failed && passes,
    });
    known.verdict = Verdict {
        non_progress: known.repetition.non_progress || outlives,
        flaky: turn.as_ref().is_some_and(|turn| !turn.is_edited),
        regression: turn.is_some_and(|turn| turn.passed && turn.is_edited),
    };
    Ok(known)
}

/// The run before another, and whether the work tree was edited between the two.
struct Turn {
    passed: bool,
    failed: bool,
    is_edited: bool,
}

/// Finds the run that a run is compared with: the command's last in the workspace that no limit cut off, whatever
/// envelope it was in. Without a view of the work tree nobody knows that nothing was edited.
fn turn(db: &Db<'_>, scope: &Scope, tested: &Tested<'_>, changes: &Changes) -> Result<Option<Turn>, DbError> {
    if changes.unit != Unit::Edit || tested.is_cut_off {
        return Ok(None);
    }
    let of_command = (tested.command, tested.words, tested.source);
    let turn = |previous: &store::Previous, is_edited: bool| Turn {
        passed: previous.passed,
        failed: previous.failed,
        is_edited,
    };
    if let Some(edits) = changes.of_workspace {
        let previous = store::previous(db, scope, of_command, None)?;
        return Ok(previous.and_then(|previous| Some(turn(&previous, previous.workspace_edits? != edits))));
    }
    let previous = store::previous(db, scope, of_command, Some(&scope.envelope))?;
    let previous = previous.filter(|previous| previous.by_edits);
    Ok(previous.map(|previous| turn(&previous, previous.changes != changes.count)))
}

/// Writes the result of a test run to the ledger. `how` is how the run ended, if not by itself.
fn record(cx: &Cx<'_>, tested: &Tested<'_>, run: &RunView, how: Option<TestResult>) -> Result<(), ToolError> {
    let told = test_runs::Told {
        failure: run.failure_fingerprint.as_deref(),
        non_progress: run.non_progress,
        flaky: run.flaky,
        regression: run.regression,
        note: run.message.clone(),
    };
    Ok(test_runs::tell(
        cx.ledger(),
        &test_runs::outcome(tested.report, how, tested.ran_sec),
        tested.report,
        told,
    )?)
}

/// Normaliser for runs in a workspace.
fn normaliser(roots: &[Option<&str>]) -> Normaliser {
    Normaliser::new(roots.iter().flatten().copied())
}
