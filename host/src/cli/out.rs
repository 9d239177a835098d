//! Printing: results to standard output, what went wrong to standard error.

use std::io::Write as _;

/// Prints a result. A reader that went away is not an error.
pub(super) fn print(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
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

/// Columns that are as wide as their widest cell; the last one is not padded.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = head
        .iter()
        .enumerate()
        .map(|(column, title)| {
            let cells = rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count());
            cells.chain([title.chars().count()]).max().unwrap_or_default()
        })
        .collect();
    let line = |cells: &[&str]| {
        let padded: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut lines = vec![line(head)];
    lines.extend(
        rows.iter()
            .map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>())),
    );
    lines.join("\n")
}
