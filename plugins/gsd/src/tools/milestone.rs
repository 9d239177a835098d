//! Validating and completing milestones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{DbError, NextCall, ToolError};

use super::change_tool;
use super::complete::{same_content, summary};
use crate::act::{Act, Applied, Change, header};
use crate::arguments::{ENTRIES, LINE, NAME, TEXT, WORKSPACE};
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::model::{MilestoneId, MilestoneStatus, Unit, Verdict};
use crate::store::log::Event;
use crate::store::{Closing, milestone, slice, task};
use crate::violation::{Refusals, Violation};

/// Open tasks that a refusal names at most.
const NAMED: u32 = 100;

/// Complete a milestone whose slices and tasks are all closed, after a validation with the verdict `pass` that is
/// newer than the milestone's last change.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompleteMilestone {
    /// The milestone, such as M01.
    milestone_id: MilestoneId,
    /// What was done, in one line.
    #[schemars(length(min = 1, max = LINE))]
    one_liner: String,
    /// What was done, in full.
    #[schemars(length(min = 1, max = TEXT))]
    narrative: String,
    /// Whether everything that was to be verified was, and passed.
    verification_passed: bool,
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
change_tool!(
    CompleteMilestone, "gsd_milestone_complete", "Complete a milestone", Standard, ADDITIVE, alias "gsd_complete_milestone"
);

impl Change for CompleteMilestone {
    const CMD: &'static str = "complete-milestone";
    type Facts = ();

    header!();

    fn unit(&self) -> Unit {
        Unit::milestone(&self.milestone_id)
    }

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<()>, DbError> {
        let found = act.scene(Action::CompleteMilestone, &act.unit, refusals)?;
        let open = found
            .milestone
            .as_ref()
            .filter(|found| found.status != MilestoneStatus::Complete);
        if let Some(milestone) = open {
            act.dependencies(Action::CompleteMilestone, &milestone.plan.depends_on, refusals)?;
            let slices = slice::all(act.db(), act.workspace(), &self.milestone_id)?;
            let slices: Vec<_> = slices.into_iter().map(|slice| (slice.id, slice.status)).collect();
            let tasks = task::open(act.db(), act.workspace(), &self.milestone_id, NAMED)?;
            let tasks: Vec<_> = tasks
                .into_iter()
                .map(|task| (task.slice, task.id, task.status))
                .collect();
            refusals.extend(guard::slices_closed(&act.unit, &slices, &tasks));
            let (validation, passed) = (&milestone.validation, self.verification_passed);
            refusals.extend(guard::validated(&act.config, &act.unit, validation, passed));
        }
        refusals.line("one_liner", &self.one_liner, LINE);
        refusals.text("narrative", &self.narrative);
        same_content(
            act,
            found.milestone.as_ref().and_then(|found| found.closed.as_ref()),
            refusals,
        );
        Ok(Some(()))
    }

    fn apply(&self, act: &Act<'_>, (): (), event: &Event) -> Result<Applied, ToolError> {
        let summary = summary(self, act);
        let closing = Closing {
            summary: Some(&summary),
            by: act.actor(),
            hash: &event.hash,
        };
        if !milestone::complete(act.db(), act.workspace(), &self.milestone_id, &closing)? {
            return Err(DbError::Internal.into());
        }
        milestone::touch(act.db(), act.workspace(), &self.milestone_id, event.id)?;
        Ok(Applied {
            status: MilestoneStatus::Complete.to_string(),
            touched: Touched::roadmap(),
            ..Applied::default()
        })
    }
}

/// A criterion of a milestone and whether it is met.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checked {
    /// The criterion.
    #[schemars(length(min = 1, max = LINE))]
    criterion: String,
    /// Whether it is met.
    met: bool,
    /// What shows it.
    #[serde(default)]
    #[schemars(length(max = TEXT))]
    evidence: String,
}

/// Record whether a milestone as it is now does what it promised. Any later change to the milestone makes the
/// validation too old to complete it with.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValidateMilestone {
    /// The milestone, such as M01.
    milestone_id: MilestoneId,
    /// What was found.
    verdict: Verdict,
    /// Why.
    #[schemars(length(min = 1, max = TEXT))]
    rationale: String,
    /// The criteria that were checked. A verdict of `pass` wants all of them met.
    #[serde(default)]
    #[schemars(length(max = ENTRIES))]
    criteria: Vec<Checked>,
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
change_tool!(
    ValidateMilestone, "gsd_validate_milestone", "Validate a milestone", Standard, IDEMPOTENT,
    alias "gsd_milestone_validate"
);

impl Change for ValidateMilestone {
    const CMD: &'static str = "validate-milestone";
    type Facts = ();

    header!();

    fn unit(&self) -> Unit {
        Unit::milestone(&self.milestone_id)
    }

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<()>, DbError> {
        act.scene(Action::Validate, &act.unit, refusals)?;
        refusals.text("rationale", &self.rationale);
        refusals.at_most("criteria", self.criteria.len(), ENTRIES, "entries");
        for (index, checked) in self.criteria.iter().enumerate().take(ENTRIES) {
            refusals.line(&format!("criteria[{index}].criterion"), &checked.criterion, LINE);
            refusals.prose(&format!("criteria[{index}].evidence"), &checked.evidence);
            if self.verdict == Verdict::Pass && !checked.met {
                let field = format!("criteria[{index}].met");
                refusals.add(Violation::argument(
                    field,
                    "is false, which a verdict of pass rules out",
                ));
            }
        }
        Ok(Some(()))
    }

    fn apply(&self, act: &Act<'_>, (): (), event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace, id) = (act.db(), act.workspace(), &self.milestone_id);
        milestone::validate(db, workspace, id, self.verdict, event.id)?;
        let slices = slice::all(db, workspace, id)?;
        let closed = !slices.is_empty() && slices.iter().all(|slice| slice.status.is_closed());
        let mut warnings = Vec::new();
        if self.verdict == Verdict::Pass && !closed {
            warnings.push(format!(
                "{id} has open slices; closing them makes this validation too old"
            ));
        }
        Ok(Applied {
            status: MilestoneStatus::Active.to_string(),
            warnings,
            next_call: (self.verdict != Verdict::Pass)
                .then(|| NextCall::new("gsd_status", json!({"workspace": workspace, "milestone_id": id}))),
            touched: Touched::roadmap(),
            ..Applied::default()
        })
    }
}
