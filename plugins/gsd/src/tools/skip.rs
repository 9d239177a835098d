//! Skipping slices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{DbError, ToolError};

use super::change_tool;
use super::complete::closing;
use super::plan::under_way;
use crate::act::{Act, Applied, Change, UnitStatus};
use crate::arguments::MAX_TEXT_CHARS;
use crate::files::Touched;
use crate::guard::Action;
use crate::header::{Header, SliceKey, header};
use crate::model::{Status, Unit};
use crate::store::log::Event;
use crate::store::task::TaskHead;
use crate::store::{claim, milestone, slice, task};
use crate::violation::Refusals;

/// Skip a slice and its open tasks. Skipped units count as closed; gsd_slice_reopen reverses it. Fails if
/// another actor has claimed the slice or one of its tasks.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SkipSlice {
    #[serde(flatten)]
    at: SliceKey,
    /// Reason for skipping the slice.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    reason: String,
    #[serde(flatten)]
    header: Header,
}
change_tool!(SkipSlice, "gsd_slice_skip", "Skip a slice", Standard, ADDITIVE, alias "gsd_skip_slice");

impl Change for SkipSlice {
    const CMD: &'static str = "skip-slice";
    type Facts = Vec<TaskHead>;

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<Self::Facts>, DbError> {
        act.scene(Action::SkipSlice, &act.unit, refusals)?;
        act.ownership(&act.unit, refusals)?;
        let mut open = task::heads(act.db(), act.workspace(), self.at.path())?;
        open.retain(|task| !task.status.is_closed());
        act.ownership_of_all(&open, refusals)?;
        refusals.text("reason", &self.reason);
        Ok(Some(open))
    }

    fn apply(&self, act: &Act<'_>, open: Self::Facts, event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        let closing = closing(self, act, event);
        slice::close(db, workspace, self.at.path(), Status::Skipped, &closing)?;
        task::skip_open(db, workspace, self.at.path(), &closing)?;
        claim::release_within(db, workspace, &act.unit.to_string())?;
        milestone::touch(db, workspace, &self.at.milestone_id, event.id)?;
        let unit = |task: &TaskHead| Unit::task(&self.at.milestone_id, &self.at.slice_id, &task.id);
        let warnings = open
            .iter()
            .filter_map(|task| under_way(task, &unit(task), act.actor()))
            .collect();
        let skipped = open.iter().map(|task| UnitStatus {
            unit: Unit::task(&self.at.milestone_id, &self.at.slice_id, &task.id).to_string(),
            status: Status::Skipped.to_string(),
        });
        Ok(Applied {
            status: Status::Skipped.to_string(),
            also: skipped.collect(),
            warnings,
            touched: Touched {
                claims: true,
                ..Touched::tasks(&self.at.slice_id, open.iter().map(|task| task.id.clone()))
            },
            ..Applied::default()
        })
    }
}
