//! Steps as a plan describes them, and their checks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::arguments::{MAX_ENTRY_CHARS, MAX_STEP_BYTES, MAX_TEXT_CHARS, MAX_TITLE_CHARS, tidy_tags};
use crate::error::{Reason, Refusals};
use crate::evidence::known_type;
use crate::gate::{Gate, GateSpec, Misfit};
use crate::model::{EvidenceType, tidy_id};

/// Tag that puts a checkpoint before a step.
pub(crate) const HIGH_RISK: &str = "high-risk";

/// Step as a plan describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSpec {
    /// Short title of the step. For example Write the exporter.
    pub title: String,
    /// Work to do, for a reader who knows nothing but the prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instruction_prompt: String,
    /// Conditions that must hold afterwards, one per entry, each of them checkable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance_criteria: Vec<String>,
    /// Files, commands, documents or tests that the step produces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected_outputs: Vec<String>,
    /// Keys of the evidence with their types, for example {"changed_files": "array"}.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "evidence_keys"
    )]
    #[schemars(extend("x-accepts" = names()))]
    pub required_evidence: BTreeMap<String, EvidenceType>,
    /// Instructions for unmet criteria. Default: a general hint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remediation_prompt: String,
    /// Ids of context blocks that the prompt includes, for example CTX-9K3Q.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context_refs: Vec<String>,
    /// Conditions checked at submission, whatever the claim. Each is an object {"gate": name, ...}:
    /// tests_passed, tests_fail, fail_to_pass, lint_passed (optional command; default: the test `default`),
    /// evidence_bool_true (key), criteria_checklist_complete, changed_files_allowlist, forbid_paths,
    /// tests_unchanged (paths: globs), file_exists, file_not_exists, reachable (paths), file_contains, file_lacks
    /// (path, and contains or regex), changed_files_minimum, diff_min_lines (min), diff_max_lines (max),
    /// no_uncommitted_changes, commit_exists, command_exit_0, command_output_contains (command, contains),
    /// command_output_regex (command, regex), json_schema_valid (schema, and path or key), human_approval. A
    /// command is a list of words, a registered test or the name of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateSpec>,
    /// True for a review step. Default false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub checkpoint: bool,
    /// Require a commit, whatever the policies say. Default false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub strict_git: bool,
    /// Maximum number of submissions, in place of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: Option<u32>,
    /// Tags, for example api. The prompt shows mistakes with the same tag. `high-risk` inserts a checkpoint before
    /// the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// Other form of the required evidence: a list of its keys.
pub(crate) fn names() -> serde_json::Value {
    serde_json::json!({"type": "array", "items": {"type": "string"}})
}

/// Required evidence as keys with types, or as a list of keys. Unknown keys of a list are texts.
pub(crate) fn evidence_keys<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, EvidenceType>, D::Error> {
    struct Keys;

    impl<'de> Visitor<'de> for Keys {
        type Value = BTreeMap<String, EvidenceType>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object of keys with types, or a list of keys")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            BTreeMap::deserialize(MapAccessDeserializer::new(map))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut keys = BTreeMap::new();
            while let Some(key) = list.next_element::<String>()? {
                let kind = known_type(&key).unwrap_or(EvidenceType::String);
                keys.insert(key, kind);
            }
            Ok(keys)
        }
    }

    deserializer.deserialize_any(Keys)
}

/// Required evidence in an edit, which may leave it out.
pub(crate) fn some_evidence_keys<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, EvidenceType>>, D::Error> {
    evidence_keys(deserializer).map(Some)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl StepSpec {
    /// Step with blanks removed and tags in lower case.
    pub(crate) fn tidied(self) -> StepSpec {
        StepSpec {
            title: self.title.trim().to_owned(),
            instruction_prompt: self.instruction_prompt.trim().to_owned(),
            remediation_prompt: self.remediation_prompt.trim().to_owned(),
            tags: tidy_tags(self.tags),
            context_refs: self.context_refs.iter().map(|id| tidy_id(id)).collect(),
            ..self
        }
    }

    /// Checked gates. Those of a stored step are valid, because planning checked them.
    pub(crate) fn parsed_gates(&self) -> Vec<Gate> {
        self.gates.iter().filter_map(|gate| gate.parse().ok()).collect()
    }

    /// Refuses a step that cannot be stored. The ready gate reports missing fields.
    pub(crate) fn check(&self, field: &str, refusals: &mut Refusals) {
        let at = |name: &str| format!("{field}.{name}");
        refusals.text(&at("title"), &self.title, MAX_TITLE_CHARS);
        refusals.at_most(
            &at("instruction_prompt"),
            self.instruction_prompt.chars().count(),
            MAX_TEXT_CHARS,
            "characters",
        );
        refusals.at_most(
            &at("remediation_prompt"),
            self.remediation_prompt.chars().count(),
            MAX_TEXT_CHARS,
            "characters",
        );
        refusals.texts(
            &at("acceptance_criteria"),
            &self.acceptance_criteria,
            MAX_ENTRY_CHARS,
        );
        refusals.texts(&at("expected_outputs"), &self.expected_outputs, MAX_ENTRY_CHARS);
        refusals.at_most(&at("context_refs"), self.context_refs.len(), 20, "entries");
        refusals.at_most(&at("gates"), self.gates.len(), 40, "gates");
        refusals.at_most(&at("required_evidence"), self.required_evidence.len(), 40, "keys");
        refusals.tags(&at("tags"), &self.tags);
        if let Some(most) = self.max_attempts.filter(|most| !(1..=100).contains(most)) {
            let fault = format!("is {most}, not within 1 to 100");
            refusals.add(Reason::argument(at("max_attempts"), fault));
        }
        let size = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        refusals.at_most(field, size, MAX_STEP_BYTES, "bytes");
        self.check_evidence(&at("required_evidence"), refusals);
        for (place, gate) in self.gates.iter().enumerate() {
            check_gate(&format!("{field}.gates[{place}]"), gate, refusals);
        }
    }

    fn check_evidence(&self, field: &str, refusals: &mut Refusals) {
        for (key, kind) in &self.required_evidence {
            refusals.text(field, key, crate::arguments::MAX_TAG_CHARS);
            if let Some(known) = known_type(key).filter(|known| known != kind) {
                refusals.add(Reason::argument(
                    format!("{field}.{key}"),
                    format!("must be of type {known}, not {kind}"),
                ));
            }
        }
    }

    /// Missing fields for the ready gate, as code and message.
    pub(crate) fn gaps(&self) -> Vec<(&'static str, &'static str)> {
        let mut gaps = Vec::new();
        if self.instruction_prompt.trim().is_empty() {
            gaps.push(("STEP_INSTRUCTION_MISSING", "has no instruction_prompt"));
        }
        if self.acceptance_criteria.is_empty() {
            gaps.push(("STEP_CRITERIA_MISSING", "has no acceptance_criteria"));
        }
        if self.required_evidence.is_empty() {
            gaps.push(("STEP_EVIDENCE_MISSING", "has no required_evidence"));
        }
        gaps
    }
}

fn check_gate(field: &str, gate: &GateSpec, refusals: &mut Refusals) {
    for misfit in gate.parse().err().unwrap_or_default() {
        refusals.add(match misfit {
            Misfit::Unknown(message) => Reason::UnknownGate(format!("{field}: {message}")),
            Misfit::Parameter(fault) => Reason::argument(field, fault),
        });
    }
}
