//! Records of test runs in the ledger, the same for every pack that runs tests.

use test_readers::{Ended, Outcome, TestReport};
use tollgate_sdk::{Event, Ledger, LedgerError, TestOutcome, TestResult};

/// Longest message of a failure in the ledger, in bytes.
const MAX_MESSAGE: usize = 500;
/// Size limit of names in the ledger, in bytes.
const MAX_NAMES: usize = 24 << 10;
/// Longest name in the ledger, in bytes.
const MAX_NAME: usize = 500;

/// A test run with context beyond its report.
#[derive(Debug, Clone, Default)]
pub struct Told<'a> {
    /// Fingerprint of the failure, if the run failed.
    pub failure: Option<&'a str>,
    /// True if the same failure was seen before and persists after an edit.
    pub non_progress: bool,
    /// True if the same work tree passes and fails.
    pub flaky: bool,
    /// True if the previous run passed.
    pub regression: bool,
    /// Verdict in one line.
    pub note: String,
}

/// Records the result of a test run in the call's row: the outcome, and an event with the failure.
///
/// # Errors
///
/// Fails if the host rejects an event.
pub fn tell(
    ledger: Ledger<'_>,
    outcome: &TestOutcome,
    report: &TestReport,
    told: Told<'_>,
) -> Result<(), LedgerError> {
    let event = match told.failure {
        None if outcome.result == TestResult::NoTests => Event::new("test.no_tests"),
        None => Event::new("test.passed"),
        Some(failure) => {
            let event = match told.non_progress {
                true => Event::new("test.non_progress"),
                false => Event::new("test.failed"),
            };
            event.failure(
                failure,
                names(report.failing_tests.iter().map(|test| test.name.as_str())),
            )
        }
    };
    ledger.set_test_outcome(outcome)?;
    for (holds, kind) in [(told.flaky, "test.flaky"), (told.regression, "test.regression")] {
        if holds {
            ledger.append(&Event::new(kind))?;
        }
    }
    let end = told.note.floor_char_boundary(MAX_MESSAGE);
    ledger.append(&event.note(told.note.get(..end).unwrap_or_default()))
}

/// Outcome of a run for its row in the ledger. `how` is how the run ended, unless it ended normally. `ran_sec` is its
/// duration in seconds.
#[must_use]
pub fn outcome(report: &TestReport, how: Option<TestResult>, ran_sec: Option<u32>) -> TestOutcome {
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
    // The duration follows the words `timed out`.
    let ran = ran_sec.filter(|_| report.ended == Ended::TimedOut);
    let message = match (ran, message) {
        (Some(seconds), Some(message)) => Some(format!("after {seconds} s: {message}")),
        (Some(seconds), None) => Some(format!("after {seconds} s")),
        (None, message) => message,
    };
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

/// Names that fit into the ledger's limits.
pub fn names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
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
