//! Output: results to standard output, errors to standard error. Colours are used only on a terminal, and never with
//! `NO_COLOR`.
//!
//! Components, workspaces and clients provide most of the printed text, so all output goes through this file. Terminal
//! control characters and invisible characters are removed from plain text, and escaped in JSON.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use tollgate_core::text;
use tollgate_sdk::ToolError;

// Marks for the start of colours in a line of a table. They are Unicode noncharacters, which are removed from cells.
const BOLD: char = '\u{fdd0}';
const DIMMED: char = '\u{fdd1}';
const GREEN: char = '\u{fdd2}';
const YELLOW: char = '\u{fdd3}';
const RED: char = '\u{fdd4}';
/// Style of each mark.
const MARKS: &[(char, Style)] = &[
    (BOLD, Style::new().bold()),
    (DIMMED, Style::new().dimmed()),
    (GREEN, AnsiColor::Green.on_default()),
    (YELLOW, AnsiColor::Yellow.on_default()),
    (RED, AnsiColor::Red.on_default()),
];
/// End mark of a styled part.
const STYLE_END: char = '\u{fdd5}';

/// Error if a result could not be written. A closed reader is not an error.
static WRITE_ERROR: OnceLock<std::io::Error> = OnceLock::new();

/// Prints a result. [`finish`] reports whether that failed.
pub(super) fn print(text: &str) {
    let _ = try_print(text);
}

/// Prints a result. Returns whether the reader is still there.
pub(super) fn try_print(text: &str) -> bool {
    let line = shown(text, is_colourful());
    is_written(writeln!(std::io::stdout().lock(), "{line}"))
}

/// Prints JSON text. Returns whether the reader is still there.
pub(super) fn try_print_json(json: &str) -> bool {
    is_written(writeln!(std::io::stdout().lock(), "{}", text::escape_json(json)))
}

/// Prints this program's own text unchanged, as whole lines.
pub(super) fn print_text(text: &str) {
    is_written(write!(std::io::stdout().lock(), "{text}"));
}

/// Returns whether a write succeeded. Stores the error otherwise.
pub(super) fn is_written(result: std::io::Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(err) => {
            if err.kind() != ErrorKind::BrokenPipe {
                let _ = WRITE_ERROR.set(err);
            }
            false
        }
    }
}

/// Finishes printing. Users who redirect a result into a file rely on the file being complete.
///
/// # Errors
/// If any printed output could not be written.
pub(super) fn finish() -> anyhow::Result<()> {
    is_written(std::io::stdout().lock().flush());
    match WRITE_ERROR.get() {
        None => Ok(()),
        Some(err) => Err(anyhow::anyhow!(
            "the result could not be written to standard output, so it is incomplete: {err}"
        )),
    }
}

/// Text made safe for a terminal.
fn shown(text: &str, is_colourful: bool) -> String {
    let is_kept = |c: char| c == '\t' || c == STYLE_END || MARKS.iter().any(|(mark, _)| *mark == c);
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_kept) {
        shown.push_str(&text::clean_prose(piece));
        let style = |mark: char| MARKS.iter().find(|(known, _)| *known == mark);
        match piece.chars().next_back().filter(|c| is_kept(*c)) {
            Some('\t') => shown.push('\t'),
            Some(mark) if is_colourful => {
                let codes =
                    style(mark).map_or_else(|| "\u{1b}[0m".to_owned(), |(_, style)| style.to_string());
                shown.push_str(&codes);
            }
            _ => {}
        }
    }
    shown
}

/// Returns whether the reader of the output is still there.
pub(super) fn is_open() -> bool {
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec::try_from(Duration::ZERO).ok();
    // A pipe without readers reports an error, and a closed terminal a hang-up.
    match poll(&mut fds, now.as_ref()) {
        Ok(_) => !fds
            .iter()
            .any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)),
        Err(_) => true,
    }
}

/// Prints JSON, in lines that people can read.
pub(super) fn print_json(value: &serde_json::Value) {
    try_print_json(&format!("{value:#}"));
}

/// Prints the error of a command, with all causes.
pub(super) fn error(err: &anyhow::Error) {
    let _ = writeln!(
        std::io::stderr().lock(),
        "tollgate: {}",
        text::clean_prose(&format!("{err:#}"))
    );
}

/// Prints an error about the command line, without terminal control characters.
pub(super) fn refuse(text: &str) {
    let _ = write!(std::io::stderr().lock(), "{}", text::clean_lines(text));
}

/// Prints the refusal of a call, as JSON to standard output or as text to standard error.
pub(super) fn refuse_call(refusal: &ToolError, as_json: bool) {
    if as_json {
        print_json(&json!({ "error": refusal }));
        return;
    }
    refuse(&format!("{}: {}\n", refusal.code, text::clean(&refusal.message)));
    if !refusal.remediation.is_empty() {
        warn(&text::clean(&refusal.remediation));
    }
}

/// Prints a warning.
pub(super) fn warn(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "tollgate: {}", text::clean_prose(text));
}

/// A whole table.
pub(super) fn table(titles: &[&str], rows: &[Vec<String>]) -> String {
    let table = Table::fit(titles, rows, &[]);
    let mut lines = vec![table.head()];
    lines.extend(rows.iter().map(|row| table.line(row)));
    lines.join("\n")
}

/// Table with columns as wide as their widest cell. The last column is not padded.
pub(super) struct Table<'a> {
    titles: &'a [&'a str],
    widths: Vec<usize>,
}

impl<'a> Table<'a> {
    /// Fits the columns to these rows and to minimum widths.
    pub(super) fn fit(titles: &'a [&'a str], rows: &[Vec<String>], least: &[usize]) -> Table<'a> {
        let widths = titles
            .iter()
            .enumerate()
            .map(|(column, title)| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                cells
                    .map(|cell| text::clean(cell).chars().count())
                    .chain([title.chars().count()])
                    .chain(least.get(column).copied())
                    .max()
                    .unwrap_or_default()
            })
            .collect();
        Table { titles, widths }
    }

    /// The titles.
    pub(super) fn head(&self) -> String {
        self.pad(self.titles.iter().map(|title| (*title, Some(BOLD))))
    }

    /// One row.
    pub(super) fn line(&self, cells: &[String]) -> String {
        let cells = cells.iter().zip(self.titles);
        self.pad(cells.map(|(cell, title)| (cell.as_str(), mark(title, cell))))
    }

    fn pad<'c>(&self, cells: impl Iterator<Item = (&'c str, Option<char>)>) -> String {
        let mut line = String::new();
        let mut gap = 0;
        for ((cell, mark), width) in cells.zip(&self.widths) {
            let cell = text::clean(cell);
            line.extend(std::iter::repeat_n(' ', gap));
            match mark.filter(|_| !cell.is_empty()) {
                Some(mark) => {
                    line.push(mark);
                    line.push_str(&cell);
                    line.push(STYLE_END);
                }
                None => line.push_str(&cell),
            }
            gap = width.saturating_sub(cell.chars().count()) + 2;
        }
        line.trim_end().to_owned()
    }
}

/// Colour mark for outcomes and states, by their meaning.
fn mark(title: &str, cell: &str) -> Option<char> {
    match (title, cell) {
        ("OUTCOME", "ok") | ("STATE", "CLOSED_SUCCESS" | "OPEN") => Some(GREEN),
        ("OUTCOME", "unknown") | ("STATE", "CLOSED_INTERRUPTED") => Some(YELLOW),
        ("OUTCOME" | "STATE", _) => Some(RED),
        ("TIME", _) => Some(DIMMED),
        _ => None,
    }
}

fn is_colourful() -> bool {
    static IS_COLOURFUL: OnceLock<bool> = OnceLock::new();
    *IS_COLOURFUL.get_or_init(|| {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_printed_steers_a_terminal() {
        let hostile = "a\u{1b}[31mb\u{9b}31mc\u{7f}\u{202e}d\u{e0041}\r\ne\tf";
        assert_eq!(shown(hostile, true), "a[31mb31mcd\ne\tf");
        assert_eq!(shown("ok 👩‍💻", false), "ok 👩‍💻");
    }

    #[test]
    fn a_cell_is_coloured_by_the_table_alone() {
        let rows = [vec!["ok".to_owned(), "x\u{fdd4}\u{1b}[31my\u{fdd5}".to_owned()]];
        let table = Table::fit(&["OUTCOME", "TOOL"], &rows, &[]);
        let line = table.line(&rows[0]);
        assert_eq!(shown(&line, false), "ok       x[31my");
        assert_eq!(shown(&line, true), "\u{1b}[32mok\u{1b}[0m       x[31my");
    }
}
