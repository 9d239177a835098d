//! Programs that a call starts, counted in its envelope and its time windows: a gate of a job that runs tests spends test
//! runs as `test_run` does, and each program of a tool that is no test tool takes from the budget `commands`.

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

/// Named budget that programs take from, if the operator configures it.
const COMMANDS: &str = "commands";
/// Code of the limit that a named budget is.
const EXHAUSTED: &str = "BUDGET_EXHAUSTED";

/// Most test runs that a row names.
const MAX_RUNS: usize = 100;

/// The programs of one call.
pub(super) struct Programs {
    draft: PendingOperation,
    clock: Arc<dyn Clock>,
    noted: Mutex<Noted>,
}

/// Counts for the call's row and reply.
#[derive(Debug, Clone, Default)]
pub(super) struct Noted {
    /// Tests that were started.
    started: u32,
    /// Standing of the envelope after the last count.
    standing: Option<Standing>,
    /// The counters that belong to it.
    counters: Option<String>,
    /// Events of an envelope that a refused test closed.
    events: Vec<Value>,
    /// The limit that refused a test.
    limit: Option<Refusal>,
    /// Code of the limit that refused a program, if it is not one of the envelope's own.
    other_limit: Option<&'static str>,
    /// Tests that ended.
    runs: Vec<TestRun>,
}

impl Noted {
    /// Tells the end of the call.
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
    pub(super) fn of(draft: &PendingOperation, clock: Arc<dyn Clock>) -> Programs {
        Programs {
            draft: draft.clone(),
            clock,
            noted: Mutex::default(),
        }
    }

    /// Counts until now.
    pub(super) fn noted(&self) -> Noted {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a test run of the windows and of the envelope.
    fn take(&self, session: &Session, noted: &mut Noted) -> StoreResult<Result<(), ToolError>> {
        let mut draft = self.draft.clone();
        draft.charge = Charge::TestRun;
        // What the call itself took of windows is kept under its own id.
        draft.operation.op_id = format!("{}+{}", draft.operation.op_id, noted.started);
        if let Err(refusal) = windows::take(session, &draft.windows, &draft, self.clock.now_ms())? {
            return Ok(Err(refusal));
        }
        let Some(envelope) = &draft.operation.envelope_id else {
            return Ok(Ok(()));
        };
        let boot_ms = self.clock.boot_ms();
        let now = Timestamp::from_ms(self.clock.now_ms()).to_string();
        match session.envelopes().admit(envelope, draft.charge, boot_ms, &now)? {
            Admission::Admitted(admitted) => {
                if let Some(counters) = &admitted.counters {
                    session.intents().count(&self.draft.operation.op_id, counters)?;
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
                windows::undo(session, &draft.windows, &draft)?;
                noted.limit = Some(refusal);
                noted.events.extend(event);
                Ok(Err(envelope_refusal::refused(&envelope, refusal, boot_ms)))
            }
            Admission::Unknown => Ok(Ok(())),
        }
    }
}

impl Programs {
    /// Envelopes of the call, outwards, that have a budget for programs.
    fn budgets(&self, session: &Session) -> StoreResult<Vec<(String, Budget)>> {
        let mut found = Vec::new();
        // A tool that runs tests pays with test runs.
        let mut at = match self.draft.charge {
            Charge::TestRun => None,
            _ => self.draft.operation.envelope_id.clone(),
        };
        for _ in 0..=MAX_DEPTH {
            let Some(id) = at.take() else { break };
            found.extend(
                session
                    .budgets()
                    .get(&id, COMMANDS)?
                    .map(|budget| (id.clone(), budget)),
            );
            at = session.envelopes().get(&id)?.and_then(|envelope| envelope.parent);
        }
        Ok(found)
    }

    /// Takes what a program costs, or says what there is too little of. Nothing is taken then.
    fn charge(
        &self,
        session: &Session,
        counts_as_test: bool,
        noted: &mut Noted,
    ) -> StoreResult<Result<(), String>> {
        let budgets = self.budgets(session)?;
        if let Some((envelope, budget)) = budgets.iter().find(|(_, budget)| budget.left() == 0) {
            noted.other_limit = Some(EXHAUSTED);
            return Ok(Err(format!(
                "{EXHAUSTED}: envelope {envelope} had {} units of budget `{COMMANDS}` and all are used; a program takes one",
                budget.limit
            )));
        }
        if counts_as_test && let Err(refusal) = self.take(session, noted)? {
            return Ok(Err(refusal.message));
        }
        for (envelope, _) in budgets {
            session.budgets().book(&envelope, COMMANDS, 1)?;
        }
        Ok(Ok(()))
    }

    /// True if the program costs nothing of a limit that there is.
    fn is_free(&self, session: &Session, counts_as_test: bool) -> StoreResult<bool> {
        let has_limits = !self.draft.windows.is_empty() || self.draft.operation.envelope_id.is_some();
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
        // The call was admitted for the first of its tests.
        let is_paid = noted.started == 1 && self.draft.charge == Charge::TestRun;
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
        // Of several tests with the same words it is the one that the call asks for.
        if let Some(asked) = self.draft.test.as_deref().filter(|asked| alike.contains(asked)) {
            asked.clone_into(&mut run.test);
        }
        let runs = &mut self.lock().runs;
        if runs.len() < MAX_RUNS {
            runs.push(run);
        }
    }
}
