//! Scans of a call's work tree before and after the call, off the writer's thread, so that edits count even if no
//! call reports them.

use std::sync::Arc;

use tollgate_sandbox::work_tree::{self, ChangedInRun};
use tollgate_sandbox::workspaces::Workspace;
use tollgate_store::storage::{Cause, Database, Sighting};

use super::pending_operation::PendingOperation;
use super::runtime::Runtime;
use super::seen::LookedAt;
use super::watched::{Closing, May, Watch, look_at};

/// Most work trees that are scanned when an envelope is closed.
const MAX_AT_CLOSING: usize = 4;
/// Bytes of a reason that are kept.
const MAX_WHY: usize = 200;

/// Scan of the work tree after a call.
#[derive(Debug)]
pub(super) struct After {
    seen: Sighting,
    /// True if a file was edited during the call, which ran tests.
    is_edited: bool,
}

impl PendingOperation {
    /// Scans the work tree before the call, on this thread.
    pub(super) fn look_before(&mut self, runtime: &Runtime, database: &Database) {
        let Some(watch) = self.watch.clone() else {
            return;
        };
        if let Some(closing) = &watch.closes {
            self.look_at_closing(runtime, database, &watch, closing);
            return;
        }
        let own = self.operation.envelope_id.clone();
        let envelope = own.as_deref();
        let seen = watch
            .look(runtime, database, envelope)
            .map_err(|why| watch.unseen(why, database, envelope));
        if self.operation.workspace.is_none() {
            let workspace = watch.workspace(database, envelope).ok();
            self.operation.workspace = workspace.map(|workspace| workspace.info.name.clone());
        }
        if let Ok(seen) = &seen {
            self.operation.repo_before_hash = Some(seen.state.clone());
            if !watch.may.leaves() {
                self.operation.repo_after_hash = Some(seen.state.clone());
            }
        }
        if let (Ok(seen), Some(envelope)) = (&seen, envelope) {
            let before = database.read_session().ok().and_then(|session| {
                session
                    .work_trees()
                    .newest_sighting(envelope, &seen.workspace)
                    .ok()
                    .flatten()
            });
            if let Some(before) = before {
                self.tell_change(runtime, watch.workspace(database, Some(envelope)), &before, seen);
            }
        }
        self.seen = Some(seen.map(Arc::new));
    }

    /// Scans the work trees of the envelope that the call closes, on this thread. The row is about the first of them.
    fn look_at_closing(&mut self, runtime: &Runtime, database: &Database, watch: &Watch, closing: &Closing) {
        let known = watch.known_at_closing(database, closing).unwrap_or_else(|err| {
            tracing::warn!(
                op_id = self.operation.op_id,
                "cannot check work trees before envelopes are closed: {err:#}"
            );
            Vec::new()
        });
        for (place, (name, before)) in known.into_iter().enumerate() {
            let workspace = watch.registered(&name);
            let seen = match &workspace {
                _ if place >= MAX_AT_CLOSING => Err(format!(
                    "at most {MAX_AT_CLOSING} work trees are checked when an envelope is closed"
                )),
                Ok(workspace) => look_at(workspace, runtime).map(Arc::new),
                Err(why) => Err(why.clone()),
            };
            if let (Ok(seen), Some(before)) = (&seen, before) {
                self.tell_change(runtime, workspace, &before, seen);
            }
            if place == 0 {
                self.operation.workspace = watch.registered(&name).is_ok().then(|| name.clone());
                let state = seen.as_ref().ok().map(|seen| seen.state.clone());
                self.operation.repo_before_hash.clone_from(&state);
                self.operation.repo_after_hash = state;
            }
            self.closing.push(LookedAt {
                workspace: name,
                seen: seen.map_err(|why| tollgate_core::text::clean(tollgate_core::text::cut(&why, MAX_WHY))),
            });
        }
    }

    /// Records the change between two scans: in the row, and in a diff that is stored.
    fn tell_change(
        &mut self,
        runtime: &Runtime,
        workspace: Result<Arc<Workspace>, String>,
        before: &Sighting,
        now: &Sighting,
    ) {
        if before.state == now.state {
            return;
        }
        let told = workspace
            .and_then(|workspace| work_tree::change(&workspace, &runtime.services.launcher, before, now));
        match told {
            Ok(change) => {
                self.recording.keep_diff(&change);
                self.changes.push(change);
            }
            Err(why) => {
                tracing::warn!(
                    op_id = self.operation.op_id,
                    why,
                    "cannot report a change of the work tree"
                );
            }
        }
    }

    /// Scans the work tree after the call, on this thread, if the scan before succeeded. Records the change.
    pub(super) fn look_after(&mut self, runtime: &Runtime, database: &Database) -> Option<After> {
        let after = self.look_after_row(runtime, database)?;
        if let (Some(before), Some(watch)) = (self.sighting().cloned(), self.watch.clone()) {
            let workspace = watch.workspace(database, self.operation.envelope_id.as_deref());
            self.tell_change(runtime, workspace, &before, &after.seen);
        }
        Some(after)
    }

    /// Scans the work tree after a call whose row is already written, so that nothing can be added to it.
    pub(super) fn look_after_row(&self, runtime: &Runtime, database: &Database) -> Option<After> {
        let (Some(watch), Some(Ok(_))) = (&self.watch, &self.seen) else {
            return None;
        };
        // A change during a call that changes nothing is left to the next scan.
        if !watch.may.leaves() {
            return None;
        }
        let seen = watch
            .look(runtime, database, self.operation.envelope_id.as_deref())
            .inspect_err(|why| {
                tracing::warn!(
                    op_id = self.operation.op_id,
                    why,
                    "the work tree was not checked after a call"
                );
            })
            .ok()?;
        Some(After {
            is_edited: self.is_edited_in_run(database, &seen),
            seen,
        })
    }

    /// True if an untracked file that was edited in this envelope before changed while tests ran.
    fn is_edited_in_run(&self, database: &Database, after: &Sighting) -> bool {
        let (Some(watch), Some(before), Some(envelope)) =
            (&self.watch, self.sighting(), &self.operation.envelope_id)
        else {
            return false;
        };
        if watch.may != May::Test || before.state == after.state {
            return false;
        }
        let Ok(workspace) = watch.workspace(database, Some(envelope)) else {
            return false;
        };
        let mut changed = ChangedInRun::of(&workspace, before, after);
        if changed.can_be_edits() {
            let told = database.read_session().map(|session| {
                session
                    .work_trees()
                    .each_state_back(envelope, &workspace.info.name, |cause, differs| {
                        changed.hear(cause, differs)
                    })
            });
            if !matches!(told, Ok(Ok(()))) {
                tracing::warn!(
                    op_id = self.operation.op_id,
                    "cannot read earlier states of the work tree, so changes in this test run do not count as edits"
                );
                return false;
            }
        }
        changed.decide(&workspace)
    }

    /// Records how the call left the work tree. Changes that it cannot have made are left to the next scan, as an
    /// edit.
    pub(super) fn leave_behind(&mut self, after: Option<After>) {
        let (
            Some(After {
                seen: after,
                is_edited,
            }),
            Some(Ok(before)),
            Some(watch),
        ) = (after, &self.seen, &self.watch)
        else {
            return;
        };
        self.operation.repo_after_hash = Some(after.state.clone());
        let cause = match watch.may {
            May::Change => Cause::Call,
            // Tests leave untracked files. Any change to tracked files is an edit.
            May::Test if after.tracked == before.tracked && !is_edited => Cause::TestRun,
            May::Test | May::Nothing | May::Record | May::Open | May::Close => return,
        };
        self.operation.left_behind = Some((after, cause));
    }

    /// Returns whether the call closes an envelope. Such a call is not refused because of a scan.
    pub(super) fn closes_envelope(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.may == May::Close)
    }

    /// State of the work tree before the call, if the scan succeeded.
    pub(super) fn sighting(&self) -> Option<&Sighting> {
        self.seen.as_ref()?.as_ref().ok().map(|seen| &**seen)
    }

    /// State of the work tree before the call, unless the call only records it.
    pub(super) fn edited_sighting(&self) -> Option<&Sighting> {
        let records = self.watch.as_ref().is_some_and(|watch| watch.may == May::Record);
        self.sighting().filter(|_| !records)
    }
}
