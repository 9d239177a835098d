//! The lines of PLAN.md and ROADMAP.md: rendering and parsing of units.
//!
//! `- [x] **T01: title**` is a task and `- [ ] **S01: title** risk:high depends:[S00]` a slice. The box is
//! ticked when the unit is closed, and the line below has its status. Titles are escaped so that no title can
//! end its own bold text or look like another unit. All other text is indented.

/// A task as PLAN.md shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLine {
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceLine {
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

/// The tasks that a PLAN.md shows, in its order.
#[must_use]
pub fn parse_plan(text: &str) -> Vec<TaskLine> {
    let mut lines = text.lines().peekable();
    let mut tasks = Vec::new();
    while let Some(line) = lines.next() {
        let Some(head) = Head::parse(line, 'T').filter(|head| head.rest.is_empty()) else {
            continue;
        };
        let status = lines.peek().and_then(|line| line.strip_prefix(STATUS));
        tasks.push(TaskLine {
            status: status.unwrap_or_default().to_owned(),
            id: head.id.to_owned(),
            title: head.title,
            closed: head.closed,
        });
    }
    tasks
}

/// The slices that a ROADMAP.md shows, in its order.
#[must_use]
pub fn parse_roadmap(text: &str) -> Vec<SliceLine> {
    let mut lines = text.lines().peekable();
    let mut slices = Vec::new();
    while let Some(line) = lines.next() {
        let Some(head) = Head::parse(line, 'S') else {
            continue;
        };
        let Some((risk, depends)) = head
            .rest
            .strip_prefix(" risk:")
            .and_then(|rest| rest.strip_suffix(']'))
            .and_then(|rest| rest.split_once(" depends:["))
        else {
            continue;
        };
        let demo = lines.next_if(|line| line.starts_with(DEMO));
        let status = lines.peek().and_then(|line| line.strip_prefix(STATUS));
        slices.push(SliceLine {
            status: status.unwrap_or_default().to_owned(),
            demo: unescape(demo.and_then(|line| line.strip_prefix(DEMO)).unwrap_or_default()),
            risk: risk.to_owned(),
            depends: depends
                .split(',')
                .filter(|id| !id.is_empty())
                .map(str::to_owned)
                .collect(),
            id: head.id.to_owned(),
            title: head.title,
            closed: head.closed,
        });
    }
    slices
}

impl TaskLine {
    /// The unit's line and its status line.
    #[must_use]
    pub fn render(&self) -> String {
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
    #[must_use]
    pub fn render(&self) -> String {
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

/// The part that tasks and slices share, and the rest of the line.
struct Head<'a> {
    closed: bool,
    id: &'a str,
    title: String,
    rest: &'a str,
}

impl Head<'_> {
    fn parse(line: &str, letter: char) -> Option<Head<'_>> {
        let (closed, rest) = match line.strip_prefix("- [x] **") {
            Some(rest) => (true, rest),
            None => (false, line.strip_prefix("- [ ] **")?),
        };
        let (id, rest) = rest.split_once(": ")?;
        let digits = id.strip_prefix(letter)?;
        if !matches!(digits.len(), 2 | 3) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let end = end_of_title(rest)?;
        Some(Head {
            closed,
            id,
            title: unescape(rest.get(..end)?),
            rest: rest.get(end + 2..)?,
        })
    }
}

/// Position of the first `**` without a backslash before it.
fn end_of_title(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '*' => {
                return text
                    .get(at..)
                    .is_some_and(|rest| rest.starts_with("**"))
                    .then_some(at);
            }
            _ => {}
        }
    }
    None
}

/// Escapes a line of text so that Markdown shows it unchanged, also at the start of a line. Line breaks
/// become spaces.
#[must_use]
pub fn escape(text: &str) -> String {
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

/// Reverses [`escape`].
#[must_use]
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            _ => out.push(c),
        }
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
