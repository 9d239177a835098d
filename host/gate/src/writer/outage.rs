//! The time in which a server's database cannot be reached.
//!
//! Calls wait for the server for a while, counted from when it went away and not from when they came, so that none waits for
//! those before it. After that each is refused at once. Their rows, and those of reads, wait here until the server is back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_core::effect::Effect;
use tollgate_store::storage::Operation;

use crate::failure::unreachable;
use crate::intake::{Intake, Pending};
use crate::job::Job;
use crate::settled::Settled;

/// Time for a server to come back. Calls that wait have time limits of their own.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two tries once patience is over. A connection to a server that says nothing takes long to fail.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);
/// Rows that wait at most.
const MAX_LATE: usize = 8_192;

/// State of the server's absence, which all lanes share.
#[derive(Clone, Default)]
pub(super) struct Outage(Arc<Mutex<State>>);

/// State of the server's absence, and the rows that wait for its end.
#[derive(Default)]
struct State {
    since: Option<Instant>,
    tried: Option<Instant>,
    late: Vec<Operation>,
    /// Rows for which there was no room.
    dropped: u64,
}

impl Outage {
    /// Notes that the server could not be reached. True while calls wait for it.
    pub(super) fn goes_on(&self) -> bool {
        let mut state = self.state();
        state.tried = Some(Instant::now());
        state.since.get_or_insert_with(Instant::now).elapsed() < PATIENCE
    }

    /// Notes that something was committed.
    pub(super) fn is_over(&self) {
        let mut state = self.state();
        if let Some(since) = state.since.take() {
            tracing::info!(
                seconds = since.elapsed().as_secs(),
                "the database's server is back"
            );
        }
        if state.dropped > 0 {
            tracing::error!(
                rows = std::mem::take(&mut state.dropped),
                "rows of calls that came while the database could not be reached are not in the ledger: there were too many"
            );
        }
    }

    /// True if the server was tried just now and is away for long.
    pub(super) fn is_hopeless(&self) -> bool {
        let state = self.state();
        state.since.is_some_and(|since| since.elapsed() >= PATIENCE)
            && state.tried.is_some_and(|tried| tried.elapsed() < BETWEEN_TRIES)
    }

    /// Rows that waited.
    pub(super) fn take_late(&self) -> Vec<Operation> {
        std::mem::take(&mut self.state().late)
    }

    /// Has rows that wait tried again after a while, if nothing comes before.
    pub(super) fn look_again(&self, intake: &mut Intake) {
        if !self.state().late.is_empty() {
            intake.look_again_in(BETWEEN_TRIES);
        }
    }

    /// Keeps the rows of a batch that is refused, whose calls changed nothing, and those of reads.
    pub(super) fn keep(&self, rows: &[Operation], batch: &mut [Pending]) {
        let mut state = self.state();
        rows.iter().for_each(|row| state.add(row.clone()));
        let refused = Settled::turned_away(unreachable());
        for pending in batch {
            let row = match &mut pending.job {
                Job::Call { draft, .. } | Job::Admit { draft, .. } => draft.finish(&refused).clone(),
                Job::Record {
                    operation,
                    task: None,
                    ..
                } if operation.effect != Effect::Run => {
                    pending.is_kept = true;
                    (**operation).clone()
                }
                _ => continue,
            };
            state.add(Operation {
                // Nobody knows if their content was stored.
                artifacts: Vec::new(),
                artifact_ids: None,
                ..row
            });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, row: Operation) {
        if self.late.len() < MAX_LATE {
            self.late.push(row);
        } else {
            self.dropped += 1;
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let rows = self.late.len();
        if rows > 0 {
            tracing::error!(
                rows,
                "the host ends while the database cannot be reached; these rows are not in the ledger"
            );
        }
    }
}
