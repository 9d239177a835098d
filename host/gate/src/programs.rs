//! Programs that a call starts, charged to its envelope and its time windows. A job's gate that runs tests spends
//! test runs like `test_run`. Each program of a tool that is not a test tool takes from the budget `commands`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tollgate_core::budget::Budget;
use tollgate_core::clock::Clock;
use tollgate_core::deadline::Deadline;
use tollgate_core::envelope::{Charge, Refusal, Standing};
use tollgate_sandbox::counted_programs::{CountPrograms, Counted};
use tollgate_sdk::{Timestamp, ToolError};
use tollgate_store::storage::{Admission, MAX_DEPTH, Session, StoreResult, TestRun};

use super::pending_operation::PendingOperation;
use super::settled::Settled;
use super::{envelope_refusal, windows};

/// Named budget that programs take from, if the operator configured it.
const COMMANDS_BUDGET: &str = "commands";
/// Error code of an exhausted named budget.
const BUDGET_EXHAUSTED: &str = "BUDGET_EXHAUSTED";

/// Most test runs in a row.
const MAX_RUNS: usize = 100;

/// Programs of one call.
pub(super) struct Programs {
    pending: PendingOperation,
    clock: Arc<dyn Clock>,
    noted: Mutex<Noted>,
}

/// Counters for the call's row and reply.
#[derive(Debug, Clone, Default)]
pub(super) struct Noted {
    /// Tests that started.
    started: u32,
    /// State of the envelope after the last count.
    standing: Option<Standing>,
    /// Counters of that envelope.
    counters: Option<String>,
    /// Events of an envelope that a refused test closed.
    events: Vec<Value>,
    /// Limit that refused a test.
    limit: Option<Refusal>,
    /// Code of the limit that refused a program, if the limit is not one of the envelope's own.
    other_limit: Option<&'static str>,
    /// Tests that ended.
    runs: Vec<TestRun>,
}

impl Noted {
    /// Adds the counters to the end of the call.
    pub(super) fn tell(self, settled: &mut Settled) {
        settled.standing = self.standing.or(settled.standing);
        settled.counters = self.counters.or(settled.counters.take());
        settled.limit = self.limit.or(settled.limit);
        settled.other_limit = self.other_limit;
        settled.told.events.extend(self.events);
        settled.tests = self.runs;
    }
}

impl Programs {
    pub(super) fn of(pending: &PendingOperation, clock: Arc<dyn Clock>) -> Programs {
        Programs {
            pending: pending.clone(),
            clock,
            noted: Mutex::default(),
        }
    }

    /// Counters so far.
    pub(super) fn noted(&self) -> Noted {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a test run from the time windows and from the envelope.
    fn take(&self, session: &Session, noted: &mut Noted) -> StoreResult<Result<(), ToolError>> {
        let mut pending = self.pending.clone();
        pending.charge = Charge::TestRun;
        // Units of windows that the call itself took are stored under its own id.
        pending.operation.op_id = format!("{}+{}", pending.operation.op_id, noted.started);
        if let Err(refusal) = windows::take(session, &pending.windows, &pending, self.clock.now_ms())? {
            return Ok(Err(refusal));
        }
        let Some(envelope) = &pending.operation.envelope_id else {
            return Ok(Ok(()));
        };
        let boot_ms = self.clock.boot_ms();
        let now = Timestamp::from_ms(self.clock.now_ms()).to_string();
        match session
            .envelopes()
            .admit(envelope, pending.charge, boot_ms, &now)?
        {
            Admission::Admitted(admitted) => {
                if let Some(counters) = &admitted.counters {
                    session.intents().count(&self.pending.operation.op_id, counters)?;
                }
                noted.standing = Some(admitted.standing);
                noted.counters = admitted.counters;
                Ok(Ok(()))
            }
            Admission::Refused {
                envelope,
                refusal,
                event,
            } => {
                windows::undo(session, &pending.windows, &pending)?;
                noted.limit = Some(refusal);
                noted.events.extend(event);
                Ok(Err(envelope_refusal::refused(&envelope, refusal, boot_ms)))
            }
            Admission::Unknown => Ok(Ok(())),
        }
    }
}

impl Programs {
    /// Envelopes of the call, from inner to outer, that have a budget for programs.
    fn budgets(&self, session: &Session) -> StoreResult<Vec<(String, Budget)>> {
        let mut found = Vec::new();
        // A tool that runs tests pays with test runs.
        let mut at = match self.pending.charge {
            Charge::TestRun => None,
            _ => self.pending.operation.envelope_id.clone(),
        };
        for _ in 0..=MAX_DEPTH {
            let Some(id) = at.take() else { break };
            found.extend(
                session
                    .budgets()
                    .get(&id, COMMANDS_BUDGET)?
                    .map(|budget| (id.clone(), budget)),
            );
            at = session.envelopes().get(&id)?.and_then(|envelope| envelope.parent);
        }
        Ok(found)
    }

    /// Takes the cost of a program, or takes nothing and returns the limit that has too little left.
    fn charge(
        &self,
        session: &Session,
        counts_as_test: bool,
        noted: &mut Noted,
    ) -> StoreResult<Result<(), String>> {
        let budgets = self.budgets(session)?;
        if let Some((envelope, budget)) = budgets.iter().find(|(_, budget)| budget.left() == 0) {
            noted.other_limit = Some(BUDGET_EXHAUSTED);
            return Ok(Err(format!(
                "{BUDGET_EXHAUSTED}: envelope {envelope} has used up its budget `{COMMANDS_BUDGET}` of {}, and each program takes 1 \
                 unit",
                tollgate_core::text::counted(budget.limit, "unit")
            )));
        }
        if counts_as_test && let Err(refusal) = self.take(session, noted)? {
            return Ok(Err(refusal.message));
        }
        for (envelope, _) in budgets {
            session.budgets().book(&envelope, COMMANDS_BUDGET, 1)?;
        }
        Ok(Ok(()))
    }

    /// True if the program costs nothing from any limit.
    fn is_free(&self, session: &Session, counts_as_test: bool) -> StoreResult<bool> {
        let has_limits = !self.pending.windows.is_empty() || self.pending.operation.envelope_id.is_some();
        Ok(!(counts_as_test && has_limits) && self.budgets(session)?.is_empty())
    }
}

impl CountPrograms for Programs {
    fn count(
        &self,
        session: &Session,
        deadline: &Deadline,
        program: Counted,
    ) -> StoreResult<Result<(), String>> {
        let mut noted = self.lock();
        let is_test = program == Counted::Test;
        noted.started += u32::from(is_test);
        // The admission of the call paid for the first of its tests.
        let is_paid = noted.started == 1 && self.pending.charge == Charge::TestRun;
        let counts_as_test = is_test && !is_paid;
        if self.is_free(session, counts_as_test)? {
            return Ok(Ok(()));
        }
        session.begin_write_before(deadline)?;
        let before = noted.clone();
        let charged = self
            .charge(session, counts_as_test, &mut noted)
            .and_then(|charged| {
                session.commit()?;
                Ok(charged)
            });
        if charged.is_err() {
            *noted = before;
            if session.in_transaction() {
                let _ = session.rollback();
            }
        }
        charged
    }

    fn test_ended(&self, mut run: TestRun, alike: &[&str]) {
        // If several tests have the same words, the one that the call names counts.
        if let Some(asked) = self.pending.test.as_deref().filter(|asked| alike.contains(asked)) {
            asked.clone_into(&mut run.test);
        }
        let runs = &mut self.lock().runs;
        if runs.len() < MAX_RUNS {
            runs.push(run);
        }
    }
}
