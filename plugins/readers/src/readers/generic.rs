//! Any other output: the lines that look like errors.

use crate::normalise::Normaliser;
use crate::report::Failure;
use crate::trace::{self, Trace};

/// Bytes at the end of an output that are examined.
const MAX_TAIL: usize = 64 * 1024;
/// Most error-like lines that replace a missing stack.
const MAX_LINES: usize = 20;

const ERROR_WORDS: &[&str] = &[
    "error",
    "fail",
    "panic",
    "exception",
    "assert",
    "fatal",
    "not ok",
    "undefined",
    "cannot",
    "could not",
    "no such",
    "not found",
    "denied",
    "expected",
    "segmentation",
    "abort",
    "killed",
    "unable",
    "illegal",
];

/// Error of a run without readable tests.
pub(super) fn error(text: &str, exit_code: Option<i32>, normaliser: &Normaliser) -> Option<Failure> {
    let text = tail(text);
    let mut lines = suspicious(text);
    // A killed run ends at a random line, so that its last lines carry no information.
    if lines.is_empty() && exit_code.is_some() {
        lines = last(text);
    }
    let mut trace = trace::any(text, normaliser);
    if trace.kind.is_none() {
        trace = Trace {
            message: lines.join("\n"),
            ..Trace::default()
        };
        lines.iter().for_each(|line| trace.keep(normaliser.text(line)));
    }
    (!trace.is_empty()).then(|| trace.failure(normaliser, ""))
}

/// The end of a text, from the start of a line on.
fn tail(text: &str) -> &str {
    let mut start = text.len().saturating_sub(MAX_TAIL);
    while !text.is_char_boundary(start) {
        start = start.saturating_add(1);
    }
    text.get(start..).unwrap_or(text)
}

fn filled(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// The lines that look like errors.
fn suspicious(text: &str) -> Vec<&str> {
    let names_error = |line: &&str| {
        let line = crate::text::head(line, 500).0.to_lowercase();
        ERROR_WORDS.iter().any(|word| line.contains(word))
    };
    filled(text).filter(names_error).take(MAX_LINES).collect()
}

/// The last lines.
fn last(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = filled(text).rev().take(3).collect();
    lines.reverse();
    lines
}
