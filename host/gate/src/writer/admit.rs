//! Admission of calls by the writer: the units that they use, and the mutations that they make.

use tollgate_core::envelope::Charge;
use tollgate_store::storage::{Admission, Cause, StoreResult};

use super::Writer;
use crate::ended::Begun;
use crate::failure::Failure;
use crate::mutation::Mutation;
use crate::pending_operation::PendingOperation;
use crate::permits::{self, Taker};
use crate::reply::Reply;
use crate::settled::Settled;
use crate::{edits, envelope_refusal, windows};

impl Writer {
    /// Adds the workspace from a row of the pack to the call's row.
    pub(super) fn name_workspace(&mut self, pending: &mut PendingOperation) -> StoreResult<()> {
        if pending.operation.workspace.is_none() {
            pending.operation.workspace = pending.window_use.registered(self.session()?);
        }
        Ok(())
    }

    /// Takes the units that the call uses, and counts it in its envelope. Returns the refusal, or a success that has
    /// no content yet.
    pub(super) fn admit(&mut self, pending: &PendingOperation, now: &str) -> StoreResult<Settled> {
        let mut settled = self.ask(pending, now)?;
        if settled.result.is_err() {
            settled.is_turned_away = true;
            settled.begun = Begun::Nothing;
        }
        Ok(settled)
    }

    /// Runs all checks that can refuse a call.
    fn ask(&mut self, pending: &PendingOperation, now: &str) -> StoreResult<Settled> {
        if let Some(refusal) = edits::unseen(self.session()?, pending)? {
            return Ok(Settled::failed(Failure::refused(refusal)));
        }
        if pending.permits.is_empty() && pending.windows.is_empty() {
            let settled = self.admit_by_envelope(pending, now)?;
            // In an envelope this is done together with the envelope's own states.
            if pending.operation.envelope_id.is_none() && settled.result.is_ok() {
                self.note_newest(pending)?;
            }
            return Ok(settled);
        }
        let now_ms = self.runtime.services.clock.now_ms();
        let op_id = pending.operation.op_id.as_str();
        let taker = Taker::of(&pending.operation);
        if let Err(overtaken) = permits::take(self.session()?, &pending.permits, &taker, now_ms)? {
            return Ok(overtaken.settled());
        }
        let settled = match windows::take(self.session()?, &pending.windows, pending, now_ms)? {
            Ok(()) => self.admit_by_envelope(pending, now)?,
            Err(refusal) => Settled::failed(Failure::refused(refusal)),
        };
        if settled.result.is_ok() {
            self.note_newest(pending)?;
        }
        if settled.result.is_err() {
            windows::undo(self.session()?, &pending.windows, pending)?;
            self.session()?.permits().undo(op_id)?;
            self.session()?.budgets().give_back_of_operation(op_id)?;
        }
        Ok(settled)
    }

    /// Stores the state of the work tree that a call found. The edit counts whatever the call's outcome.
    pub(super) fn note_newest(&mut self, pending: &PendingOperation) -> StoreResult<()> {
        match pending.sighting() {
            Some(seen) if !pending.closes_envelope() => {
                self.session()?.work_trees().note_newest(seen, Cause::Observed)
            }
            _ => Ok(()),
        }
    }

    /// Gives back the permits of a call that left nothing behind, and books the units of budgets that any other call
    /// took.
    pub(super) fn settle_permits(
        &mut self,
        pending: &PendingOperation,
        settled: &Settled,
    ) -> StoreResult<()> {
        let op_id = pending.operation.op_id.as_str();
        let session = self.session()?;
        if permits::gives_back(pending.operation.effect, settled) {
            session.permits().give_back(op_id)?;
        } else if permits::has_units(&pending.permits) {
            session.budgets().book_for_policies(op_id)?;
        }
        session.budgets().give_back_of_operation(op_id)
    }

    /// Counts a call in its envelope.
    fn admit_by_envelope(&mut self, pending: &PendingOperation, now: &str) -> StoreResult<Settled> {
        let mut settled = Settled::of(Ok(Reply::default()));
        let Some(envelope) = &pending.operation.envelope_id else {
            return Ok(settled);
        };
        let boot_ms = self.runtime.services.clock.boot_ms();
        let session = self.session()?;
        if !session
            .envelopes()
            .is_visible(envelope, pending.operation.identity.as_ref())?
        {
            let refusal = envelope_refusal::unknown(envelope);
            return Ok(Settled::failed(Failure::refused(refusal)));
        }
        let seen = pending
            .sighting()
            .map(|seen| (seen, pending.operation.op_id.as_str()));
        match session
            .envelopes()
            .admit_seeing(envelope, pending.charge, boot_ms, now, seen)?
        {
            Admission::Admitted(admitted) => {
                settled.standing = Some(admitted.standing);
                settled.counters = admitted.counters;
                settled.remaining_ms = admitted.remaining_ms;
                if pending.joins
                    && self
                        .joined
                        .insert((envelope.clone(), pending.operation.connection.clone()))
                {
                    let user = (
                        pending.operation.host_id.as_str(),
                        pending.operation.connection.as_str(),
                    );
                    self.session()?.envelopes().join(envelope, user, now)?;
                }
            }
            Admission::Refused {
                envelope,
                refusal,
                event,
            } => {
                settled.standing = Some(envelope.standing);
                settled.limit = Some(refusal);
                let error = envelope_refusal::refused(&envelope, refusal, boot_ms);
                settled.result = Err(Failure::refused(error));
                settled.told.events.extend(event);
            }
            Admission::Unknown => {
                settled.result = Err(Failure::refused(envelope_refusal::unknown(envelope)));
            }
        }
        Ok(settled)
    }

    /// Fingerprint of a call's changes, and whether its envelope has seen it before.
    pub(super) fn mutation(
        &mut self,
        pending: &PendingOperation,
        settled: &Settled,
    ) -> StoreResult<Option<Mutation>> {
        let session = self.session()?;
        let changes = session.take_changes();
        if !matches!(pending.charge, Charge::Mutations(_)) || settled.refusal().is_some() {
            return Ok(None);
        }
        // A batch is identified by its members, not by how it is asked to run or report them.
        let members = pending.operation.members.as_deref();
        let asked = members.unwrap_or(&pending.operation.args_hash);
        let text = format!("{}\n{asked}\n{changes:?}", pending.operation.tool);
        let tables = changes.into_keys().collect();
        let own = tollgate_core::hash::sha256_hex(text.as_bytes());
        Mutation::of(
            session,
            &pending.operation,
            pending.edited_sighting(),
            &settled.annotations,
            Some((own, tables)),
        )
    }
}
