//! Outcome of the tests that a call ran, as stored in its row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Outcome of tests, which is separate from the success of the call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredTestOutcome {
    /// passed, failed, error (the run itself failed), no_tests, timed_out or killed.
    pub result: Ran,
    /// Number of tests that failed, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// Number of all tests, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u32>,
    /// Message of the first failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Registered tests that the host itself ran. Empty if the caller reported the outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<TestRun>,
}

/// Run of a registered test, as the host saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestRun {
    /// Name of the workspace.
    pub workspace: String,
    /// Name of the test command.
    pub test: String,
    /// Result of the run.
    pub result: Ran,
}

/// Result of tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ran {
    /// All tests passed.
    #[default]
    Passed,
    /// At least one test failed.
    Failed,
    /// The run itself failed.
    Error,
    /// No test was found.
    NoTests,
    /// The time limit ended the run.
    TimedOut,
    /// A signal ended the run.
    Killed,
}

impl Ran {
    /// In words.
    pub const fn in_words(self) -> &'static str {
        match self {
            Ran::Passed => "passed",
            Ran::Failed => "failed",
            Ran::Error => "error",
            Ran::NoTests => "no tests",
            Ran::TimedOut => "timed out",
            Ran::Killed => "killed",
        }
    }
}

impl StoredTestOutcome {
    /// Without the message, as `failed 2 of 14`, `passed 14` or `timed out`.
    pub fn in_short(&self) -> String {
        let word = self.result.in_words();
        match (self.result, self.failed, self.total) {
            (Ran::Failed, Some(failed), Some(total)) => format!("{word} {failed} of {total}"),
            (Ran::Failed, Some(failed), None) => format!("{word} {failed}"),
            (Ran::Passed, _, Some(total)) => format!("{word} {total}"),
            _ => word.to_owned(),
        }
    }

    /// With the message, as `failed 2 of 14: AssertionError: assert -1 == 3`.
    pub fn in_words(&self) -> String {
        match &self.message {
            // The time limit is not part of the failure.
            Some(message) if self.result == Ran::TimedOut && message.starts_with("after ") => {
                format!("{} {message}", self.in_short())
            }
            Some(message) => format!("{}: {message}", self.in_short()),
            None => self.in_short(),
        }
    }

    /// True unless all tests passed.
    pub const fn is_failure(&self) -> bool {
        !matches!(self.result, Ran::Passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_says_what_it_knows() {
        let outcome = |result, failed, total| StoredTestOutcome {
            result,
            failed,
            total,
            ..StoredTestOutcome::default()
        };
        let failed = StoredTestOutcome {
            message: Some("assert -1 == 3".to_owned()),
            ..outcome(Ran::Failed, Some(2), Some(14))
        };
        assert_eq!(failed.in_words(), "failed 2 of 14: assert -1 == 3");
        assert_eq!(outcome(Ran::Failed, Some(2), None).in_words(), "failed 2");
        assert_eq!(outcome(Ran::Passed, Some(0), Some(14)).in_words(), "passed 14");
        assert_eq!(outcome(Ran::TimedOut, None, None).in_words(), "timed out");
        let late = |message: &str| StoredTestOutcome {
            message: Some(message.to_owned()),
            ..outcome(Ran::TimedOut, None, None)
        };
        assert_eq!(late("after 5 s").in_words(), "timed out after 5 s");
        assert_eq!(late("slow::test").in_words(), "timed out: slow::test");
        let json = serde_json::to_string(&failed).unwrap();
        assert_eq!(serde_json::from_str::<StoredTestOutcome>(&json).unwrap(), failed);
    }
}
