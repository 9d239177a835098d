//! Answers to jobs after their commit, or after its failure.

use std::time::Instant;

use crossbeam_channel::Sender;
use tollgate_store::storage::{Admitted, StoreError};

use crate::failure::{Failure, lost_transaction, recorded_elsewhere};
use crate::intake::QueuedJob;
use crate::job::Job;
use crate::projector::Work as Projection;
use crate::settled::Settled;

/// Answers the jobs of a batch that is on disk.
pub(super) fn answer(batch: Vec<QueuedJob>, projector: &Sender<Projection>) {
    for queued in batch {
        // A caller that is gone needs no answer; its row is in the ledger.
        match queued.job {
            Job::Call { guest, reply, .. } => {
                let settled = queued
                    .settled
                    .unwrap_or_else(|| Box::new(Settled::failed(lost_transaction())));
                if settled
                    .result
                    .as_ref()
                    .is_ok_and(|done| !done.deferred_writes.is_empty())
                {
                    let _ = projector.send(Projection::Files {
                        guest,
                        settled,
                        reply,
                    });
                } else {
                    reply.tell(settled);
                }
            }
            Job::Admit { reply, .. } => {
                let settled = queued
                    .settled
                    .unwrap_or_else(|| Box::new(Settled::failed(lost_transaction())));
                let _ = reply.send(if settled.result.is_ok() {
                    Ok(settled.standing.map(|standing| Admitted {
                        standing,
                        counters: settled.counters,
                        remaining_ms: settled.remaining_ms,
                    }))
                } else {
                    Err(*settled)
                });
            }
            Job::Record { done, .. } => {
                let recorded = match queued.is_recorded_elsewhere {
                    true => Err(recorded_elsewhere()),
                    false => Ok(()),
                };
                let _ = done.send(recorded);
            }
            Job::Interrupt { done, .. } => {
                let _ = done.send(());
            }
            Job::Maintain { done, .. } => {
                let (since, result) = queued
                    .maintained
                    .unwrap_or_else(|| (Instant::now(), Err(StoreError::no_session())));
                let _ = done.send(result.map(|()| since.elapsed()));
            }
            // Waiting files are written first.
            Job::Flush(done) => {
                let _ = projector.send(Projection::Flush(done));
            }
            Job::Pulse(done) => drop(done.send(())),
            Job::Backlog => {}
        }
    }
}

/// Answers a batch that could not be committed and whose failure could not be recorded.
pub(super) fn fail(batch: Vec<QueuedJob>, failure: &Failure) {
    for queued in batch {
        match queued.job {
            Job::Call { reply, .. } => reply.tell(Box::new(Settled::failed(failure.clone()))),
            Job::Admit { reply, .. } => {
                let _ = reply.send(Err(Settled::failed(failure.clone())));
            }
            Job::Record { done, .. } if queued.is_kept => {
                let _ = done.send(Ok(()));
            }
            Job::Record { operation, done, .. } => {
                if !queued.is_late {
                    tracing::error!(
                        op_id = operation.op_id,
                        tool = operation.tool,
                        "writing a ledger row failed"
                    );
                }
                let _ = done.send(Err(failure.clone()));
            }
            Job::Interrupt { done, .. } | Job::Flush(done) | Job::Pulse(done) => {
                let _ = done.send(());
            }
            // The sender notices that nothing was done.
            Job::Maintain { .. } | Job::Backlog => {}
        }
    }
}
