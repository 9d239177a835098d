//! The rule of required evidence that holds after every operation: whatever closes or confirms a step, a test run
//! proves it.

use std::collections::BTreeSet;

use tollgate_sdk::ToolError;

use super::Write;
use super::overlay::Changed;
use crate::checkpoint;
use crate::error::Refusals;
use crate::evidence::{self, Proof};
use crate::model::Checkpoint;
use crate::mutation;
use crate::record::Step;
use crate::store::record::children;

impl Write<'_> {
    /// Adds what the planned changes close or confirm although the evidence of now does not prove it. `own` is the
    /// number of counted changes that the operation makes good itself. Steps that come back because their deletion is
    /// undone are as they would be without it, so nothing is asked of them anew.
    pub(super) fn unproven(
        &self,
        own: i64,
        back: &BTreeSet<String>,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        if !self.scope.config.requires_evidence(&self.scope.workspace) {
            return Ok(());
        }
        let now = mutation::now(&self.scope)?.without(own);
        let changes = self.changes_of::<Step>()?;
        let mut seen = back.clone();
        for step in changes.iter().filter(|step| !back.contains(&step.id)) {
            if let Some((after, wanting)) = self.confirmed_by(step)? {
                seen.insert(after.id.clone());
                self.want_proof(after, wanting, &now, refusals)?;
            }
        }
        // A closed step that loses its last part is proven by it no more.
        let left = changes.iter().filter_map(left);
        for parent in left.collect::<BTreeSet<&String>>() {
            if let Some(parent) = self.get::<Step>(parent)?
                && parent.is_done()
                && !seen.contains(&parent.id)
                && self.is_bare(&parent)?
            {
                self.want_proof(&parent, BTreeSet::from([Checkpoint::Criteria]), &now, refusals)?;
            }
        }
        Ok(())
    }

    /// The checkpoints of a changed step that the change confirms or closes.
    fn confirmed_by<'c>(
        &self,
        step: &'c Changed<Step>,
    ) -> Result<Option<(&'c Step, BTreeSet<Checkpoint>)>, ToolError> {
        let Some(after) = &step.after else { return Ok(None) };
        let before = step.before.as_ref();
        let closes = after.is_done() && !before.is_some_and(Step::is_done);
        let mut wanting = BTreeSet::new();
        if closes {
            wanting = checkpoint::required(after, &BTreeSet::new());
            if self.is_bare(after)? {
                wanting.insert(Checkpoint::Criteria);
            }
        }
        let known =
            |checkpoint: &&Checkpoint| before.is_some_and(|before| before.confirmed.contains_key(checkpoint));
        wanting.extend(after.confirmed.keys().filter(|checkpoint| !known(checkpoint)));
        Ok(Some((after, wanting)))
    }

    /// Returns whether a step has no checkpoints and, after this write, no steps of its own.
    fn is_bare(&self, step: &Step) -> Result<bool, ToolError> {
        if !checkpoint::required(step, &BTreeSet::new()).is_empty() {
            return Ok(false);
        }
        let changes = self.changes_of::<Step>()?;
        let is_part = |part: &Step| part.parent.as_ref() == Some(&step.id);
        if changes
            .iter()
            .any(|change| change.after.as_ref().is_some_and(is_part))
        {
            return Ok(false);
        }
        // One more than those that this write may take away.
        let stored = children::<Step>(
            self.scope.db(),
            &self.scope.workspace,
            &step.id,
            changes.len().saturating_add(1),
        )?;
        let stays = |part: &String| changes.iter().all(|change| change.id != *part);
        Ok(!stored.iter().any(|part| stays(&part.record.id)))
    }

    fn want_proof(
        &self,
        step: &Step,
        wanting: BTreeSet<Checkpoint>,
        now: &mutation::Moment,
        refusals: &mut Refusals,
    ) -> Result<(), ToolError> {
        let (proof, path) = (Proof::of(&self.scope, &step.id)?, self.place(&step.id)?);
        evidence::want_of(&self.scope, &proof, &path, wanting, now, refusals)
    }
}

/// The parent that a step leaves.
fn left(step: &Changed<Step>) -> Option<&String> {
    let before = step.before.as_ref()?.parent.as_ref()?;
    let after = step.after.as_ref().and_then(|after| after.parent.as_ref());
    (after != Some(before)).then_some(before)
}
