//! Limits of arguments, and the checks that only this pack makes.

use crate::model::{MilestoneId, SliceId, TaskId};
use crate::store;
use crate::violation::{Refusals, Violation};

/// Characters of an actor's name.
pub(crate) const MAX_NAME_CHARS: usize = 100;
/// Characters of a workspace's name.
pub(crate) const MAX_WORKSPACE_CHARS: usize = 200;
/// Characters of what is one line: a title, a criterion, a file.
pub(crate) const MAX_LINE_CHARS: usize = 300;
/// Characters of prose.
pub(crate) const MAX_TEXT_CHARS: usize = 8_192;
/// Entries of one list.
pub(crate) const MAX_ENTRIES: usize = 100;
/// Slices or tasks of one plan, and so of one milestone or slice: what ids can number.
pub(crate) const MAX_UNITS: usize = 999;
/// The longest time a claim may last: thirty days.
pub(crate) const MAX_TTL_SEC: u32 = 30 * 24 * 3600;

impl Refusals {
    /// Adds a reason that is not there yet.
    pub(crate) fn add(&mut self, violation: Violation) {
        self.extend([violation]);
    }

    /// Checks prose that is not blank.
    pub(crate) fn text(&mut self, field: &str, text: &str) {
        tollgate_kit::Refusals::text(self, field, text, MAX_TEXT_CHARS);
    }

    /// Checks prose, possibly none.
    pub(crate) fn prose(&mut self, field: &str, text: &str) {
        tollgate_kit::Refusals::prose(self, field, text, MAX_TEXT_CHARS);
    }

    /// Checks a list of lines.
    pub(crate) fn lines(&mut self, field: &str, entries: &[String]) {
        self.at_most(field, entries.len(), MAX_ENTRIES, "entries");
        for (index, entry) in entries.iter().enumerate().take(MAX_ENTRIES) {
            self.line(&format!("{field}[{index}]"), entry, MAX_LINE_CHARS);
        }
    }

    /// Checks ids that are not written in two ways, such as T01 and T001, and not given twice.
    pub(crate) fn numbers<'a, I: Numbered + 'a>(
        &mut self,
        field: &str,
        new: impl IntoIterator<Item = &'a I>,
        known: &[&I],
    ) {
        let mut seen: Vec<&I> = Vec::new();
        for id in new {
            if seen.contains(&id) {
                self.fault(field, format!("names {} twice", id.text()));
            }
            let other = known.iter().copied().chain(seen.iter().copied());
            for other in other.filter(|other| *other != id && other.number() == id.number()) {
                let (id, other) = (id.text(), other.text());
                self.fault(field, format!("spells {other} as {id}; use {other}"));
            }
            seen.push(id);
        }
    }

    /// Checks what is planned for a milestone.
    pub(crate) fn milestone_plan(&mut self, plan: &store::milestone::Plan) {
        self.line("title", &plan.title, MAX_LINE_CHARS);
        self.prose("vision", &plan.vision);
        self.lines("success_criteria", &plan.success_criteria);
        self.lines("key_risks", &plan.key_risks);
        self.lines("definition_of_done", &plan.definition_of_done);
        self.at_most("depends_on", plan.depends_on.len(), MAX_ENTRIES, "entries");
    }

    /// Checks what is planned for a slice.
    pub(crate) fn slice_plan(&mut self, field: &str, plan: &store::slice::Plan) {
        self.line(&format!("{field}title"), &plan.title, MAX_LINE_CHARS);
        self.one_line(&format!("{field}demo"), &plan.demo, MAX_LINE_CHARS);
        self.prose(&format!("{field}goal"), &plan.goal);
        self.at_most(
            &format!("{field}depends"),
            plan.depends.len(),
            MAX_ENTRIES,
            "entries",
        );
    }

    /// Checks what is planned for a task.
    pub(crate) fn task_plan(&mut self, field: &str, plan: &store::task::Plan) {
        self.line(&format!("{field}title"), &plan.title, MAX_LINE_CHARS);
        self.prose(&format!("{field}description"), &plan.description);
        self.one_line(&format!("{field}estimate"), &plan.estimate, MAX_NAME_CHARS);
        self.one_line(&format!("{field}verify"), &plan.verify, MAX_TEXT_CHARS);
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
