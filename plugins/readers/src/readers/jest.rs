//! Jest.

use crate::normalise::Normaliser;
use crate::report::{Counts, Failure, Findings};
use crate::text;
use crate::trace::{Trace, js};

/// Returns whether a text is output of Jest.
pub(super) fn recognises(text: &str) -> bool {
    let mut failed_file = false;
    text.lines().any(|line| {
        failed_file |= line.starts_with("FAIL ");
        totals(line).is_some()
            || line.starts_with("Test Suites: ")
            || line.starts_with("No tests found, exiting with code")
            || (failed_file && line.starts_with("  ● "))
    })
}

pub(super) fn read(text: &str, normaliser: &Normaliser) -> Findings {
    let mut findings = Findings::default();
    let mut block: Option<Block<'_>> = None;
    let mut file = "";
    for line in text.lines() {
        if line.trim_start().starts_with("Summary of all failing tests") {
            break;
        }
        let next = title(line);
        let verdict = verdict(line);
        if next.is_some() || verdict.is_some() || line.starts_with("Test Suites: ") {
            block
                .take()
                .into_iter()
                .for_each(|block| block.finish(&mut findings, normaliser));
        }
        if let Some((_, path)) = verdict {
            file = path;
        } else if let Some(title) = next {
            block = Some(Block {
                file,
                title,
                text: String::new(),
            });
        } else if let Some(block) = &mut block {
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    block
        .into_iter()
        .for_each(|block| block.finish(&mut findings, normaliser));
    if let Some(counts) = text.lines().rev().find_map(totals) {
        (findings.counts, findings.complete) = (counts, true);
    }
    findings.no_tests = text.lines().any(|line| line.starts_with("No tests found"));
    findings
}

/// `FAIL test/calc.test.js (5.2 s)`; with several projects, the name of the project comes first.
fn verdict(line: &str) -> Option<(bool, &str)> {
    let (verdict, path) = line.trim_start().split_once(' ')?;
    let path = path.trim();
    let path = match path.rsplit_once(" (") {
        Some((path, time)) if time.ends_with("s)") => path.trim_end(),
        _ => path,
    };
    let is_verdict = matches!(verdict, "PASS" | "FAIL")
        && !path.contains(" > ")
        && line.len() - line.trim_start().len() <= 1;
    is_verdict.then_some((verdict == "PASS", path))
}

/// `  ● ratios › reads`, but not what Jest itself reports that way.
fn title(line: &str) -> Option<&str> {
    const NOTE_TITLES: &[&str] = &[
        "Console",
        "Deprecation Warning",
        "Validation Warning",
        "Cannot log after tests are done",
    ];
    let title = line
        .strip_prefix("  ● ")
        .or_else(|| line.strip_prefix("● "))?
        .trim();
    (!NOTE_TITLES.iter().any(|note| title.starts_with(note))).then_some(title)
}

/// A failure, under its title.
struct Block<'a> {
    file: &'a str,
    title: &'a str,
    text: String,
}

impl Block<'_> {
    fn finish(self, findings: &mut Findings, normaliser: &Normaliser) {
        let test = !self.file.is_empty() && self.title != "Test suite failed to run";
        match test {
            true => findings.failing.push(self.test(normaliser)),
            false => findings.errors.push(self.suite(normaliser)),
        }
    }

    fn test(&self, normaliser: &Normaliser) -> Failure {
        let mut trace = Trace::default();
        let mut lines = self
            .text
            .lines()
            .skip_while(|line| line.trim().is_empty())
            .take_while(|line| !js::ends_message(line));
        let first = lines.next().unwrap_or("").trim();
        let (kind, message) = match js::error_head(first) {
            Some((kind, message)) => (Some(kind), message),
            None => (first.starts_with("expect").then_some("JestAssertionError"), first),
        };
        trace.kind = kind.map(str::to_owned);
        trace.message = std::iter::once(message)
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n");
        self.text
            .lines()
            .for_each(|line| js::push(line, normaliser, &mut trace));
        trace.failure(normaliser, &format!("{} › {}", self.file, self.title))
    }

    fn suite(&self, normaliser: &Normaliser) -> Failure {
        let mut trace = js::read(&self.text, normaliser).unwrap_or_else(|| Trace {
            message: self.text.clone(),
            ..Trace::default()
        });
        if self.file.is_empty() {
            trace.kind = Some(self.title.trim_end_matches(':').to_owned());
        }
        trace.failure(normaliser, self.file)
    }
}

/// `Tests:       1 failed, 1 skipped, 1 todo, 3 passed, 6 total`.
fn totals(line: &str) -> Option<Counts> {
    let counted = line.strip_prefix("Tests: ")?;
    let (mut passed, mut failed, mut skipped, mut total) = (0, 0, 0, None);
    for (number, what) in text::counted(counted) {
        match what {
            "passed" => passed = number,
            "failed" => failed = number,
            "skipped" | "todo" => skipped += number,
            "total" => total = Some(number),
            _ => {}
        }
    }
    total.map(|total| Counts {
        total: Some(total),
        ..Counts::new(passed, failed, skipped)
    })
}
