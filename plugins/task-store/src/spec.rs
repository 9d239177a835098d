//! Spec of a task, in parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::{ENTRIES, ENTRY, JSON, TEXT};
use crate::error::Refusals;
use crate::spec_markdown;

/// Spec of a task, in parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Spec {
    /// Goal: the result to achieve.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TEXT))]
    pub goal: Option<String>,
    /// In scope: the work that belongs to the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES))]
    pub scope_in: Vec<String>,
    /// Out of scope: the work that does not belong to the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES))]
    pub scope_out: Vec<String>,
    /// Inputs that the task needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES))]
    pub inputs: Vec<String>,
    /// Outputs that the task produces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES))]
    pub outputs: Vec<String>,
    /// Acceptance criteria by which the result is judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES))]
    pub acceptance: Vec<String>,
    /// Risks and their mitigations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ENTRIES))]
    pub risks: Vec<String>,
}

impl Spec {
    /// Reads the parts under Markdown headings. Given parts override them.
    pub(crate) fn read(markdown: &str, given: Spec) -> Spec {
        let parsed = spec_markdown::parse(markdown);
        let list = |given: Vec<String>, parsed| if given.is_empty() { parsed } else { given };
        Spec {
            goal: given.goal.or(parsed.goal),
            scope_in: list(given.scope_in, parsed.scope_in),
            scope_out: list(given.scope_out, parsed.scope_out),
            inputs: list(given.inputs, parsed.inputs),
            outputs: list(given.outputs, parsed.outputs),
            acceptance: list(given.acceptance, parsed.acceptance),
            risks: list(given.risks, parsed.risks),
        }
    }

    /// Checks the size of each part and of the whole.
    pub(crate) fn check(&self, refusals: &mut Refusals) {
        refusals.optional_text("spec.goal", self.goal.as_deref(), TEXT);
        for (part, entries) in self.lists() {
            let field = format!("spec.{part}");
            refusals.at_most(&field, entries.len(), ENTRIES, "entries");
            for (index, entry) in entries.iter().enumerate() {
                refusals.text(&format!("{field}[{index}]"), entry, ENTRY);
            }
        }
        let bytes = self
            .lists()
            .iter()
            .flat_map(|(_, entries)| *entries)
            .map(String::len)
            .sum();
        refusals.at_most("spec", bytes, JSON, "bytes");
    }

    /// A warning for each missing part.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let goal = self.goal.is_none().then_some("goal");
        let lists = self.lists().into_iter().filter(|(_, entries)| entries.is_empty());
        goal.into_iter()
            .chain(lists.map(|(part, _)| part))
            .map(|part| format!("the spec has no {part}; add a heading for it, or pass spec.{part}"))
            .collect()
    }

    fn lists(&self) -> [(&'static str, &[String]); 6] {
        [
            ("scope_in", &self.scope_in),
            ("scope_out", &self.scope_out),
            ("inputs", &self.inputs),
            ("outputs", &self.outputs),
            ("acceptance", &self.acceptance),
            ("risks", &self.risks),
        ]
    }
}
