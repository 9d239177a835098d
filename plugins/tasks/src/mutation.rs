//! Count of mutations, by which the age of evidence is measured.
//!
//! Inside an envelope, the envelope's own count is used, because it covers the calls of every pack. That
//! count includes this pack's bookkeeping calls and its writes without a change, which are subtracted.
//! Without an envelope, or across envelopes, the pack's own count for the workspace is used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, DbError};

use crate::scope::Scope;
use crate::store::envelope;

/// Tools that record something about the work and do not change it.
const BOOKKEEPING: &[&str] = &[
    "tasks_evidence_capture",
    "tasks_verify",
    "tasks_note",
    "tasks_step_claim",
    "tasks_take",
    "tasks_step_renew",
    "tasks_step_release",
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
}

impl Moment {
    /// Mutations since an earlier moment, as far as they are known.
    pub(crate) fn since(&self, earlier: &Moment) -> i64 {
        let here = self.mutations.saturating_sub(earlier.mutations);
        let everywhere = match (&self.envelope, &earlier.envelope) {
            (Some(now), Some(then)) if now.id == then.id => now.mutations.saturating_sub(then.mutations),
            _ => 0,
        };
        here.max(everywhere)
    }
}

/// The moment of a writing call, without that call itself.
pub(crate) fn now(scope: &Scope<'_>) -> Result<Moment, DbError> {
    let envelope = match counted(scope.cx) {
        Some((id, used)) => {
            let passed = envelope::passed(scope.db(), &id)?;
            let mutations = used.saturating_sub(passed).saturating_sub(1);
            Some(InEnvelope { id, mutations })
        }
        None => None,
    };
    Ok(Moment {
        mutations: scope.counters.mutations,
        envelope,
    })
}

/// The moment of the call after this one.
pub(crate) fn upcoming(scope: &Scope<'_>) -> Result<Moment, DbError> {
    let envelope = match counted(scope.cx) {
        Some((id, used)) => {
            let mutations = used.saturating_sub(envelope::passed(scope.db(), &id)?);
            Some(InEnvelope { id, mutations })
        }
        None => None,
    };
    Ok(Moment {
        mutations: scope.counters.mutations,
        envelope,
    })
}

/// The envelope around a call and its mutation count.
fn counted(cx: &Cx<'_>) -> Option<(String, i64)> {
    let envelope = cx.budget().current()?;
    let used = envelope.counter("mutations")?.used;
    Some((envelope.id, i64::try_from(used).unwrap_or(i64::MAX)))
}

/// Counts a write by a tool.
pub(crate) fn advance(scope: &mut Scope<'_>, tool: &str) -> Result<(), DbError> {
    if BOOKKEEPING.contains(&tool) {
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
