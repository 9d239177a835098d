//! Spec of a task, in parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use tollgate_kit::json_bytes;

use crate::arguments::{MAX_DEPTH, MAX_ENTRIES, MAX_ENTRY_CHARS, MAX_JSON_BYTES, MAX_TEXT_CHARS};
use crate::error::Refusals;
use crate::spec_markdown;

fn lists_and_objects() -> Json {
    json!({"type": ["array", "object"]})
}

/// Material of a spec that is a list or an object, kept as given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Material(Json);

impl Material {
    /// Returns whether the part holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.0 {
            Json::Null => true,
            Json::Array(entries) => entries.is_empty(),
            Json::Object(members) => members.is_empty(),
            _ => false,
        }
    }

    /// The part as JSON. A missing part is an empty list.
    pub(crate) fn to_json(&self) -> Json {
        match &self.0 {
            Json::Null => json!([]),
            part => part.clone(),
        }
    }

    /// Bytes of the part: those of the texts of a list, else those of its JSON.
    fn bytes(&self) -> usize {
        match &self.0 {
            Json::Array(entries) => entries
                .iter()
                .map(|entry| entry.as_str().map_or_else(|| json_bytes(entry), str::len))
                .sum(),
            part => json_bytes(part),
        }
    }

    /// Adds a text to a list.
    pub(crate) fn push(&mut self, text: String) {
        match &mut self.0 {
            Json::Array(entries) => entries.push(text.into()),
            other => *other = json!([text]),
        }
    }

    /// Checks the kind and the size of the part, and each text of a list.
    fn check(&self, field: &str, refusals: &mut Refusals) {
        match &self.0 {
            Json::Null | Json::Object(_) => {}
            Json::Array(entries) => {
                refusals.at_most(field, entries.len(), MAX_ENTRIES, "entries");
                for (index, entry) in entries.iter().enumerate().take(MAX_ENTRIES) {
                    if let Json::String(text) = entry {
                        refusals.text(&format!("{field}[{index}]"), text, MAX_ENTRY_CHARS);
                    }
                }
            }
            _ => refusals.fault(field, "is neither a list nor an object"),
        }
        if depth(&self.0) > MAX_DEPTH {
            refusals.fault(field, format!("is nested deeper than {MAX_DEPTH} levels"));
        }
    }
}

/// Levels of lists and objects in a value.
fn depth(value: &Json) -> usize {
    let below = match value {
        Json::Array(entries) => entries.iter().map(depth).max(),
        Json::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    below.unwrap_or(0).saturating_add(1)
}

/// Spec of a task, in parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Spec {
    /// Goal: the result to achieve.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT_CHARS))]
    pub goal: Option<String>,
    /// In scope: the work that belongs to the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_ENTRIES))]
    pub scope_in: Vec<String>,
    /// Out of scope: the work that does not belong to the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_ENTRIES))]
    pub scope_out: Vec<String>,
    /// Inputs that the task needs: a list, or an object such as {"db": "orders"}.
    #[serde(skip_serializing_if = "Material::is_empty")]
    #[schemars(with = "Vec<String>", extend("x-accepts" = lists_and_objects()))]
    pub inputs: Material,
    /// Outputs that the task produces: a list, or an object such as {"report": "out.html"}.
    #[serde(skip_serializing_if = "Material::is_empty")]
    #[schemars(with = "Vec<String>", extend("x-accepts" = lists_and_objects()))]
    pub outputs: Material,
    /// Acceptance criteria by which the result is judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_ENTRIES))]
    pub acceptance: Vec<String>,
    /// Risks and their mitigations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_ENTRIES))]
    pub risks: Vec<String>,
}

impl Spec {
    /// Reads the parts under Markdown headings. Given parts override them.
    pub(crate) fn read(markdown: &str, given: Spec) -> Spec {
        let parsed = spec_markdown::parse(markdown);
        let list = |given: Vec<String>, parsed| if given.is_empty() { parsed } else { given };
        let material = |given: Material, parsed| if given.is_empty() { parsed } else { given };
        Spec {
            goal: given.goal.or(parsed.goal),
            scope_in: list(given.scope_in, parsed.scope_in),
            scope_out: list(given.scope_out, parsed.scope_out),
            inputs: material(given.inputs, parsed.inputs),
            outputs: material(given.outputs, parsed.outputs),
            acceptance: list(given.acceptance, parsed.acceptance),
            risks: list(given.risks, parsed.risks),
        }
    }

    /// Checks the size of each part and of the whole.
    pub(crate) fn check(&self, refusals: &mut Refusals) {
        refusals.optional_text("spec.goal", self.goal.as_deref(), MAX_TEXT_CHARS);
        for (part, entries) in self.lists() {
            refusals.texts(&format!("spec.{part}"), entries, MAX_ENTRIES, MAX_ENTRY_CHARS);
        }
        for (part, value) in self.materials() {
            value.check(&format!("spec.{part}"), refusals);
        }
        let lists = self.lists().into_iter().flat_map(|(_, entries)| entries);
        let lists: usize = lists.map(String::len).sum();
        let parts: usize = self.materials().iter().map(|(_, part)| part.bytes()).sum();
        refusals.at_most("spec", lists.saturating_add(parts), MAX_JSON_BYTES, "bytes");
    }

    /// A warning for each missing part.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let missing = [
            ("goal", self.goal.is_none()),
            ("scope_in", self.scope_in.is_empty()),
            ("scope_out", self.scope_out.is_empty()),
            ("inputs", self.inputs.is_empty()),
            ("outputs", self.outputs.is_empty()),
            ("acceptance", self.acceptance.is_empty()),
            ("risks", self.risks.is_empty()),
        ];
        let missing = missing.into_iter().filter(|(_, is_missing)| *is_missing);
        missing
            .map(|(part, _)| format!("the spec has no {part}; add a heading for it, or pass spec.{part}"))
            .collect()
    }

    fn lists(&self) -> [(&'static str, &[String]); 4] {
        [
            ("scope_in", &self.scope_in),
            ("scope_out", &self.scope_out),
            ("acceptance", &self.acceptance),
            ("risks", &self.risks),
        ]
    }

    fn materials(&self) -> [(&'static str, &Material); 2] {
        [("inputs", &self.inputs), ("outputs", &self.outputs)]
    }
}
