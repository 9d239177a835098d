//! Checkpoints: the required ones of a step, the missing ones, and those that a call confirms.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value as Json};

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
            Json::Object(members) => named(members).map(Checkpoints::Named).map_err(de::Error::custom),
            _ => Err(de::Error::custom(
                "checkpoints must be an object, \"gate\" or \"all\"",
            )),
        }
    }
}

fn named(members: Map<String, Json>) -> Result<BTreeMap<Checkpoint, Said>, String> {
    let mut said = BTreeMap::new();
    for (name, value) in members {
        let checkpoint = name.parse::<Checkpoint>().map_err(|err| err.to_string())?;
        let value = match value {
            Json::Null => continue,
            Json::Bool(confirmed) => Said {
                confirmed,
                note: None,
            },
            value => serde_json::from_value(value).map_err(|err| format!("checkpoints.{name}: {err}"))?,
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
        }
    }

    /// The checkpoints that a call names, which makes them required.
    pub(crate) fn names(&self) -> BTreeSet<Checkpoint> {
        match self {
            Checkpoints::Gate | Checkpoints::All => BTreeSet::new(),
            Checkpoints::Named(said) => said.keys().copied().collect(),
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
            Checkpoints::Gate | Checkpoints::All => false,
            Checkpoints::Named(said) => said.values().any(|said| !said.confirmed),
        }
    }
}
