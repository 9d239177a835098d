//! Facts about a call, for policies whose rules are written in a language of their own.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::Request;
use crate::Effect;

/// Facts about a call that rules can read. As JSON, the facts are an object with a member for each of
/// [`Facts::NAMES`]. Unknown values are null.
///
/// ```
/// # use tollgate_sdk::policy::{Facts, Request};
/// let request = Request::of("note_add", r#"{"actor": "ada", "title": "Tea"}"#);
/// let facts = serde_json::to_value(Facts::of(&request)).unwrap();
/// assert_eq!(facts["arguments"]["title"], "Tea");
/// assert_eq!((&facts["actor"], &facts["identity"]), (&"ada".into(), &serde_json::Value::Null));
/// ```
#[derive(Debug, Clone, Serialize)]
pub struct Facts<'a> {
    /// Name of the tool, even if an alias was called.
    pub tool: &'a str,
    /// Pack of the tool.
    pub pack: &'a str,
    /// Effect with which the host runs the tool.
    pub effect: Effect,
    /// Arguments, with the amendments so far.
    pub arguments: &'a Map<String, Value>,
    /// Actor, as in [`Request::actor`].
    pub actor: Option<&'a str>,
    /// Identity of the caller, if the transport proved one.
    pub identity: Option<&'a str>,
    /// Name of the MCP client, as the client claims.
    pub client: Option<&'a str>,
    /// Envelope that the call belongs to.
    pub envelope_id: Option<&'a str>,
    /// Connection of the call.
    pub connection: &'a str,
    /// Notes of earlier policies by key. The last note of a key counts.
    pub notes: BTreeMap<&'a str, &'a str>,
    /// Time in milliseconds since 1970 UTC.
    pub at: i64,
}

impl<'a> Facts<'a> {
    /// Names of the facts, in the order of the fields.
    ///
    /// ```
    /// # use tollgate_sdk::policy::Facts;
    /// assert!(Facts::NAMES.contains(&"envelope_id"));
    /// ```
    pub const NAMES: &'static [&'static str] = &[
        "tool",
        "pack",
        "effect",
        "arguments",
        "actor",
        "identity",
        "client",
        "envelope_id",
        "connection",
        "notes",
        "at",
    ];

    /// Facts about a call.
    ///
    /// ```
    /// # use tollgate_sdk::policy::{Facts, Request};
    /// assert_eq!(Facts::of(&Request::of("note_add", "{}")).pack, "note");
    /// ```
    #[must_use]
    pub fn of(request: &'a Request) -> Facts<'a> {
        let notes = request.notes.iter();
        Facts {
            tool: &request.tool,
            pack: &request.pack,
            effect: request.effect,
            arguments: &request.arguments,
            actor: request.actor(),
            identity: request.identity.as_deref(),
            client: request.client.as_deref(),
            envelope_id: request.envelope_id.as_deref(),
            connection: &request.connection,
            notes: notes
                .map(|note| (note.key.as_str(), note.value.as_str()))
                .collect(),
            at: request.at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_its_name() {
        let facts = serde_json::to_string(&Facts::of(&Request::of("note_add", "{}"))).unwrap();
        let places: Vec<_> = Facts::NAMES
            .iter()
            .map(|name| facts.find(&format!("\"{name}\":")))
            .collect();
        assert!(
            places.is_sorted() && places.iter().all(Option::is_some),
            "{facts}"
        );
        assert_eq!(
            serde_json::from_str::<Map<String, Value>>(&facts).unwrap().len(),
            Facts::NAMES.len()
        );
    }
}
