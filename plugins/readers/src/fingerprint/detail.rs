//! Messages of assertions without the values that the code under test made.
//!
//! A second wrong value at the same assertion is no progress, and another assertion is. So what was expected stays.

mod python;
pub(crate) mod values;

use std::sync::LazyLock;

use regex_lite::Regex;

use crate::source::Made;
use crate::text;

/// Longest message that is read, in characters, and its most lines.
const MAX_TEXT: usize = 16_000;
const MAX_LINES: usize = 500;
/// Most lines besides those of a difference, as in a message that is shown.
const MAX_KEPT: usize = 4;
/// Mark for a value that was made.
const ACTUAL: &str = "<actual>";

/// Patterns of a line, and what takes their place.
const RULES: &[(&str, &str)] = &[
    // Rust: `left: 6`, with `right: 5` below it.
    (r"^(\s*left: ).*$", "${1}<actual>"),
    // Jest: `Received: 6`. pytest: `Actual message: 'x'`. Test::More: `got: 6`.
    (r"(?i)^((?:received|actual|got)[^:]*: ).*$", "${1}<actual>"),
    (r"^((?:Input|Obtained): ).*$", "${1}<actual>"),
    // Jest: how often a mock was called.
    (r"^(Number of (?:calls|returns): +)\d+$", "${1}<actual>"),
    // Go: `Add(2, 3) = 6; want 5`.
    (r"( = )[^=;,]*([;,] (?:want|expected) )", "${1}<actual>${2}"),
    // Positions and lengths in panics of Go and Rust.
    (
        r"(index|slice bounds) out of range \[[^\]]*\](?: with (?:length|capacity) \d+)?",
        "${1} out of range",
    ),
    (
        r"(index out of bounds): the len is \d+ but the index is \d+",
        "${1}",
    ),
    (
        r"(range (?:start|end) index) \d+ (out of range for slice of length) \d+",
        "${1} ${2}",
    ),
    (r"(slice index starts at) \d+ but ends at \d+", "${1}"),
    (r"(byte index) \d+ (is )", "${1} ${2}"),
    // testify: `"[1 2]" does not contain "3"`, `"[1 2]" should have 3 item(s), but has 2`. JUnit: `expected: <5> but was: <6>`.
    (
        r#"^(Error:\s+)".*" (does not contain |should )"#,
        "${1}<actual> ${2}",
    ),
    (r"(\bbut (?:has|was)\b).*$", "${1} <actual>"),
];

static COMPILED_RULES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let compiled = RULES
        .iter()
        .map(|(pattern, mark)| Some((Regex::new(pattern).ok()?, *mark)));
    compiled.flatten().collect()
});

/// A message without the values that the code under test made. `kind` is the type of the exception.
pub(crate) fn without_actual_values(kind: Option<&str>, message: &str, made: Made) -> String {
    let (message, _) = text::head(message, MAX_TEXT);
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.take(MAX_LINES).collect();
    let of_python = || match kind {
        Some("AssertionError") => python::without_actual(&lines, made),
        _ => None,
    };
    let kept = condition(&lines)
        .or_else(|| loosely(&lines))
        .or_else(of_python)
        .unwrap_or_else(|| {
            // Kinds of Jest, Vitest and Node.
            let is_asserted = matches!(kind, Some("AssertionError" | "JestAssertionError"));
            Reading::of(is_asserted, made).all(&lines)
        });
    kept.join("\n")
}

/// True if a message is the source of an assertion, beginning with this line: of Rust, of Node, of C and C++.
pub(crate) fn is_source(first: &str) -> bool {
    first.starts_with("assertion failed: ")
        || first == "The expression evaluated to a falsy value:"
        || (first.contains("Assertion `") && first.ends_with("' failed."))
}

/// Source of an assertion, which has no values.
fn condition(lines: &[&str]) -> Option<Vec<String>> {
    let is_source = lines.first().is_some_and(|first| is_source(first));
    is_source.then(|| lines.iter().map(|line| (*line).to_owned()).collect())
}

/// Node's `deepEqual` prints one value after the other.
fn loosely(lines: &[&str]) -> Option<Vec<String>> {
    let first = lines
        .first()
        .filter(|line| **line == "Expected values to be loosely deep-equal:")?;
    let expected = lines
        .iter()
        .skip_while(|line| **line != "should loosely deep-equal");
    Some(
        std::iter::once(first)
            .chain(expected)
            .map(|line| (*line).to_owned())
            .collect(),
    )
}

/// Part of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Text,
    /// A difference whose lines with `+` were made. All others were expected.
    Difference,
    /// A value that was made, until the next label.
    Value,
    /// Values that were made, until the end.
    Rest,
}

/// Reads a message line by line.
#[derive(Default)]
struct Reading {
    /// True if values may have several lines.
    is_asserted: bool,
    made: Made,
    part: Part,
    kept: Vec<String>,
    /// Lines of a difference.
    difference: Vec<String>,
    /// True if lines of the difference are left out. Which ones depends on both values.
    is_partial: bool,
}

impl Reading {
    fn of(is_asserted: bool, made: Made) -> Reading {
        Reading {
            is_asserted,
            made,
            ..Reading::default()
        }
    }

    fn all(mut self, lines: &[&str]) -> Vec<String> {
        for line in lines {
            self.hear(line);
        }
        self.kept.truncate(MAX_KEPT);
        if !self.is_partial {
            self.kept.append(&mut self.difference);
        }
        self.kept
    }

    fn hear(&mut self, line: &str) {
        if begins_difference(line) {
            self.part = Part::Difference;
            self.is_partial |= line.ends_with("Lines skipped");
            if line.ends_with(GO_CMP_SUFFIX) {
                self.kept.push(self::line(line, self.made));
            }
            return;
        }
        if matches!(self.part, Part::Difference | Part::Value) && is_label(line) {
            self.part = Part::Text;
        }
        match self.part {
            Part::Rest | Part::Value => {}
            Part::Difference => self.differs(line),
            Part::Text => {
                self.part = match line {
                    // What did not match follows.
                    _ if line.starts_with("The input ") && line.ends_with(" Input:") => Part::Rest,
                    _ if self.is_asserted && line.starts_with("Received") => Part::Value,
                    // Node: two values that are the same follow.
                    _ if self.made == Made::Both && unequal(line).is_some() => Part::Rest,
                    _ => Part::Text,
                };
                self.kept.push(self::line(line, self.made));
            }
        }
    }

    /// A line of a difference. Lines without a mark are in both values.
    fn differs(&mut self, line: &str) {
        let (made, expected) = match self.made {
            Made::Right => ('-', '+'),
            Made::Unknown | Made::Left | Made::Both => ('+', '-'),
        };
        let is_left_out = line.starts_with("@@") || line == "..." || line == "…";
        self.is_partial |= is_left_out;
        // Node marks the first difference of two lines.
        if line.starts_with(made) || is_left_out || line.trim_matches('^').is_empty() {
            return;
        }
        let expected = line.strip_prefix(expected).unwrap_or(line).trim();
        self.difference.push(expected.trim_end_matches(',').to_owned());
    }
}

/// Returns whether a difference follows: of Node, of Jest and Vitest, of testify, of go-cmp.
fn begins_difference(line: &str) -> bool {
    line.starts_with("+ actual - expected")
        || is_head(line, "- Expected")
        || is_head(line, "+ Received")
        || matches!(line, "--- Expected" | "+++ Actual" | "Diff:")
        || is_head(line, "- Snapshot")
        || line.ends_with(GO_CMP_SUFFIX)
}

/// End of a line of go-cmp before a difference.
const GO_CMP_SUFFIX: &str = "(-want +got):";

/// `- Expected  - 1`.
fn is_head(line: &str, head: &str) -> bool {
    line.strip_prefix(head)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("  "))
}

/// Returns whether a line has a label of its own: `Expected: 5`, `Number of calls: 1`, `Test:  TestAdds`.
fn is_label(line: &str) -> bool {
    let labels = [
        "Expected",
        "Number of ",
        "Snapshot",
        "Test:",
        "Messages:",
        "Error Trace:",
        "Error:",
    ];
    labels.iter().any(|label| line.starts_with(label)) && line.contains(':')
}

/// Beginning of Node's line about two values that are not to be the same.
fn unequal(line: &str) -> Option<&str> {
    let (words, _) = line.strip_prefix("Expected \"actual\" ")?.split_once(':')?;
    line.get(.."Expected \"actual\" ".len() + words.len())
}

/// A line without the values that were made.
fn line(line: &str, made: Made) -> String {
    if made == Made::Both
        && let Some(words) = unequal(line)
    {
        return words.to_owned();
    }
    // Rust's two values.
    let is_side = |side: &str| line.trim_start().starts_with(side);
    match made {
        Made::Right | Made::Both if is_side("right: ") => return format!("right: {ACTUAL}"),
        Made::Right if is_side("left: ") => return line.to_owned(),
        _ => {}
    }
    let line = got(&compared(line, made).unwrap_or_else(|| line.to_owned()));
    COMPILED_RULES.iter().fold(line, |line, (pattern, mark)| {
        pattern.replace(&line, *mark).into_owned()
    })
}

/// Node and others: `6 !== 5`. Vitest and Chai: `expected 6 to be 5`.
fn compared(line: &str, made: Made) -> Option<String> {
    if let Some((before, value)) = line.split_once("expected ")
        && (before.is_empty() || before.ends_with(' '))
        && let Some((_, words, expected)) = values::split(value, &[" not to ", " to "])
    {
        return Some(format!("{before}expected {ACTUAL}{words}{expected}"));
    }
    let (left, words, right) = values::split(line, &[" !== ", " === ", " != ", " == "])?;
    Some(match made {
        Made::Unknown | Made::Left => format!("{ACTUAL}{words}{right}"),
        Made::Right => format!("{left}{words}{ACTUAL}"),
        Made::Both => format!("{ACTUAL}{words}{ACTUAL}"),
    })
}

/// `got 6, want 5`.
fn got(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let starts = lower.match_indices("got").map(|(at, word)| at + word.len());
    let mut starts = starts.filter_map(|at| {
        let before = line.get(..at - 3)?;
        let (got, value) = line.get(at..).map(|rest| match rest.strip_prefix(':') {
            Some(rest) => (at + 1, rest),
            None => (at, rest),
        })?;
        let is_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        (is_word && value.starts_with(' ')).then_some((got, value))
    });
    let Some((at, value)) = starts.next() else {
        return line.to_owned();
    };
    let length = values::end(value, &[',', ';', ')']);
    let (before, after) = (line.get(..at), value.get(length..));
    format!(
        "{} {ACTUAL}{}",
        before.unwrap_or_default(),
        after.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests;
