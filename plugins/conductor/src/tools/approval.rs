//! A person's approval of a step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use super::{after, find_job, find_step, moved_meanwhile};
use crate::arguments::{ENTRY, TITLE};
use crate::error::{Reason, Refusals};
use crate::model::{JobId, LogType, StepId, StepStatus};
use crate::state::Event;
use crate::store::step::{self, Approval, Step};
use crate::store::{job, log};

/// What became of an approval.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalState {
    /// The job.
    job_id: JobId,
    /// The step.
    step_id: StepId,
    /// Whether it is approved now.
    approved: bool,
    /// The approval, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
    /// Nothing changed.
    unchanged: bool,
}

/// A step whose approval may change: its job has not ended and it is not done.
fn open_step(cx: &Cx<'_>, job_id: &JobId, step_id: &StepId) -> Result<Step, ToolError> {
    let job = find_job(&cx.db, job_id)?;
    after(&job, Event::Approve)?;
    let steps = step::all(&cx.db, job_id)?;
    let step = find_step(&steps, step_id.as_str())?;
    match step.status {
        StepStatus::Done => Err(Reason::StepDone(step_id.to_string()).into()),
        StepStatus::Pending | StepStatus::Active => Ok(step.clone()),
    }
}

fn store(cx: &Cx<'_>, job_id: &JobId, step: &Step, line: &str) -> Result<(), ToolError> {
    if !step::update(&cx.db, job_id, step.status, step)? {
        return Err(moved_meanwhile(job_id));
    }
    log::append(
        cx,
        &cx.db,
        job_id,
        LogType::System,
        Some(&step.step_id),
        None,
        line,
    )?;
    job::touch(&cx.db, job_id, cx.now())?;
    Ok(())
}

/// Record that a person approves a step, which the gate human_approval wants. Only after a person said
/// so. It lapses when the step is edited.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepApprove {
    /// The job.
    job_id: JobId,
    /// The step.
    step_id: StepId,
    /// Who approves.
    #[schemars(length(min = 1, max = TITLE))]
    approved_by: String,
    /// What they said.
    note: Option<String>,
}

impl Tool for StepApprove {
    const NAME: &'static str = "step_approve";
    const TITLE: &'static str = "Approve a step";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = ApprovalState;

    fn run(self, cx: &Cx<'_>) -> Result<ApprovalState, ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("approved_by", &self.approved_by, TITLE);
        refusals.optional_text("note", self.note.as_deref(), ENTRY);
        refusals.finish()?;
        let mut step = open_step(cx, &self.job_id, &self.step_id)?;
        let unchanged = step
            .approval
            .as_ref()
            .is_some_and(|approval| approval.approved_by == self.approved_by && approval.note == self.note);
        if !unchanged {
            step.approval = Some(Approval {
                approved_by: self.approved_by,
                identity: cx.identity().map(str::to_owned),
                note: self.note,
                at: cx.now(),
            });
            let by = step
                .approval
                .as_ref()
                .map_or("", |approval| &approval.approved_by);
            store(cx, &self.job_id, &step, &format!("approved by {by}"))?;
        }
        Ok(ApprovalState {
            job_id: self.job_id,
            step_id: self.step_id,
            approved: true,
            approval: step.approval,
            unchanged,
        })
    }
}

/// Take back the approval of a step that is not done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepRevokeApproval {
    /// The job.
    job_id: JobId,
    /// The step.
    step_id: StepId,
    /// Why.
    reason: Option<String>,
}

impl Tool for StepRevokeApproval {
    const NAME: &'static str = "step_revoke_approval";
    const TITLE: &'static str = "Revoke an approval";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints {
        destructive: true,
        ..Hints::IDEMPOTENT
    };
    type Output = ApprovalState;

    fn run(self, cx: &Cx<'_>) -> Result<ApprovalState, ToolError> {
        let mut refusals = Refusals::default();
        refusals.optional_text("reason", self.reason.as_deref(), ENTRY);
        refusals.finish()?;
        let mut step = open_step(cx, &self.job_id, &self.step_id)?;
        let unchanged = step.approval.take().is_none();
        if !unchanged {
            let line = match &self.reason {
                Some(reason) => format!("approval revoked: {reason}"),
                None => "approval revoked".to_owned(),
            };
            store(cx, &self.job_id, &step, &line)?;
        }
        Ok(ApprovalState {
            job_id: self.job_id,
            step_id: self.step_id,
            approved: false,
            approval: None,
            unchanged,
        })
    }
}
