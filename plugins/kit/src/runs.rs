//! Test runs from the ledger as proof. A caller's claim about a run is not trusted; the ledger's record is.

use tollgate_sdk::{FoundOperation, Ledger, LedgerError, TestOutcome, TestResult, TestedTree, text_enum};

/// Pack whose operations are test runs. Runs that an agent only reports do not count.
const PACK: &str = "convergence";
/// Name of its tool.
pub const TOOL: &str = "test_run";

text_enum! {
    /// Rule of a pack's configuration on the proof that work needs to close.
    pub enum EvidenceRule {
        /// Work closes on the caller's word.
        Optional = "optional",
        /// Work closes only with a test run that passed on the current work tree.
        Required = "required",
    }
}

/// State of the work tree that a run must prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// State before this call, which the host scanned.
    Now,
    /// Newest known state, for suggestions in a reply.
    Known,
}

/// A test run recorded in the ledger.
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
    /// Finds the test run with an operation id, in relation to a workspace. Returns the reason if the ledger has none.
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

    /// Explains that the run was in another workspace, if so.
    #[must_use]
    pub fn elsewhere(&self) -> Option<String> {
        let ran_in = self.tree.workspace.as_deref();
        let other = ran_in.filter(|&other| other != self.workspace)?;
        Some(format!("ran in workspace {other}"))
    }

    /// Reason why the run can never prove that tests pass in the workspace. `None` for a failed run, which is a valid
    /// result.
    #[must_use]
    pub fn in_vain(&self) -> Option<String> {
        let counts_none = self.tests.total.is_none_or(|total| total == 0);
        if self.passed() && counts_none {
            return Some("ran no tests, as far as its output shows".to_owned());
        }
        self.elsewhere().or_else(|| match self.tree.unchanged {
            Some(_) => None,
            None => Some(format!(
                "cannot be compared with the work tree: {}",
                self.unseen()
            )),
        })
    }

    /// Reason why the run does not prove that tests pass on the current work tree.
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
        self.tree.unseen.as_deref().unwrap_or("it was not read")
    }

    /// Result as text, for example `test_run passed, 14 tests`.
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
            // The message of a run that timed out gives the time limit.
            let is_limit = tests.result == TestResult::TimedOut && message.starts_with("after ");
            let mark = if is_limit { " " } else { ": " };
            format!("{mark}{message}")
        });
        format!("{TOOL} {result}{counts}{}", message.unwrap_or_default())
    }
}
