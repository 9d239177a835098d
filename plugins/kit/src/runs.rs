//! Test runs of the ledger as proof: what a caller says of a run is not believed, what the ledger has of it is.

use tollgate_sdk::{FoundOperation, Ledger, LedgerError, TestOutcome, TestResult, TestedTree};

/// The pack and the tool whose operations are test runs. Runs that an agent only tells of are none.
const PACK: &str = "convergence";
/// Name of the tool.
pub const TOOL: &str = "test_run";

/// State of the work tree that a run has to prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The state before this call, at which the host looked.
    Now,
    /// The newest known state, for what a reply suggests.
    Known,
}

/// A test run that the ledger has.
#[derive(Debug)]
pub struct TestRun {
    /// Row of the run.
    pub found: FoundOperation,
    /// Result of its tests.
    pub tests: TestOutcome,
    tree: TestedTree,
    workspace: String,
}

impl TestRun {
    /// The test run with an operation id, as it concerns a workspace, or the reason why the ledger has none.
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be read.
    pub fn find(
        ledger: Ledger<'_>,
        op_id: &str,
        workspace: &str,
    ) -> Result<Result<TestRun, String>, LedgerError> {
        let found = match ledger.find(op_id) {
            Ok(found) => found,
            Err(LedgerError::Denied) => {
                return Ok(Err(
                    "cannot be looked up: the pack may not read the ledger".to_owned()
                ));
            }
            Err(err) => return Err(err),
        };
        let Some(mut found) = found else {
            return Ok(Err("is not in the ledger".to_owned()));
        };
        let operation = &found.operation;
        if (operation.pack.as_str(), operation.tool.as_str()) != (PACK, TOOL) {
            return Ok(Err(format!("is a {}, not a {TOOL}", operation.tool)));
        }
        let Some(tests) = found.tests.take() else {
            return Ok(Err("has no result".to_owned()));
        };
        Ok(Ok(TestRun {
            tree: ledger.compare_work_tree(op_id, workspace)?,
            workspace: workspace.to_owned(),
            found,
            tests,
        }))
    }

    /// Returns whether all tests passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.tests.result == TestResult::Passed
    }

    /// Tells of a run in another workspace.
    #[must_use]
    pub fn elsewhere(&self) -> Option<String> {
        let ran_in = self.tree.workspace.as_deref();
        let other = ran_in.filter(|&other| other != self.workspace)?;
        Some(format!("ran in workspace {other}"))
    }

    /// Reason why the run can never prove that tests pass in the workspace. A run that failed has none: it proves that.
    #[must_use]
    pub fn in_vain(&self) -> Option<String> {
        let counts_none = self.tests.total.is_none_or(|total| total == 0);
        if self.passed() && counts_none {
            return Some("ran no test that its output counts".to_owned());
        }
        self.elsewhere().or_else(|| match self.tree.unchanged {
            Some(_) => None,
            None => Some(format!(
                "cannot be compared with the work tree: {}",
                self.unseen()
            )),
        })
    }

    /// Reason why the run does not prove that tests pass on the work tree of now.
    #[must_use]
    pub fn doubt(&self, look: Look) -> Option<String> {
        if !self.passed() {
            return Some("did not pass".to_owned());
        }
        self.in_vain().or_else(|| match self.tree.unchanged {
            Some(false) => Some("ran before the work tree changed".to_owned()),
            _ if look == Look::Now && !self.tree.looked => Some(format!(
                "cannot be compared with the work tree: {}",
                self.unseen()
            )),
            _ => None,
        })
    }

    fn unseen(&self) -> &str {
        self.tree.unseen.as_deref().unwrap_or("nobody looked at it")
    }

    /// Result in words, for example `test_run passed, 14 tests`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let tests = &self.tests;
        let result = match tests.result {
            TestResult::Passed => "passed",
            TestResult::Failed => "failed",
            TestResult::Error => "could not run",
            TestResult::NoTests => "found no tests",
            TestResult::TimedOut => "timed out",
            TestResult::Killed => "was killed",
        };
        let counts = match (tests.failed, tests.total) {
            (Some(failed), Some(total)) if failed > 0 => format!(", {failed} of {total} tests failed"),
            (_, Some(total)) => format!(", {total} tests"),
            _ => String::new(),
        };
        let message = tests.message.as_ref().map(|message| {
            // A run that timed out says after how long.
            let is_limit = tests.result == TestResult::TimedOut && message.starts_with("after ");
            let mark = if is_limit { " " } else { ": " };
            format!("{mark}{message}")
        });
        format!("{TOOL} {result}{counts}{}", message.unwrap_or_default())
    }
}
