//! The bounds of whole records, whichever tool changed them.

use std::collections::BTreeSet;

use crate::error::{Reason, Refusals};
use crate::limits::{
    MAX_CHECKLIST, MAX_ENTRIES, MAX_ENTRY_CHARS, MAX_NAME_CHARS, MAX_TEXT_CHARS, MAX_TITLE_CHARS,
};
use crate::record::{Meta, Node, Root, Step, Template, TemplateStep};

impl Refusals {
    /// Checks a plan or task within its bounds.
    pub(crate) fn root(&mut self, root: &Root) {
        self.meta(root.meta());
        match root {
            Root::Task(task) => self.optional_text("domain", task.domain.as_deref(), MAX_NAME_CHARS),
            Root::Plan(plan) => {
                self.optional_text("contract", plan.contract.as_deref(), MAX_TEXT_CHARS);
                self.data("contract_data", plan.contract_data.as_ref());
                self.optional_text("doc", plan.doc.as_deref(), MAX_TEXT_CHARS);
                self.texts("steps", &plan.steps, MAX_CHECKLIST, MAX_ENTRY_CHARS);
            }
        }
    }

    fn meta(&mut self, meta: &Meta) {
        self.text("title", &meta.title, MAX_TITLE_CHARS);
        self.optional_text("description", meta.description.as_deref(), MAX_TEXT_CHARS);
        self.optional_text("context", meta.context.as_deref(), MAX_TEXT_CHARS);
        self.texts("tags", &meta.tags, MAX_ENTRIES, MAX_NAME_CHARS);
        self.texts("depends_on", &meta.depends_on, MAX_ENTRIES, MAX_NAME_CHARS);
        self.once("tags", &meta.tags);
        self.once("depends_on", &meta.depends_on);
    }

    /// Checks a step within its bounds. `at` says where the call has it, such as `steps[3].`.
    pub(crate) fn step(&mut self, at: &str, step: &Step) {
        self.text(&format!("{at}title"), &step.title, MAX_TITLE_CHARS);
        self.texts(
            &format!("{at}success_criteria"),
            &step.success_criteria,
            MAX_ENTRIES,
            MAX_ENTRY_CHARS,
        );
        self.texts(&format!("{at}tests"), &step.tests, MAX_ENTRIES, MAX_ENTRY_CHARS);
        self.texts(
            &format!("{at}blockers"),
            &step.blockers,
            MAX_ENTRIES,
            MAX_ENTRY_CHARS,
        );
        self.optional_text(
            &format!("{at}reason"),
            step.block_reason.as_deref(),
            MAX_ENTRY_CHARS,
        );
    }

    /// Checks a node within its bounds.
    pub(crate) fn node(&mut self, node: &Node) {
        self.text("title", &node.title, MAX_TITLE_CHARS);
        self.optional_text("description", node.description.as_deref(), MAX_TEXT_CHARS);
        self.optional_text("context", node.context.as_deref(), MAX_TEXT_CHARS);
        self.texts("tags", &node.tags, MAX_ENTRIES, MAX_NAME_CHARS);
    }

    /// Checks a template within its bounds.
    pub(crate) fn template(&mut self, template: &Template) {
        self.text("name", &template.name, MAX_NAME_CHARS);
        self.text("description", &template.description, MAX_ENTRY_CHARS);
        self.at_most("tasks", template.tasks.len(), MAX_ENTRIES, "entries");
        if template.tasks.is_empty() {
            self.add(Reason::input("steps", "is empty"));
        }
        let mut steps = 0;
        for (place, task) in template.tasks.iter().enumerate() {
            self.text(&format!("task {place}"), &task.title, MAX_TITLE_CHARS);
            for step in &task.steps {
                let at = format!("steps[{steps}].");
                steps += 1;
                self.template_step(&at, step);
            }
        }
    }

    fn template_step(&mut self, at: &str, step: &TemplateStep) {
        self.text(&format!("{at}title"), &step.title, MAX_TITLE_CHARS);
        self.filled(&format!("{at}success_criteria"), &step.success_criteria);
        self.filled(&format!("{at}tests"), &step.tests);
    }

    /// Checks that a list is neither empty nor too long.
    pub(crate) fn filled(&mut self, field: &str, entries: &[String]) {
        if entries.is_empty() {
            self.add(Reason::input(field, "is empty, so nothing would gate the step"));
        }
        self.texts(field, entries, MAX_ENTRIES, MAX_ENTRY_CHARS);
    }

    fn once(&mut self, field: &str, entries: &[String]) {
        let mut seen = BTreeSet::new();
        for (place, entry) in entries.iter().enumerate() {
            if !seen.insert(entry) {
                self.add(Reason::input(format!("{field}[{place}]"), "is listed twice"));
            }
        }
    }
}
