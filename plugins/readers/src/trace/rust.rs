//! Panics, and errors that a Rust test returned.

use super::{Order, Trace, is_type};
use crate::normalise::Normaliser;

/// Prefixes of the standard library's panics. The rest differs with the values.
const PANIC_PREFIXES: &[&str] = &[
    "assertion `left == right` failed",
    "assertion `left != right` failed",
    "assertion `left matches right` failed",
    "assertion failed",
    "called `Option::unwrap()` on a `None` value",
    "called `Result::unwrap()` on an `Err` value",
    "called `Result::unwrap_err()` on an `Ok` value",
    "attempt to divide by zero",
    "attempt to calculate the remainder with a divisor of zero",
    "attempt to add with overflow",
    "attempt to subtract with overflow",
    "attempt to multiply with overflow",
    "attempt to negate with overflow",
    "index out of bounds",
    "range start index",
    "range end index",
    "slice index starts at",
    "byte index",
    "internal error: entered unreachable code",
    "not implemented",
    "not yet implemented",
    "already borrowed",
    "already mutably borrowed",
    "explicit panic",
];

/// The first panic in a text, or the error a test returned.
pub(crate) fn read(text: &str, normaliser: &Normaliser) -> Option<Trace> {
    panicked(text, normaliser)
        .or_else(|| returned(text))
        .or_else(|| should_panic(text))
}

fn panicked(text: &str, normaliser: &Normaliser) -> Option<Trace> {
    let mut lines = text.lines();
    let place = lines.find_map(|line| {
        let (thread, place) = line.split_once(" panicked at ")?;
        thread.trim_start().starts_with("thread '").then_some(place)
    })?;
    let mut trace = Trace::default();
    let (message, place) = match place.strip_suffix(':') {
        Some(place) => (until_note(lines), place),
        // As it was before Rust 1.73: `panicked at 'message', src/lib.rs:25:9`.
        None => {
            let (message, place) = place.rsplit_once(", ").unwrap_or((place, ""));
            (message.trim_matches('\'').to_owned(), place)
        }
    };
    trace.push(normaliser, place, None);
    backtrace(text, normaliser, &mut trace);
    trace.kind = Some(kind(&message));
    trace.order = Order::Panic;
    trace.message = message;
    Some(trace)
}

fn until_note<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let end = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("note: ") && !line.starts_with("stack backtrace:") && !line.starts_with("thread '")
    };
    lines.take_while(end).collect::<Vec<_>>().join("\n")
}

/// Type of a panic: its prefix, if the prefix is the same for all values.
fn kind(message: &str) -> String {
    let message = message.trim_start();
    match PANIC_PREFIXES.iter().find(|known| message.starts_with(*known)) {
        Some(known) => format!("panic: {known}"),
        None => "panic".to_owned(),
    }
}

/// `3: calc::ratio::divide`, then `at ./src/ratio.rs:11:5`.
fn backtrace(text: &str, normaliser: &Normaliser, trace: &mut Trace) {
    let mut lines = text
        .lines()
        .skip_while(|line| line.trim() != "stack backtrace:")
        .skip(1)
        .peekable();
    while let Some(line) = lines.next() {
        let Some((number, function)) = line.trim_start().split_once(": ") else {
            break;
        };
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            break;
        }
        // With the addresses of RUST_BACKTRACE=full.
        let function = match function.split_once(" - ") {
            Some((address, function)) if address.trim_start().starts_with("0x") => function,
            _ => function,
        };
        let place = lines.next_if(|line| line.trim_start().starts_with("at "));
        let place = place.and_then(|line| line.trim_start().strip_prefix("at "));
        trace.push(normaliser, place.unwrap_or(""), Some(function));
    }
}

/// `Error: ParseIntError { kind: InvalidDigit }`, which a test that returns a result prints.
fn returned(text: &str) -> Option<Trace> {
    let error = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("Error: "))?;
    let word = error
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
        .unwrap_or("");
    let named = is_type(word) && word.starts_with(|c: char| c.is_uppercase());
    Some(Trace {
        kind: Some(if named { word } else { "Error" }.to_owned()),
        message: error.to_owned(),
        ..Trace::default()
    })
}

fn should_panic(text: &str) -> Option<Trace> {
    let note = text.lines().find_map(|line| {
        let note = line.trim_start().strip_prefix("note: ")?;
        (note.starts_with("test did not panic") || note.starts_with("panic did not contain")).then_some(note)
    })?;
    Some(Trace {
        kind: Some("should panic".to_owned()),
        message: note.to_owned(),
        ..Trace::default()
    })
}
