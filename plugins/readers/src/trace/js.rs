//! Errors of JavaScript, as V8, vitest and the inspector of Node write them.

use super::{Order, Trace, is_type};
use crate::normalise::Normaliser;

/// The first error in a text and the frames of its stack.
pub(crate) fn read(text: &str, normaliser: &Normaliser) -> Option<Trace> {
    // The test runner of Node wraps what a test threw.
    let wrapped = text
        .contains("[ERR_TEST_FAILURE]")
        .then(|| text.split_once("\n  cause: "))
        .flatten();
    let text = wrapped.map_or(text, |(_, cause)| cause);
    let mut trace = Trace {
        order: Order::TestLast,
        ..Trace::default()
    };
    for line in text.lines() {
        push(line, normaliser, &mut trace);
    }
    let head = text.lines().find_map(|line| Some((line, error_head(line)?)));
    if let Some((line, (kind, message))) = head {
        trace.kind = Some(kind.to_owned());
        trace.message = message_from(text, line, message);
    } else if trace.frames.is_empty() {
        return None;
    } else {
        trace.message = text
            .lines()
            .take_while(|line| !ends_message(line))
            .collect::<Vec<_>>()
            .join("\n");
    }
    Some(trace)
}

/// Adds the frame in a line, if there is one.
pub(crate) fn push(line: &str, normaliser: &Normaliser, trace: &mut Trace) {
    let line = line.trim();
    let marked = line.strip_prefix("at ").or_else(|| line.strip_prefix("❯ "));
    if let Some((path, function)) = marked.and_then(frame) {
        trace.push(normaliser, path, function);
    }
}

/// `RangeError [ERR_CODE]: message`: an error, and its message.
pub(crate) fn error_head(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let line = line.strip_prefix("Uncaught ").unwrap_or(line);
    let (kind, message) = line
        .split_once(": ")
        .or_else(|| Some((line.strip_suffix(':')?, "")))?;
    let kind = match kind.split_once(" [") {
        Some((kind, code)) if code.ends_with(']') => kind,
        Some(_) => return None,
        None => kind,
    };
    let named = kind.ends_with("Error") || kind.ends_with("Exception") || kind.ends_with("Rejection");
    (named && is_type(kind)).then_some((kind, message))
}

/// The rest of the first line, and what follows up to the stack.
fn message_from(text: &str, first: &str, rest: &str) -> String {
    let more = text
        .lines()
        .skip_while(|line| *line != first)
        .skip(1)
        .take_while(|line| !ends_message(line));
    std::iter::once(rest).chain(more).collect::<Vec<_>>().join("\n")
}

/// Returns whether a line starts a stack or an excerpt of code: `  > 15 |   if (b === 0)`.
pub(crate) fn ends_message(line: &str) -> bool {
    let line = line.trim_start();
    let numbered = || {
        let line = line.strip_prefix('>').unwrap_or(line).trim_start();
        crate::text::number(line).is_some_and(|(_, rest)| rest.trim_start().starts_with('|'))
    };
    line.starts_with("at ") || line.starts_with("❯ ") || numbered()
}

/// Position and function of a frame: `divide (src/calc.js:15:22)`, `divide src/calc.js:15:22` or only the
/// position.
pub(crate) fn frame(line: &str) -> Option<(&str, Option<&str>)> {
    let line = line.trim().trim_end_matches(" {").trim();
    let line = line.strip_prefix("async ").unwrap_or(line);
    let (function, place) = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some((function, place)) => (Some(function), place),
        None => match line.rsplit_once(' ') {
            Some((function, place)) => (Some(function), place),
            None => (None, line),
        },
    };
    let function = function.map(|function| function.split_once(" [as ").map_or(function, |(name, _)| name));
    is_place(place).then_some((place, function))
}

fn is_place(place: &str) -> bool {
    let ends_in_numbers = || {
        let (before, column) = place.rsplit_once(':')?;
        let (path, line) = before.rsplit_once(':').unwrap_or((before, column));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (digits(column) && (digits(line) || path.contains('.')) && !path.is_empty()).then_some(())
    };
    place.starts_with("node:") || matches!(place, "<anonymous>" | "native") || ends_in_numbers().is_some()
}
