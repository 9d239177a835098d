//! Tools that change the status of a job: ready, pause, resume, fail, archive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Db, Effect, Hints, NextCall, Tier, Tool, ToolError};

use super::execute::{Running, Telling, attempts_left};
use super::{after, conflict, current, find_job, job_call, planned, save};
use crate::access;
use crate::arguments::MAX_ENTRY_CHARS;
use crate::error::Refusals;
use crate::gate::agreed::{self, Agreement};
use crate::gate::delivered;
use crate::gate::known::Presence;
use crate::gate::learn;
use crate::model::{JobId, LogType, StepId};
use crate::person;
use crate::ready::{FAULTS_FROM, Gap, Readiness, gaps, refuse};
use crate::state::{Event, Status};
use crate::step::StepSpec;
use crate::store::job::Job;
use crate::store::step::{self, Step};
use crate::store::{context, log, snapshot, workspace};

/// Adds a line to the job's own log.
pub(crate) fn note(cx: &Cx<'_>, db: &Db<'_>, job: &Job, what: &str) -> Result<(), ToolError> {
    log::append(cx, db, &job.id, LogType::System, None, None, what)?;
    Ok(())
}

/// Check the whole plan and set the job to READY. Fails with all gaps, each with the call that closes it. Warns
/// about missing grants. Then call job_start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct JobSetReady {
    job_id: JobId,
}

/// A job that is ready.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ready {
    /// Job id: all that the executing thread needs.
    job_id: JobId,
    /// Status of the job.
    status: Status,
    /// Goal of the job.
    goal: String,
    /// Deliverables of the job.
    deliverables: Vec<String>,
    /// Titles of the steps, in order.
    steps: Vec<String>,
    /// Gates that will fail for lack of a grant, and other problems to know before the work begins.
    warnings: Vec<String>,
    /// Call that starts the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

impl Tool for JobSetReady {
    const NAME: &'static str = "job_set_ready";
    const TITLE: &'static str = "Make the job ready";
    const EFFECT: Effect = Effect::Run;
    const TIER: Tier = Tier::Core;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Ready;

    fn run(self, cx: &Cx<'_>) -> Result<Ready, ToolError> {
        let (job, steps) = cx.transaction(|db| {
            let job = find_job(&db, &self.job_id)?;
            after(&job, Event::SetReady)?;
            let steps = step::all(&db, &job.id)?;
            refuse(all_gaps(cx, &db, &job, &steps)?)?;
            Ok::<_, ToolError>((job, steps))
        })?;
        // A job that is READY keeps what was recorded when its plan was agreed.
        let agreement = match job.status {
            Status::Ready => None,
            _ => Some(agreed::agree(cx, &job, &steps)),
        };
        let nobody = access::nobody(cx, &job, &steps);
        let mut ready = cx.transaction(|db| self.agree(cx, &db, &steps, agreement))?;
        ready.warnings.extend(nobody);
        Ok(ready)
    }
}

impl JobSetReady {
    fn agree(
        &self,
        cx: &Cx<'_>,
        db: &Db<'_>,
        steps: &[Step],
        agreement: Option<Agreement>,
    ) -> Result<Ready, ToolError> {
        let mut job = find_job(db, &self.job_id)?;
        let seen = job.status;
        job.status = after(&job, Event::SetReady)?;
        if step::all(db, &job.id)? != steps {
            return Err(conflict(&job.id));
        }
        let specs: Vec<(StepId, &StepSpec)> = named(steps);
        let paths = workspace::paths(db)?;
        let mut warnings = access::warnings(cx, job.repo_root.as_deref(), &job.effective(), &specs, &paths);
        if let Some(Agreement { state, changed }) = agreement {
            job.baseline = state;
            context::agree(db, &job.id)?;
            if !changed.is_empty() {
                let line = format!(
                    "the tests changed after the plan was agreed: {}",
                    changed.join("; ")
                );
                note(cx, db, &job, &format!("plan changed: {line}"))?;
                warnings.push(line);
            }
        }
        warnings.extend(unchecked(cx, &job));
        let open = access::open(cx, job.repo_root.as_deref());
        let is_there = |path: &str| {
            let found = open.as_ref().map(|access| learn::presence(access, path));
            matches!(found, Ok(Ok(Presence::File | Presence::Empty)))
        };
        warnings.extend(
            steps
                .iter()
                .filter_map(|step| agreed::closed(&job, step, is_there)),
        );
        warnings.extend(agreed::unlimited(steps));
        save(cx, db, seen, &mut job)?;
        if seen != job.status {
            note(cx, db, &job, "ready")?;
        }
        let risks = job.plan.risks.iter().flatten();
        let unmitigated = risks.filter(|risk| risk.mitigation.is_none());
        warnings.extend(unmitigated.map(|risk| format!("risk has no mitigation: {}", risk.risk)));
        Ok(Ready {
            goal: job.goal,
            deliverables: job.plan.deliverables.unwrap_or_default(),
            steps: steps
                .iter()
                .map(|step| format!("{}: {}", step.step_id, step.spec.title))
                .collect(),
            warnings,
            next_call: Some(job_call("job_start", &job.id)),
            status: job.status,
            job_id: job.id,
        })
    }
}

/// Warning about deliverables of which none can be checked.
fn unchecked(cx: &Cx<'_>, job: &Job) -> Option<String> {
    access::open(cx, job.repo_root.as_deref()).ok()?;
    let texts = job.plan.deliverables.as_deref().unwrap_or_default();
    let is_unchecked = !texts.is_empty() && texts.iter().all(|text| delivered::paths(text).is_empty());
    is_unchecked
        .then(|| "no deliverable names a path, so nothing is checked at the end; name files".to_owned())
}

fn named(steps: &[Step]) -> Vec<(StepId, &StepSpec)> {
    steps
        .iter()
        .map(|step| (step.step_id.clone(), &step.spec))
        .collect()
}

/// All gaps of a job's plan.
fn all_gaps(cx: &Cx<'_>, db: &Db<'_>, job: &Job, steps: &[Step]) -> Result<Vec<Gap>, ToolError> {
    let blocks = context::ids(db, &job.id)?;
    let missing = steps.iter().flat_map(|step| {
        let refs = step.spec.context_refs.iter();
        let gone = refs.filter(|named| !blocks.iter().any(|(id, _)| id == *named));
        gone.map(|named| (step.step_id.clone(), named.clone()))
    });
    let missing: Vec<(StepId, String)> = missing.collect();
    let policies = job.effective();
    let lengths = (1..).zip(steps).map(|(place, step)| {
        let length = Telling::least_length(job, &policies, step, (place, steps.len()));
        (step.step_id.clone(), length)
    });
    let limit = policies.prompt_max_chars as usize;
    let long: Vec<(StepId, usize)> = lengths.filter(|(_, length)| *length > limit).collect();
    Ok(gaps(&Readiness {
        job: &job.id,
        goal: &job.goal,
        repo_root: job.repo_root.as_deref(),
        plan: &job.plan,
        steps: &named(steps),
        wants_baseline: policies.require_repo_snapshot_on_init
            || access::open(cx, job.repo_root.as_deref()).is_ok(),
        wants_faults: planned(steps) >= FAULTS_FROM,
        has_baseline: snapshot::latest(db, &job.id)?
            .is_some_and(|latest| Some(latest.repo_root) == job.repo_root),
        missing_contexts: &missing,
        long_prompts: &long,
    }))
}

/// A job whose status changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Moved {
    job_id: JobId,
    /// Status before the call.
    from: Status,
    /// Status after the call.
    status: Status,
}

/// Changes the status of a job and logs the reason.
fn shift(cx: &Cx<'_>, id: &JobId, event: Event, reason: Option<String>) -> Result<Moved, ToolError> {
    let mut refusals = Refusals::default();
    refusals.optional_text("reason", reason.as_deref(), MAX_ENTRY_CHARS);
    refusals.finish()?;
    let mut job = find_job(&cx.db, id)?;
    let from = job.status;
    job.status = after(&job, event)?;
    let line = match &reason {
        Some(reason) => format!("{}: {reason}", job.status.as_str().to_lowercase()),
        None => job.status.as_str().to_lowercase(),
    };
    job.status_reason = reason;
    save(cx, &cx.db, from, &mut job)?;
    note(cx, &cx.db, &job, &line)?;
    Ok(Moved {
        job_id: job.id,
        from,
        status: job.status,
    })
}

/// Pause an executing job. Fails if the job is not EXECUTING. Continue with job_resume.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct JobPause {
    job_id: JobId,
    /// Reason for the pause, kept in the job's log. Default none.
    reason: Option<String>,
}

impl Tool for JobPause {
    const NAME: &'static str = "job_pause";
    const TITLE: &'static str = "Pause a job";
    const EFFECT: Effect = Effect::Write;
    type Output = Moved;

    fn run(self, cx: &Cx<'_>) -> Result<Moved, ToolError> {
        shift(cx, &self.job_id, Event::Pause, self.reason)
    }
}

/// Resume a paused job. A person must agree if a registered test command changed, or if a step used up its
/// submissions, whose count then restarts. Fails if the job is not PAUSED. Then call job_next_step_prompt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct JobResume {
    job_id: JobId,
}

impl Tool for JobResume {
    const NAME: &'static str = "job_resume";
    const TITLE: &'static str = "Resume a job";
    const EFFECT: Effect = Effect::Write;
    type Output = Running;

    fn run(self, cx: &Cx<'_>) -> Result<Running, ToolError> {
        let mut job = find_job(&cx.db, &self.job_id)?;
        let seen = job.status;
        job.status = after(&job, Event::Resume)?;
        job.status_reason = None;
        let policies = job.effective();
        let steps = step::all(&cx.db, &job.id)?;
        let exhausted = current(&steps).filter(|(_, step)| attempts_left(step, &policies) == 0);
        let mut changes = agreed::resumed(cx, &mut job, &steps);
        changes.extend(exhausted.map(|(_, step)| {
            format!(
                "{} of {} is tried again; rejections so far: {}",
                step.step_id, job.id, step.rejections
            )
        }));
        let line = match changes.is_empty() {
            true => "resumed".to_owned(),
            false => {
                let change = changes.join("; ");
                let who = person::allows(cx, &change, JobResume::NAME)?;
                format!("plan changed by {who}: resumed; {change}")
            }
        };
        if exhausted.is_some() {
            step::forgive(&cx.db, &job.id)?;
        }
        save(cx, &cx.db, seen, &mut job)?;
        note(cx, &cx.db, &job, &line)?;
        Running::new(&job, &step::all(&cx.db, &job.id)?, Vec::new())
    }
}

/// Set a job to FAILED for good. Fails if the job has ended. The job stays readable and can be exported.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct JobFail {
    job_id: JobId,
    /// Reason for giving up the job, kept in the job's log.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    reason: String,
}

impl Tool for JobFail {
    const NAME: &'static str = "job_fail";
    const TITLE: &'static str = "Give up a job";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = Moved;

    fn run(self, cx: &Cx<'_>) -> Result<Moved, ToolError> {
        shift(cx, &self.job_id, Event::Fail, Some(self.reason))
    }
}

/// Archive a job that is complete, failed or still being planned. The job stays readable; job_list shows it
/// only with status ARCHIVED.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct JobArchive {
    job_id: JobId,
    /// Reason for archiving, kept in the job's log. Default none.
    reason: Option<String>,
}

impl Tool for JobArchive {
    const NAME: &'static str = "job_archive";
    const TITLE: &'static str = "Archive a job";
    const EFFECT: Effect = Effect::Write;
    type Output = Moved;

    fn run(self, cx: &Cx<'_>) -> Result<Moved, ToolError> {
        shift(cx, &self.job_id, Event::Archive, self.reason)
    }
}
