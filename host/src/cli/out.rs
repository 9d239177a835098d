//! Printing: results to standard output, what went wrong to standard error. Colours only where a person
//! looks, and never with `NO_COLOR`.

use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tollgate::text;

/// Prints a result. A reader that went away is not an error.
pub(super) fn print(text: &str) {
    let _ = try_print(text);
}

/// Prints a result, and says whether anybody still reads.
pub(super) fn try_print(text: &str) -> bool {
    writeln!(std::io::stdout().lock(), "{text}").is_ok()
}

/// Whether anybody can still read what is printed.
pub(super) fn is_open() -> bool {
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec::try_from(Duration::ZERO).ok();
    // A pipe without readers is in error; a terminal that went away has hung up.
    match poll(&mut fds, now.as_ref()) {
        Ok(_) => !fds
            .iter()
            .any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)),
        Err(_) => true,
    }
}

/// Prints JSON, in lines that people can read.
pub(super) fn print_json(value: &serde_json::Value) {
    print(&format!("{value:#}"));
}

/// Prints why a command failed, with all causes.
pub(super) fn error(err: &anyhow::Error) {
    let _ = writeln!(std::io::stderr().lock(), "tollgate: {err:#}");
}

/// Prints something that deserves attention.
pub(super) fn warn(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "tollgate: {text}");
}

/// A whole table.
pub(super) fn table(titles: &[&str], rows: &[Vec<String>]) -> String {
    let table = Table::fit(titles, rows, &[]);
    let mut lines = vec![table.head()];
    lines.extend(rows.iter().map(|row| table.line(row)));
    lines.join("\n")
}

/// Columns that are as wide as their widest cell; the last one is not padded.
pub(super) struct Table<'a> {
    titles: &'a [&'a str],
    widths: Vec<usize>,
}

impl<'a> Table<'a> {
    /// Wide enough for these rows, and at least so wide.
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
        self.pad(self.titles.iter().map(|title| (*title, Style::new().bold())))
    }

    /// One row.
    pub(super) fn line(&self, cells: &[String]) -> String {
        let cells = cells.iter().zip(self.titles);
        self.pad(cells.map(|(cell, title)| (cell.as_str(), style(title, cell))))
    }

    fn pad<'c>(&self, cells: impl Iterator<Item = (&'c str, Style)>) -> String {
        let mut line = String::new();
        let mut gap = 0;
        for ((cell, style), width) in cells.zip(&self.widths) {
            let cell = text::clean(cell);
            line.extend(std::iter::repeat_n(' ', gap));
            if !cell.is_empty() && style != Style::new() && is_colourful() {
                line.push_str(&format!("{style}{cell}{style:#}"));
            } else {
                line.push_str(&cell);
            }
            gap = width.saturating_sub(cell.chars().count()) + 2;
        }
        line.trim_end().to_owned()
    }
}

/// Outcomes and states are coloured by what they mean.
fn style(title: &str, cell: &str) -> Style {
    let colour = match (title, cell) {
        ("OUTCOME", "ok") | ("STATE", "CLOSED_SUCCESS" | "OPEN") => AnsiColor::Green,
        ("OUTCOME", "unknown") | ("STATE", "CLOSED_INTERRUPTED") => AnsiColor::Yellow,
        ("OUTCOME" | "STATE", _) => AnsiColor::Red,
        ("TIME", _) => return Style::new().dimmed(),
        _ => return Style::new(),
    };
    colour.on_default()
}

fn is_colourful() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
    })
}
