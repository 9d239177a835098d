//! Output for people: the only module that writes to standard output.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};

/// Width of wrapped prose, in columns.
const WIDTH: usize = 96;

/// Standard output, in colour only on a terminal.
pub(crate) struct Console {
    colour: bool,
}

impl Console {
    pub(crate) fn new() -> Console {
        Console {
            colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    /// The heading of a part.
    pub(crate) fn scene(&self, title: &str) {
        self.lines(&format!("\n{}", self.styled("1", &format!("== {title} =="))));
    }

    /// Prints the prose between calls.
    pub(crate) fn say(&self, prose: &str) {
        self.lines(&format!("\n{}", wrapped(prose)));
    }

    /// Prints a call before the demo makes it.
    pub(crate) fn call(&self, who: &str, tool: &str, arguments: &str) {
        let tool = self.styled("1", tool);
        self.lines(&format!("\n{who}: {tool} {arguments}"));
    }

    /// Prints the result of a call.
    pub(crate) fn done(&self, summary: &str) {
        self.lines(format!("    {} {summary}", self.styled("32", "ok")).trim_end());
    }

    /// Prints the first line of a refusal.
    pub(crate) fn refused(&self, code: &str, message: &str) {
        self.lines(&format!("    {} {code}: {message}", self.styled("33", "REFUSED")));
    }

    /// Prints a detail of a call, under a label.
    pub(crate) fn detail(&self, label: &str, text: impl Display) {
        self.lines(&format!("      {label}: {text}"));
    }

    /// Prints text unchanged. A closed standard output is not an error.
    pub(crate) fn lines(&self, text: &str) {
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }

    /// Prints the reason for the demo's failure, on standard error.
    pub(crate) fn failure(&self, err: &anyhow::Error) {
        let _ = writeln!(std::io::stderr().lock(), "\ndemo failed: {err:#}");
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Prose in lines of at most [`WIDTH`] columns.
fn wrapped(prose: &str) -> String {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in prose.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n")
}
