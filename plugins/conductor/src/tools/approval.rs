//! Tools that record and revoke a person's approval of a step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use super::{after, conflict, find_job, find_step};
use crate::arguments::{MAX_ENTRY_CHARS, MAX_TITLE_CHARS};
use crate::asked;
use crate::error::{Reason, Refusals};
use crate::model::{JobId, LogType, StepId, StepStatus};
use crate::person;
use crate::state::Event;
use crate::store::step::{self, Approval, Step};
use crate::store::{job, log};

/// Approval of a step after a call.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ApprovalState {
    job_id: JobId,
    step_id: StepId,
    /// True if the step is approved now.
    approved: bool,
    /// Approval, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
    /// True if the call changed nothing.
    unchanged: bool,
}

/// Step whose approval may change: the step is not done and its job has not ended.
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
        return Err(conflict(job_id));
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

/// Record that a person approved a step, as the gate human_approval requires. The client asks its user, or a person
/// calls this in a terminal. Fails if the step is done. Editing the step revokes the approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct StepApprove {
    job_id: JobId,
    step_id: StepId,
    /// Name of the person who approves.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    approved_by: String,
    /// Comment of the person, kept with the approval. Default none.
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
        refusals.text("approved_by", &self.approved_by, MAX_TITLE_CHARS);
        refusals.optional_text("note", self.note.as_deref(), MAX_ENTRY_CHARS);
        refusals.finish()?;
        let mut step = open_step(cx, &self.job_id, &self.step_id)?;
        let unchanged = step
            .approval
            .as_ref()
            .is_some_and(|approval| approval.approved_by == self.approved_by && approval.note == self.note);
        if !unchanged {
            let what = format!(
                "{} approves step {} \"{}\" of {}",
                self.approved_by, step.step_id, step.spec.title, self.job_id
            );
            let who = person::allows(cx, &what, StepApprove::NAME)?;
            step.approval = Some(Approval {
                approved_by: self.approved_by,
                identity: cx.identity().map(str::to_owned),
                note: self.note,
                at: cx.now(),
            });
            if let Some(approval) = &step.approval {
                let line = format!("approved by {}, {who}", approval.approved_by);
                store(cx, &self.job_id, &step, &line)?;
                asked::settle(cx, self.job_id.as_str(), &step, approval)?;
            }
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

/// Revoke the approval of a step. Fails if the step is done.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct StepRevokeApproval {
    job_id: JobId,
    step_id: StepId,
    /// Reason for revoking, kept in the job's log. Default none.
    reason: Option<String>,
}

impl Tool for StepRevokeApproval {
    const NAME: &'static str = "step_revoke_approval";
    const TITLE: &'static str = "Revoke an approval";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::REPLACING;
    type Output = ApprovalState;

    fn run(self, cx: &Cx<'_>) -> Result<ApprovalState, ToolError> {
        let mut refusals = Refusals::default();
        refusals.optional_text("reason", self.reason.as_deref(), MAX_ENTRY_CHARS);
        refusals.finish()?;
        let mut step = open_step(cx, &self.job_id, &self.step_id)?;
        let unchanged = step.approval.take().is_none();
        if !unchanged {
            let line = match &self.reason {
                Some(reason) => format!("approval revoked: {reason}"),
                None => "approval revoked".to_owned(),
            };
            store(cx, &self.job_id, &step, &line)?;
            asked::keep_up(cx, &cx.db, &find_job(&cx.db, &self.job_id)?)?;
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
