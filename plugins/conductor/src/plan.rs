//! Plan of a job without its steps: the answers of the interview.

use std::fmt;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::arguments::{MAX_ENTRIES, MAX_ENTRY_CHARS, MAX_PATH_CHARS, MAX_PLAN_BYTES};
use crate::error::Refusals;

/// A risk. A string alone is a risk without a mitigation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Risk {
    /// Possible problem, in one sentence.
    pub risk: String,
    /// Mitigation: what prevents the risk or limits its effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mitigation: Option<String>,
}

/// Fields of a risk that is an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RiskFields {
    risk: String,
    mitigation: Option<String>,
}

impl<'de> Deserialize<'de> for Risk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Risk, D::Error> {
        deserializer.deserialize_any(RiskVisitor)
    }
}

struct RiskVisitor;

impl<'de> Visitor<'de> for RiskVisitor {
    type Value = Risk;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or an object with risk and mitigation")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Risk, E> {
        Ok(Risk {
            risk: text.to_owned(),
            mitigation: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Risk, A::Error> {
        let fields = RiskFields::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Risk {
            risk: fields.risk,
            mitigation: fields.mitigation,
        })
    }
}

/// Sentence of an answer: text, or a list of texts, which are joined.
pub(crate) fn sentence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let list = entries(deserializer)?;
    Ok(list.map(|texts| texts.join("; ")))
}

/// Entries of an answer: a list of texts, or a text as the only entry.
pub(crate) fn entries<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    struct Entries;

    impl<'de> Visitor<'de> for Entries {
        type Value = Option<Vec<String>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of strings, or one string")
        }

        fn visit_str<E: de::Error>(self, entry: &str) -> Result<Self::Value, E> {
            Ok(Some(vec![entry.to_owned()]))
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut entries = Vec::new();
            while let Some(entry) = list.next_element()? {
                entries.push(entry);
            }
            Ok(Some(entries))
        }
    }

    deserializer.deserialize_any(Entries)
}

/// Plan of a job. An absent field was not answered; an empty list is an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Plan {
    /// Things that the job must not touch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_scope: Option<Vec<String>>,
    /// Operating system, runtime and language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_environment: Option<String>,
    /// Priority of the work: a minimal or a robust solution, and the deadline if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline_priority: Option<String>,
    /// Abilities and limits of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_constraints: Option<Vec<String>>,
    /// True if a repository already exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_exists: Option<bool>,
    /// Exact outputs: files, endpoints, documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliverables: Option<Vec<String>>,
    /// Conditions that must hold at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition_of_done: Option<Vec<String>>,
    /// Tests that are expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests_expected: Option<Vec<String>>,
    /// Rules that must never be violated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invariants: Option<Vec<String>>,
    /// Rules that the work must follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Vec<String>>,
    /// Facts that are taken for granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumptions: Option<Vec<String>>,
    /// Questions that nobody can answer yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknowns: Option<Vec<String>>,
    /// Structure of the solution: modules, folders, conventions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub architecture: Option<Vec<String>>,
    /// Ways in which the plan can fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_modes: Option<Vec<String>>,
    /// Dependencies that are easy to overlook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_dependencies: Option<Vec<String>>,
    /// Smallest demonstrations that prove the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_proof: Option<Vec<String>>,
    /// Decisions that would be regretted if nobody made them now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decide_now: Option<Vec<String>>,
    /// Files to read first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_files: Option<Vec<String>>,
    /// Places where the program starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoints: Option<Vec<String>>,
    /// Risks, each with its mitigation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risks: Option<Vec<Risk>>,
}

impl Plan {
    /// Lists of texts, by name.
    pub(crate) fn lists(&self) -> [(&'static str, Option<&[String]>); 16] {
        [
            ("out_of_scope", self.out_of_scope.as_deref()),
            ("user_constraints", self.user_constraints.as_deref()),
            ("deliverables", self.deliverables.as_deref()),
            ("definition_of_done", self.definition_of_done.as_deref()),
            ("tests_expected", self.tests_expected.as_deref()),
            ("invariants", self.invariants.as_deref()),
            ("constraints", self.constraints.as_deref()),
            ("assumptions", self.assumptions.as_deref()),
            ("unknowns", self.unknowns.as_deref()),
            ("architecture", self.architecture.as_deref()),
            ("failure_modes", self.failure_modes.as_deref()),
            ("hidden_dependencies", self.hidden_dependencies.as_deref()),
            ("smallest_proof", self.smallest_proof.as_deref()),
            ("decide_now", self.decide_now.as_deref()),
            ("key_files", self.key_files.as_deref()),
            ("entrypoints", self.entrypoints.as_deref()),
        ]
    }

    /// Plan with later answers in place of earlier ones.
    pub(crate) fn merged(self, later: Plan) -> Plan {
        Plan {
            out_of_scope: later.out_of_scope.or(self.out_of_scope),
            target_environment: later.target_environment.or(self.target_environment),
            timeline_priority: later.timeline_priority.or(self.timeline_priority),
            user_constraints: later.user_constraints.or(self.user_constraints),
            repo_exists: later.repo_exists.or(self.repo_exists),
            deliverables: later.deliverables.or(self.deliverables),
            definition_of_done: later.definition_of_done.or(self.definition_of_done),
            tests_expected: later.tests_expected.or(self.tests_expected),
            invariants: later.invariants.or(self.invariants),
            constraints: later.constraints.or(self.constraints),
            assumptions: later.assumptions.or(self.assumptions),
            unknowns: later.unknowns.or(self.unknowns),
            architecture: later.architecture.or(self.architecture),
            failure_modes: later.failure_modes.or(self.failure_modes),
            hidden_dependencies: later.hidden_dependencies.or(self.hidden_dependencies),
            smallest_proof: later.smallest_proof.or(self.smallest_proof),
            decide_now: later.decide_now.or(self.decide_now),
            key_files: later.key_files.or(self.key_files),
            entrypoints: later.entrypoints.or(self.entrypoints),
            risks: later.risks.or(self.risks),
        }
    }

    /// Names of the answered fields.
    pub(crate) fn answered(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = self
            .lists()
            .into_iter()
            .filter_map(|(name, list)| list.map(|_| name))
            .collect();
        names.extend(self.target_environment.as_ref().map(|_| "target_environment"));
        names.extend(self.timeline_priority.as_ref().map(|_| "timeline_priority"));
        names.extend(self.repo_exists.map(|_| "repo_exists"));
        names.extend(self.risks.as_ref().map(|_| "risks"));
        names
    }

    /// Refuses a plan that is too large to be read at once.
    pub(crate) fn check_size(&self, refusals: &mut Refusals) {
        let size = serde_json::to_string(self).map_or(usize::MAX, |text| text.len());
        refusals.at_most("plan", size, MAX_PLAN_BYTES, "bytes");
    }

    /// Refuses answers that are blank, too long or placeholders.
    pub(crate) fn check(&self, prefix: &str, refusals: &mut Refusals) {
        let field = |name: &str| format!("{prefix}{name}");
        for (name, list) in self.lists() {
            let max = if name == "key_files" {
                MAX_PATH_CHARS
            } else {
                MAX_ENTRY_CHARS
            };
            refusals.texts(&field(name), list.unwrap_or_default(), max);
        }
        refusals.optional_text(
            &field("target_environment"),
            self.target_environment.as_deref(),
            MAX_ENTRY_CHARS,
        );
        refusals.optional_text(
            &field("timeline_priority"),
            self.timeline_priority.as_deref(),
            MAX_ENTRY_CHARS,
        );
        let risks = self.risks.as_deref().unwrap_or_default();
        refusals.at_most(&field("risks"), risks.len(), MAX_ENTRIES, "entries");
        for (place, risk) in risks.iter().enumerate().take(MAX_ENTRIES) {
            refusals.text(
                &format!("{prefix}risks[{place}].risk"),
                &risk.risk,
                MAX_ENTRY_CHARS,
            );
            let mitigation = risk.mitigation.as_deref();
            refusals.optional_text(
                &format!("{prefix}risks[{place}].mitigation"),
                mitigation,
                MAX_ENTRY_CHARS,
            );
        }
    }
}
