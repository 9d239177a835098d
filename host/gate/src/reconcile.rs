//! Work trees after a restart. Compares each with the state, commit and contents, after the last call in an envelope
//! whose host is gone, and records changes since then in a ledger row.

use std::sync::Arc;

use tollgate_sandbox::annotations::Annotations;
use tollgate_sandbox::work_tree::{self, Change};
use tollgate_sdk::Timestamp;
use tollgate_store::storage::{Database, LeftState, Operation, Session, Sighting, StoreResult};

use super::pending_operation::fill_changes;
use super::runtime::Runtime;
use super::{Gate, Generation};

/// Work tree of an interrupted envelope, and the row about its change, if it changed.
struct Compared {
    envelope: String,
    row: Option<Operation>,
}

impl Gate {
    /// Compares work trees with the state that dead hosts left.
    pub(super) async fn reconcile(&self) {
        let generation = self.generation();
        let compared = self
            .executors
            .aside(move |runtime, database| compare(runtime, database, &generation))
            .await;
        let compared = match compared {
            Some(Ok(compared)) if !compared.is_empty() => compared,
            Some(Err(err)) => {
                tracing::warn!(%err, "cannot compare the work trees with their last recorded states");
                return;
            }
            _ => return,
        };
        let note = move |session: &Session| {
            let mut noted = std::collections::BTreeMap::new();
            for Compared { envelope, .. } in &compared {
                let is_moved = |one: &Compared| one.envelope == *envelope && one.row.is_some();
                if !noted.contains_key(envelope) {
                    let is_first = session
                        .work_trees()
                        .note_comparison(envelope, compared.iter().any(is_moved))?;
                    noted.insert(envelope.clone(), is_first);
                }
            }
            let ours = |one: &&Compared| noted.get(&one.envelope) == Some(&true);
            for row in compared.iter().filter(ours).filter_map(|one| one.row.as_ref()) {
                session.ledger().record(row)?;
            }
            Ok(())
        };
        if !self.executors.change(Box::new(note)).await {
            tracing::warn!("recording changes of work trees before the restart failed");
        }
    }
}

fn compare(
    runtime: &Runtime,
    database: &Database,
    generation: &Arc<Generation>,
) -> StoreResult<Vec<Compared>> {
    let session = database.read_session().map_err(|err| err.into_cause())?;
    let mut compared = Vec::new();
    for left in session.work_trees().left_states()? {
        let Some(workspace) = generation.workspaces.get(&left.seen.workspace) else {
            continue;
        };
        let services = &runtime.services;
        // If the scan fails now, a later start may compare.
        let Ok(found) = work_tree::look(workspace, &services.launcher, &*services.clock) else {
            continue;
        };
        let row = (found.state != left.seen.state).then(|| {
            let change = work_tree::change(workspace, &services.launcher, &left.seen, &found);
            row(runtime, &left, &found, change.ok())
        });
        compared.push(Compared {
            envelope: left.envelope_id,
            row,
        });
    }
    Ok(compared)
}

fn row(runtime: &Runtime, left: &LeftState, found: &Sighting, change: Option<Change>) -> Operation {
    let clock = &runtime.services.clock;
    let now = Timestamp::from_ms(clock.now_ms()).to_string();
    let mut row = left.moved(&clock.new_id("op"), runtime.host.id(), &now, found);
    fill_changes(change.as_slice(), &Annotations::default(), &mut row);
    row
}
