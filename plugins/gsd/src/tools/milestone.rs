//! Validating and completing milestones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{DbError, ToolError};

use super::change_tool;
use super::complete::{closing, same_content};
use crate::act::{Act, Applied, Change};
use crate::arguments::{MAX_ENTRIES, MAX_LINE_CHARS, MAX_TEXT_CHARS};
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::header::{Header, header};
use crate::model::{MilestoneId, MilestoneStatus, Status, Unit, Verdict};
use crate::store::log::Event;
use crate::store::{milestone, slice, task};
use crate::violation::{Refusals, Violation};

/// Most open tasks that a refusal names.
const MAX_NAMED_TASKS: u32 = 100;

/// Complete a milestone. Fails if a slice or task is open, or without a `pass` validation that is newer than
/// the last change. Call gsd_validate_milestone first.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CompleteMilestone {
    /// Milestone id, for example M01.
    milestone_id: MilestoneId,
    /// One-line summary of the result.
    #[schemars(length(min = 1, max = MAX_LINE_CHARS))]
    one_liner: String,
    /// Full description of the result.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    narrative: String,
    /// true if all verification was done and passed. Required.
    verification_passed: bool,
    #[serde(flatten)]
    header: Header,
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
            let tasks = task::open(act.db(), act.workspace(), &self.milestone_id, MAX_NAMED_TASKS)?;
            let tasks: Vec<_> = tasks
                .into_iter()
                .map(|task| (task.slice, task.id, task.status))
                .collect();
            refusals.extend(guard::slices_closed(&act.unit, &slices, &tasks));
            let is_done = |(_, status): &(_, Status)| *status == Status::Complete;
            let is_required = act.config.requires_evidence(act.workspace());
            if is_required && !slices.is_empty() && !slices.iter().any(is_done) {
                let fault = "has no complete slice, but this workspace requires evidence".to_owned();
                let unit = act.unit.clone();
                refusals.extend([Violation::Unproven { unit, fault }]);
            }
            let (validation, passed) = (&milestone.validation, self.verification_passed);
            refusals.extend(guard::validated(&act.config, &act.unit, validation, passed));
        }
        refusals.line("one_liner", &self.one_liner, MAX_LINE_CHARS);
        refusals.text("narrative", &self.narrative);
        same_content(
            act,
            found.milestone.as_ref().and_then(|found| found.closed.as_ref()),
            refusals,
        );
        Ok(Some(()))
    }

    fn apply(&self, act: &Act<'_>, (): (), event: &Event) -> Result<Applied, ToolError> {
        let closing = closing(self, act, event);
        milestone::complete(act.db(), act.workspace(), &self.milestone_id, &closing)?;
        milestone::touch(act.db(), act.workspace(), &self.milestone_id, event.id)?;
        Ok(Applied {
            status: MilestoneStatus::Complete.to_string(),
            touched: Touched::roadmap(),
            ..Applied::default()
        })
    }
}

/// Criterion of a milestone with its result.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checked {
    /// Criterion that was checked.
    #[schemars(length(min = 1, max = MAX_LINE_CHARS))]
    criterion: String,
    /// True if the criterion is met.
    met: bool,
    /// Evidence for the criterion.
    #[serde(default)]
    #[schemars(length(max = MAX_TEXT_CHARS))]
    evidence: String,
}

/// Record the validation of a milestone in its current state. Any later change invalidates the validation. Next:
/// gsd_milestone_complete after `pass`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ValidateMilestone {
    /// Milestone id, for example M01.
    milestone_id: MilestoneId,
    /// Result of the validation.
    verdict: Verdict,
    /// Reason for the verdict, with the findings.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    rationale: String,
    /// Criteria that were checked. `pass` requires all of them to be met.
    #[serde(default)]
    #[schemars(length(max = MAX_ENTRIES))]
    criteria: Vec<Checked>,
    #[serde(flatten)]
    header: Header,
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
        refusals.at_most("criteria", self.criteria.len(), MAX_ENTRIES, "entries");
        for (index, checked) in self.criteria.iter().enumerate().take(MAX_ENTRIES) {
            refusals.line(
                &format!("criteria[{index}].criterion"),
                &checked.criterion,
                MAX_LINE_CHARS,
            );
            refusals.prose(&format!("criteria[{index}].evidence"), &checked.evidence);
            if self.verdict == Verdict::Pass && !checked.met {
                let field = format!("criteria[{index}].met");
                refusals.add(Violation::argument(field, "is false, but the verdict is pass"));
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
                "{id} has open slices; closing them outdates this validation"
            ));
        }
        Ok(Applied {
            status: MilestoneStatus::Active.to_string(),
            warnings,
            touched: Touched::roadmap(),
            ..Applied::default()
        })
    }
}
