//! Runs of registered tests by gates, told as those of `test_run` are: with outcome, numbers and fingerprint of the
//! failure, and with a verdict on whether the failure repeats.

use std::collections::BTreeSet;

use test_readers::readers::{self, Run as Output};
use test_readers::{Ended, Normaliser, TestReport, fingerprint};
use tollgate_kit::test_runs::{self, Told};
use tollgate_sdk::{Cx, Db, DbError, TestOutcome, TestResult, ToolError};

use super::known::Facts;
use super::{Gate, Need};
use crate::access::{self, Access};
use crate::git::Git;
use crate::git::look::Look;
use crate::model::{JobId, StepId};
use crate::store::job::Baseline;
use crate::store::run::{self, Run};

/// Longest source file that is read, in bytes.
const MAX_SOURCE: usize = 1 << 20;

/// A run of a registered test.
#[derive(Debug, Clone)]
pub(crate) struct TestRun {
    /// Words of the gate's command.
    command: String,
    report: TestReport,
    /// True if a gate wants the tests to fail.
    is_to_fail: bool,
    /// True if the end of the envelope cut the run off, which says nothing of the tests then.
    is_cut_off: bool,
}

/// All runs of one call, and the work tree in which they ran.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestRuns {
    runs: Vec<TestRun>,
    /// State of the work tree; `None` if Git cannot be read.
    state: Option<String>,
}

/// Repetition of a run's result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Repetition {
    /// Sightings of the failure in this job, including this one.
    seen: usize,
    non_progress: bool,
    flaky: bool,
    regression: bool,
}

impl TestRuns {
    /// Registered tests among the commands that gates ran.
    pub(super) fn of(
        access: &Result<Access<'_>, String>,
        git: Option<(&Git<'_>, &Look)>,
        since: Option<&Baseline>,
        facts: &Facts,
        gates: &[Gate],
    ) -> TestRuns {
        let Ok(access) = access else {
            return TestRuns::default();
        };
        let info = access.workspace.info();
        let mut runs = Vec::new();
        let mut known = BTreeSet::new();
        let mut normaliser = None;
        for need in gates.iter().flat_map(Gate::needs) {
            let Need::Command(words) = need else { continue };
            let argv = access::command(info, words);
            let Some(Ok(ran)) = facts.commands.get(words) else {
                continue;
            };
            if !info.tests.iter().any(|test| test.argv == argv) || !known.insert(words) {
                continue;
            }
            let normaliser = normaliser.get_or_insert_with(|| {
                let top = git.and_then(|(git, _)| git.top());
                Normaliser::new(top.as_deref())
            });
            let output = Output {
                output: ran.output.as_bytes(),
                exit_code: ran.exit,
                command: &argv.join(" "),
                reader: None,
            };
            let mut report = readers::read(&output, normaliser);
            report.ended = ran.ended;
            report.read_sources(|path| source(access, path));
            let wants_failure = |gate: &Gate| matches!(gate, Gate::TestsFail(Some(other)) if other == words);
            runs.push(TestRun {
                command: words.join(" "),
                report,
                is_to_fail: gates.iter().any(wants_failure),
                is_cut_off: ran.is_cut_off,
            });
        }
        let state = git
            .filter(|_| !runs.is_empty())
            .map(|(_, look)| look.state(since));
        TestRuns { runs, state }
    }

    /// Stores the runs, and tells the ledger of them. Returns a note for each failure that persists.
    pub(crate) fn tell(
        &self,
        cx: &Cx<'_>,
        job: &JobId,
        step: Option<&StepId>,
    ) -> Result<Vec<String>, ToolError> {
        let Some(main) = self.main() else {
            return Ok(Vec::new());
        };
        let known = cx.transaction(|db| {
            let known = self.runs.iter().map(|run| self.remember(cx, &db, job, step, run));
            known.collect::<Result<Vec<Repetition>, DbError>>()
        })?;
        let lines = self.runs.iter().zip(&known).map(|(run, known)| run.line(*known));
        let failure = fingerprint::failure(&main.report);
        let any = |holds: fn(&Repetition) -> bool| known.iter().any(holds);
        let told = Told {
            failure: failure.as_deref(),
            non_progress: any(|known| known.non_progress),
            flaky: any(|known| known.flaky),
            regression: any(|known| known.regression),
            note: lines.collect::<Vec<_>>().join("; "),
        };
        test_runs::tell(cx.ledger(), &self.outcome(main), &main.report, told)?;
        let stuck = self
            .runs
            .iter()
            .zip(&known)
            .filter(|(_, known)| known.non_progress);
        Ok(stuck
            .map(|(run, known)| {
                format!(
                    "no progress: `{}` fails in the same way as before, {} times in this job; try another approach",
                    run.command, known.seen
                )
            })
            .collect())
    }

    /// Run that the row is about: the first that failed although it was to pass, else the first that failed.
    fn main(&self) -> Option<&TestRun> {
        let failed = |run: &&TestRun| run.report.is_failure();
        let mut failing = self.runs.iter().filter(failed);
        let unwanted = self.runs.iter().filter(failed).find(|run| !run.is_to_fail);
        unwanted.or_else(|| failing.next()).or(self.runs.first())
    }

    /// Outcome for the row, with the numbers of all runs.
    fn outcome(&self, main: &TestRun) -> TestOutcome {
        // Gates may name one test in two ways.
        let mut known = BTreeSet::new();
        let runs = self.runs.iter().filter(|run| known.insert(&run.report.command));
        let runs: Vec<&TestRun> = runs.collect();
        let sum = |number: fn(&TestOutcome) -> Option<u32>| {
            let numbers = runs.iter().filter_map(|run| number(&run.outcome()));
            numbers.reduce(u32::saturating_add)
        };
        TestOutcome {
            failed: sum(|outcome| outcome.failed),
            total: sum(|outcome| outcome.total),
            ..main.outcome()
        }
    }

    /// Compares a run with those before it, and stores it.
    fn remember(
        &self,
        cx: &Cx<'_>,
        db: &Db<'_>,
        job: &JobId,
        step: Option<&StepId>,
        ran: &TestRun,
    ) -> Result<Repetition, DbError> {
        if ran.is_cut_off {
            return Ok(Repetition::default());
        }
        let now = Run {
            command: ran.command.clone(),
            failure: fingerprint::failure(&ran.report),
            detail: detail(&ran.report),
            state: self.state.clone(),
        };
        let last = run::last(db, job, &now.command)?;
        let before = match &now.failure {
            Some(failure) => run::sightings(db, job, &now.command, failure)?,
            None => Vec::new(),
        };
        run::insert(db, job, step, &now, cx.now())?;
        Ok(match ran.is_to_fail {
            true => Repetition::default(),
            false => compare(&now, last.as_ref(), &before),
        })
    }
}

impl TestRun {
    fn outcome(&self) -> TestOutcome {
        let how = match self.report.ended {
            Ended::Exited(_) | Ended::Unknown => None,
            Ended::Signalled(_) => Some(TestResult::Killed),
            Ended::TimedOut => Some(TestResult::TimedOut),
        };
        test_runs::outcome(&self.report, how, None)
    }

    /// Result in one line.
    fn line(&self, known: Repetition) -> String {
        let counts = self.report.counts;
        let counted = |name: &str, count: Option<u64>| count.map(|count| format!("{count} {name}"));
        let counts: Vec<String> = [
            counted("passed", counts.passed),
            counted("failed", counts.failed),
            counted("skipped", counts.skipped),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut line = format!("{} {}", self.command, in_words(self.outcome().result));
        if !counts.is_empty() {
            line += &format!(": {}", counts.join(", "));
        }
        if known.seen > 1 {
            line += &format!("; same failure seen {} times", known.seen);
        }
        for (holds, words) in [
            (known.non_progress, "no progress"),
            (
                known.flaky,
                "flaky: the previous run had another result, without an edit of this workspace in between",
            ),
            (known.regression, "regression: the last run passed"),
        ] {
            if holds {
                line += &format!("; {words}");
            }
        }
        line
    }
}

/// Fingerprint of a failure's messages, and of the source of its assertions where that is known.
fn detail(report: &TestReport) -> Option<String> {
    let detail = fingerprint::detail(report)?;
    Some(match fingerprint::place(report) {
        Some(place) => format!("{detail} {place}"),
        None => detail,
    })
}

/// Text of a file of the repository.
fn source(access: &Access<'_>, path: &str) -> Option<String> {
    let bytes = access.workspace.read(&access.root.join(path), MAX_SOURCE).ok()?;
    String::from_utf8(bytes).ok()
}

/// Compares a run with the one before it and with those that failed in the same way. Without a known state, each
/// submission counts as an edit, as each mutation does for `test_run`.
fn compare(now: &Run, last: Option<&Run>, before: &[Run]) -> Repetition {
    let is_edited = |older: &Run| older.state.is_none() || now.state.is_none() || older.state != now.state;
    let has_same_detail = |older: &&Run| older.detail.is_none() || older.detail == now.detail;
    let turned = last.filter(|last| last.failure.is_none() != now.failure.is_none());
    Repetition {
        seen: before.len() + usize::from(now.failure.is_some()),
        non_progress: before.iter().filter(has_same_detail).any(is_edited),
        flaky: turned.is_some_and(|last| !is_edited(last)),
        regression: turned.is_some_and(|last| last.failure.is_none() && is_edited(last)),
    }
}

const fn in_words(result: TestResult) -> &'static str {
    match result {
        TestResult::Passed => "passed",
        TestResult::Failed => "failed",
        TestResult::Error => "error",
        TestResult::NoTests => "no tests",
        TestResult::TimedOut => "timed out",
        TestResult::Killed => "killed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(failure: Option<&str>, detail: &str, state: Option<&str>) -> Run {
        Run {
            command: "default".to_owned(),
            failure: failure.map(str::to_owned),
            detail: failure.map(|_| detail.to_owned()),
            state: state.map(str::to_owned),
        }
    }

    #[test]
    fn a_failure_that_outlives_an_edit_is_no_progress() {
        let first = run(Some("f"), "m", Some("a"));
        let alone = compare(&first, None, &[]);
        assert_eq!((alone.seen, alone.non_progress), (1, false));
        // Submitted again without an edit, with one, and with one that reached another assertion.
        for (now, non_progress) in [
            (run(Some("f"), "m", Some("a")), false),
            (run(Some("f"), "m", Some("b")), true),
            (run(Some("f"), "n", Some("b")), false),
            (run(Some("f"), "m", None), true),
        ] {
            let known = compare(&now, Some(&first), std::slice::from_ref(&first));
            assert_eq!((known.seen, known.non_progress), (2, non_progress), "{now:?}");
        }
    }

    #[test]
    fn a_result_that_turns_is_flaky_or_a_regression() {
        let passed = run(None, "", Some("a"));
        let flaky = compare(&run(Some("f"), "m", Some("a")), Some(&passed), &[]);
        assert!(flaky.flaky && !flaky.regression);
        let worse = compare(&run(Some("f"), "m", Some("b")), Some(&passed), &[]);
        assert!(!worse.flaky && worse.regression);
        let better = compare(&passed, Some(&run(Some("f"), "m", Some("b"))), &[]);
        assert_eq!(better, Repetition::default());
    }
}
