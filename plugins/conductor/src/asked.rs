//! Approvals of steps in the host's list. A job has at most one open request, for the active step.

use serde_json::json;
use tollgate_sdk::approvals::MAX_TITLE;
use tollgate_sdk::{Answering, ApprovalRequest, ApprovalStatus, Cx, Db, NextCall, ToolError};

use crate::arguments::clip_to;
use crate::gate::Gate;
use crate::model::StepStatus;
use crate::state::Status;
use crate::store::job::Job;
use crate::store::step::{self, Approval, Step};
use crate::tools::current;

/// Longest instruction in a request, in characters.
const MAX_WORDS: usize = 2_000;
/// Most acceptance criteria in a request, and characters of each.
const MAX_CRITERIA: usize = 20;
const MAX_CRITERION: usize = 200;

/// Lists the active step if it waits for a person, and withdraws the job's request otherwise.
pub(crate) fn keep_up(cx: &Cx<'_>, db: &Db<'_>, job: &Job) -> Result<(), ToolError> {
    // No step was active before, and none waits.
    if matches!(job.status, Status::Planning | Status::Ready) {
        return Ok(());
    }
    let is_running = matches!(job.status, Status::Executing | Status::Paused);
    let steps = step::all(db, &job.id)?;
    let waiting = current(&steps)
        .map(|(_, step)| step)
        .filter(|step| is_running && waits(step));
    match waiting {
        Some(step) => ask(cx, job, step),
        None => {
            cx.approvals().withdraw(job.id.as_str())?;
            Ok(())
        }
    }
}

/// True if only a person's approval is missing from what the step's gate human_approval wants.
fn waits(step: &Step) -> bool {
    step.status == StepStatus::Active
        && step.approval.is_none()
        && step.spec.parsed_gates().contains(&Gate::HumanApproval)
}

fn ask(cx: &Cx<'_>, job: &Job, step: &Step) -> Result<(), ToolError> {
    let key = job.id.as_str();
    let title = format!(
        "Approve {} \"{}\" of {}",
        step.step_id, step.spec.title, job.title
    );
    let criteria = step.spec.acceptance_criteria.iter().take(MAX_CRITERIA);
    let criteria: Vec<String> = criteria
        .map(|criterion| clip_to(criterion, MAX_CRITERION))
        .collect();
    let detail = json!({
        "job_id": job.id, "job": job.title, "step_id": step.step_id, "step": step.spec.title,
        "instruction_prompt": clip_to(&step.spec.instruction_prompt, MAX_WORDS), "acceptance_criteria": criteria,
    });
    let approve = NextCall::new(
        "step_approve",
        json!({"job_id": job.id, "step_id": step.step_id, "approved_by": "a person"}),
    );
    let last = cx.approvals().find(key)?;
    let request = ApprovalRequest {
        // An approval that was revoked is asked for again; a rejection stands.
        renew: last.is_some_and(|last| last.status == ApprovalStatus::Approved),
        answering: Some(Answering {
            by: Some("approved_by".to_owned()),
            note: Some("note".to_owned()),
            ..Answering::new(approve)
        }),
        ..ApprovalRequest::new(key, title.chars().take(MAX_TITLE).collect::<String>(), detail)
    };
    cx.approvals().ask(&request)?;
    Ok(())
}

/// Takes the request of an approved step out of the list.
pub(crate) fn settle(cx: &Cx<'_>, job: &str, step: &Step, approval: &Approval) -> Result<(), ToolError> {
    if step.status == StepStatus::Active {
        let (by, note) = (approval.approved_by.as_str(), approval.note.as_deref());
        cx.approvals()
            .settle(job, ApprovalStatus::Approved, Some(by), note)?;
    }
    Ok(())
}
