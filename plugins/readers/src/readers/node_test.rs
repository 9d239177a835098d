//! `node --test` with the reporters `spec` and `dot`.

use crate::normalise::Normaliser;
use crate::report::{Counts, Findings};
use crate::text;
use crate::trace::{Trace, js};

/// Returns whether a text is output of Node's test runner.
pub(super) fn recognises(text: &str) -> bool {
    let tests = text.lines().any(|line| line.starts_with("ℹ tests "));
    let marks = text
        .lines()
        .any(|line| entry(line).is_some() && line.ends_with("ms)"));
    tests || marks
}

pub(super) fn read(text: &str, normaliser: &Normaliser) -> Findings {
    let mut findings = Findings::default();
    let repeated = text
        .lines()
        .rev()
        .find(|line| matches!(line.trim(), "✖ failing tests:" | "Failed tests:"));
    let at_end = repeated
        .and_then(|header| text.rsplit_once(header))
        .map(|(_, entries)| entries);
    entries(at_end.unwrap_or(text), normaliser, &mut findings);
    // A file that cannot be loaded fails as a test. Only its standard error has the reason.
    uncaught(text, normaliser, &mut findings);
    let counted = |word: &str| {
        let line = text
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("ℹ ")?.strip_prefix(word)?.strip_prefix(' '));
        line.and_then(text::number).map(|(number, _)| number)
    };
    if let Some(total) = counted("tests") {
        let of = |word| counted(word).unwrap_or(0);
        let counts = Counts::new(
            of("pass"),
            of("fail") + of("cancelled"),
            of("skipped") + of("todo"),
        );
        (findings.counts, findings.complete) = (
            Counts {
                total: Some(total),
                ..counts
            },
            true,
        );
    }
    findings
}

/// The name in `  ✖ doubles (0.339564ms)`, with its indentation.
fn entry(line: &str) -> Option<(usize, &str)> {
    let name = line.trim_start().strip_prefix("✖ ")?.trim_end();
    let (name, time) = name.rsplit_once(" (")?;
    let (time, directive) = time.split_once(')')?;
    let timed = time
        .strip_suffix("ms")
        .is_some_and(|time| time.parse::<f64>().is_ok());
    (timed && directive.is_empty()).then_some((text::indent(line), name))
}

fn entries(text: &str, normaliser: &Normaliser, findings: &mut Findings) {
    let mut file = "";
    let mut current: Option<(usize, String, String)> = None;
    let mut finish = |test: Option<(usize, String, String)>| {
        // A suite fails with its tests and adds no information.
        let Some((_, name, body)) = test.filter(|(_, _, body)| !body.trim().is_empty()) else {
            return;
        };
        let trace = js::read(&body, normaliser).unwrap_or_else(|| Trace {
            message: body,
            ..Trace::default()
        });
        findings.failing.push(trace.failure(normaliser, &name));
    };
    for line in text.lines() {
        if let Some(place) = line.strip_prefix("test at ") {
            finish(current.take());
            file = place;
        } else if let Some((indent, name)) = entry(line) {
            finish(current.take());
            let file = std::mem::take(&mut file);
            let path = normaliser.path(file);
            let whole = path.is_empty() || normaliser.path(name) == path;
            let name = if whole {
                name.to_owned()
            } else {
                format!("{path} > {name}")
            };
            current = Some((indent, name, String::new()));
        } else if let Some((indent, _, body)) = &mut current {
            if !line.trim().is_empty() && text::indent(line) <= *indent {
                finish(current.take());
            } else {
                body.push_str(line);
                body.push('\n');
            }
        }
    }
    finish(current);
}

/// Errors that ended a file, as Node prints them: `SyntaxError: …` at the start of a line.
pub(super) fn uncaught(text: &str, normaliser: &Normaliser, findings: &mut Findings) {
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((kind, message)) = js::error_head(line).filter(|_| !line.starts_with(' ')) else {
            continue;
        };
        let mut trace = Trace {
            kind: Some(kind.to_owned()),
            message: message.to_owned(),
            ..Trace::default()
        };
        let mut stack = 0;
        while let Some(frame) = lines.next_if(|line| line.starts_with("    at ")) {
            js::push(frame, normaliser, &mut trace);
            stack += 1;
        }
        if stack > 0 {
            findings.errors.push(trace.failure(normaliser, ""));
        }
    }
}
