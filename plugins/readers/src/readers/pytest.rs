//! pytest.

use std::collections::{BTreeMap, VecDeque};

use crate::normalise::Normaliser;
use crate::report::{Counts, Findings};
use crate::text;
use crate::trace::Trace;
use crate::trace::python::read_pytest;

/// Most positions that are tried as the end of a test's name.
const MAX_SPLITS: usize = 20;

/// Returns whether a text is output of pytest.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| {
        let heading = line.contains(" test session starts ") || line.contains(" short test summary info ");
        (heading && line.starts_with("===")) || totals(line).is_some()
    })
}

pub(super) fn read(text: &str, normaliser: &Normaliser) -> Findings {
    let mut sections = Sections::new(text);
    let mut findings = Findings::default();
    for line in summary_lines(text) {
        let entry = Entry::new(line, &sections);
        let section = entry.headers().iter().find_map(|header| sections.take(header));
        let trace = section.map_or_else(|| entry.trace(), |text| read_pytest(text, normaliser));
        let failure = trace.failure(normaliser, entry.name);
        match entry.is_test() {
            true => findings.failing.push(failure),
            false => findings.errors.push(failure),
        }
    }
    // With `-rN`, or if the end is cut off, only the sections are left.
    if findings.failing.is_empty() && findings.errors.is_empty() {
        for section in &sections.all {
            let failure = read_pytest(section.text, normaliser).failure(normaliser, section.name());
            match section.header.starts_with("ERROR collecting ") {
                true => findings.errors.push(failure),
                false => findings.failing.push(failure),
            }
        }
    }
    if let Some(total) = text.lines().rev().find_map(totals) {
        findings.complete = true;
        findings.no_tests =
            total.ran() == 0 && total.errors == 0 && !usage_error(text, &mut findings, normaliser);
        findings.counts = total.counts(findings.errors.len());
    }
    findings
}

/// A part of FAILURES or ERRORS, under its header.
struct Section<'a> {
    header: &'a str,
    text: &'a str,
}

impl<'a> Section<'a> {
    fn name(&self) -> &'a str {
        let starts = ["ERROR at setup of ", "ERROR at teardown of ", "ERROR collecting "];
        starts
            .iter()
            .find_map(|start| self.header.strip_prefix(start))
            .unwrap_or(self.header)
    }
}

/// `____ test_adds ____`: at least one underscore and a blank on each side.
fn section_header(line: &str) -> Option<&str> {
    let inner = line.trim_matches('_');
    let header = inner.strip_prefix(' ')?.strip_suffix(' ')?;
    let framed = line.starts_with('_') && line.ends_with('_');
    (framed && !header.is_empty() && header != "_" && !header.starts_with("_ _")).then_some(header)
}

/// All sections, with the unused ones by header.
struct Sections<'a> {
    all: Vec<Section<'a>>,
    by_header: BTreeMap<&'a str, VecDeque<usize>>,
}

impl<'a> Sections<'a> {
    fn new(text: &'a str) -> Sections<'a> {
        let all = sections(text);
        let mut by_header: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
        for (position, section) in all.iter().enumerate() {
            by_header.entry(section.header).or_default().push_back(position);
        }
        Sections { all, by_header }
    }

    /// The text under the next section with that header: several files may have tests of one name.
    fn take(&mut self, header: &str) -> Option<&'a str> {
        let position = self.by_header.get_mut(header)?.pop_front()?;
        self.all.get(position).map(|section| section.text)
    }
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    let (mut header, mut start, mut offset) = (None, 0, 0);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_end();
        let next = section_header(trimmed);
        let ends = next.is_some() || trimmed.starts_with("=====") || trimmed.starts_with("!!!!!");
        if let Some(header) = header.take_if(|_| ends) {
            sections.push(Section {
                header,
                text: text.get(start..offset).unwrap_or(""),
            });
        }
        offset += line.len();
        if next.is_some() {
            (header, start) = (next, offset);
        }
    }
    sections.extend(header.map(|header| Section {
        header,
        text: text.get(start..).unwrap_or(""),
    }));
    sections
}

/// The lines of the short summary that tell failures.
fn summary_lines(text: &str) -> impl Iterator<Item = &str> {
    let after = text
        .lines()
        .skip_while(|line| !line.contains(" short test summary info "))
        .skip(1);
    after.filter(|line| line.starts_with("FAILED ") || line.starts_with("ERROR "))
}

/// A line of the short summary.
struct Entry<'a> {
    failed: bool,
    name: &'a str,
    message: &'a str,
}

impl<'a> Entry<'a> {
    /// The name of a parametrised test may have ` - ` in it, as the message is set off: take the
    /// name that has a section, else the one whose brackets close.
    fn new(line: &'a str, sections: &Sections<'_>) -> Entry<'a> {
        let (status, rest) = line.split_once(' ').unwrap_or((line, ""));
        let entry = |name: &'a str, message: &'a str| Entry {
            failed: status == "FAILED",
            name: name.trim(),
            message,
        };
        let splits = || {
            rest.match_indices(" - ")
                .take(MAX_SPLITS)
                .filter_map(|(at, mark)| Some(entry(rest.get(..at)?, rest.get(at + mark.len()..)?)))
        };
        let closed = |entry: &Entry<'_>| !entry.name.contains('[') || entry.name.ends_with(']');
        std::iter::once(entry(rest, ""))
            .chain(splits())
            .find(|entry| {
                entry
                    .headers()
                    .iter()
                    .any(|header| sections.by_header.contains_key(header.as_str()))
            })
            .or_else(|| splits().find(closed))
            .unwrap_or_else(|| entry(rest, ""))
    }

    fn is_test(&self) -> bool {
        self.failed || self.name.contains("::")
    }

    /// `TestRatio.test_reads[6/3-2]` is how the section of `tests/x.py::TestRatio::test_reads[6/3-2]`
    /// is headed.
    fn headers(&self) -> Vec<String> {
        let (path, brackets) = match self.name.find('[') {
            Some(at) => self.name.split_at_checked(at).unwrap_or((self.name, "")),
            None => (self.name, ""),
        };
        match path.split_once("::") {
            Some((_, path)) if self.failed => vec![path.replace("::", ".") + brackets],
            Some((_, path)) => {
                let test = path.replace("::", ".") + brackets;
                vec![
                    format!("ERROR at setup of {test}"),
                    format!("ERROR at teardown of {test}"),
                ]
            }
            None => vec![format!("ERROR collecting {}", self.name)],
        }
    }

    /// Trace from the line itself, which may be truncated.
    fn trace(&self) -> Trace {
        let (kind, message) = self.message.split_once(": ").unwrap_or(("", self.message));
        let kind = match crate::trace::is_type(kind) {
            true => Some(kind.to_owned()),
            false => self
                .message
                .starts_with("assert ")
                .then(|| "AssertionError".to_owned()),
        };
        Trace {
            kind,
            message: message.to_owned(),
            ..Trace::default()
        }
    }
}

/// The last line of a run.
#[derive(Default)]
struct Totals {
    passed: u64,
    failed: u64,
    errors: u64,
    skipped: u64,
}

impl Totals {
    fn ran(&self) -> u64 {
        self.passed
            .saturating_add(self.failed)
            .saturating_add(self.skipped)
    }

    /// Counts of the run. An error is a test whose setup failed, unless it is one of the `others`.
    fn counts(&self, others: usize) -> Counts {
        let errors = self
            .errors
            .saturating_sub(u64::try_from(others).unwrap_or(u64::MAX));
        Counts::new(self.passed, self.failed.saturating_add(errors), self.skipped)
    }
}

/// `== 1 failed, 4 passed, 1 xfailed in 0.08s ==`, with `-q` without the frame.
fn totals(line: &str) -> Option<Totals> {
    let line = line.trim_matches(['=', ' ']);
    let (counted, time) = line.rsplit_once(" in ")?;
    let seconds = time.split(' ').next()?.strip_suffix('s')?;
    seconds.parse::<f64>().ok()?;
    let mut totals = Totals::default();
    for part in counted.split(", ") {
        let Some((number, what)) = text::number(part) else {
            return (counted == "no tests ran").then_some(totals);
        };
        match what.trim() {
            "passed" | "xpassed" => totals.passed = totals.passed.saturating_add(number),
            "failed" => totals.failed = number,
            "error" | "errors" => totals.errors = number,
            "skipped" | "xfailed" => totals.skipped = totals.skipped.saturating_add(number),
            "deselected" | "warning" | "warnings" | "rerun" => {}
            _ => return None,
        }
    }
    Some(totals)
}

/// `ERROR: file or directory not found`, before anything is collected.
fn usage_error(text: &str, findings: &mut Findings, normaliser: &Normaliser) -> bool {
    let errors = text.lines().filter_map(|line| {
        line.strip_prefix("ERROR: ")
            .or_else(|| line.strip_prefix("INTERNALERROR> "))
    });
    let before = findings.errors.len();
    findings.errors.extend(errors.take(5).map(|message| {
        let trace = Trace {
            kind: Some("usage error".to_owned()),
            message: message.to_owned(),
            ..Trace::default()
        };
        trace.failure(normaliser, "")
    }));
    findings.errors.len() > before
}
