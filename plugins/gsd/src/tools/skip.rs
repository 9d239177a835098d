//! Leaving slices out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{DbError, ToolError};

use super::change_tool;
use super::complete::summary;
use crate::act::{Act, Applied, Change, UnitStatus, header};
use crate::arguments::{NAME, TEXT, WORKSPACE};
use crate::files::Touched;
use crate::guard::Action;
use crate::model::{MilestoneId, SliceId, Status, Unit};
use crate::store::log::Event;
use crate::store::task::TaskHead;
use crate::store::{Closing, claim, milestone, slice, task};
use crate::violation::Refusals;

/// Skip a slice that is not worth doing, with its open tasks. Skipped counts as closed; reopening works on it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkipSlice {
    /// The milestone, such as M01.
    milestone_id: MilestoneId,
    /// The slice, such as S01.
    slice_id: SliceId,
    /// Why.
    #[schemars(length(min = 1, max = TEXT))]
    reason: String,
    /// Where it belongs: a registered workspace or just a label.
    #[schemars(length(min = 1, max = WORKSPACE))]
    workspace: String,
    /// Who calls.
    #[schemars(length(min = 1, max = NAME))]
    actor_name: Option<String>,
    /// What caused the call.
    #[schemars(length(max = TEXT))]
    trigger_reason: Option<String>,
}
change_tool!(SkipSlice, "gsd_slice_skip", "Skip a slice", Standard, ADDITIVE, alias "gsd_skip_slice");

impl Change for SkipSlice {
    const CMD: &'static str = "skip-slice";
    type Facts = Vec<TaskHead>;

    header!();

    fn unit(&self) -> Unit {
        Unit::slice(&self.milestone_id, &self.slice_id)
    }

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        act.scene(Action::SkipSlice, &act.unit, refusals)?;
        act.ownership(&act.unit, refusals)?;
        let mut open = task::heads(act.db(), act.workspace(), &self.milestone_id, &self.slice_id)?;
        open.retain(|task| !task.status.is_closed());
        for task in &open {
            act.ownership(
                &Unit::task(&self.milestone_id, &self.slice_id, &task.id),
                refusals,
            )?;
        }
        refusals.text("reason", &self.reason);
        Ok(Some(open))
    }

    fn apply(&self, act: &Act<'_>, open: Self::Facts, event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        let summary = summary(self, act);
        let closing = Closing {
            summary: Some(&summary),
            by: act.actor(),
            hash: &event.hash,
        };
        if !slice::close(
            db,
            workspace,
            &self.milestone_id,
            &self.slice_id,
            Status::Skipped,
            &closing,
        )? {
            return Err(DbError::Internal.into());
        }
        task::skip_open(db, workspace, &self.milestone_id, &self.slice_id, &closing)?;
        claim::release_within(db, workspace, &act.unit.to_string())?;
        milestone::touch(db, workspace, &self.milestone_id, event.id)?;
        let skipped = open.iter().map(|task| UnitStatus {
            unit: Unit::task(&self.milestone_id, &self.slice_id, &task.id).to_string(),
            status: Status::Skipped.to_string(),
        });
        Ok(Applied {
            status: Status::Skipped.to_string(),
            also: skipped.collect(),
            touched: Touched {
                claims: true,
                ..Touched::slice(&self.slice_id)
            },
            ..Applied::default()
        })
    }
}
