//! Tools that show jobs and change their policies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, Effect, Hints, Tier, Timestamp, Tool, ToolError};

use super::steps::StepLine;
use super::{after, current, find_job, find_step, planned, save, standing};
use crate::error::{Reason, Refusals};
use crate::freeze::{self, Change};
use crate::import::IMPORT_LOG_PREFIX;
use crate::interview::interview;
use crate::model::{JobId, StepId};
use crate::page::{self, Cursor};
use crate::plan::Plan;
use crate::policy::{Policies, PolicyChanges};
use crate::state::{Event, Status};
use crate::store::attempt::{self, Attempt};
use crate::store::job::{self, JobLine};
use crate::store::step::{self, Step};
use crate::store::{batch, log, mistake};
use crate::workspaces::WorkspaceLine;

/// Maximum changes of a plan that are shown.
const MAX_SHOWN_CHANGES: u32 = 200;

/// Show a job: status, plan, effective policies and steps. On request, also one step in full and the latest
/// submissions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-views" = page()))]
pub(crate) struct JobGet {
    job_id: JobId,
    /// Step to show in full, for example S2. `attempts` then covers only this step. Default none.
    step_id: Option<StepId>,
    /// Number of latest submissions to show, at most 20. Default 0.
    #[schemars(range(max = 20))]
    attempts: Option<u32>,
}

fn page() -> Json {
    json!({
        "title": "Job",
        "form": "list",
        "items": [{"list": "steps"}],
        "asks": ["job_id"],
        "arguments": {"attempts": 5},
    })
}

/// A job with its plan and steps.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobView {
    job_id: JobId,
    /// Title of the job.
    title: String,
    /// Goal of the job.
    goal: String,
    /// Status of the job.
    status: Status,
    /// Reason for the pause, failure or archiving.
    #[serde(skip_serializing_if = "Option::is_none")]
    status_reason: Option<String>,
    /// Workspace of the repository, or a path inside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_root: Option<String>,
    /// Workspace of the repository: its directory, access to Git and tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<WorkspaceLine>,
    /// Labels of the job.
    tags: Vec<String>,
    /// Answers of the interview.
    plan: Plan,
    /// Policies in force.
    policies: Policies,
    /// Names of the policies that differ from the defaults.
    changed_policies: Vec<&'static str>,
    /// Steps in order.
    steps: Vec<StepLine>,
    /// Index of the current step, from 0; the number of steps when all are done.
    current_step_index: usize,
    /// Step that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<Step>,
    /// Latest submissions, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<Attempt>,
    /// Titles of the latest mistakes, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mistakes: Vec<String>,
    /// Batch whose commit is deferred, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_batch: Option<batch::Batch>,
    /// Latest changes of the plan, oldest first. Changes after job_start name the person who allowed them; earlier ones
    /// list what was removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    plan_changes: Vec<String>,
    /// Origin of a job that came from a bundle: its history was not made here.
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<String>,
    /// Required answers that are still missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required_open: Vec<&'static str>,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last change to the job or its records.
    updated_at: Timestamp,
}

impl Tool for JobGet {
    const NAME: &'static str = "job_get";
    const TITLE: &'static str = "Show a job";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = JobView;

    fn run(self, cx: &Cx<'_>) -> Result<JobView, ToolError> {
        let wanted = self.attempts.unwrap_or(0);
        if wanted > 20 {
            return Err(Reason::argument("attempts", format!("is {wanted}; at most 20 are allowed")).into());
        }
        let job = find_job(&cx.db, &self.job_id)?;
        let steps = step::all(&cx.db, &job.id)?;
        let shown = self.step_id.as_ref().map(|id| find_step(&steps, id.as_str()));
        let attempts = match wanted {
            0 => Vec::new(),
            limit => attempt::latest(&cx.db, &job.id, self.step_id.as_ref(), limit)?.0,
        };
        let mistakes = mistake::latest(&cx.db, &job.id, 10)?;
        let workspace = crate::access::workspace_line(cx, &cx.db, job.repo_root.as_deref())?;
        Ok(JobView {
            step: shown.transpose()?.cloned(),
            attempts,
            mistakes: mistakes.into_iter().map(|mistake| mistake.title).collect(),
            open_batch: batch::open(&cx.db, &job.id)?,
            plan_changes: log::own(&cx.db, &job.id, "plan changed", MAX_SHOWN_CHANGES)?,
            imported: log::own(&cx.db, &job.id, IMPORT_LOG_PREFIX, 1)?.pop(),
            required_open: match job.status {
                Status::Planning => interview(&standing(&job, planned(&steps)), false).required_open,
                _ => Vec::new(),
            },
            current_step_index: current(&steps).map_or(steps.len(), |(place, _)| place),
            steps: lines(cx, &job.id, &steps)?,
            policies: job.effective(),
            changed_policies: job.policies.names(),
            job_id: job.id,
            title: job.title,
            goal: job.goal,
            status: job.status,
            status_reason: job.status_reason,
            repo_root: job.repo_root,
            workspace,
            tags: job.tags,
            plan: job.plan,
            created_at: job.created_at,
            updated_at: job.updated_at,
        })
    }
}

/// Steps in a list, with those that another host accepted.
fn lines(cx: &Cx<'_>, job: &JobId, steps: &[Step]) -> Result<Vec<StepLine>, ToolError> {
    let elsewhere = attempt::accepted_elsewhere(&cx.db, job)?;
    let lines = steps.iter().map(|step| StepLine {
        judged_elsewhere: elsewhere.contains(&step.step_id),
        ..StepLine::from(step)
    });
    Ok(lines.collect())
}

/// List jobs, most recently changed first. Archived jobs are listed only with status ARCHIVED.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-views" = pages()))]
pub(crate) struct JobList {
    /// Only jobs in this status. Default: all but ARCHIVED.
    #[schemars(extend("x-accepts" = super::any_text()))]
    status: Option<Status>,
    /// Maximum number of jobs, 1 to 200. Default 20.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// next_cursor of the previous page. Default: the first page.
    cursor: Option<Cursor>,
    /// Old name of cursor: number of jobs to skip.
    #[schemars(extend("deprecated" = true))]
    offset: Option<u32>,
}

fn pages() -> Json {
    json!({
        "title": "Jobs",
        "form": "list",
        "items": [{"list": "jobs"}],
        "arguments": {"limit": 100},
        "opens": {"tool": "job_get", "arguments": {"job_id": "job_id"}},
    })
}

/// A page of jobs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Jobs {
    /// Jobs, most recently changed first.
    jobs: Vec<JobLine>,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for JobList {
    const NAME: &'static str = "job_list";
    const TITLE: &'static str = "List jobs";
    const EFFECT: Effect = Effect::Read;
    type Output = Jobs;

    fn run(self, cx: &Cx<'_>) -> Result<Jobs, ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 20);
        // The time and the id of the last job of the page before.
        let after = self.cursor.as_ref().map(|cursor| cursor.parts(' '));
        if after == Some(None) {
            page::unknown(&mut refusals);
        }
        page::combined(&mut refusals, self.cursor.as_ref(), self.offset);
        refusals.finish()?;
        let offset = self.offset.unwrap_or_default();
        let mut jobs = job::list(&cx.db, self.status, after.flatten(), offset, limit + 1)?;
        let more = jobs.len() > limit as usize;
        jobs.truncate(limit as usize);
        let last = jobs.last().filter(|_| more);
        Ok(Jobs {
            next_cursor: last.map(|last| format!("{} {}", last.updated_at, last.job_id)),
            jobs,
        })
    }
}

/// Change a job's policies; omitted ones keep their values. While EXECUTING or PAUSED, a person must agree to changes
/// that loosen them. Fails if the job has ended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct JobUpdatePolicies {
    job_id: JobId,
    /// Policies to change, for example {"max_retries_per_step": 3}.
    policies: PolicyChanges,
}

/// Policies of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PolicyView {
    job_id: JobId,
    /// Names of the policies that this call changed.
    changed: Vec<&'static str>,
    /// Policies in force.
    policies: Policies,
}

impl Tool for JobUpdatePolicies {
    const NAME: &'static str = "job_update_policies";
    const TITLE: &'static str = "Change policies";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::REPLACING;
    type Output = PolicyView;

    fn run(self, cx: &Cx<'_>) -> Result<PolicyView, ToolError> {
        let mut refusals = Refusals::default();
        self.policies.check("policies", &mut refusals);
        let changed = self.policies.names();
        if changed.is_empty() {
            refusals.add(Reason::argument("policies", "changes nothing"));
        }
        refusals.finish()?;
        let mut job = find_job(&cx.db, &self.job_id)?;
        let seen = job.status;
        job.status = after(&job, Event::UpdatePolicies)?;
        let before = job.effective();
        job.policies = job.policies.merged(self.policies);
        let changes = freeze::policies(&before, &job.effective());
        match job.status {
            Status::Executing | Status::Paused => {
                super::steps::changed(cx, &job, &changes, JobUpdatePolicies::NAME)?;
            }
            _ => {
                // Of a plan that was never agreed nothing is taken.
                let is_agreed = seen == Status::Ready || job.baseline.is_some();
                let (loosened, others): (Vec<Change>, Vec<Change>) = changes
                    .into_iter()
                    .partition(|change| is_agreed && change.loosens);
                super::steps::taken(cx, &cx.db, &job, &loosened)?;
                if !others.is_empty() {
                    let line = format!("policies changed: {}", freeze::lines(&others));
                    super::lifecycle::note(cx, &cx.db, &job, &line)?;
                }
            }
        }
        save(cx, &cx.db, seen, &mut job)?;
        Ok(PolicyView {
            changed,
            policies: job.effective(),
            job_id: job.id,
        })
    }
}
