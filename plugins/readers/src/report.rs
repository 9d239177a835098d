//! Report of a test run, independent of the tool.

use serde::{Deserialize, Serialize};

use crate::readers::Reader;
use crate::source::{self, Made, Place};

/// Most failing tests in a report.
pub const MAX_FAILING_TESTS: usize = 500;
/// Most other errors in a report.
pub const MAX_ERRORS: usize = 50;

/// Outcome of a test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Tests ran, and all passed.
    Passed,
    /// Tests ran, and some failed.
    Failed,
    /// The run itself went wrong: code that does not compile, a crash, a wrong option.
    Error,
    /// No tests were found.
    NoTests,
}

/// End of a run's command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// By itself, with an exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// By the time limit.
    TimedOut,
    /// Nobody knows.
    #[default]
    Unknown,
}

impl Ended {
    /// By itself, if its exit code is known.
    #[must_use]
    pub fn by_code(exit_code: Option<i32>) -> Ended {
        exit_code.map_or(Ended::Unknown, Ended::Exited)
    }
}

/// Numbers of tests by result, as far as the tool reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Tests that passed.
    pub passed: Option<u64>,
    /// Tests that failed.
    pub failed: Option<u64>,
    /// Tests that were skipped, ignored, marked as todo, or expected to fail.
    pub skipped: Option<u64>,
    /// Total number of tests.
    pub total: Option<u64>,
}

impl Counts {
    /// Counts of a tool that reports all three numbers.
    #[must_use]
    pub const fn new(passed: u64, failed: u64, skipped: u64) -> Counts {
        Counts {
            passed: Some(passed),
            failed: Some(failed),
            skipped: Some(skipped),
            total: Some(passed.saturating_add(failed).saturating_add(skipped)),
        }
    }

    /// Returns whether no test passed or failed, as far as known.
    pub(crate) fn none_ran(&self) -> bool {
        self.total.is_some() && self.passed.unwrap_or(0) == 0 && self.failed.unwrap_or(0) == 0
    }
}

/// A failing test or another error. All fields are normalised.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Failure {
    /// Name of the test. For an error, its file, crate or package, possibly empty.
    pub name: String,
    /// Type of the exception, or the closest equivalent.
    pub exception_type: Option<String>,
    /// The first lines of the message.
    pub message_head: String,
    /// The message without the values that the code under test made.
    pub expectation: String,
    /// Stack frames in the tool's order, as `file` or `file in function`.
    pub stack: Vec<String>,
    /// Frames of the test itself, the assertion last.
    #[serde(skip)]
    pub places: Vec<Place>,
    /// The expectation, if the source shows which value was made.
    #[serde(skip)]
    pub(crate) by_source: Vec<(Made, String)>,
    /// Source of these frames, once it was read.
    #[serde(skip)]
    pub(crate) assertion: Option<String>,
}

/// Parsed test run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// Reader of the output.
    pub reader: Reader,
    /// Command line of the run, normalised. Empty if nobody knows it.
    pub command: String,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Counts of the tool.
    pub counts: Counts,
    /// The tests that failed, in the order of their names.
    pub failing_tests: Vec<Failure>,
    /// Number of failing tests that are not listed.
    pub more_failing_tests: u64,
    /// Errors outside of tests, by name.
    pub errors: Vec<Failure>,
    /// Number of errors that are not listed.
    pub more_errors: u64,
    /// Exit code of the command, absent after a signal or timeout, or if unknown.
    pub exit_code: Option<i32>,
    /// End of the command.
    pub ended: Ended,
}

impl TestReport {
    /// Returns whether there is something to fix.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self.outcome {
            Outcome::Passed => false,
            Outcome::Failed | Outcome::Error => true,
            Outcome::NoTests => self.exit_code != Some(0),
        }
    }

    /// Reads the source of the assertions that failed. `read` gives the text of a file by the path that the tool printed.
    pub fn read_sources(&mut self, mut read: impl FnMut(&str) -> Option<String>) {
        for failure in &mut self.failing_tests {
            let texts = failure
                .places
                .iter()
                .map(|place| place.assertion(read(&place.path).as_deref()));
            let Some(found) = texts
                .collect::<Option<Vec<_>>>()
                .filter(|found| !found.is_empty())
            else {
                continue;
            };
            let made = found.last().map(source::made).unwrap_or_default();
            if let Some((_, expectation)) = failure.by_source.iter().find(|(of, _)| *of == made) {
                failure.expectation.clone_from(expectation);
            }
            let texts: Vec<String> = found.iter().map(source::Assertion::text).collect();
            failure.assertion = Some(texts.join("\n"));
        }
    }

    /// Report from the names of failing tests alone.
    #[must_use]
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>, exit_code: Option<i32>) -> TestReport {
        let normaliser = crate::Normaliser::default();
        let failing = names
            .into_iter()
            .map(|name| crate::trace::Trace::default().failure(&normaliser, name));
        let findings = Findings {
            failing: failing.collect(),
            complete: true,
            ..Findings::default()
        };
        findings.report(Reader::Generic, exit_code)
    }
}

/// Findings of a reader in an output.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub failing: Vec<Failure>,
    pub errors: Vec<Failure>,
    pub counts: Counts,
    /// True if the output has the tool's final summary.
    pub complete: bool,
    /// True if the tool reported that there are no tests.
    pub no_tests: bool,
}

impl Findings {
    /// Decides the outcome of the run, and sorts everything so that the order does not depend on threads.
    pub(crate) fn report(mut self, reader: Reader, exit_code: Option<i32>) -> TestReport {
        let outcome = self.outcome(reader, exit_code);
        if outcome == Outcome::Passed {
            self.errors.clear();
        }
        self.errors.iter_mut().for_each(|error| error.places.clear());
        self.failing.sort();
        self.errors.sort();
        self.errors.dedup();
        TestReport {
            reader,
            command: String::new(),
            outcome,
            counts: self.counts,
            more_failing_tests: cut(&mut self.failing, MAX_FAILING_TESTS),
            failing_tests: self.failing,
            more_errors: cut(&mut self.errors, MAX_ERRORS),
            errors: self.errors,
            exit_code,
            ended: Ended::by_code(exit_code),
        }
    }

    fn outcome(&self, reader: Reader, exit_code: Option<i32>) -> Outcome {
        let failed = !self.failing.is_empty() || self.counts.failed.is_some_and(|failed| failed > 0);
        let succeeded = exit_code == Some(0) || (exit_code.is_none() && self.complete);
        match succeeded {
            _ if failed => Outcome::Failed,
            // Exit code 0 is the tool's own verdict on errors beside tests that passed.
            true if !self.errors.is_empty() && (self.counts.none_ran() || !self.complete) => Outcome::Error,
            true if self.no_tests || self.counts.none_ran() => Outcome::NoTests,
            true => Outcome::Passed,
            false if self.no_tests && self.errors.is_empty() => Outcome::NoTests,
            false if reader == Reader::Generic => generic_failure(exit_code),
            false => Outcome::Error,
        }
    }
}

/// Keeps the first failures and returns the number of removed ones.
fn cut(failures: &mut Vec<Failure>, limit: usize) -> u64 {
    let more = failures.len().saturating_sub(limit);
    failures.truncate(limit);
    u64::try_from(more).unwrap_or(u64::MAX)
}

/// Outcome of a failed run without readable tests. A shell exits with 126 or 127 if it cannot start a
/// command.
const fn generic_failure(exit_code: Option<i32>) -> Outcome {
    match exit_code {
        None | Some(126 | 127) => Outcome::Error,
        Some(_) => Outcome::Failed,
    }
}
