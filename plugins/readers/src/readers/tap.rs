//! The Test Anything Protocol: versions 12, 13 and 14, with subtests indented or in braces.

use super::node_test;
use super::tap_yaml;
use crate::normalise::Normaliser;
use crate::report::{Counts, Failure, Findings};
use crate::text;
use crate::trace::Trace;

/// Deepest nesting of subtests in names.
const MAX_DEPTH: usize = 64;
/// Longest name, in characters.
const MAX_NAME: usize = 1_000;

/// Returns whether a text is TAP.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().any(|line| {
        let numbered = || {
            line.strip_prefix("not ")
                .unwrap_or(line)
                .strip_prefix("ok ")
                .and_then(text::number)
        };
        line.starts_with("TAP version ")
            || numbered().is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with(' '))
    })
}

/// Returns whether a text without any other sign of a tool plans no tests: `1..0`, `1..0 # SKIP none`.
pub(super) fn plans_nothing(text: &str) -> bool {
    text.lines().any(|line| plan(line) == Some(0))
}

pub(super) fn read(text: &str, normaliser: &Normaliser) -> Findings {
    let mut reading = Reading::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() == "---" {
            let indent = text::indent(line);
            let mut block = Vec::new();
            while let Some(line) = lines.next_if(|line| line.trim() != "..." || text::indent(line) != indent)
            {
                block.push(line);
            }
            lines.next();
            reading.diagnose(tap_yaml::trace(&block, normaliser));
        } else {
            reading.line(line, normaliser);
        }
    }
    reading.finish(text, normaliser)
}

/// A line `ok` or `not ok`.
#[derive(Debug)]
struct Point {
    name: String,
    status: Status,
    trace: Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Passed,
    Failed,
    Skipped,
}

#[derive(Default)]
struct Reading {
    /// Points without their parent point yet, by depth.
    levels: Vec<Vec<Point>>,
    /// Names of the open braces, each with its parents.
    braces: Vec<String>,
    /// Position of the last point, which may have a description.
    last: Option<usize>,
    planned: Option<u64>,
    bailed: Option<String>,
    top_level: u64,
}

impl Reading {
    fn line(&mut self, line: &str, normaliser: &Normaliser) {
        let inner = line.trim_start();
        let depth = text::indent(line) / 4;
        if let Some(found) = point(inner) {
            self.point(depth, found);
        } else if inner == "}" {
            self.braces.pop();
            self.last = None;
        } else if let Some(count) = plan(line) {
            self.planned = Some(count);
        } else if let Some(reason) = inner.strip_prefix("Bail out!") {
            self.bailed = Some(reason.trim().to_owned());
        } else if let Some(comment) = inner.strip_prefix('#') {
            self.comment(comment.trim(), normaliser);
        }
    }

    fn point(&mut self, depth: usize, found: Found<'_>) {
        if depth == 0 {
            self.top_level = self.top_level.saturating_add(1);
        }
        let name = match self.braces.last() {
            Some(suite) => within(suite, found.name),
            None => found.name.to_owned(),
        };
        if found.opens {
            let is_deep = self.braces.len() >= MAX_DEPTH;
            self.braces.push(if is_deep { String::new() } else { name });
            self.last = None;
            return;
        }
        // With braces the indentation is redundant.
        let depth = if self.braces.is_empty() {
            depth.min(MAX_DEPTH)
        } else {
            0
        };
        self.last = self.file(
            depth,
            Point {
                name,
                status: found.status,
                trace: Trace::default(),
            },
        );
    }

    /// Adds a point with its subtests, which precede it with more indentation. A point that only sums up its
    /// subtests is not a test. Returns the position of the point that may have a description.
    fn file(&mut self, depth: usize, point: Point) -> Option<usize> {
        let subtests_start = self.levels.len().min(depth.saturating_add(1));
        let mut subtests: Vec<Point> = self.levels.drain(subtests_start..).flatten().collect();
        let explained =
            point.status != Status::Failed || subtests.iter().any(|test| test.status == Status::Failed);
        let is_sum = explained && !subtests.is_empty();
        for subtest in &mut subtests {
            subtest.name = within(&point.name, &subtest.name);
        }
        while self.levels.len() <= depth {
            self.levels.push(Vec::new());
        }
        let level = self.levels.get_mut(depth)?;
        level.append(&mut subtests);
        if is_sum {
            return None;
        }
        level.push(point);
        Some(depth)
    }

    fn described(&mut self) -> Option<&mut Point> {
        self.levels.get_mut(self.last?)?.last_mut()
    }

    fn diagnose(&mut self, trace: Trace) {
        if let Some(point) = self.described() {
            point.trace = trace;
        }
    }

    /// Test::More describes a failure in comments: `#   at calc.t line 8.`
    fn comment(&mut self, comment: &str, normaliser: &Normaliser) {
        let Some(point) = self.described().filter(|point| point.status == Status::Failed) else {
            return;
        };
        let place = comment
            .strip_prefix("at ")
            .and_then(|place| place.split_once(" line "));
        if let Some((path, _)) = place {
            point.trace.push(normaliser, path, None);
        } else if comment.starts_with("got: ")
            || comment.starts_with("expected: ")
            || comment.starts_with("Failed test ")
        {
            point.trace.message.push_str(comment);
            point.trace.message.push('\n');
        }
    }

    fn finish(self, text: &str, normaliser: &Normaliser) -> Findings {
        let mut findings = Findings::default();
        let (mut passed, mut skipped) = (0u64, 0u64);
        for point in self.levels.into_iter().flatten() {
            match point.status {
                Status::Passed => passed = passed.saturating_add(1),
                Status::Skipped => skipped = skipped.saturating_add(1),
                Status::Failed => findings
                    .failing
                    .push(point.trace.failure(normaliser, &point.name)),
            }
        }
        let failed = u64::try_from(findings.failing.len()).unwrap_or(u64::MAX);
        findings.counts = Counts::new(passed, failed, skipped);
        findings.no_tests = self.planned == Some(0) && self.top_level == 0;
        findings.complete = self.planned == Some(self.top_level) && self.bailed.is_none();
        if let Some(reason) = &self.bailed {
            findings.errors.push(error("bail out", reason, normaliser));
        } else if let Some(planned) = self.planned.filter(|planned| *planned != self.top_level) {
            let message = format!("planned {planned} tests, {} ran", self.top_level);
            findings.errors.push(error("wrong plan", &message, normaliser));
        }
        // Output of a dying program is not TAP, or is turned into comments.
        let plain: String = text
            .lines()
            .map(|line| line.strip_prefix("# ").unwrap_or(line))
            .flat_map(|line| [line, "\n"])
            .collect();
        node_test::uncaught(&plain, normaliser, &mut findings);
        findings
    }
}

/// The name of a subtest, with that of the test it is in.
fn within(test: &str, subtest: &str) -> String {
    let name = format!("{test} > {subtest}");
    match text::head(&name, MAX_NAME) {
        (_, true) => name,
        (start, false) => start.to_owned(),
    }
}

fn error(kind: &str, message: &str, normaliser: &Normaliser) -> Failure {
    let trace = Trace {
        kind: Some(kind.to_owned()),
        message: message.to_owned(),
        ..Trace::default()
    };
    trace.failure(normaliser, "")
}

/// The count in `1..3`, at the start of a line.
fn plan(line: &str) -> Option<u64> {
    let (count, rest) = text::number(line.strip_prefix("1..")?)?;
    (rest.trim().is_empty() || rest.trim_start().starts_with('#')).then_some(count)
}

struct Found<'a> {
    name: &'a str,
    status: Status,
    /// True if the point ends with a brace and its subtests follow.
    opens: bool,
}

/// `not ok 2 - reads # TODO not written yet`.
fn point(line: &str) -> Option<Found<'_>> {
    let (ok, rest) = match line.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, line.strip_prefix("ok")?),
    };
    if !rest.is_empty() && !rest.starts_with(' ') {
        return None;
    }
    let rest = rest.trim();
    let rest = text::number(rest).map_or(rest, |(_, rest)| rest).trim();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let (rest, opens) = match rest.strip_suffix('{') {
        Some(rest) => (rest.trim_end(), true),
        None => (rest, false),
    };
    let mut parts = rest.split(" #");
    let name = parts.next().unwrap_or("");
    let mut directives = parts.map(|part| part.trim_start().to_ascii_lowercase());
    let skipped = directives.any(|word| word.starts_with("skip") || word.starts_with("todo"))
        || starts_with_directive(rest);
    let status = match (skipped, ok) {
        (true, _) => Status::Skipped,
        (false, true) => Status::Passed,
        (false, false) => Status::Failed,
    };
    Some(Found {
        name: text::head(name.trim(), MAX_NAME).0,
        status,
        opens,
    })
}

/// A point without a name: `ok 3 # skip takes too long`.
fn starts_with_directive(rest: &str) -> bool {
    let word = rest
        .strip_prefix('#')
        .map(|rest| rest.trim_start().to_ascii_lowercase());
    word.is_some_and(|word| word.starts_with("skip") || word.starts_with("todo"))
}
