//! Verdicts on runs of tests: pure.
//!
//! An exit code alone says little: a filter that matches nothing, deleted tests and skipped tests all end with 0.
//! So the numbers that the test tool prints are compared with those of earlier runs.

use test_readers::readers::{self, Run as Output};
use test_readers::{Normaliser, Outcome};

use super::decide::{failed as command_failed, some, tail};
use super::known::{Facts, Run};
use super::red;
use crate::arguments::counted;
use crate::store::job::Tally;

/// Numbers of a run of tests, and its outcome.
fn read(run: &Run, command: &[String]) -> (Outcome, Tally) {
    let output = Output {
        output: run.output.as_bytes(),
        exit_code: run.exit,
        command: &command.join(" "),
        reader: None,
    };
    let report = readers::read(&output, &Normaliser::default());
    let counts = report.counts;
    let tally = Tally {
        passed: report.outcome == Outcome::Passed && run.exit == Some(0),
        failed: report.outcome == Outcome::Failed,
        total: counts.total,
        skipped: counts.skipped,
    };
    (report.outcome, tally)
}

/// Numbers of a run of tests.
pub(crate) fn tally(run: &Run, command: &[String]) -> Tally {
    read(run, command).1
}

/// Reason why a run does not show that all tests pass.
pub(super) fn passed(run: &Run, command: &[String], facts: &Facts) -> Option<String> {
    if let Some(why) = command_failed(run) {
        return Some(why);
    }
    let (outcome, now) = read(run, command);
    match outcome {
        Outcome::NoTests => return Some(format!("it ran no tests: {}", tail(run))),
        Outcome::Failed | Outcome::Error => {
            return Some(format!(
                "it ended with exit code 0, but reports failures: {}",
                tail(run)
            ));
        }
        Outcome::Passed => {}
    }
    let fewer = fewer(&now, facts.before.get(&command.join(" "))?)?;
    Some(match gone(facts) {
        Some(gone) => format!("{fewer}; {gone}"),
        None => fewer,
    })
}

/// Names of tests that changed files no longer define, in words.
pub(crate) fn gone(facts: &Facts) -> Option<String> {
    let Some(Ok(git)) = &facts.git else {
        return None;
    };
    (!git.gone.is_empty()).then(|| {
        format!(
            "tests that were there when the step began and are gone: {}",
            some(&git.gone)
        )
    })
}

/// Reason why a run has lost tests, compared with an earlier one.
fn fewer(now: &Tally, before: &Tally) -> Option<String> {
    let lost =
        |now: Option<u64>, before: Option<u64>| Some((before?, now?)).filter(|(before, now)| now < before);
    if let (None, Some(before)) = (now.total, before.total.filter(|total| *total > 0)) {
        return Some(format!(
            "its output contains no test count, but it ran {} when the step began; run these tests and print the count",
            counted(before, "test")
        ));
    }
    if let Some((before, now)) = lost(now.total, before.total) {
        return Some(format!(
            "it ran {}, but {before} when the step began; restore the missing tests",
            counted(now, "test")
        ));
    }
    // More skipped tests than before; swapped, since more are worse here.
    let (before, now) = lost(before.skipped, now.skipped).map(|(now, before)| (before, now))?;
    Some(format!(
        "it skipped or ignored {}, but {before} when the step began; let all tests run",
        counted(now, "test")
    ))
}

/// Reason why a run does not show that a test fails.
pub(super) fn failed(run: &Run, command: &[String]) -> Option<String> {
    match read(run, command).0 {
        Outcome::Failed => None,
        Outcome::Passed => Some("all tests pass, but at least one must fail here".to_owned()),
        Outcome::NoTests => Some(format!("it ran no tests: {}", tail(run))),
        Outcome::Error => Some(format!(
            "the run broke before a test failed; let the tests start and fail, for example by importing what is \
             missing inside the test: {}",
            tail(run)
        )),
    }
}

/// Reason why a run does not show that tests which failed before pass now.
pub(super) fn fail_to_pass(run: &Run, command: &[String], facts: &Facts) -> Option<String> {
    if let Some(why) = passed(run, command, facts) {
        return Some(why);
    }
    match facts.before.get(&command.join(" ")) {
        Some(before) if before.failed => red::no_fix(&command.join(" "), facts),
        Some(_) => Some(
            "it already passed in its last run before this step, so it does not prove a fix; use a test that failed \
             before"
                .to_owned(),
        ),
        None => Some(
            "no failing run was recorded before this step; job_start and a step with the gate tests_fail record one"
                .to_owned(),
        ),
    }
}
