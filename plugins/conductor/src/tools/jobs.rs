//! Looking at jobs, and their policies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Hints, Tier, Timestamp, Tool, ToolError};

use super::steps::StepLine;
use super::{after, current, find_job, find_step, save, standing};
use crate::error::{Reason, Refusals};
use crate::interview::interview;
use crate::model::{JobId, StepId};
use crate::plan::Plan;
use crate::policy::{Policies, PolicyChanges};
use crate::state::{Event, Status};
use crate::store::attempt::{self, Attempt};
use crate::store::job::{self, JobLine};
use crate::store::step::{self, Step};
use crate::store::{batch, mistake};

/// Show a job: where it stands, its plan, its effective policies, its steps; and on request a whole step
/// or the latest submissions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobGet {
    /// The job.
    job_id: JobId,
    /// Show this step whole, and only its submissions.
    step_id: Option<StepId>,
    /// How many of the latest submissions to show, at most 20. None if left out.
    #[schemars(range(max = 20))]
    attempts: Option<u32>,
}

/// A job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobView {
    /// The job.
    job_id: JobId,
    /// What it is called.
    title: String,
    /// What is built.
    goal: String,
    /// Where it stands.
    status: Status,
    /// Why it was paused, failed or archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    status_reason: Option<String>,
    /// The workspace, or a path in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_root: Option<String>,
    /// Its tags.
    tags: Vec<String>,
    /// What the interview found out.
    plan: Plan,
    /// The policies in force.
    policies: Policies,
    /// The policies that differ from the defaults.
    changed_policies: Vec<&'static str>,
    /// The steps in order.
    steps: Vec<StepLine>,
    /// The place of the current step, from 0; the number of steps when all are done.
    current_step_index: usize,
    /// The step asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<Step>,
    /// The latest submissions, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<Attempt>,
    /// The mistakes recorded last, newest first, by title.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mistakes: Vec<String>,
    /// The batch whose commit was put off, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_batch: Option<batch::Batch>,
    /// What the plan still needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required_open: Vec<&'static str>,
    /// When it was created.
    created_at: Timestamp,
    /// When anything about it last changed.
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
            return Err(Reason::argument("attempts", format!("is {wanted}, at most 20 are shown")).into());
        }
        let job = find_job(&cx.db, &self.job_id)?;
        let steps = step::all(&cx.db, &job.id)?;
        let shown = self.step_id.as_ref().map(|id| find_step(&steps, id.as_str()));
        let attempts = match wanted {
            0 => Vec::new(),
            limit => attempt::latest(&cx.db, &job.id, self.step_id.as_ref(), limit)?.0,
        };
        let mistakes = mistake::latest(&cx.db, &job.id, 10)?;
        Ok(JobView {
            step: shown.transpose()?.cloned(),
            attempts,
            mistakes: mistakes.into_iter().map(|mistake| mistake.title).collect(),
            open_batch: batch::open(&cx.db, &job.id)?,
            required_open: match job.status {
                Status::Planning => interview(&standing(&job, steps.len()), false).required_open,
                _ => Vec::new(),
            },
            current_step_index: current(&steps).map_or(steps.len(), |(place, _)| place),
            steps: steps.iter().map(StepLine::from).collect(),
            policies: job.effective(),
            changed_policies: job.policies.names(),
            job_id: job.id,
            title: job.title,
            goal: job.goal,
            status: job.status,
            status_reason: job.status_reason,
            repo_root: job.repo_root,
            tags: job.tags,
            plan: job.plan,
            created_at: job.created_at,
            updated_at: job.updated_at,
        })
    }
}

/// List jobs, the latest changed first. Archived ones only by status.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobList {
    /// Only jobs in this status.
    status: Option<Status>,
    /// At most so many, 1 to 200; 20 if left out.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// Leave out so many first.
    #[serde(default)]
    offset: u32,
}

/// Jobs.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Jobs {
    /// The jobs, the latest changed first.
    jobs: Vec<JobLine>,
    /// What to give as offset for more, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u32>,
}

impl Tool for JobList {
    const NAME: &'static str = "job_list";
    const TITLE: &'static str = "List jobs";
    const EFFECT: Effect = Effect::Read;
    type Output = Jobs;

    fn run(self, cx: &Cx<'_>) -> Result<Jobs, ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 20);
        refusals.finish()?;
        let mut jobs = job::list(&cx.db, self.status, self.offset, limit + 1)?;
        let more = jobs.len() > limit as usize;
        jobs.truncate(limit as usize);
        Ok(Jobs {
            next_offset: more.then(|| self.offset.saturating_add(limit)),
            jobs,
        })
    }
}

/// Change a job's policies; those left out stay. Possible until the job has ended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobUpdatePolicies {
    /// The job.
    job_id: JobId,
    /// The policies to change.
    policies: PolicyChanges,
}

/// The policies of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PolicyView {
    /// The job.
    job_id: JobId,
    /// What this call changed.
    changed: Vec<&'static str>,
    /// The policies in force.
    policies: Policies,
}

impl Tool for JobUpdatePolicies {
    const NAME: &'static str = "job_update_policies";
    const TITLE: &'static str = "Change policies";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints {
        destructive: true,
        ..Hints::IDEMPOTENT
    };
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
        job.policies = job.policies.merged(self.policies);
        save(cx, &cx.db, seen, &mut job)?;
        let line = format!("policies changed: {}", changed.join(", "));
        super::lifecycle::note(cx, &cx.db, &job, &line)?;
        Ok(PolicyView {
            changed,
            policies: job.effective(),
            job_id: job.id,
        })
    }
}
