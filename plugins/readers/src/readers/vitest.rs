//! Vitest.

use crate::normalise::Normaliser;
use crate::report::{Counts, Findings};
use crate::text;
use crate::trace::{Trace, js};

/// Returns whether a text is output of Vitest.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with("RUN  v") || line.starts_with("Test Files  ") || line.starts_with("⎯⎯⎯⎯⎯⎯⎯ Failed ")
    })
}

pub(super) fn read(text: &str, normaliser: &Normaliser) -> Findings {
    let mut findings = Findings::default();
    let mut block = Block::default();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix(" FAIL  ") {
            if !block.text.is_empty() {
                block.finish(&mut findings, normaliser);
            }
            block.names.push(name.trim());
        } else if line.starts_with("⎯⎯⎯") {
            block.finish(&mut findings, normaliser);
            let heading = line.trim_matches(['⎯', ' ']);
            let is_error = ["Error", "Rejection", "Exception"]
                .iter()
                .any(|word| heading.ends_with(word));
            block.heading = Some(heading).filter(|_| is_error);
        } else if block.heading.is_some() || !block.names.is_empty() {
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    block.finish(&mut findings, normaliser);
    if findings.failing.is_empty() && findings.errors.is_empty() {
        marked(text, normaliser, &mut findings);
    }
    if let Some(counts) = text.lines().rev().find_map(totals) {
        (findings.counts, findings.complete) = (counts, true);
    }
    findings.no_tests = text.lines().any(|line| line.starts_with("No test files found"));
    findings
}

/// An error, and what failed by it: suites that fail alike are listed together.
#[derive(Default)]
struct Block<'a> {
    names: Vec<&'a str>,
    /// Name of the failure if no test failed.
    heading: Option<&'a str>,
    text: String,
}

impl Block<'_> {
    fn finish(&mut self, findings: &mut Findings, normaliser: &Normaliser) {
        let block = std::mem::take(self);
        let read = || js::read(&block.text, normaliser);
        let trace = read().unwrap_or_else(|| Trace {
            message: block.text.clone(),
            ..Trace::default()
        });
        for name in &block.names {
            match name.split_once(" [ ") {
                Some((file, _)) => findings.errors.push(trace.clone().failure(normaliser, file)),
                None => findings.failing.push(trace.clone().failure(normaliser, name)),
            }
        }
        if let Some(heading) = block.heading.filter(|_| !block.text.trim().is_empty()) {
            let kind = trace.kind.clone().or_else(|| Some(heading.to_owned()));
            findings
                .errors
                .push(Trace { kind, ..trace }.failure(normaliser, ""));
        }
    }
}

/// `   × doubling > doubles 5ms` under ` ❯ test/calc.test.ts (3 tests | 1 failed)`, for an output
/// that was cut before the errors.
fn marked(text: &str, normaliser: &Normaliser, findings: &mut Findings) {
    let mut file = "";
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let inner = line.trim_start();
        if let Some((path, _)) = inner.strip_prefix("❯ ").and_then(|inner| inner.split_once(" (")) {
            file = path;
        } else if let Some(name) = inner.strip_prefix("× ") {
            let name = name
                .rsplit_once(' ')
                .filter(|(_, time)| time.ends_with("ms"))
                .map_or(name, |(name, _)| name);
            let message = lines
                .next_if(|line| line.trim_start().starts_with("→ "))
                .unwrap_or("");
            let trace = Trace {
                message: message.trim_start().trim_start_matches("→ ").to_owned(),
                ..Trace::default()
            };
            let nested = line.starts_with("   ");
            let name = if nested {
                format!("{file} > {name}")
            } else {
                name.to_owned()
            };
            findings.failing.push(trace.failure(normaliser, &name));
        }
    }
}

/// `      Tests  1 failed | 3 passed | 1 skipped | 1 todo (6)`.
fn totals(line: &str) -> Option<Counts> {
    let counted = line.trim_start().strip_prefix("Tests  ")?;
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (number, what) in text::counted(counted) {
        match what.split(' ').next().unwrap_or(what) {
            "passed" => passed = number,
            "failed" => failed = number,
            "skipped" | "todo" => skipped += number,
            _ => {}
        }
    }
    Some(Counts::new(passed, failed, skipped))
}
