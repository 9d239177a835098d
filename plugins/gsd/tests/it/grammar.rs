//! Parser of the lines of units in PLAN.md and ROADMAP.md, which the pack writes and never reads.

/// A task as PLAN.md shows it.
#[derive(Debug, PartialEq, Eq)]
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
#[derive(Debug, PartialEq, Eq)]
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

/// The tasks that a PLAN.md shows, in its order.
pub(crate) fn parse_plan(text: &str) -> Vec<TaskLine> {
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
pub(crate) fn parse_roadmap(text: &str) -> Vec<SliceLine> {
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

/// Text before it was escaped.
pub(crate) fn unescape(text: &str) -> String {
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
