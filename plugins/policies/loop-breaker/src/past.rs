//! Past calls in the ledger.

use tollgate_sdk::policy::Request;
use tollgate_sdk::{Effect, LedgerError, Operation, OperationFilter};

use crate::CODE;
use crate::circle::Seen;

/// Maximum number of operations in one result of the ledger.
const MAX_OPERATIONS: u32 = 200;
/// Prefix of unproven actors.
const CLAIMED_PREFIX: &str = "claimed:";
/// Codes of refusals that ask the caller to repeat the call.
const RETRY_CODES: [&str; 2] = ["RATE_LIMITED", "PERMIT_USED"];
/// Code of a call that the caller cancelled.
const CANCELLED: &str = "CANCELLED";
/// Sequence number of calls in the current request, which are not in the ledger yet.
const CURRENT_REQUEST: u64 = 0;

/// Filter for the operations that count as repetitions.
pub(crate) struct Scope {
    filter: OperationFilter,
    /// True if calls with a proven identity are excluded.
    is_unproven: bool,
    key: String,
}

impl Scope {
    /// Scope of the envelope, or of the connection without one.
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

    /// Scope of the caller, over all envelopes and connections. All callers without a proven identity are one.
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

    /// Key of the caller among all callers.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Newest calls in scope, at least `depth` of them if they exist. Calls without information are skipped, so
    /// that they hide no others.
    pub(crate) fn past(
        &self,
        since_ms: i64,
        depth: u32,
        query: impl Fn(&OperationFilter) -> Result<Vec<Operation>, LedgerError>,
    ) -> Result<Past, LedgerError> {
        let filter = OperationFilter {
            since_ms: Some(since_ms),
            newest_first: true,
            limit: depth.saturating_mul(2).min(MAX_OPERATIONS),
            ..self.filter.clone()
        };
        let found = query(&filter)?;
        let is_all = u32::try_from(found.len()).is_ok_and(|found| found < filter.limit);
        let left_out = found.iter().filter(|operation| !self.counts(operation)).count();
        if is_all || left_out == 0 {
            return Ok(Past::of(self.only(found), None));
        }
        // Successful calls are queried separately, and no denial is among them.
        let ended = |success: bool| {
            query(&OperationFilter {
                success: Some(success),
                limit: MAX_OPERATIONS,
                ..filter.clone()
            })
        };
        let (succeeded, failed) = (ended(true)?, ended(false)?);
        let is_full = u32::try_from(failed.len()).is_ok_and(|failed| failed >= MAX_OPERATIONS);
        let is_hidden = is_full && failed.iter().all(is_passed_over);
        let since_then = failed.last().map_or(0, |oldest| oldest.seq);
        let came_between = succeeded
            .first()
            .is_some_and(|newest| newest.seq > since_then || newest.seq == CURRENT_REQUEST);
        let denials = (is_hidden && !came_between).then(|| failed.clone());
        let mut all = self.only(succeeded);
        all.extend(self.only(failed));
        // Calls of the current request are the newest, and calls of one row keep their order.
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
            .is_some_and(|actor| !actor.starts_with(CLAIMED_PREFIX));
        let is_others = self.is_unproven && is_proven;
        !is_others && !is_passed_over(operation)
    }
}

/// Checks whether a call says nothing about its caller: this policy denied it, another policy asked to repeat
/// it later, or the caller cancelled it.
fn is_passed_over(operation: &Operation) -> bool {
    let code = operation.error_code.as_deref().unwrap_or_default();
    let is_given_up = code == CANCELLED && operation.effect == Some(Effect::Read);
    code == CODE || RETRY_CODES.contains(&code) || is_given_up
}

/// Past calls, newest first, without this policy's own denials.
pub(crate) struct Past {
    operations: Vec<Operation>,
    /// This policy's own denials, if all visible failures are denials and no other call followed.
    denials: Vec<Operation>,
}

impl Past {
    fn of(operations: Vec<Operation>, denials: Option<Vec<Operation>>) -> Past {
        Past {
            operations,
            denials: denials.unwrap_or_default(),
        }
    }

    /// Checks whether a call was denied so often that its earlier calls are out of sight.
    pub(crate) fn is_flooded_by(&self, request: &Request) -> bool {
        let mut denials = self.denials.iter();
        denials.any(|denied| denied.tool == request.tool && denied.args_hash == request.args_hash)
    }

    /// Checks whether the current call is inside another.
    pub(crate) fn is_of_member(&self) -> bool {
        self.operations
            .first()
            .is_some_and(|newest| newest.seq == CURRENT_REQUEST)
    }

    /// Single calls, without those that contain others, and whether there are such.
    pub(crate) fn calls(&self) -> (Vec<Seen<'_>>, bool) {
        let mut calls = Vec::new();
        let mut has_wholes = false;
        // The newest are first, so an outer call comes after the calls inside it.
        for row in self
            .operations
            .chunk_by(|next, operation| operation.is_of_same_row(next))
        {
            match row {
                [members @ .., whole] if !members.is_empty() || whole.seq == CURRENT_REQUEST => {
                    has_wholes = true;
                    calls.extend(members.iter().map(|member| (member, false)));
                }
                row => calls.extend(row.iter().map(|operation| (operation, true))),
            }
        }
        (seen(&calls), has_wholes)
    }

    /// Outer calls only.
    pub(crate) fn wholes(&self) -> Vec<Seen<'_>> {
        let all: Vec<(&Operation, bool)> = self.operations.iter().map(|one| (one, true)).collect();
        seen(&all)
    }

    /// Sequence number of the newest row that is not a repetition of the call, with the call's last outcome.
    /// Calls that were evaluated before the first of them ended have the same number.
    pub(crate) fn before_repeats(&self, request: &Request) -> u64 {
        let is_call = |operation: &Operation| {
            operation.tool == request.tool && operation.args_hash == request.args_hash
        };
        let newest = self.operations.first().map(outcome);
        let mut past = self.operations.iter();
        let other = past.find(|operation| !is_call(operation) || Some(outcome(operation)) != newest);
        other.map_or(CURRENT_REQUEST, |operation| operation.seq)
    }
}

/// Compared fields of past calls, newest first.
fn seen<'a>(past: &[(&'a Operation, bool)]) -> Vec<Seen<'a>> {
    let mut seen: Vec<Seen<'a>> = Vec::new();
    for (operation, is_own) in past.iter().rev() {
        let mut call = Seen {
            tool: &operation.tool,
            args_hash: &operation.args_hash,
            outcome: outcome(operation),
            is_own: *is_own && !outcome(operation).is_empty(),
        };
        if operation.seq == CURRENT_REQUEST {
            let before = seen.iter().rev().find(|before| before.is_same_call(&call));
            call.outcome = before.map_or("", |before| before.outcome);
            call.is_own = false;
        }
        seen.push(call);
    }
    seen.reverse();
    seen
}

/// Fingerprint of the change, else hash of the result, else code of the error.
fn outcome(operation: &Operation) -> &str {
    let changed = operation.mutation_fingerprint.as_deref();
    changed
        .or(operation.result_hash.as_deref())
        .or(operation.error_code.as_deref())
        .unwrap_or_default()
}
