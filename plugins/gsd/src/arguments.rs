//! How long arguments may be, and the checks that schemas cannot make.

use crate::model::{MilestoneId, SliceId, TaskId};
use crate::store;
use crate::violation::{Refusals, Violation};

/// Characters of an actor's name.
pub(crate) const NAME: usize = 100;
/// Characters of a workspace's name.
pub(crate) const WORKSPACE: usize = 200;
/// Characters of what is one line: a title, a criterion, a file.
pub(crate) const LINE: usize = 300;
/// Characters of prose.
pub(crate) const TEXT: usize = 8_192;
/// Entries of one list.
pub(crate) const ENTRIES: usize = 100;
/// Slices or tasks of one plan, and so of one milestone or slice: what ids can number.
pub(crate) const UNITS: usize = 999;
/// The longest time a claim may last: thirty days.
pub(crate) const TTL_SEC: u32 = 30 * 24 * 3600;

/// What makes text more than one line, or shows it as something it is not.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

impl Refusals {
    /// Wants one line that says something.
    pub(crate) fn line(&mut self, field: &str, text: &str, max: usize) {
        if text.trim().is_empty() {
            self.add(Violation::argument(field, "is blank"));
        } else if text.trim() != text {
            self.add(Violation::argument(field, "starts or ends with a blank"));
        }
        self.one_line(field, text, max);
    }

    /// Wants at most one line.
    pub(crate) fn one_line(&mut self, field: &str, text: &str, max: usize) {
        if text.contains(['\n', '\r', '\u{2028}', '\u{2029}']) {
            self.add(Violation::argument(field, "has a line break"));
        } else if text.chars().any(is_unprintable) {
            self.add(Violation::argument(field, "has a control character"));
        }
        self.length(field, text, max);
    }

    /// Wants prose that says something.
    pub(crate) fn text(&mut self, field: &str, text: &str) {
        if text.trim().is_empty() {
            self.add(Violation::argument(field, "is blank"));
        }
        self.prose(field, text);
    }

    /// Wants prose, possibly none.
    pub(crate) fn prose(&mut self, field: &str, text: &str) {
        if text
            .chars()
            .any(|c| is_unprintable(c) && !matches!(c, '\n' | '\r' | '\t'))
        {
            self.add(Violation::argument(field, "has a control character"));
        }
        self.length(field, text, TEXT);
    }

    /// Wants a list of lines.
    pub(crate) fn lines(&mut self, field: &str, entries: &[String]) {
        self.at_most(field, entries.len(), ENTRIES);
        for (index, entry) in entries.iter().enumerate().take(ENTRIES) {
            self.line(&format!("{field}[{index}]"), entry, LINE);
        }
    }

    /// Wants at most so many entries.
    pub(crate) fn at_most(&mut self, field: &str, count: usize, max: usize) {
        if count > max {
            self.add(Violation::argument(
                field,
                format!("has {count} entries, at most {max} are allowed"),
            ));
        }
    }

    fn length(&mut self, field: &str, text: &str, max: usize) {
        let count = text.chars().count();
        if count > max {
            self.add(Violation::argument(
                field,
                format!("has {count} characters, at most {max} are allowed"),
            ));
        }
    }

    /// Wants ids that are not written in two ways, such as T01 and T001, and not given twice.
    pub(crate) fn numbers<'a, I: Numbered + 'a>(
        &mut self,
        field: &str,
        new: impl IntoIterator<Item = &'a I>,
        known: &[&I],
    ) {
        let mut seen: Vec<&I> = Vec::new();
        for id in new {
            if seen.contains(&id) {
                self.add(Violation::argument(field, format!("names {} twice", id.text())));
            }
            let other = known.iter().copied().chain(seen.iter().copied());
            for other in other.filter(|other| *other != id && other.number() == id.number()) {
                self.add(Violation::argument(
                    field,
                    format!("writes {} as {}", other.text(), id.text()),
                ));
            }
            seen.push(id);
        }
    }

    /// Checks what is planned for a slice.
    pub(crate) fn slice_plan(&mut self, field: &str, plan: &store::slice::Plan) {
        self.line(&format!("{field}title"), &plan.title, LINE);
        self.one_line(&format!("{field}demo"), &plan.demo, LINE);
        self.prose(&format!("{field}goal"), &plan.goal);
        self.at_most(&format!("{field}depends"), plan.depends.len(), ENTRIES);
    }

    /// Checks what is planned for a task.
    pub(crate) fn task_plan(&mut self, field: &str, plan: &store::task::Plan) {
        self.line(&format!("{field}title"), &plan.title, LINE);
        self.prose(&format!("{field}description"), &plan.description);
        self.one_line(&format!("{field}estimate"), &plan.estimate, NAME);
        self.one_line(&format!("{field}verify"), &plan.verify, TEXT);
        self.lines(&format!("{field}files"), &plan.files);
        self.lines(&format!("{field}inputs"), &plan.inputs);
        self.lines(&format!("{field}expected_output"), &plan.expected_output);
    }
}

/// An id with a number in it.
pub(crate) trait Numbered: PartialEq {
    fn number(&self) -> u32;
    fn text(&self) -> &str;
}

macro_rules! numbered {
    ($($id:ty),+) => {$(
        impl Numbered for $id {
            fn number(&self) -> u32 {
                self.ordinal()
            }
            fn text(&self) -> &str {
                self.as_str()
            }
        }
    )+};
}
numbered!(MilestoneId, SliceId, TaskId);
