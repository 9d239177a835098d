//! Tracebacks of Python, plain and as pytest writes them.

use super::{Order, Trace, is_type};
use crate::normalise::Normaliser;
use crate::source::is_balanced;

/// All frames of a chain of exceptions, and the type and message of the last one.
pub(crate) fn read(text: &str, normaliser: &Normaliser) -> Option<Trace> {
    let mut reading = Reading {
        functions: true,
        ..Reading::default()
    };
    reading.all(text, normaliser);
    (!reading.trace.frames.is_empty()).then(|| reading.finish())
}

/// Trace of a pytest section. Function names are dropped, because not every style has them: `--tb=short` does
/// not change a failure.
pub(crate) fn read_pytest(text: &str, normaliser: &Normaliser) -> Trace {
    let mut reading = Reading::default();
    reading.all(text, normaliser);
    reading.finish()
}

#[derive(Default)]
struct Reading {
    trace: Trace,
    functions: bool,
    /// True if the next unindented line is the exception, after `Traceback`.
    expects_exception: bool,
    /// True if the following lines belong to the message.
    in_message: bool,
    /// The lines that pytest marks with `E`, of the last exception.
    marked: Vec<String>,
    /// The line that pytest marks with `>`, before its position.
    pointed: Option<String>,
    /// True if the source of the last position follows.
    is_source: bool,
    /// Text after the position of pytest's last frame.
    placed_kind: Option<String>,
}

impl Reading {
    fn all(&mut self, text: &str, normaliser: &Normaliser) {
        let mut was_marked = false;
        for line in text.lines().take_while(|line| !is_captured(line)) {
            let line = without_group_bar(line);
            let marked = line.strip_prefix("E ").or((line == "E").then_some(""));
            if let Some(marked) = marked {
                if !was_marked {
                    self.marked.clear();
                }
                self.marked.push(marked.trim().to_owned());
                self.quoted_file(marked, normaliser);
            } else {
                self.line(line, normaliser);
            }
            was_marked = marked.is_some();
        }
    }

    /// A line of source below its position. Some versions of Python print all lines of a statement, others the first.
    fn source(&mut self, line: &str) -> bool {
        let text = line.trim();
        let is_code = line.starts_with("    ") && !text.is_empty() && !text.starts_with("File \"");
        if !std::mem::take(&mut self.is_source) || !is_code {
            return false;
        }
        let is_mark = text.chars().all(|c| matches!(c, '^' | '~' | ' '));
        if let Some(place) = self.trace.places.last_mut().filter(|_| !is_mark) {
            let printed = place.printed.get_or_insert_default();
            if !printed.is_empty() {
                printed.push(' ');
            }
            printed.push_str(text);
            self.is_source = !is_balanced(printed);
        }
        true
    }

    /// Adds a frame, whose source may follow.
    fn push(&mut self, normaliser: &Normaliser, place: &str, function: Option<&str>) {
        let known = self.trace.places.len();
        self.trace.push(normaliser, place, function);
        let pointed = self.pointed.take();
        let added = self.trace.places.get_mut(known..).and_then(<[_]>::first_mut);
        self.is_source = added.is_some() && pointed.is_none();
        if let Some(place) = added {
            place.printed = pointed;
        }
    }

    fn line(&mut self, line: &str, normaliser: &Normaliser) {
        if let Some(pointed) = line.strip_prefix('>') {
            self.pointed = Some(pointed.trim().to_owned());
        }
        if self.source(line) {
            return;
        }
        if line.starts_with("Traceback (most recent call last)") {
            (self.expects_exception, self.in_message) = (true, false);
        } else if self.quoted_file(line, normaliser)
            || self.placed(line, normaliser)
            || (self.in_message && ends_message(line))
        {
            self.in_message = false;
        } else if self.in_message {
            self.trace.message.push('\n');
            self.trace.message.push_str(line);
        } else if self.expects_exception && !line.is_empty() && !line.starts_with(' ') {
            let (kind, message) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
            if is_type(kind) {
                self.trace.kind = Some(kind.to_owned());
                self.trace.message = message.to_owned();
                (self.expects_exception, self.in_message) = (false, true);
            }
        }
    }

    /// `  File "calc/ratio.py", line 9, in divide`.
    fn quoted_file(&mut self, line: &str, normaliser: &Normaliser) -> bool {
        let Some((path, rest)) = line
            .trim_start()
            .strip_prefix("File \"")
            .and_then(|rest| rest.split_once('"'))
        else {
            return false;
        };
        let (number, function) = match rest.split_once(", in ") {
            Some((number, function)) => (number, Some(function)),
            None => (rest, None),
        };
        let place = match number.strip_prefix(", line ").map(str::trim) {
            Some(number) => format!("{path}:{number}"),
            None => path.to_owned(),
        };
        let function = function.filter(|_| self.functions);
        self.push(normaliser, &place, function);
        rest.starts_with(", line ")
    }

    /// `calc/ratio.py:9: ZeroDivisionError` or `calc/ratio.py:9: in divide`.
    fn placed(&mut self, line: &str, normaliser: &Normaliser) -> bool {
        let place = || {
            let (path, rest) = line.split_once(".py:")?;
            let (number, rest) = crate::text::number(rest)?;
            let rest = rest.strip_prefix(':')?.trim();
            (!path.starts_with([' ', '>', '#'])).then_some((path, number, rest))
        };
        let Some((path, number, rest)) = place() else {
            return false;
        };
        let function = rest.strip_prefix("in ").filter(|_| self.functions);
        self.push(normaliser, &format!("{path}.py:{number}"), function);
        if is_type(rest) {
            self.placed_kind = Some(rest.to_owned());
        }
        true
    }

    fn finish(mut self) -> Trace {
        self.trace.order = Order::TestFirst;
        if let Some(first) = self.marked.first() {
            let (kind, message) = match first.split_once(": ") {
                Some((kind, message)) if is_type(kind) => (Some(kind.to_owned()), message.to_owned()),
                _ if first.starts_with("assert ") => (Some("AssertionError".to_owned()), first.clone()),
                _ => (is_type(first).then(|| first.clone()), first.clone()),
            };
            let syntax_error = self.marked.iter().find(|line| line.starts_with("SyntaxError: "));
            self.trace.message = std::iter::once(message)
                .chain(self.marked.iter().skip(1).cloned())
                .collect::<Vec<_>>()
                .join("\n");
            self.trace.kind = self.placed_kind.take().or(kind);
            if let Some(line) = syntax_error {
                self.trace.kind = Some("SyntaxError".to_owned());
                self.trace.message = line.trim_start_matches("SyntaxError: ").to_owned();
            }
        }
        self.trace
    }
}

/// The lines of an exception group are indented behind a bar.
fn without_group_bar(line: &str) -> &str {
    let inner = line.trim_start();
    match inner.strip_prefix("| ").or_else(|| inner.strip_prefix("+ ")) {
        Some(inner) if line.starts_with("  ") => inner,
        _ => line,
    }
}

/// Returns whether captured output follows: `---- Captured stdout call ----`, or `Stdout:` with `unittest
/// --buffer`.
fn is_captured(line: &str) -> bool {
    (line.starts_with("---") && line.contains(" Captured ")) || matches!(line, "Stdout:" | "Stderr:")
}

fn ends_message(line: &str) -> bool {
    line.is_empty()
        || line.starts_with("The above exception")
        || line.starts_with("During handling of")
        || line.starts_with("----")
        || line.starts_with("====")
}
