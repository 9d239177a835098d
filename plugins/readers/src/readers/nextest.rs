//! `cargo nextest run`.

use std::collections::BTreeMap;

use super::rustc;
use crate::normalise::Normaliser;
use crate::report::{Counts, Findings};
use crate::text;
use crate::trace::{self, Trace};

/// Returns whether a text is output of nextest.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| {
        line.trim_start().starts_with("Nextest run ID ")
            || summary(line).is_some()
            || line.starts_with("error: no tests to run")
            // nextest compiles with cargo, and prints the command if that fails.
            || (line.starts_with("error: command `") && line.contains(" test --no-run --message-format json"))
    })
}

pub(super) fn read(text: &str, normaliser: &Normaliser) -> Findings {
    let mut findings = Findings::default();
    let mut tests: BTreeMap<&str, Test<'_>> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(counted) = summary(line) {
            (findings.counts, findings.complete) = (counts(counted), true);
            current = None;
        } else if let Some((status, name)) = status_line(line) {
            let test = tests.entry(name).or_default();
            test.status = status;
            current = Some(name);
        } else if line.starts_with("────")
            || line.trim_start().starts_with("Cancelling due to")
            || line.starts_with("error: ")
            || line.starts_with("warning: ")
        {
            current = None;
        } else if let Some(test) = current.and_then(|name| tests.get_mut(name)) {
            test.output.push_str(line.strip_prefix("    ").unwrap_or(line));
            test.output.push('\n');
        }
    }
    let failing = tests.iter().filter(|(_, test)| is_failure(test.status));
    findings.failing = failing
        .map(|(name, test)| test.trace(normaliser).failure(normaliser, name))
        .collect();
    findings.no_tests = findings.complete && findings.counts.none_ran();
    if !findings.complete && findings.failing.is_empty() {
        findings.errors = rustc::errors(text, normaliser);
    }
    findings
}

#[derive(Default)]
struct Test<'a> {
    /// Last status of the test. A retried test may pass in the end.
    status: &'a str,
    output: String,
}

impl Test<'_> {
    fn trace(&self, normaliser: &Normaliser) -> Trace {
        let mut trace = trace::any(&self.output, normaliser);
        if trace.kind.is_none() {
            trace.kind = (self.status != "FAIL").then(|| self.status.to_owned());
            let aborted = |line: &&str| line.starts_with('(') && line.ends_with(')');
            trace.message = self
                .output
                .lines()
                .map(str::trim)
                .find(aborted)
                .unwrap_or("")
                .to_owned();
        }
        trace
    }
}

/// The status and the test in `  TRY 2 FAIL [   0.013s] (5/5) calc tests::adds`.
fn status_line(line: &str) -> Option<(&str, &str)> {
    let (status, rest) = line.split_once('[')?;
    let (time, test) = rest.split_once(']')?;
    let time = time.trim().trim_start_matches('>').trim().strip_suffix('s')?;
    let status = status.trim();
    let status = match status.strip_prefix("TRY ").and_then(text::number) {
        Some((_, status)) => status.trim(),
        None => status,
    };
    let is_status = !status.is_empty()
        && status
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, ' ' | '-' | '+' | '/'));
    let test = test.trim_start();
    let test = match test.strip_prefix('(').and_then(|test| test.split_once(") ")) {
        Some((_, test)) => test,
        None => test,
    };
    (is_status && time.parse::<f64>().is_ok() && !test.is_empty()).then_some((status, test.trim()))
}

fn is_failure(status: &str) -> bool {
    let first = status.split([' ', '-', '+']).next().unwrap_or(status);
    matches!(first, "FAIL" | "TIMEOUT" | "ABORT" | "XFAIL" | "EXEC")
        || (first.starts_with("SIG") && first.len() > 3)
        || status.contains("FAIL") && !status.starts_with("SETUP")
}

/// Text after `Summary [   0.010s]`.
fn summary(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("Summary [")?;
    let (_, counted) = rest.split_once("] ")?;
    counted.contains("run: ").then_some(counted)
}

/// `3/5 tests run: 2 passed (1 slow), 1 failed, 1 timed out, 1 skipped`.
fn counts(counted: &str) -> Counts {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let counted = counted
        .split_once("run: ")
        .map_or(counted, |(_, counted)| counted);
    for (number, what) in text::counted(counted) {
        match what.split(' ').next().unwrap_or(what) {
            "passed" => passed = number,
            "skipped" => skipped = number,
            "failed" | "timed" | "exec" => failed += number,
            _ => {}
        }
    }
    Counts::new(passed, failed, skipped)
}
