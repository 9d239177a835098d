//! Python's `unittest`.

use std::collections::BTreeSet;

use crate::normalise::Normaliser;
use crate::report::{Counts, Findings};
use crate::text;
use crate::trace::{Trace, python};

/// Returns whether a text is output of unittest.
pub(super) fn recognises(text: &str) -> bool {
    text.lines()
        .any(|line| ran(line).is_some() || entry(line).is_some())
}

pub(super) fn read(text: &str, normaliser: &Normaliser) -> Findings {
    let mut findings = Findings::default();
    let mut lines = text.split("\n======================================================================\n");
    lines.next();
    let mut tests = BTreeSet::new();
    for section in lines {
        let Some((kind, title)) = section.lines().next().and_then(entry) else {
            continue;
        };
        let name = name(title);
        let trace = section_trace(section, kind, normaliser);
        let is_fixture = ["setUpClass", "tearDownClass", "setUpModule", "tearDownModule"]
            .iter()
            .any(|fixture| name.ends_with(fixture));
        let is_loaded = !title.contains("unittest.loader._FailedTest");
        match is_loaded {
            true => findings.failing.push(trace.failure(normaliser, &name)),
            false => findings.errors.push(trace.failure(normaliser, &name)),
        }
        if is_loaded && !is_fixture {
            tests.insert(name.split(" (").next().unwrap_or(&name).to_owned());
        }
    }
    if let Some(ran) = text.lines().rev().find_map(ran) {
        findings.complete = true;
        let unloaded = u64::try_from(findings.errors.len()).unwrap_or(u64::MAX);
        let failed = u64::try_from(tests.len()).unwrap_or(u64::MAX);
        findings.counts = counts(text, ran.saturating_sub(unloaded), failed);
        findings.no_tests = ran == 0 && findings.failing.is_empty();
    }
    findings
}

/// `FAIL: test_adds (tests.test_calc.CalcTest.test_adds)`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (kind, title) = line.split_once(": ")?;
    (matches!(kind, "FAIL" | "ERROR" | "UNEXPECTED SUCCESS") && title.contains('(')).then_some((kind, title))
}

/// The dotted name of a test, with the parameters of a subtest. Before Python 3.11 the parentheses
/// held only the class.
fn name(title: &str) -> String {
    let (method, rest) = title.split_once(" (").unwrap_or((title, ""));
    let (class, parameters) = rest.split_once(')').unwrap_or((rest, ""));
    if class.contains("unittest.loader._FailedTest") {
        return method.to_owned();
    }
    let dotted = class
        .strip_suffix(method)
        .is_some_and(|class| class.ends_with('.'));
    match dotted {
        true => format!("{class}{parameters}"),
        false => format!("{class}.{method}{parameters}"),
    }
}

fn section_trace(section: &str, kind: &str, normaliser: &Normaliser) -> Trace {
    let rule = "\n----------------------------------------------------------------------\n";
    let body = section.split(rule).nth(1).unwrap_or("");
    python::read(body, normaliser).unwrap_or_else(|| Trace {
        kind: Some(kind.to_lowercase()),
        message: body.to_owned(),
        ..Trace::default()
    })
}

/// `Ran 5 tests in 0.004s`.
fn ran(line: &str) -> Option<u64> {
    let (number, rest) = text::number(line.strip_prefix("Ran ")?)?;
    (rest.starts_with(" test in ") || rest.starts_with(" tests in ")).then_some(number)
}

/// `FAILED (failures=1, skipped=1, expected failures=1)` says how many, but counts each subtest;
/// `failed` is how many tests these are.
fn counts(text: &str, ran: u64, failed: u64) -> Counts {
    let verdict = text
        .lines()
        .rev()
        .find(|line| line.starts_with("FAILED (") || line.starts_with("OK"));
    let of = |word: &str| {
        let inner = verdict
            .and_then(|line| line.split_once('('))
            .map_or("", |(_, inner)| inner.trim_end_matches(')'));
        let numbers = inner.split(", ").filter_map(|part| part.split_once('='));
        numbers
            .filter(|(name, _)| *name == word)
            .find_map(|(_, number)| text::number(number))
            .map_or(0, |(number, _)| number)
    };
    let skipped = of("skipped").saturating_add(of("expected failures"));
    // If the failures are cut off, only their number is known.
    let failed = if failed == 0 && ran > 0 {
        of("failures")
    } else {
        failed
    };
    let failed = failed.saturating_add(of("unexpected successes"));
    Counts::new(
        ran.saturating_sub(skipped).saturating_sub(failed),
        failed,
        skipped,
    )
}
