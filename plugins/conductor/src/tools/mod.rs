//! Tools of the pack, grouped by subject, and the code that several of them share.

pub(crate) mod answer;
pub(crate) mod approval;
pub(crate) mod archive;
pub(crate) mod conductor;
pub(crate) mod context;
pub(crate) mod delete;
pub(crate) mod documents;
pub(crate) mod execute;
pub(crate) mod git;
pub(crate) mod git_refs;
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

use crate::asked;
use crate::checkpoint::is_inserted;
use crate::error::{Reason, Refusals};
use crate::freeze;
use crate::interview::{Standing, interview};
use crate::model::{JobId, StepStatus};
use crate::plan::Plan;
use crate::state::{Event, Status};
use crate::store::job::{self, Job};
use crate::store::step::{self, Step};

/// Row with the repository of the job that a call names.
fn workspace() -> serde_json::Value {
    json!({"argument": "job_id", "table": "conductor_jobs", "key": "id", "column": "repo_root"})
}

/// Scope of a `write` tool that changes rows of its job alone, so that calls about other jobs run beside it on other hosts.
/// It reads nothing of other jobs but lessons and a map to show them: nothing that it stores depends on them. Tools that
/// change what jobs of one repository share, such as its files and their descriptions, have no scope.
fn scope() -> serde_json::Value {
    json!(["job_id"])
}

/// Any list: entries that are texts are accepted where the listed schema has objects.
fn list() -> serde_json::Value {
    json!({"type": "array"})
}

/// Any text where the listed schema has an enum: the pack itself refuses other values, and names all that it knows.
fn any_text() -> serde_json::Value {
    json!({"type": "string"})
}

/// Finds the job that a call names.
pub(crate) fn find_job(db: &Db<'_>, id: &JobId) -> Result<Job, ToolError> {
    job::get(db, id)?.ok_or_else(|| {
        let mut refusals = Refusals::default();
        let list = NextCall::new("job_list", json!({}));
        refusals.add_with(Reason::not_found("job", id.as_str()), Some(list));
        refusals.into()
    })
}

/// Status of a job after an event, or a refusal with the call to make instead.
fn after(job: &Job, event: Event) -> Result<Status, ToolError> {
    job.status.on(event).map_err(|illegal| {
        let mut refusals = Refusals::default();
        refusals.add_with(illegal, remedy(job, event));
        refusals.into()
    })
}

/// Call that brings a job into a status that allows an event, if there is one.
fn remedy(job: &Job, event: Event) -> Option<NextCall> {
    let tool = match (job.status, event) {
        (Status::Ready, Event::Prompt | Event::Submit | Event::Pause | Event::Resume) => "job_start",
        (Status::Paused, Event::Prompt | Event::Submit | Event::Start | Event::Pause) => "job_resume",
        (Status::Executing, Event::Start | Event::Resume) => "job_next_step_prompt",
        (Status::Planning, Event::Start | Event::Prompt | Event::Submit) => "job_set_ready",
        (Status::Complete, Event::Prompt | Event::Submit) => "job_export_bundle",
        (Status::Executing | Status::Paused, Event::EditPlan) => return Some(refine(&job.id)),
        (Status::Ready, Event::Archive)
        | (Status::Executing | Status::Paused, Event::Archive | Event::Delete) => {
            return Some(NextCall::new(
                "job_fail",
                json!({"job_id": job.id, "reason": "<why the job is given up>"}),
            ));
        }
        (Status::Complete | Status::Failed | Status::Archived, event) if event != Event::Archive => "job_get",
        _ => return None,
    };
    Some(job_call(tool, &job.id))
}

/// Call that edits an open step, with placeholders for what needs thought.
fn refine(id: &JobId) -> NextCall {
    let set = json!({"title": "<a new title or other fields>"});
    let edit = json!({"op": "update", "step_id": "<an open step>", "set": set});
    NextCall::new("plan_refine_steps", json!({"job_id": id, "edits": [edit]}))
}

/// Call that adds a step after the last one that is done, with a placeholder for its title.
fn insert_after_done(id: &JobId, steps: &[Step]) -> Option<NextCall> {
    let done = steps.iter().rfind(|step| step.status == StepStatus::Done)?;
    let step = json!({"title": "<a short title>"});
    let edit = json!({"op": "insert", "after": done.step_id, "step": step});
    Some(NextCall::new(
        "plan_refine_steps",
        json!({"job_id": id, "edits": [edit]}),
    ))
}

/// Call whose only argument is the job.
fn job_call(tool: &str, id: &JobId) -> NextCall {
    NextCall::new(tool, json!({"job_id": id}))
}

/// Stores a job unless its status has changed since it was read. Fails with `CONFLICT` otherwise.
fn save(cx: &Cx<'_>, db: &Db<'_>, seen: Status, job: &mut Job) -> Result<(), ToolError> {
    job.updated_at = cx.now();
    match job::update(db, seen, job)? {
        true => asked::keep_up(cx, db, job),
        false => Err(conflict(&job.id)),
    }
}

/// Error for a job or step that another call changed in between.
pub(crate) fn conflict(id: &JobId) -> ToolError {
    ToolError::new("CONFLICT", "another call changed the job at the same time")
        .remediation("Read the job again with job_get and decide from its current status.")
        .next_call(job_call("job_get", id))
}

/// Job whose plan is edited, with its status before the edit. A READY job goes back to PLANNING.
fn editable(db: &Db<'_>, id: &JobId, event: Event) -> Result<(Job, Status), ToolError> {
    let mut job = find_job(db, id)?;
    let seen = job.status;
    job.status = after(&job, event)?;
    Ok((job, seen))
}

/// Result of an edit of the plan.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanAck {
    job_id: JobId,
    /// Status of the job after this call.
    status: Status,
    /// True if the job was READY and is now PLANNING again; call job_set_ready again.
    unreadied: bool,
    /// Number of entries stored.
    stored: usize,
    /// Required answers that are still missing.
    required_open: Vec<&'static str>,
}

/// Stores an edited plan and reports what is still open.
fn acknowledge(cx: &Cx<'_>, mut job: Job, seen: Status, stored: usize) -> Result<PlanAck, ToolError> {
    let mut refusals = Refusals::default();
    job.plan.check_size(&mut refusals);
    refusals.finish()?;
    save(cx, &cx.db, seen, &mut job)?;
    let steps = step::all(&cx.db, &job.id)?;
    Ok(PlanAck {
        unreadied: seen == Status::Ready && job.status == Status::Planning,
        required_open: interview(&standing(&job, planned(&steps)), false).required_open,
        status: job.status,
        job_id: job.id,
        stored,
    })
}

/// Puts later answers into a job's plan, and logs what they take out of it.
fn merge(cx: &Cx<'_>, db: &Db<'_>, job: &mut Job, later: Plan) -> Result<(), ToolError> {
    let merged = job.plan.clone().merged(later);
    steps::taken(cx, db, job, &freeze::taken_from_lists(&job.plan, &merged))?;
    job.plan = merged;
    Ok(())
}

/// Number of steps that the planner planned.
fn planned(steps: &[Step]) -> usize {
    steps.iter().filter(|step| !is_inserted(&step.spec)).count()
}

/// Facts about a job for the interview. Steps are those that were planned.
fn standing(job: &Job, steps: usize) -> Standing<'_> {
    Standing {
        goal: &job.goal,
        repo_root: job.repo_root.as_deref(),
        plan: &job.plan,
        steps,
    }
}

/// First step that is not done, with its index.
pub(crate) fn current(steps: &[Step]) -> Option<(usize, &Step)> {
    steps
        .iter()
        .enumerate()
        .find(|(_, step)| step.status != StepStatus::Done)
}

/// Finds the step that a call names.
fn find_step<'a>(steps: &'a [Step], id: &str) -> Result<&'a Step, ToolError> {
    let found = steps.iter().find(|step| step.step_id.as_str() == id);
    found.ok_or_else(|| Reason::not_found("step", id).into())
}

/// Refuses a step id that does not exist; accepts none.
fn known_step(db: &Db<'_>, job: &JobId, id: Option<&crate::model::StepId>) -> Result<(), ToolError> {
    match id {
        Some(id) => find_step(&step::all(db, job)?, id.as_str()).map(|_| ()),
        None => Ok(()),
    }
}

/// Database error for a bug in this code.
fn internal() -> ToolError {
    DbError::Internal.into()
}
