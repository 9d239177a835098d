//! Panics of Go, and what a test of Go logged.

use super::Trace;
use crate::normalise::Normaliser;
use crate::text;

/// The first panic in a text with the goroutine it was in, or what the test logged.
pub(crate) fn read(text: &str, normaliser: &Normaliser) -> Option<Trace> {
    let panic = text.lines().find_map(|line| {
        let fatal = line
            .strip_prefix("fatal error: ")
            .map(|message| ("fatal error", message));
        line.strip_prefix("panic: ")
            .map(|message| ("panic", message))
            .or(fatal)
    });
    let mut trace = Trace::default();
    match panic {
        Some((kind, message)) => {
            let message = message
                .split_once(" [recovered")
                .map_or(message, |(message, _)| message);
            let runtime = message.starts_with("runtime error: ");
            trace.kind = Some(if runtime { "runtime error" } else { kind }.to_owned());
            trace.message = message.to_owned();
            goroutine(text, normaliser, &mut trace);
        }
        None => logged(text, normaliser, &mut trace),
    }
    (!trace.is_empty()).then_some(trace)
}

/// The frames of the first goroutine. The others depend on how threads were scheduled.
fn goroutine(text: &str, normaliser: &Normaliser, trace: &mut Trace) {
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with("goroutine "))
        .skip(1)
        .peekable();
    while let Some(line) = lines.next_if(|line| !line.trim().is_empty() && !line.starts_with("FAIL")) {
        let Some(place) = lines.next_if(|line| line.starts_with('\t')) else {
            continue;
        };
        let place = place.trim();
        let path = place.rsplit_once(" +0x").map_or(place, |(path, _)| path);
        let function = without_arguments(line);
        if !function.starts_with("created by ") && function != "panic" {
            trace.push(normaliser, path, Some(function));
        }
    }
}

/// `example.com/calc/ratio.Divide(0x51b?, 0x4b7dc0?)` without what is in the last parentheses.
fn without_arguments(function: &str) -> &str {
    let open = function
        .strip_suffix(')')
        .and_then(|function| function.rfind('('));
    open.and_then(|open| function.get(..open)).unwrap_or(function)
}

/// `    calc_test.go:11: Add(2, 3) = 6, want 5`, and the indented lines behind it.
fn logged(text: &str, normaliser: &Normaliser, trace: &mut Trace) {
    let mut message = Vec::new();
    for line in text.lines() {
        if let Some((path, said)) = log_line(line) {
            trace.push(normaliser, path, None);
            message.push(said);
        } else if !message.is_empty() && line.starts_with("        ") {
            message.push(line.trim());
        }
    }
    trace.message = message.join("\n");
}

/// The file and the text of a line that a test logged.
pub(crate) fn log_line(line: &str) -> Option<(&str, &str)> {
    let (path, rest) = line.strip_prefix("    ")?.trim_start().split_once(':')?;
    let (_, said) = text::number(rest)?;
    (path.ends_with(".go") && !path.contains(' ')).then_some((path, said.strip_prefix(':')?.trim()))
}
