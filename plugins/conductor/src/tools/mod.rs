//! The tools, by what they are about, and what several of them share.

pub(crate) mod approval;
pub(crate) mod archive;
pub(crate) mod conductor;
pub(crate) mod context;
pub(crate) mod execute;
pub(crate) mod git;
pub(crate) mod git_write;
pub(crate) mod jobs;
pub(crate) mod lifecycle;
pub(crate) mod logs;
pub(crate) mod map;
pub(crate) mod map_export;
pub(crate) mod mistakes;
pub(crate) mod plan;
pub(crate) mod repo;
pub(crate) mod steps;
pub(crate) mod submit;
pub(crate) mod templates;
pub(crate) mod tidy;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tollgate_sdk::{Cx, Db, DbError, NextCall, ToolError};

use crate::error::{Reason, Refusals};
use crate::interview::{Standing, interview};
use crate::model::{JobId, StepStatus};
use crate::state::{Event, Status};
use crate::store::job::{self, Job};
use crate::store::step::{self, Step};

/// A job that a call names.
pub(crate) fn find_job(db: &Db<'_>, id: &JobId) -> Result<Job, ToolError> {
    job::get(db, id)?.ok_or_else(|| {
        let mut refusals = Refusals::default();
        let list = NextCall::new("job_list", json!({}));
        refusals.add_with(Reason::not_found("job", id.as_str()), Some(list));
        refusals.into()
    })
}

/// The status of a job after an event, or why not and what to call instead.
fn after(job: &Job, event: Event) -> Result<Status, ToolError> {
    job.status.on(event).map_err(|illegal| {
        let mut refusals = Refusals::default();
        refusals.add_with(illegal, remedy(job, event));
        refusals.into()
    })
}

/// The call that brings a job where an event is possible, if one does.
fn remedy(job: &Job, event: Event) -> Option<NextCall> {
    let tool = match (job.status, event) {
        (Status::Ready, Event::Prompt | Event::Submit | Event::Pause | Event::Resume) => "job_start",
        (Status::Paused, Event::Prompt | Event::Submit | Event::Start | Event::Pause) => "job_resume",
        (Status::Executing, Event::Start | Event::Resume) => "job_next_step_prompt",
        (Status::Planning, Event::Start | Event::Prompt | Event::Submit) => "job_set_ready",
        (Status::Complete, Event::Prompt | Event::Submit) => "job_export_bundle",
        _ => return None,
    };
    Some(job_call(tool, &job.id))
}

/// A call that needs nothing but the job.
fn job_call(tool: &str, id: &JobId) -> NextCall {
    NextCall::new(tool, json!({"job_id": id}))
}

/// Stores a job that was seen in a status. An error if it moved meanwhile.
fn save(cx: &Cx<'_>, db: &Db<'_>, seen: Status, job: &mut Job) -> Result<(), ToolError> {
    job.updated_at = cx.now();
    match job::update(db, seen, job)? {
        true => Ok(()),
        false => Err(moved_meanwhile(&job.id)),
    }
}

/// Somebody else moved the job or its step between two looks at it.
pub(crate) fn moved_meanwhile(id: &JobId) -> ToolError {
    ToolError::new("CONFLICT", "the job moved while this call looked at it")
        .remediation("Look at the job again and decide from where it stands.")
        .next_call(job_call("job_get", id))
}

/// A job that its plan is edited of, with the status that it then has. READY goes back to PLANNING.
fn editable(db: &Db<'_>, id: &JobId, event: Event) -> Result<(Job, Status), ToolError> {
    let mut job = find_job(db, id)?;
    let seen = job.status;
    job.status = after(&job, event)?;
    Ok((job, seen))
}

/// What an edit of the plan changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanAck {
    /// The job.
    job_id: JobId,
    /// Where it stands now.
    status: Status,
    /// It was READY and is not any more: call job_set_ready again.
    unreadied: bool,
    /// How many entries are stored.
    stored: usize,
    /// What the job still needs before it can be ready.
    required_open: Vec<&'static str>,
}

/// Stores an edited plan and says what is still open.
fn acknowledge(cx: &Cx<'_>, mut job: Job, seen: Status, stored: usize) -> Result<PlanAck, ToolError> {
    let mut refusals = Refusals::default();
    job.plan.check_size(&mut refusals);
    refusals.finish()?;
    save(cx, &cx.db, seen, &mut job)?;
    let steps = step::all(&cx.db, &job.id)?;
    Ok(PlanAck {
        unreadied: seen == Status::Ready && job.status == Status::Planning,
        required_open: interview(&standing(&job, steps.len()), false).required_open,
        status: job.status,
        job_id: job.id,
        stored,
    })
}

/// A job as the interview sees it.
fn standing(job: &Job, steps: usize) -> Standing<'_> {
    Standing {
        goal: &job.goal,
        repo_root: job.repo_root.as_deref(),
        plan: &job.plan,
        steps,
    }
}

/// The first step that is not done, with its place.
fn current(steps: &[Step]) -> Option<(usize, &Step)> {
    steps
        .iter()
        .enumerate()
        .find(|(_, step)| step.status != StepStatus::Done)
}

/// A step that a call names.
fn find_step<'a>(steps: &'a [Step], id: &str) -> Result<&'a Step, ToolError> {
    let found = steps.iter().find(|step| step.step_id.as_str() == id);
    found.ok_or_else(|| Reason::not_found("step", id).into())
}

/// Wants a step that exists, if one is named.
fn known_step(db: &Db<'_>, job: &JobId, id: Option<&crate::model::StepId>) -> Result<(), ToolError> {
    match id {
        Some(id) => find_step(&step::all(db, job)?, id.as_str()).map(|_| ()),
        None => Ok(()),
    }
}

/// A database error for what the code itself got wrong.
fn internal() -> ToolError {
    DbError::Internal.into()
}
