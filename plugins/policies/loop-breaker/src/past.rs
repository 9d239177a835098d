//! What was called before, as the ledger tells it.

use tollgate_sdk::policy::Request;
use tollgate_sdk::{Effect, LedgerError, Operation, OperationFilter};

use crate::CODE;
use crate::circle::Seen;

/// Most operations of one answer of the ledger.
const MOST: u32 = 200;
/// Leads the names of actors that nobody proved.
const CLAIMED: &str = "claimed:";
/// Refusals that ask the caller to make the same call again.
const INVITATIONS: [&str; 2] = ["RATE_LIMITED", "PERMIT_USED"];
/// The code of a call whose caller gave it up.
const CANCELLED: &str = "CANCELLED";
/// The place of calls inside the one that is judged, which is not in the ledger yet.
const JUDGED_NOW: u64 = 0;

/// Whose calls are looked at.
pub(crate) struct Scope {
    filter: OperationFilter,
    /// Calls of those who prove to be somebody are not.
    is_unproven: bool,
    key: String,
}

impl Scope {
    /// The envelope's, or the connection's without one.
    pub(crate) fn near(request: &Request) -> Scope {
        let envelope_id = request.envelope_id.clone();
        Scope {
            filter: OperationFilter {
                connection: envelope_id.is_none().then(|| request.connection.clone()),
                envelope_id,
                ..OperationFilter::default()
            },
            is_unproven: false,
            key: String::new(),
        }
    }

    /// The caller's, over all envelopes and connections. All callers that prove nothing are one.
    pub(crate) fn of_caller(request: &Request) -> Scope {
        let identity = request.identity.as_ref();
        Scope {
            filter: OperationFilter {
                actor: identity.cloned(),
                ..OperationFilter::default()
            },
            is_unproven: identity.is_none(),
            key: identity.map_or_else(
                || "unproven".to_owned(),
                |identity| format!("identity {identity}"),
            ),
        }
    }

    /// Its caller, among all callers.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Its newest calls, at least `depth` of them if there are. Those that say nothing are left out, so that they hide
    /// nothing.
    pub(crate) fn past(
        &self,
        since_ms: i64,
        depth: u32,
        query: impl Fn(&OperationFilter) -> Result<Vec<Operation>, LedgerError>,
    ) -> Result<Past, LedgerError> {
        let filter = OperationFilter {
            since_ms: Some(since_ms),
            newest_first: true,
            limit: depth.saturating_mul(2).min(MOST),
            ..self.filter.clone()
        };
        let found = query(&filter)?;
        let is_all = u32::try_from(found.len()).is_ok_and(|found| found < filter.limit);
        let left_out = found.iter().filter(|operation| !self.counts(operation)).count();
        if is_all || left_out == 0 {
            return Ok(Past::of(self.only(found), None));
        }
        // Calls that succeeded are asked for by themselves, and no denial comes between those.
        let ended = |success: bool| {
            query(&OperationFilter {
                success: Some(success),
                limit: MOST,
                ..filter.clone()
            })
        };
        let (succeeded, failed) = (ended(true)?, ended(false)?);
        let is_full = u32::try_from(failed.len()).is_ok_and(|failed| failed >= MOST);
        let is_hidden = is_full && failed.iter().all(is_passed_over);
        let since_then = failed.last().map_or(0, |oldest| oldest.seq);
        let came_between = succeeded
            .first()
            .is_some_and(|newest| newest.seq > since_then || newest.seq == JUDGED_NOW);
        let denials = (is_hidden && !came_between).then(|| failed.clone());
        let mut all = self.only(succeeded);
        all.extend(self.only(failed));
        // What is judged now is the newest, and of one row the order stays.
        all.sort_by_key(|operation| std::cmp::Reverse(operation.seq.wrapping_sub(1)));
        Ok(Past::of(all, denials))
    }

    fn only(&self, found: Vec<Operation>) -> Vec<Operation> {
        let mut found = found;
        found.retain(|operation| self.counts(operation));
        found
    }

    fn counts(&self, operation: &Operation) -> bool {
        let is_proven = operation
            .actor
            .as_ref()
            .is_some_and(|actor| !actor.starts_with(CLAIMED));
        let is_others = self.is_unproven && is_proven;
        !is_others && !is_passed_over(operation)
    }
}

/// Whether a call says nothing about its caller: this policy denied it, another asked to make it again later, or the
/// caller gave it up without a result.
fn is_passed_over(operation: &Operation) -> bool {
    let code = operation.error_code.as_deref().unwrap_or_default();
    let is_given_up = code == CANCELLED && operation.effect == Some(Effect::Read);
    code == CODE || INVITATIONS.contains(&code) || is_given_up
}

/// Past calls, the newest first, without this policy's own denials.
pub(crate) struct Past {
    operations: Vec<Operation>,
    /// This policy's own denials, if they are all that can be seen of failed calls and nothing came after them.
    denials: Vec<Operation>,
}

impl Past {
    fn of(operations: Vec<Operation>, denials: Option<Vec<Operation>>) -> Past {
        Past {
            operations,
            denials: denials.unwrap_or_default(),
        }
    }

    /// Whether a call was denied so often that what it did before is out of sight.
    pub(crate) fn is_flooded_by(&self, request: &Request) -> bool {
        let mut denials = self.denials.iter();
        denials.any(|denied| denied.tool == request.tool && denied.args_hash == request.args_hash)
    }

    /// Whether the call that is judged is inside another.
    pub(crate) fn is_of_member(&self) -> bool {
        self.operations
            .first()
            .is_some_and(|newest| newest.seq == JUDGED_NOW)
    }

    /// The calls by themselves, without those that others are inside, and whether there are such.
    pub(crate) fn calls(&self) -> (Vec<Seen<'_>>, bool) {
        let mut calls = Vec::new();
        let mut has_wholes = false;
        // The newest are first, so a whole comes after what is in it.
        for row in self
            .operations
            .chunk_by(|next, operation| operation.is_of_same_row(next))
        {
            match row {
                [members @ .., whole] if !members.is_empty() || whole.seq == JUDGED_NOW => {
                    has_wholes = true;
                    calls.extend(members.iter().map(|member| (member, false)));
                }
                row => calls.extend(row.iter().map(|operation| (operation, true))),
            }
        }
        (seen(&calls), has_wholes)
    }

    /// Rows alone.
    pub(crate) fn wholes(&self) -> Vec<Seen<'_>> {
        let all: Vec<(&Operation, bool)> = self.operations.iter().map(|one| (one, true)).collect();
        seen(&all)
    }

    /// The place in the ledger of the newest row that is no repetition of the call, with the outcome that it had last.
    /// Calls that were judged before the first of them ended have the same place.
    pub(crate) fn before_repeats(&self, request: &Request) -> u64 {
        let is_call = |operation: &Operation| {
            operation.tool == request.tool && operation.args_hash == request.args_hash
        };
        let newest = self.operations.first().map(outcome);
        let mut past = self.operations.iter();
        let other = past.find(|operation| !is_call(operation) || Some(outcome(operation)) != newest);
        other.map_or(JUDGED_NOW, |operation| operation.seq)
    }
}

/// What is compared of past calls, the newest first.
fn seen<'a>(past: &[(&'a Operation, bool)]) -> Vec<Seen<'a>> {
    let mut seen: Vec<Seen<'a>> = Vec::new();
    for (operation, is_own) in past.iter().rev() {
        let mut call = Seen {
            tool: &operation.tool,
            args_hash: &operation.args_hash,
            outcome: outcome(operation),
            is_own: *is_own && !outcome(operation).is_empty(),
        };
        if operation.seq == JUDGED_NOW {
            let before = seen.iter().rev().find(|before| before.is_same_call(&call));
            call.outcome = before.map_or("", |before| before.outcome);
            call.is_own = false;
        }
        seen.push(call);
    }
    seen.reverse();
    seen
}

/// What was changed, else what was answered, else the error's code.
fn outcome(operation: &Operation) -> &str {
    let changed = operation.mutation_fingerprint.as_deref();
    changed
        .or(operation.result_hash.as_deref())
        .or(operation.error_code.as_deref())
        .unwrap_or_default()
}
