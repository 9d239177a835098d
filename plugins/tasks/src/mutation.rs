//! How many mutations there were: what the age of evidence is measured by.
//!
//! In an envelope its own count says so, which knows the calls of every pack. It also knows those that only
//! record something about the work or change nothing; these are this pack's own and are taken off. The
//! pack's count of the workspace goes on where there is no envelope, or another one.

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
    "tasks_step_renew",
    "tasks_step_release",
    "tasks_template_save",
];

/// How much had happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Moment {
    /// How many mutations of the workspace there had been.
    pub mutations: i64,
    /// And of the envelope, whichever pack's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<InEnvelope>,
}

/// How much had happened in an envelope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct InEnvelope {
    /// The envelope.
    pub id: String,
    /// How many mutations it had counted before.
    pub mutations: i64,
}

impl Moment {
    /// How many mutations came after an earlier moment, as far as can be known.
    pub(crate) fn since(&self, earlier: &Moment) -> i64 {
        let here = self.mutations.saturating_sub(earlier.mutations);
        let everywhere = match (&self.envelope, &earlier.envelope) {
            (Some(now), Some(then)) if now.id == then.id => now.mutations.saturating_sub(then.mutations),
            _ => 0,
        };
        here.max(everywhere)
    }
}

/// The moment of a call that writes, which does not count itself.
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

/// The envelope around a call, and how many mutations it has counted.
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

/// Notes that a call which the envelope counted changes nothing of the work.
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
