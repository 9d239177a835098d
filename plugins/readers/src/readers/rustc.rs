//! The errors of the Rust compiler and of cargo, which come before any test.

use crate::normalise::Normaliser;
use crate::report::Failure;
use crate::trace::Trace;

/// Errors in code, otherwise cargo's own errors.
pub(super) fn errors(text: &str, normaliser: &Normaliser) -> Vec<Failure> {
    let mut code = Vec::new();
    let mut cargo = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((kind, message)) = diagnostic(line) else {
            continue;
        };
        let place = lines.next_if(|line| line.trim_start().starts_with("--> "));
        let mut trace = Trace {
            kind: Some(kind.to_owned()),
            message: message.to_owned(),
            ..Trace::default()
        };
        match place.map(|line| line.trim_start().trim_start_matches("--> ")) {
            Some(place) => {
                trace.push(normaliser, place, None);
                code.push(trace.failure(normaliser, &normaliser.path(place)));
            }
            None if !is_summary(message) => cargo.push(trace.failure(normaliser, "")),
            None => {}
        }
    }
    match code.is_empty() {
        true => cargo,
        false => code,
    }
}

/// `error[E0277]: cannot add` or `error: expected`.
fn diagnostic(line: &str) -> Option<(&str, &str)> {
    let (kind, message) = line.split_once(": ")?;
    let code = kind.strip_prefix("error")?;
    let is_code = code.is_empty() || (code.starts_with('[') && code.ends_with(']') && !code.contains(' '));
    is_code.then_some((kind, message))
}

/// Returns whether a message only repeats that something failed.
fn is_summary(message: &str) -> bool {
    const SUMMARY_PREFIXES: &[&str] = &[
        "could not compile",
        "aborting due to",
        "test failed",
        "doctest failed",
        "test run failed",
        "no tests to run",
        "command `",
        "build failed",
    ];
    SUMMARY_PREFIXES.iter().any(|start| message.starts_with(start))
        || message.split_once(' ').is_some_and(|(count, rest)| {
            count.bytes().all(|b| b.is_ascii_digit())
                && (rest.starts_with("target") || rest.starts_with("test"))
        })
}
