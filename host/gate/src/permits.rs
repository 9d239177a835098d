//! Permits that count once: approvals, slots that calls share, and units of budgets. A call takes them in its own
//! commit. If policies let several calls through on the same snapshot, on any host of the data directory, only as
//! many run as are allowed.

use std::sync::{Arc, Mutex, PoisonError};

use tollgate_components::policies::Verdict;
use tollgate_core::budget::Budget;
use tollgate_core::effect::Effect;
use tollgate_core::failure_class::FailureClass;
use tollgate_core::text;
use tollgate_sandbox::permit::{Permit, Slot, Terms};
use tollgate_sdk::ToolError;
use tollgate_store::storage::{Namespace, Operation, Reservation, Session, Slots, StoreResult};

use super::Gate;
use super::ended::Begun;
use super::failure::Failure;
use super::pending_operation::PendingOperation;
use super::settled::Settled;

/// Longest text of a refusal, in bytes.
const MAX_TEXT: usize = 2 << 10;

/// Error code of a call whose permit counts once and was used by another call.
pub(super) const PERMIT_USED: &str = "PERMIT_USED";

/// Refusal of a call because another call was faster.
#[derive(Debug, Clone)]
pub(super) struct Overtaken {
    refusal: ToolError,
    /// New verdict of the policy, if it gave a refusal of its own.
    verdict: Option<Verdict>,
}

impl Overtaken {
    /// Refusal of a call that needs a permit that counts once.
    fn by_one(policy: &str) -> Overtaken {
        let policy = policy.strip_prefix(Namespace::POLICIES).unwrap_or(policy);
        let refusal = ToolError::new(
            PERMIT_USED,
            format!("policy `{policy}` permits this call only once, and another call has just used that permission; nothing was run"),
        )
        .remediation("Call again. The policy's answer then states what the call needs.")
        .context("policy", policy);
        Overtaken {
            refusal,
            verdict: None,
        }
    }

    /// Refusal of a call that needs a slot, in the policy's own words.
    pub(super) fn by_many(slot: &Slot, policy: &str, wait_ms: i64) -> Overtaken {
        let line = |said: &str| text::clean(text::cut(said, MAX_TEXT));
        let code = text::code(&slot.code);
        let remediation = match &slot.remediation {
            Some(remediation) => line(remediation),
            None => format!("Call again in {} s.", wait_ms.max(1).saturating_add(999) / 1_000),
        };
        let refusal = ToolError::new(
            code.as_str(),
            format!("policy `{policy}`: {}", line(&slot.reason)),
        );
        Overtaken {
            refusal: refusal.remediation(remediation).context("policy", policy),
            verdict: Some(Verdict::overtaken(policy, &code)),
        }
    }

    /// Refusal of a call that needs more units of a budget than are left.
    fn by_budget(policy: &str, name: &str, budget: Option<Budget>) -> Overtaken {
        let budget = budget.unwrap_or(Budget {
            limit: 0,
            used: 0,
            reserved: 0,
        });
        let refusal = ToolError::new(
            "BUDGET_EXHAUSTED",
            format!(
                "policy `{policy}` charges budget `{name}` for this call, but too few units are left (limit: {}); \
                 nothing was run",
                budget.limit
            ),
        )
        .remediation("Report to the user what was achieved. To continue, open a new envelope with envelope_open.")
        .context("policy", policy)
        .context("budget", name)
        .context("limit", budget.limit)
        .context("used", budget.used.saturating_add(budget.reserved));
        Overtaken {
            refusal,
            verdict: None,
        }
    }

    /// End of a call that did not run.
    pub(super) fn settled(self) -> Settled {
        let is_overtaken = self.refusal.code == PERMIT_USED;
        let mut settled = Settled::not_begun(Failure::refused(self.refusal));
        settled.is_overtaken = is_overtaken;
        settled.verdicts.extend(self.verdict);
        settled
    }

    /// Refusal of a call that has no commit of its own.
    pub(super) fn refuse(self, pending: &mut PendingOperation) -> Failure {
        pending.verdicts.extend(self.verdict);
        Failure::refused(self.refusal)
    }
}

/// Takes all permits of a call, or none and returns why. Requires a write transaction.
pub(super) fn take(
    session: &Session,
    permits: &[Permit],
    taker: &Taker<'_>,
    now_ms: i64,
) -> StoreResult<Result<(), Overtaken>> {
    let op_id = taker.op_id;
    for (number, permit) in permits.iter().enumerate() {
        let taken = match &permit.terms {
            Terms::Once { until_ms } => {
                let key = (permit.policy.as_str(), permit.key.as_str());
                let is_taken = session.permits().take(key, op_id, (now_ms, *until_ms))?;
                is_taken
                    .then_some(())
                    .ok_or_else(|| Overtaken::by_one(&permit.policy))
            }
            Terms::Slot(slot) => {
                let slots = slots(permit, slot);
                let taken =
                    session
                        .permits()
                        .take_slot(slots, (op_id, number), slot.kept_by_failed, now_ms)?;
                let policy = permit.needed_by.as_deref().unwrap_or_default();
                taken.map_err(|wait_ms| Overtaken::by_many(slot, policy, wait_ms))
            }
            // A policy in audit mode takes nothing.
            Terms::Units(_) if permit.needed_by.is_none() => Ok(()),
            Terms::Units(units) => set_aside(session, permit, *units, (taker, number))?,
        };
        if let Err(overtaken) = taken
            && permit.needed_by.is_some()
        {
            session.permits().undo(op_id)?;
            session.budgets().give_back_of_operation(op_id)?;
            return Ok(Err(overtaken));
        }
    }
    Ok(Ok(()))
}

/// Operation that takes permits.
#[derive(Debug, Clone)]
pub(super) struct Taker<'a> {
    pub(super) op_id: &'a str,
    pub(super) envelope: Option<&'a str>,
    pub(super) host_id: &'a str,
}

impl<'a> Taker<'a> {
    pub(super) fn of(operation: &'a Operation) -> Taker<'a> {
        Taker {
            op_id: &operation.op_id,
            envelope: operation.envelope_id.as_deref(),
            host_id: &operation.host_id,
        }
    }
}

/// Reserves units of a budget until the call is over. If its host ends first, the units are released.
fn set_aside(
    session: &Session,
    permit: &Permit,
    units: i64,
    (taker, number): (&Taker<'_>, usize),
) -> StoreResult<Result<(), Overtaken>> {
    let name = permit.key.as_str();
    let policy = permit.needed_by.as_deref().unwrap_or_default();
    let budget = match taker.envelope {
        Some(envelope) => session.budgets().get(envelope, name)?,
        None => None,
    };
    let is_there = budget.is_some_and(|budget| budget.reserve(unsigned(units)).is_ok());
    let (Some(envelope), true) = (taker.envelope, is_there) else {
        return Ok(Err(Overtaken::by_budget(policy, name, budget)));
    };
    session.budgets().set_aside(&Reservation {
        id: format!("{}{}:{number}", Reservation::OF_POLICIES, taker.op_id),
        envelope_id: envelope.to_owned(),
        name: name.to_owned(),
        units,
        op_id: taker.op_id.to_owned(),
        host_id: taker.host_id.to_owned(),
    })?;
    Ok(Ok(()))
}

fn unsigned(units: i64) -> u64 {
    u64::try_from(units).unwrap_or_default()
}

fn slots<'a>(permit: &'a Permit, slot: &Slot) -> Slots<'a> {
    Slots {
        policy: &permit.policy,
        key: &permit.key,
        slots: slot.slots,
        held_ms: slot.held_ms,
    }
}

/// True if a call gives back what it took. A `write` call that fails does so unless it keeps something. Any other call
/// does so if its component was not called, or if the tool or the host failed before a side effect began. The error's
/// code does not matter, because tools choose their codes. A call that was cut short, or whose result was withheld,
/// gives nothing back, because its caller may have caused that.
pub(super) fn gives_back(effect: Effect, settled: &Settled) -> bool {
    let Some(cause) = settled.cause() else {
        return false;
    };
    let is_of_tool_or_host = matches!(cause, FailureClass::ToolError | FailureClass::Host);
    match (effect, settled.begun) {
        (Effect::Write, _) => settled.left_nothing(),
        (Effect::Read | Effect::Run, Begun::Nothing) => true,
        // Calls that read have no side effects.
        (Effect::Read, _) | (Effect::Run, Begun::NoSideEffect) => is_of_tool_or_host,
        (Effect::Run, Begun::Anything) => false,
    }
}

impl Gate {
    /// Takes the permits of a `read` call: slots of this host in memory, and all others in a commit of their own.
    pub(super) async fn take_permits(
        &self,
        permits: &[Permit],
        pending: &mut PendingOperation,
    ) -> Result<(), Failure> {
        let (by_host, written): (Vec<&Permit>, Vec<&Permit>) = permits
            .iter()
            .partition(|permit| permit.slot().is_some_and(|slot| slot.reads_by_host));
        let op_id = pending.operation.op_id.clone();
        if let Err(overtaken) = self.slots.take(&by_host, &op_id) {
            return Err(overtaken.refuse(pending));
        }
        if written.is_empty() {
            return Ok(());
        }
        let written = written.into_iter().cloned().collect();
        let taken = self.write_permits(written, pending.operation.clone()).await;
        let refused = match taken {
            Some(Ok(())) => return Ok(()),
            Some(Err(overtaken)) => overtaken.refuse(pending),
            None => unknown(),
        };
        self.slots.undo(&by_host, &op_id);
        Err(refused)
    }

    /// Takes keys and slots in a commit. `None` if it is unknown whether that is on disk.
    async fn write_permits(
        &self,
        permits: Vec<Permit>,
        operation: Operation,
    ) -> Option<Result<(), Overtaken>> {
        let outcome = Arc::new(Mutex::new(None));
        let (seen, clock) = (Arc::clone(&outcome), Arc::clone(&self.clock));
        let is_on_disk = self.executors.change(Box::new(move |session| {
            // The transaction may run again; only the last run counts.
            let taken = take(session, &permits, &Taker::of(&operation), clock.now_ms())?;
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
            Ok(())
        }));
        if !is_on_disk.await {
            return None;
        }
        outcome.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Books the units of budgets that a `read` call took.
    pub(super) async fn book_units(&self, op_id: String) {
        let work = Box::new(move |session: &Session| session.budgets().book_for_policies(&op_id));
        // Without a commit they stay reserved until this host ends.
        let _ = self.executors.change(work).await;
    }

    /// Gives back the permits of a `read` call.
    pub(super) async fn give_permits_back(&self, permits: &[Permit], op_id: String) {
        let is_by_host = |permit: &&Permit| permit.slot().is_some_and(|slot| slot.reads_by_host);
        let by_host: Vec<&Permit> = permits.iter().filter(is_by_host).collect();
        self.slots.give_back(&by_host, &op_id);
        if by_host.len() < permits.len() {
            let work = Box::new(move |session: &Session| {
                session.permits().give_back(&op_id)?;
                session.budgets().give_back_of_operation(&op_id)
            });
            // Without a commit the permit counts as used.
            let _ = self.executors.change(work).await;
        }
    }
}

/// True if a call takes units of budgets, which are booked at its end.
pub(super) fn has_units(permits: &[Permit]) -> bool {
    permits
        .iter()
        .any(|permit| matches!(permit.terms, Terms::Units(_)))
}

fn unknown() -> Failure {
    let error = ToolError::new(
        "STORAGE_FAILED",
        "the permits that the call uses up could not be recorded; nothing was run",
    );
    Failure::host(error.remediation("Call again; the host's log has the reason."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::Reply;

    const BEGUN: [Begun; 3] = [Begun::Nothing, Begun::NoSideEffect, Begun::Anything];

    /// Ends of a call that failed, one for each extent to which it may have begun.
    fn failed(failure: &Failure) -> [Settled; 3] {
        BEGUN.map(|begun| Settled {
            begun,
            ..Settled::failed(failure.clone())
        })
    }

    #[test]
    fn a_call_gives_back_what_it_took_unless_its_caller_may_have_made_it_fail() {
        let error = |code: &str| ToolError::new(code, "it failed");
        let codes = ["NOT_FOUND", "STORAGE_BUSY", "OUTCOME_UNKNOWN", "BUDGET_EXHAUSTED"];
        for code in codes {
            for failure in [Failure::of_tool(error(code)), Failure::host(error(code))] {
                let ends = failed(&failure);
                let of = |effect| ends.each_ref().map(|end| gives_back(effect, end));
                assert_eq!(of(Effect::Read), [true, true, true], "{code}");
                assert_eq!(of(Effect::Run), [true, true, false], "{code}");
            }
            for failure in [
                Failure::refused(error(code)),
                Failure::trap(error(code)),
                Failure::timeout(error(code)),
                Failure::cancelled(error(code)),
            ] {
                let ends = failed(&failure);
                for effect in [Effect::Read, Effect::Run] {
                    let of = ends.each_ref().map(|end| gives_back(effect, end));
                    assert_eq!(of, [true, false, false], "{effect:?} {:?}", failure.class);
                }
                // The transaction is rolled back.
                assert!(ends.iter().all(|end| gives_back(Effect::Write, end)));
            }
        }
    }

    #[test]
    fn a_call_that_was_overtaken_has_begun_nothing() {
        let settled = Overtaken::by_one("once").settled();
        assert!(settled.is_overtaken);
        assert_eq!(settled.begun, Begun::Nothing);
    }

    #[test]
    fn a_call_that_succeeds_gives_nothing_back() {
        let succeeded = Settled {
            begun: Begun::NoSideEffect,
            ..Settled::of(Ok(Reply::default()))
        };
        for effect in [Effect::Read, Effect::Write, Effect::Run] {
            assert!(!gives_back(effect, &succeeded), "{effect:?}");
        }
    }

    #[test]
    fn an_intent_of_a_dead_host_gives_nothing_back() {
        let mut operation = Operation::for_tests(1, None, "2026-03-01T00:00:00.000Z");
        operation.gives_permits_back = true;
        let stored = serde_json::to_string(&operation).unwrap();
        let found: Operation = serde_json::from_str(&stored).unwrap();
        assert!(!found.gives_permits_back);
    }
}
