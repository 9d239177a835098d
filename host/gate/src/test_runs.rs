//! Registered tests that a call starts, counted in its envelope and its time windows: a gate of a job that runs tests
//! spends test runs as `test_run` does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tollgate_core::clock::Clock;
use tollgate_core::deadline::Deadline;
use tollgate_core::envelope::{Charge, Refusal, Standing};
use tollgate_sandbox::registered_tests::CountTests;
use tollgate_sdk::{Timestamp, ToolError};
use tollgate_store::storage::{Admission, Ran, Session, StoreResult};

use super::pending_operation::PendingOperation;
use super::{admission, windows};

/// The tests of one call.
pub(super) struct TestRuns {
    draft: PendingOperation,
    clock: Arc<dyn Clock>,
    noted: Mutex<Noted>,
}

/// Counts for the call's row and reply.
#[derive(Debug, Clone, Default)]
pub(super) struct Noted {
    started: u32,
    /// Standing of the envelope after the last count.
    pub(super) standing: Option<Standing>,
    /// The counters that belong to it.
    pub(super) counters: Option<String>,
    /// Events of an envelope that a refused test closed.
    pub(super) events: Vec<Value>,
    /// The limit that refused a test.
    pub(super) limit: Option<Refusal>,
    /// Outcome of the tests. One that did not pass outweighs those that did.
    pub(super) ran: Option<Ran>,
}

impl TestRuns {
    pub(super) fn of(draft: &PendingOperation, clock: Arc<dyn Clock>) -> TestRuns {
        TestRuns {
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
        match session.admit(envelope, draft.charge, boot_ms, &now)? {
            Admission::Admitted(admitted) => {
                if let Some(counters) = &admitted.counters {
                    session.count_in_intent(&self.draft.operation.op_id, counters)?;
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
                Ok(Err(admission::refused(&envelope, refusal, boot_ms)))
            }
            Admission::Unknown => Ok(Ok(())),
        }
    }
}

impl CountTests for TestRuns {
    fn count(&self, session: &Session, deadline: &Deadline) -> StoreResult<Result<(), String>> {
        let mut noted = self.lock();
        noted.started += 1;
        // The call was admitted for this one.
        if noted.started == 1 && self.draft.charge == Charge::TestRun {
            return Ok(Ok(()));
        }
        if self.draft.windows.is_empty() && self.draft.operation.envelope_id.is_none() {
            return Ok(Ok(()));
        }
        session.begin_write_before(deadline)?;
        let before = noted.clone();
        let taken = self.take(session, &mut noted).and_then(|taken| {
            session.commit()?;
            Ok(taken)
        });
        match taken {
            Ok(taken) => Ok(taken.map_err(|refusal| refusal.message)),
            Err(err) => {
                *noted = before;
                if session.in_transaction() {
                    let _ = session.rollback();
                }
                Err(err)
            }
        }
    }

    fn ended(&self, ran: Ran) {
        let mut noted = self.lock();
        if noted.ran.is_none_or(|before| before == Ran::Passed) {
            noted.ran = Some(ran);
        }
    }
}
