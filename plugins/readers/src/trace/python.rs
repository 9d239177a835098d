//! Tracebacks of Python, plain and as pytest writes them.

use super::{Trace, is_type};
use crate::normalise::Normaliser;

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

    fn line(&mut self, line: &str, normaliser: &Normaliser) {
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
        let function = rest.split_once(", in ").map(|(_, function)| function);
        self.trace
            .push(normaliser, path, function.filter(|_| self.functions));
        rest.starts_with(", line ")
    }

    /// `calc/ratio.py:9: ZeroDivisionError` or `calc/ratio.py:9: in divide`.
    fn placed(&mut self, line: &str, normaliser: &Normaliser) -> bool {
        let place = || {
            let (path, rest) = line.split_once(".py:")?;
            let (_, rest) = crate::text::number(rest)?;
            let rest = rest.strip_prefix(':')?.trim();
            (!path.starts_with([' ', '>', '#'])).then_some((path, rest))
        };
        let Some((path, rest)) = place() else {
            return false;
        };
        let function = rest.strip_prefix("in ").filter(|_| self.functions);
        self.trace.push(normaliser, &format!("{path}.py"), function);
        if is_type(rest) {
            self.placed_kind = Some(rest.to_owned());
        }
        true
    }

    fn finish(mut self) -> Trace {
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
