//! Comparison of tools and policies with the definitions that the operator accepted.
//!
//! A trusted component can be replaced by one whose description tells agents something else. Built-in packs change
//! only with this program, which the operator chose. Changes of other packs are reported until the operator accepts
//! them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};
use tollgate_core::hash::sha256_hex;
use tollgate_store::storage::Remembered;

use crate::grants::Wish;
use crate::packs::Pack;
use crate::policies::{Member, Policy};
use crate::tools::ToolSpec;

/// A tool that differs from the one that the operator accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Pack of the tool.
    pub pack: String,
    /// Its name.
    pub tool: String,
    /// Changed parts of the tool. Empty if the tool is new in its pack.
    pub parts: Vec<String>,
    /// Time since which it differs.
    pub since: String,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Change {
            pack,
            tool,
            parts,
            since,
        } = self;
        match parts.as_slice() {
            [] => write!(f, "tool {tool} is new in pack `{pack}` ({since})"),
            parts => write!(
                f,
                "tool {tool} of pack `{pack}` has a different {} ({since})",
                parts.join(", ")
            ),
        }
    }
}

/// Definitions to remember, and those that the operator has not accepted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) store: Vec<Remembered>,
    pub(super) changes: Vec<Change>,
}

/// Compares the tools of packs with the remembered definitions.
pub(super) fn compare<'a>(
    packs: impl Iterator<Item = &'a Pack>,
    remembered: &[Remembered],
    now: &str,
) -> Comparison {
    let mut comparison = Comparison::default();
    for pack in packs {
        let tools = pack
            .manifest
            .named()
            .map(|spec| (spec.name.as_str(), definition(spec)));
        comparison.pack(&pack.manifest.name, pack.is_builtin(), tools, remembered, now);
    }
    comparison
}

/// Name under which a policy's definition is remembered. Names of packs contain no dot.
const COMPONENT_NAME: &str = "component";

/// Owner under which a policy's definition is remembered.
pub fn policy_owner(policy: &str) -> String {
    format!("policies.{policy}")
}

/// Compares policies with the remembered definitions.
pub(super) fn compare_policies(members: &[Member], remembered: &[Remembered], now: &str) -> Comparison {
    let mut comparison = Comparison::default();
    let loaded = members
        .iter()
        .filter_map(|member| Some((&member.name, member.policy.as_deref().ok()?)));
    for (name, policy) in loaded {
        let definition = std::iter::once((COMPONENT_NAME, policy_definition(policy)));
        let owner = policy_owner(name);
        comparison.pack(&owner, policy.is_builtin(), definition, remembered, now);
    }
    comparison
}

/// Definition of a policy: everything that the operator relies on. The judging code is part of the bytes, so the
/// bytes count too.
fn policy_definition(policy: &Policy) -> String {
    let manifest = &policy.manifest;
    let wants: Vec<String> = manifest.wants.iter().map(|want| Wish::of(want).what).collect();
    let whole = json!({
        "sha256": policy.hash,
        "name": manifest.name,
        "version": manifest.version,
        "phase": manifest.phase,
        "wants": wants,
        "config_schema": manifest.config_schema,
    });
    tollgate_sdk::canonical_json(&whole)
}

impl Comparison {
    fn pack<'a>(
        &mut self,
        pack: &str,
        is_builtin: bool,
        tools: impl Iterator<Item = (&'a str, String)>,
        remembered: &[Remembered],
        now: &str,
    ) {
        let known: BTreeMap<&str, &Remembered> = remembered
            .iter()
            .filter(|known| known.pack == pack)
            .map(|known| (known.tool.as_str(), known))
            .collect();
        for (tool, definition) in tools {
            let hash = sha256_hex(definition.as_bytes());
            let before = known.get(tool).copied();
            let is_same = before.is_some_and(|before| before.hash == hash);
            let accepted = match before {
                // A pack is trusted in the form in which it is added.
                None => (is_builtin || known.is_empty()).then(|| definition.clone()),
                Some(_) if is_builtin => Some(definition.clone()),
                Some(before) => before.accepted.clone(),
            };
            let since = before
                .filter(|_| is_same)
                .map_or(now, |before| &before.changed_at);
            if accepted.as_ref() != Some(&definition) {
                self.changes.push(Change {
                    pack: pack.to_owned(),
                    tool: tool.to_owned(),
                    parts: accepted
                        .as_deref()
                        .map(|accepted| parts(accepted, &definition))
                        .unwrap_or_default(),
                    since: since.to_owned(),
                });
            }
            if !is_same {
                self.store.push(Remembered {
                    pack: pack.to_owned(),
                    tool: tool.to_owned(),
                    hash,
                    changed_at: since.to_owned(),
                    definition,
                    accepted,
                });
            }
        }
    }
}

/// Definition of a tool: everything that an agent or the gate relies on.
fn definition(spec: &ToolSpec) -> String {
    let whole = json!({
        "title": spec.title,
        "description": spec.description,
        "effect": spec.effect,
        "tier": spec.tier,
        "destructive": spec.destructive,
        "idempotent": spec.idempotent,
        "open_world": spec.open_world,
        "members": spec.members,
        "aliases": spec.aliases,
        "input_schema": spec.input_schema,
        "output_schema": *spec.output_schema,
    });
    tollgate_sdk::canonical_json(&whole)
}

/// Keys in which two definitions differ.
fn parts(one: &str, other: &str) -> Vec<String> {
    let read = |text: &str| serde_json::from_str::<BTreeMap<String, Value>>(text).unwrap_or_default();
    let (one, other) = (read(one), read(other));
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    keys.into_iter()
        .filter(|key| one.get(*key) != other.get(*key))
        .map(|key| key.replace('_', " "))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(description: &str) -> String {
        json!({ "description": description }).to_string()
    }

    fn compared(
        is_builtin: bool,
        tools: &[(&str, &str)],
        remembered: &[Remembered],
        now: &str,
    ) -> Comparison {
        let mut comparison = Comparison::default();
        let tools = tools.iter().map(|(name, description)| (*name, text(description)));
        comparison.pack("mine", is_builtin, tools, remembered, now);
        comparison
    }

    fn told(comparison: &Comparison) -> Vec<String> {
        comparison.changes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_pack_is_trusted_as_it_comes_and_changes_are_told_until_accepted() {
        let first = compared(false, &[("a", "one"), ("b", "two")], &[], "day 1");
        assert!(first.changes.is_empty());
        let known = first.store;
        assert_eq!(
            compared(false, &[("a", "one"), ("b", "two")], &known, "day 2"),
            Comparison::default()
        );

        let second = compared(
            false,
            &[("a", "other"), ("b", "two"), ("c", "new")],
            &known,
            "day 2",
        );
        let changes = [
            "tool a of pack `mine` has a different description (day 2)",
            "tool c is new in pack `mine` (day 2)",
        ];
        assert_eq!(told(&second), changes);
        let mut known: Vec<Remembered> = second.store.into_iter().chain([known[1].clone()]).collect();
        let third = compared(
            false,
            &[("a", "other"), ("b", "two"), ("c", "new")],
            &known,
            "day 3",
        );
        assert_eq!(
            (told(&third), third.store.len()),
            (changes.map(str::to_owned).to_vec(), 0)
        );

        for known in &mut known {
            known.accepted = Some(known.definition.clone());
        }
        assert_eq!(
            compared(
                false,
                &[("a", "other"), ("b", "two"), ("c", "new")],
                &known,
                "day 4"
            ),
            Comparison::default()
        );
        // Removing a tool for a while does not bypass the check.
        assert_eq!(
            compared(false, &[("b", "two")], &known, "day 5"),
            Comparison::default()
        );
        let back = compared(false, &[("a", "third"), ("b", "two")], &known, "day 6");
        assert_eq!(
            told(&back),
            ["tool a of pack `mine` has a different description (day 6)"]
        );
    }

    #[test]
    fn a_built_in_pack_changes_with_the_program() {
        let known = compared(true, &[("a", "one")], &[], "day 1").store;
        let second = compared(true, &[("a", "other"), ("b", "new")], &known, "day 2");
        assert!(second.changes.is_empty());
        assert_eq!(second.store.len(), 2);
    }
}
