//! Gates in words, for prompts.

use super::{Gate, Pattern, Source, TEST_FILES};
use crate::arguments::{counted, shell};

impl Gate {
    /// One line for a prompt.
    pub(crate) fn describe(&self) -> String {
        match self {
            Gate::TestsPassed(None) => "tests_run names the tests, and tests_passed is true".to_owned(),
            Gate::TestsPassed(Some(command)) => {
                format!(
                    "tests_run names the tests, tests_passed is true, and `{}` succeeds",
                    shell(command)
                )
            }
            Gate::TestsFail(None) => {
                "tests_run names the tests, and tests_passed is false: a test must fail".to_owned()
            }
            Gate::TestsFail(Some(command)) => {
                format!(
                    "tests_run names the tests, tests_passed is false, and a test of `{}` fails. Write that test; do not break \
                     working code to make it fail",
                    shell(command)
                )
            }
            Gate::FailToPass(None) => "tests_run names the tests, tests_passed is true, and tests pass now. \
                These tests must have failed in their last run before this step, and code must have changed since"
                .to_owned(),
            Gate::FailToPass(Some(command)) => {
                format!(
                    "tests_run names the tests, tests_passed is true, and `{}` passes now. It must have failed in its last run before \
                     this step, and code must have changed since",
                    shell(command)
                )
            }
            Gate::TestsUnchanged(paths) if paths == TEST_FILES => {
                "existing test files, data files that they name, and test settings do not change; new test files are allowed"
                    .to_owned()
            }
            Gate::TestsUnchanged(paths) => {
                format!(
                    "data files that existing tests name, test settings, and these files do not change if they existed before \
                     this step: {}",
                    paths.join(", ")
                )
            }
            Gate::LintPassed(None) => "lint_run and lint_passed are true".to_owned(),
            Gate::LintPassed(Some(command)) => {
                format!("lint_passed is true and `{}` succeeds", shell(command))
            }
            Gate::EvidenceBoolTrue(key) => format!("the evidence {key} is true"),
            Gate::CriteriaChecklistComplete => "every criterion in criteria_checklist is true".to_owned(),
            Gate::ChangedFilesAllowlist(paths) => format!("only these paths change: {}", paths.join(", ")),
            Gate::ForbidPaths(paths) => format!("these paths do not change: {}", paths.join(", ")),
            Gate::ChangedFilesMinimum(1) => "at least one file changes".to_owned(),
            Gate::ChangedFilesMinimum(min) => format!("at least {} must change", counted(*min, "file")),
            Gate::FileExists(paths) => format!("these exist and have content: {}", paths.join(", ")),
            Gate::FileNotExists(paths) => format!("these do not exist: {}", paths.join(", ")),
            Gate::FileContains(path, pattern) => format!("{path} contains {}", pattern.shown()),
            Gate::FileLacks(path, pattern) => {
                format!("{path} exists and does not contain {}", pattern.shown())
            }
            Gate::Reachable(paths) => {
                format!("an entry point leads to these by imports: {}", paths.join(", "))
            }
            Gate::NoUncommittedChanges => "nothing is left uncommitted; git_commit commits".to_owned(),
            Gate::DiffMaxLines(0) => "no lines change".to_owned(),
            Gate::DiffMaxLines(max) => format!("at most {} may change", counted(*max, "line")),
            Gate::DiffMinLines(min) => format!("at least {} must change", counted(*min, "line")),
            Gate::CommitExists => {
                "commit_hash names a new commit with one of changed_files and a message that follows the template"
                    .to_owned()
            }
            Gate::CommandExit0(command) => format!("`{}` succeeds", shell(command)),
            Gate::CommandOutputContains(command, text) => format!("`{}` succeeds and prints {text:?}", shell(command)),
            Gate::CommandOutputRegex(command, regex) => {
                format!("`{}` succeeds and prints something that matches /{regex}/", shell(command))
            }
            Gate::JsonSchemaValid(Source::File(path), _) => {
                format!("{path} is JSON that matches the step's schema")
            }
            Gate::JsonSchemaValid(Source::Evidence(key), _) => {
                format!("the evidence {key} matches the step's schema")
            }
            Gate::HumanApproval => "a person has approved the step with step_approve before you submit".to_owned(),
        }
    }
}

impl Pattern {
    /// Pattern as a message names it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Pattern::Text(text) => format!("{text:?}"),
            Pattern::Regex(regex) => format!("something that matches /{regex}/"),
        }
    }
}
