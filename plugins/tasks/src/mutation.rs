//! Count of mutations, by which the age of evidence is measured.
//!
//! Inside an envelope, the envelope's own count is used, because it covers the calls of every pack. That
//! count includes this pack's bookkeeping calls and its writes without a change, which are subtracted.
//! Without an envelope, or across envelopes, the pack's own count for the workspace is used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, DbError, Envelope};

use crate::scope::Scope;
use crate::store::envelope;

/// Tools that record something about the work and do not change it.
pub(crate) const BOOKKEEPING_TOOLS: &[&str] = &[
    "tasks_evidence_capture",
    "tasks_verify",
    "tasks_note",
    "tasks_step_claim",
    "tasks_take",
    "tasks_step_renew",
    "tasks_step_release",
    "tasks_undo",
    "tasks_redo",
    "tasks_template_save",
];

/// Mutation counts at one point in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Moment {
    /// Mutations of the workspace so far.
    pub mutations: i64,
    /// Mutations of the envelope so far, of all packs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<InEnvelope>,
}

/// Mutation count of an envelope at one point in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct InEnvelope {
    /// Id of the envelope.
    pub id: String,
    /// Mutations that the envelope had counted so far.
    pub mutations: i64,
    /// Edits of work trees that the envelope had counted so far, absent in evidence of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<i64>,
}

impl Moment {
    /// Mutations or edits since an earlier moment, as far as they are known.
    pub(crate) fn since(&self, earlier: &Moment) -> i64 {
        let here = self.mutations.saturating_sub(earlier.mutations);
        let everywhere = match (&self.envelope, &earlier.envelope) {
            (Some(now), Some(then)) if now.id == then.id => now.since(then),
            _ => 0,
        };
        here.max(everywhere)
    }

    /// Returns whether both moments are in the same envelope, or both outside of envelopes.
    pub(crate) fn is_in_envelope_of(&self, other: &Moment) -> bool {
        let id = |moment: &Moment| moment.envelope.as_ref().map(|envelope| envelope.id.clone());
        id(self) == id(other)
    }
}

impl Moment {
    /// The moment without calls of the pack that changed work and are undone now.
    pub(crate) fn without(mut self, calls: i64) -> Moment {
        self.mutations = self.mutations.saturating_sub(calls);
        if let Some(envelope) = &mut self.envelope {
            envelope.mutations = envelope.mutations.saturating_sub(calls);
        }
        self
    }
}

impl InEnvelope {
    fn since(&self, earlier: &InEnvelope) -> i64 {
        let edits = match (self.edits, earlier.edits) {
            (Some(now), Some(then)) => now.saturating_sub(then),
            _ => 0,
        };
        self.mutations.saturating_sub(earlier.mutations).max(edits)
    }
}

/// The moment of a writing call, without that call itself.
pub(crate) fn now(scope: &Scope<'_>) -> Result<Moment, DbError> {
    moment(scope, 1)
}

/// The moment of the call after this one.
pub(crate) fn upcoming(scope: &Scope<'_>) -> Result<Moment, DbError> {
    moment(scope, 0)
}

/// The moment of a call that the envelope has counted already, as `own` mutations.
fn moment(scope: &Scope<'_>, own: i64) -> Result<Moment, DbError> {
    let envelope = match scope.cx.budget().current() {
        Some(envelope) => in_envelope(scope, envelope, own)?,
        None => None,
    };
    Ok(Moment {
        mutations: scope.counters.mutations,
        envelope,
    })
}

fn in_envelope(scope: &Scope<'_>, envelope: Envelope, own: i64) -> Result<Option<InEnvelope>, DbError> {
    let used = |name: &str| {
        let counter = envelope.counter(name)?;
        Some(i64::try_from(counter.used).unwrap_or(i64::MAX))
    };
    let Some(mutations) = used("mutations") else {
        return Ok(None);
    };
    let passed = envelope::passed(scope.db(), &envelope.id)?;
    Ok(Some(InEnvelope {
        mutations: mutations.saturating_sub(passed).saturating_sub(own),
        // An envelope that counts none has seen none.
        edits: Some(used("edits").unwrap_or(0)),
        id: envelope.id,
    }))
}

/// Counts a write by a tool.
pub(crate) fn advance(scope: &mut Scope<'_>, tool: &str) -> Result<(), DbError> {
    if BOOKKEEPING_TOOLS.contains(&tool) {
        return pass(scope.cx);
    }
    scope.counters.mutations = scope.counters.mutations.saturating_add(1);
    Ok(())
}

/// Records that this call, which the envelope counted, changes no work.
pub(crate) fn pass(cx: &Cx<'_>) -> Result<(), DbError> {
    match cx.envelope_id() {
        Some(id) => envelope::pass(&cx.db, id, cx.now()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_compared_is_left_to_the_other_count() {
        let moment = |mutations, envelope: Option<(&str, i64)>| Moment {
            mutations,
            envelope: envelope.map(|(id, mutations)| InEnvelope {
                id: id.to_owned(),
                mutations,
                edits: None,
            }),
        };
        let then = moment(3, Some(("env_1", 10)));
        for (now, passed) in [
            (moment(3, Some(("env_1", 10))), 0),
            (moment(3, Some(("env_1", 12))), 2),
            (moment(4, Some(("env_1", 12))), 2),
            (moment(5, Some(("env_2", 1))), 2),
            (moment(3, Some(("env_2", 99))), 0),
            (moment(4, None), 1),
        ] {
            assert_eq!(now.since(&then), passed, "{now:?}");
        }
    }
}
