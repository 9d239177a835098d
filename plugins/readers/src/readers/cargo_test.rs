//! `cargo test`: the text of libtest, and of cargo around it.

use std::collections::BTreeMap;

use super::rustc;
use crate::normalise::Normaliser;
use crate::report::{Counts, Failure, Findings};
use crate::text;
use crate::trace::{self, Trace};

/// Returns whether a text is output of libtest or cargo.
pub(super) fn recognises(text: &str) -> bool {
    let libtest = |line: &str| {
        line.starts_with("test result: ")
            || (line.starts_with("running ") && (line.ends_with(" test") || line.ends_with(" tests")))
            || (line.starts_with("error: could not compile `"))
            || (line.starts_with("test ") && (line.ends_with(" ... ok") || line.ends_with(" ... FAILED")))
    };
    text.lines().any(libtest)
}

pub(super) fn read(text: &str, normaliser: &Normaliser) -> Findings {
    let mut findings = Findings::default();
    let panics = panics(text);
    let mut binary = Binary::default();
    let mut counts = (0u64, 0u64, 0u64);
    for line in text.lines() {
        if let Some(summary) = line.strip_prefix("test result: ") {
            let of = |word| count(summary, word);
            counts = (
                counts.0.saturating_add(of("passed")),
                counts.1.saturating_add(of("failed")),
                counts.2.saturating_add(of("ignored")),
            );
            findings.complete = true;
            findings.counts = Counts::new(counts.0, counts.1, counts.2);
            binary.finish(&panics, &mut findings.failing, normaliser);
        } else {
            binary.line(line);
        }
    }
    binary.finish(&panics, &mut findings.failing, normaliser);
    crashes(text, normaliser, &mut findings.errors);
    if findings.failing.is_empty() && findings.errors.is_empty() {
        findings.errors = rustc::errors(text, normaliser);
    }
    findings
}

/// The number before a word: 2 in `FAILED. 1 passed; 2 failed`.
fn count(summary: &str, word: &str) -> u64 {
    let counted = summary.split_once(". ").map_or(summary, |(_, counted)| counted);
    text::counted(counted)
        .find_map(|(number, what)| (what == word).then_some(number))
        .unwrap_or(0)
}

/// The failures of one test binary, until its result.
#[derive(Default)]
struct Binary {
    /// Output of each failing test.
    tests: BTreeMap<String, String>,
    /// Test whose output follows.
    current: Option<String>,
    /// In the list of names under the second `failures:`.
    in_list: bool,
}

impl Binary {
    fn line(&mut self, line: &str) {
        let section = line
            .strip_prefix("---- ")
            .and_then(|line| line.strip_suffix(" ----"));
        let section = section.and_then(|line| {
            line.strip_suffix(" stdout")
                .or_else(|| line.strip_suffix(" stderr"))
        });
        if let Some(name) = section {
            self.tests.entry(name.to_owned()).or_default();
            self.current = Some(name.to_owned());
            self.in_list = false;
        } else if line == "failures:" || line == "successes:" {
            self.current = None;
            self.in_list = line == "failures:";
        } else if let Some(output) = self.current.as_ref().and_then(|name| self.tests.get_mut(name)) {
            output.push_str(line);
            output.push('\n');
        } else if self.in_list {
            if let Some(name) = line.strip_prefix("    ").filter(|name| !name.starts_with(' ')) {
                self.tests.entry(name.trim_end().to_owned()).or_default();
            } else {
                self.in_list = line.is_empty();
            }
        } else if let Some(name) = failed(line) {
            self.tests.entry(name.to_owned()).or_default();
        }
    }

    fn finish(&mut self, panics: &Panics<'_>, failing: &mut Vec<Failure>, normaliser: &Normaliser) {
        for (name, output) in std::mem::take(&mut self.tests) {
            let output = match panics.get(name.as_str()) {
                Some(panic) if output.trim().is_empty() => panic,
                _ => output.as_str(),
            };
            failing.push(trace::any(output, normaliser).failure(normaliser, &name));
        }
        *self = Binary::default();
    }
}

/// Output from a panic on, by thread name, which is the test's name.
type Panics<'a> = BTreeMap<&'a str, &'a str>;

/// Finds panics in the output of `--nocapture`, between other output.
fn panics(text: &str) -> Panics<'_> {
    let mut panics = BTreeMap::new();
    let mut parts = text.split("thread '");
    let mut end = parts.next().map_or(0, str::len);
    for part in parts {
        let start = end;
        end = start.saturating_add("thread '".len()).saturating_add(part.len());
        let thread = part.split_once('\'').filter(|(_, rest)| {
            rest.lines()
                .next()
                .is_some_and(|line| line.contains(" panicked at "))
        });
        if let (Some((name, _)), Some(panic)) = (thread, text.get(start..end)) {
            panics.entry(name).or_insert(panic);
        }
    }
    panics
}

/// The name in `test tests::adds ... FAILED`, or `tests::adds --- FAILED` with `--quiet`.
fn failed(line: &str) -> Option<&str> {
    let name = match line
        .strip_prefix("test ")
        .and_then(|line| line.rsplit_once(" ... "))
    {
        Some((name, result)) if result.starts_with("FAILED") => name,
        Some(_) => return None,
        None => line
            .strip_suffix(" --- FAILED")
            .filter(|name| !name.contains(' '))?,
    };
    let marks = [" - should panic", " - compile fail", " - compile"];
    Some(
        marks
            .iter()
            .find_map(|mark| name.strip_suffix(mark))
            .unwrap_or(name),
    )
}

/// Test binaries that crashed or exited. The responsible test is unknown, because tests run in parallel.
fn crashes(text: &str, normaliser: &Normaliser, errors: &mut Vec<Failure>) {
    let mut target = "";
    for line in text.lines() {
        // The end of a line, behind the name of the test that had just begun.
        if let Some((_, rest)) = line.split_once("error: test failed, to rerun pass `") {
            target = rest.trim_end_matches('`');
        }
        let Some(rest) = line
            .trim_start()
            .strip_prefix("process didn't exit successfully: `")
        else {
            continue;
        };
        let Some((_, how)) = rest.rsplit_once("` (") else {
            continue;
        };
        let how = how.trim_end_matches(')');
        // Exit code of libtest after a failure that libtest reported itself.
        if how != "exit status: 101" {
            let trace = Trace {
                kind: Some(signal(how)),
                message: how.to_owned(),
                ..Trace::default()
            };
            errors.push(trace.failure(normaliser, target));
        }
    }
}

/// `SIGABRT` in `signal: 6, SIGABRT: process abort signal`.
fn signal(how: &str) -> String {
    let name = how.split([',', ':', ' ']).find(|word| word.starts_with("SIG"));
    text::head(name.unwrap_or(how), 40).0.to_owned()
}
