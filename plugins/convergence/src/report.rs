//! What a test run came to, whichever tool ran it.

use serde::{Deserialize, Serialize};

use crate::readers::Reader;

/// How many failing tests a report names.
pub const MAX_FAILING_TESTS: usize = 500;
/// How many other errors a report names.
pub const MAX_ERRORS: usize = 50;

/// How a test run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Tests ran, and all passed.
    Passed,
    /// Tests ran, and some failed.
    Failed,
    /// The run itself went wrong: code that does not compile, a crash, a wrong option.
    Error,
    /// No test was there to run.
    NoTests,
}

/// How many tests did what, as far as the tool says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Tests that passed.
    pub passed: Option<u64>,
    /// Tests that failed.
    pub failed: Option<u64>,
    /// Tests that were skipped, ignored, left for later, or expected to fail.
    pub skipped: Option<u64>,
    /// All of them.
    pub total: Option<u64>,
}

impl Counts {
    /// The counts of a tool that says all three.
    #[must_use]
    pub const fn new(passed: u64, failed: u64, skipped: u64) -> Counts {
        Counts {
            passed: Some(passed),
            failed: Some(failed),
            skipped: Some(skipped),
            total: Some(passed.saturating_add(failed).saturating_add(skipped)),
        }
    }

    /// Whether it is known that no test was run, passed or failed.
    pub(crate) fn none_ran(&self) -> bool {
        self.total.is_some() && self.passed.unwrap_or(0) == 0 && self.failed.unwrap_or(0) == 0
    }
}

/// One failing test, or one other thing that went wrong. All of it is normalised.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Failure {
    /// The test. Of an error, the file, crate or package it is in; may be empty.
    pub name: String,
    /// The type of the exception, or what comes closest to it.
    pub exception_type: Option<String>,
    /// The first lines of the message.
    pub message_head: String,
    /// Where it happened, in the order of the tool, as `file` or `file in function`.
    pub stack: Vec<String>,
}

/// A test run, read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// Which reader read it.
    pub reader: Reader,
    /// How it ended.
    pub outcome: Outcome,
    /// What the tool counted.
    pub counts: Counts,
    /// The tests that failed, in the order of their names.
    pub failing_tests: Vec<Failure>,
    /// How many more failed than `failing_tests` names.
    pub more_failing_tests: u64,
    /// What went wrong outside of any test, in the order of its names.
    pub errors: Vec<Failure>,
    /// How many more there were.
    pub more_errors: u64,
    /// What the command ended with; none if a signal or a time limit ended it, or nobody knows.
    pub exit_code: Option<i32>,
}

impl TestReport {
    /// Whether there is something to fix.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self.outcome {
            Outcome::Passed => false,
            Outcome::Failed | Outcome::Error => true,
            Outcome::NoTests => self.exit_code != Some(0),
        }
    }

    /// A report of somebody who only tells which tests failed.
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

/// What a reader found in an output.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub failing: Vec<Failure>,
    pub errors: Vec<Failure>,
    pub counts: Counts,
    /// The tool said at the end what it came to.
    pub complete: bool,
    /// The tool said that it found no test.
    pub no_tests: bool,
}

impl Findings {
    /// Decides how the run ended, and puts everything in an order that does not depend on threads.
    pub(crate) fn report(mut self, reader: Reader, exit_code: Option<i32>) -> TestReport {
        let outcome = self.outcome(reader, exit_code);
        if outcome == Outcome::Passed {
            self.errors.clear();
        }
        self.failing.sort();
        self.errors.sort();
        self.errors.dedup();
        TestReport {
            reader,
            outcome,
            counts: self.counts,
            more_failing_tests: cut(&mut self.failing, MAX_FAILING_TESTS),
            failing_tests: self.failing,
            more_errors: cut(&mut self.errors, MAX_ERRORS),
            errors: self.errors,
            exit_code,
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

/// Leaves the first failures, and tells how many it took away.
fn cut(failures: &mut Vec<Failure>, limit: usize) -> u64 {
    let more = failures.len().saturating_sub(limit);
    failures.truncate(limit);
    u64::try_from(more).unwrap_or(u64::MAX)
}

/// A shell ends with 126 and 127 if it cannot start a command, and nothing is known about a command
/// that did not end by itself.
const fn generic_failure(exit_code: Option<i32>) -> Outcome {
    match exit_code {
        None | Some(126 | 127) => Outcome::Error,
        Some(_) => Outcome::Failed,
    }
}
