//! The lines of units in PLAN.md and ROADMAP.md.
//!
//! `- [x] **T01: title**` is a task and `- [ ] **S01: title** risk:high depends:[S00]` a slice. The box is
//! ticked when the unit is closed, and the line below has its status. Titles are escaped so that no title can
//! end its own bold text or look like another unit. All other text is indented.

/// A task as PLAN.md shows it.
#[derive(Debug)]
pub(crate) struct TaskLine {
    /// Id of the task, for example `T01`.
    pub id: String,
    /// Title of the unit.
    pub title: String,
    /// True if the box is ticked.
    pub closed: bool,
    /// `pending`, `in_progress`, `complete` or `skipped`.
    pub status: String,
}

/// A slice as ROADMAP.md shows it.
#[derive(Debug)]
pub(crate) struct SliceLine {
    /// Id of the slice, for example `S01`.
    pub id: String,
    /// Title of the unit.
    pub title: String,
    /// True if the box is ticked.
    pub closed: bool,
    /// `low`, `medium` or `high`.
    pub risk: String,
    /// Slices to close before this slice starts.
    pub depends: Vec<String>,
    /// Demonstrable result of the slice.
    pub demo: String,
    /// `pending`, `in_progress`, `complete` or `skipped`.
    pub status: String,
}

const DEMO: &str = "  > After this: ";
const STATUS: &str = "  - Status: ";

impl TaskLine {
    /// The unit's line and its status line.
    pub(crate) fn render(&self) -> String {
        format!(
            "- [{}] **{}: {}**\n{STATUS}{}\n",
            tick(self.closed),
            self.id,
            escape(&self.title),
            self.status
        )
    }
}

impl SliceLine {
    /// The unit's line with demo and status lines.
    pub(crate) fn render(&self) -> String {
        format!(
            "- [{}] **{}: {}** risk:{} depends:[{}]\n{DEMO}{}\n{STATUS}{}\n",
            tick(self.closed),
            self.id,
            escape(&self.title),
            self.risk,
            self.depends.join(","),
            escape(&self.demo),
            self.status
        )
    }
}

const fn tick(closed: bool) -> char {
    if closed { 'x' } else { ' ' }
}

/// Escapes a line of text so that Markdown shows it unchanged, also at the start of a line. Line breaks
/// become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let is_mark = match c {
            '\\' | '*' | '`' | '[' | ']' | '<' | '>' | '|' | '~' | '#' | '&' => true,
            // Within a word the character has no meaning in Markdown.
            '_' => !(in_word(before) && in_word(chars.peek().copied())),
            // Characters that start lists and underlined headings, or follow a list's number.
            '-' | '+' | '=' => out.trim_start().is_empty(),
            '.' | ')' => !out.is_empty() && out.chars().all(|c| c.is_ascii_digit()),
            _ => false,
        };
        match c {
            _ if is_mark => out.extend(['\\', c]),
            _ if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => out.push(' '),
            _ => out.push(c),
        }
        before = Some(c);
    }
    out
}

/// Prose with every line indented, so that no text is at the start of a line.
pub(crate) fn indent(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines = text.trim_end().lines().map(|line| match line.trim_end() {
        "" => "\n".to_owned(),
        line => format!("  {line}\n"),
    });
    lines.collect()
}

#[cfg(test)]
#[path = "grammar_tests.rs"]
mod tests;
