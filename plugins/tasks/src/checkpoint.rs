//! Checkpoints: the required ones of a step, the missing ones, and those that a call confirms.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value as Json};

use crate::error::clip;
use crate::model::Checkpoint;
use crate::record::Step;
use crate::redact;

/// Checkpoints that a step requires, with the `named` ones of this call.
pub(crate) fn required(step: &Step, named: &BTreeSet<Checkpoint>) -> BTreeSet<Checkpoint> {
    let mut required = step.required.clone();
    required.extend(named);
    if !step.success_criteria.is_empty() {
        required.insert(Checkpoint::Criteria);
    }
    if !step.tests.is_empty() {
        required.insert(Checkpoint::Tests);
    }
    required
}

/// Required checkpoints that are not confirmed.
pub(crate) fn missing(step: &Step, named: &BTreeSet<Checkpoint>) -> Vec<Checkpoint> {
    required(step, named)
        .into_iter()
        .filter(|checkpoint| !step.confirmed.contains_key(checkpoint))
        .collect()
}

/// Checkpoints as a call gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Checkpoints {
    /// Criteria and tests.
    Gate,
    /// All checkpoints that the step requires.
    All,
    /// Named checkpoints, each with its statement.
    Named(BTreeMap<Checkpoint, Said>),
    /// A member that is no statement about a checkpoint. The call is refused for it.
    Faulty { field: String, fault: String },
}

impl JsonSchema for Checkpoints {
    fn schema_name() -> Cow<'static, str> {
        "Checkpoints".into()
    }

    /// An object. A listed schema has one type per property, so the words are in an extension key.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": true,
            "description": "Checkpoints by name, or \"gate\" or \"all\".",
            "x-accepts": {"type": "string", "enum": ["gate", "all"]},
        })
    }
}

/// Statement of a call about one checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    pub confirmed: bool,
    #[serde(default)]
    pub note: Option<String>,
}

impl<'de> Deserialize<'de> for Checkpoints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Checkpoints, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::String(text) if text == "gate" => Ok(Checkpoints::Gate),
            Json::String(text) if text == "all" => Ok(Checkpoints::All),
            Json::Object(members) => Ok(match named(members) {
                Ok(said) => Checkpoints::Named(said),
                Err((field, fault)) => Checkpoints::Faulty { field, fault },
            }),
            _ => Err(de::Error::custom(
                "checkpoints must be an object, \"gate\" or \"all\"",
            )),
        }
    }
}

/// The statements of a call, or the first faulty member with its fault.
fn named(members: Map<String, Json>) -> Result<BTreeMap<Checkpoint, Said>, (String, String)> {
    let mut said = BTreeMap::new();
    for (name, value) in members {
        let field = format!("checkpoints.{}", clip(&name));
        let Ok(checkpoint) = name.parse::<Checkpoint>() else {
            let names: Vec<&str> = Checkpoint::ALL
                .iter()
                .map(|checkpoint| checkpoint.as_str())
                .collect();
            return Err((field, format!("is not one of {}", names.join(", "))));
        };
        let value = match value {
            Json::Null => continue,
            Json::Bool(confirmed) => Said {
                confirmed,
                note: None,
            },
            value => serde_json::from_value(value)
                .map_err(|err| (field, format!("is not {{\"confirmed\": true}}: {err}")))?,
        };
        said.insert(checkpoint, value);
    }
    Ok(said)
}

impl Checkpoints {
    /// Checkpoints that a call confirms, with notes. A checkpoint that the step does not require is confirmed
    /// only by name.
    pub(crate) fn confirms(&self, step: &Step) -> BTreeMap<Checkpoint, Option<String>> {
        let wanted = required(step, &BTreeSet::new());
        let gate = [Checkpoint::Criteria, Checkpoint::Tests];
        match self {
            Checkpoints::Gate => wanted
                .into_iter()
                .filter(|checkpoint| gate.contains(checkpoint))
                .map(|checkpoint| (checkpoint, None))
                .collect(),
            Checkpoints::All => wanted.into_iter().map(|checkpoint| (checkpoint, None)).collect(),
            Checkpoints::Named(said) => said
                .iter()
                .filter(|(_, said)| said.confirmed)
                .map(|(&checkpoint, said)| (checkpoint, said.note.clone()))
                .collect(),
            Checkpoints::Faulty { .. } => BTreeMap::new(),
        }
    }

    /// The checkpoints that a call names, which makes them required.
    pub(crate) fn names(&self) -> BTreeSet<Checkpoint> {
        match self {
            Checkpoints::Gate | Checkpoints::All | Checkpoints::Faulty { .. } => BTreeSet::new(),
            Checkpoints::Named(said) => said.keys().copied().collect(),
        }
    }

    /// Notes of a call on what it does not confirm.
    pub(crate) fn denials(&self) -> BTreeMap<Checkpoint, String> {
        match self {
            Checkpoints::Named(said) => said
                .iter()
                .filter(|(_, said)| !said.confirmed)
                .filter_map(|(&checkpoint, said)| Some((checkpoint, said.note.clone()?)))
                .collect(),
            Checkpoints::Gate | Checkpoints::All | Checkpoints::Faulty { .. } => BTreeMap::new(),
        }
    }

    /// Redacts secrets in the notes and counts them.
    pub(crate) fn redact(&mut self, found: &mut usize) {
        if let Checkpoints::Named(said) = self {
            for note in said.values_mut().filter_map(|said| said.note.as_mut()) {
                *note = redact::clean(note, found);
            }
        }
    }

    /// Returns whether the call withdraws a checkpoint.
    pub(crate) fn denies(&self) -> bool {
        match self {
            Checkpoints::Gate | Checkpoints::All | Checkpoints::Faulty { .. } => false,
            Checkpoints::Named(said) => said.values().any(|said| !said.confirmed),
        }
    }
}
