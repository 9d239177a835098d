//! Tools that propose and refine the chain of steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Db, Effect, Hints, Tier, Tool, ToolError};

use super::{editable, save};
use crate::access;
use crate::arguments::{MAX_ENTRY_CHARS, MAX_STEPS, clip_to};
use crate::checkpoint::with_checkpoints;
use crate::edits::{Edit, apply};
use crate::error::{Reason, Refusals};
use crate::freeze::{self, Change};
use crate::model::{BlockType, JobId, StepId, StepStatus};
use crate::person;
use crate::state::{Event, Status};
use crate::step::StepSpec;
use crate::store::job::Job;
use crate::store::step::{self, Step};
use crate::store::{attempt, context};

/// A step in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct StepLine {
    pub step_id: StepId,
    /// Title of the step.
    pub title: String,
    /// Status of the step.
    pub status: StepStatus,
    /// True for a review step.
    pub checkpoint: bool,
    /// Number of acceptance criteria.
    pub criteria: usize,
    /// Number of gates.
    pub gates: usize,
    /// Number of rejected submissions since the job last started or resumed.
    pub rejections: u32,
    /// True if a person approved the step.
    pub approved: bool,
    /// True if the step came from a bundle as done, so that no gate was checked here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub judged_elsewhere: bool,
}

impl From<&Step> for StepLine {
    fn from(step: &Step) -> StepLine {
        StepLine {
            step_id: step.step_id.clone(),
            title: step.spec.title.clone(),
            status: step.status,
            checkpoint: step.spec.checkpoint,
            criteria: step.spec.acceptance_criteria.len(),
            gates: step.spec.gates.len(),
            rejections: step.rejections,
            approved: step.approval.is_some(),
            judged_elsewhere: false,
        }
    }
}

/// A chain of steps after a change.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Chain {
    pub job_id: JobId,
    /// Status of the job after this call.
    pub status: Status,
    /// True if the job was READY and is now PLANNING again.
    pub unreadied: bool,
    /// Steps in order, including inserted checkpoints.
    pub steps: Vec<StepLine>,
    /// Gaps that job_set_ready will report, and hints to improve the chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Chain {
    /// Describes a changed chain.
    pub(crate) fn new(job_id: JobId, seen: Status, status: Status, steps: &[Step]) -> Chain {
        Chain {
            job_id,
            unreadied: seen == Status::Ready && status == Status::Planning,
            status,
            steps: steps.iter().map(StepLine::from).collect(),
            warnings: warnings(steps),
        }
    }
}

fn warnings(steps: &[Step]) -> Vec<String> {
    let mut warnings = Vec::new();
    for step in steps {
        let id = &step.step_id;
        let faults = step.spec.gaps();
        warnings.extend(faults.iter().map(|(_, fault)| format!("{id} {fault}")));
        if step.spec.remediation_prompt.is_empty() {
            warnings.push(format!("{id} has no remediation_prompt for when it fails"));
        }
    }
    warnings
}

/// New steps with ids and checkpoints. Fails if there are too many steps with their checkpoints.
pub(crate) fn number(cx: &Cx<'_>, specs: Vec<StepSpec>, job: &Job) -> Result<Vec<Step>, ToolError> {
    let specs = specs.into_iter().map(StepSpec::tidied).collect();
    let interval = job.effective().checkpoint_interval_steps;
    let specs = with_checkpoints(
        specs,
        interval,
        &job.plan,
        access::has_tests(cx, job.repo_root.as_deref()),
    );
    let mut refusals = Refusals::default();
    refusals.at_most("steps", specs.len(), MAX_STEPS, "steps with their checkpoints");
    refusals.finish()?;
    let numbered = (1..).zip(specs);
    Ok(numbered
        .map(|(number, spec)| Step::new(StepId::nth(number), spec))
        .collect())
}

/// Set or replace the chain of steps. Make each step atomic, verifiable, backed by evidence, repairable. Inserts
/// checkpoints as the policies say. Fails for unknown gates. Moves a READY job back to PLANNING.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct PlanProposeSteps {
    job_id: JobId,
    /// Steps in order of execution.
    #[schemars(length(min = 1, max = MAX_STEPS))]
    steps: Vec<StepSpec>,
}

impl Tool for PlanProposeSteps {
    const NAME: &'static str = "plan_propose_steps";
    const TITLE: &'static str = "Propose the steps";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = Chain;

    fn run(self, cx: &Cx<'_>) -> Result<Chain, ToolError> {
        let mut refusals = Refusals::default();
        if self.steps.is_empty() {
            refusals.add(Reason::argument("steps", "is empty"));
        }
        refusals.at_most("steps", self.steps.len(), MAX_STEPS, "steps");
        for (place, step) in self.steps.iter().enumerate().take(MAX_STEPS) {
            step.check(&format!("steps[{place}]"), &mut refusals);
        }
        refusals.finish()?;
        let (mut job, seen) = editable(&cx.db, &self.job_id, Event::EditPlan)?;
        let steps = number(cx, self.steps, &job)?;
        // A new chain, of which nothing was executed.
        job.last_step = 0;
        taken(
            cx,
            &cx.db,
            &job,
            &freeze::taken(&step::all(&cx.db, &job.id)?, &steps),
        )?;
        step::replace(&cx.db, &job.id, &steps)?;
        save(cx, &cx.db, seen, &mut job)?;
        Ok(Chain::new(job.id, seen, job.status, &steps))
    }
}

/// Edit the chain: update, insert, remove or move steps; all edits or none. While EXECUTING or PAUSED, only
/// steps that are not done may change, and a person must agree to changes that loosen the plan; after editing the
/// current step, get its prompt again. Moves a READY job back to PLANNING. Inserts no checkpoints.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct PlanRefineSteps {
    job_id: JobId,
    /// Edits, applied in this order.
    #[schemars(length(min = 1, max = MAX_STEPS))]
    edits: Vec<Edit>,
}

impl Tool for PlanRefineSteps {
    const NAME: &'static str = "plan_refine_steps";
    const TITLE: &'static str = "Refine the steps";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = Chain;

    fn run(self, cx: &Cx<'_>) -> Result<Chain, ToolError> {
        let (mut job, seen) = editable(&cx.db, &self.job_id, Event::RefineSteps)?;
        job.count(&attempt::steps(&cx.db, &job.id)?);
        let before = step::all(&cx.db, &job.id)?;
        job.count(before.iter().map(|step| &step.step_id));
        let after_done = super::insert_after_done(&job.id, &before);
        let named: Vec<StepId> = self
            .edits
            .iter()
            .filter_map(Edit::gives_outputs)
            .cloned()
            .collect();
        let mut steps =
            apply(before.clone(), job.last_step as usize, self.edits).map_err(|mut refusals| {
                refusals.next_calls(|reason| match reason {
                    Reason::StepDone(_) => after_done.clone(),
                    _ => None,
                });
                refusals
            })?;
        let underway = matches!(job.status, Status::Executing | Status::Paused);
        if underway && steps.iter().all(|step| step.status == StepStatus::Done) {
            return Err(Reason::argument(
                "edits",
                "would leave no open step; keep one, or submit the open steps to end the job",
            )
            .into());
        }
        if underway {
            ready_still(&context::ids(&cx.db, &job.id)?, &steps)?;
            let mut changes = freeze::steps(&before, &steps);
            changes.extend(freeze::openings(&before, &steps, &named));
            let is_allowed = changed(cx, &job, &changes, PlanRefineSteps::NAME)?;
            steps = freeze::with_agreed(&before, steps, &named, is_allowed);
        } else {
            taken(cx, &cx.db, &job, &freeze::taken(&before, &steps))?;
        }
        step::replace(&cx.db, &job.id, &steps)?;
        job.count(steps.iter().map(|step| &step.step_id));
        save(cx, &cx.db, seen, &mut job)?;
        Ok(Chain::new(job.id, seen, job.status, &steps))
    }
}

/// Logs changes of a running job. Those that loosen the plan need a person. True if a person allowed some.
pub(crate) fn changed(cx: &Cx<'_>, job: &Job, changes: &[Change], tool: &str) -> Result<bool, ToolError> {
    let loose: Vec<&Change> = changes.iter().filter(|change| change.loosens).collect();
    let by = match loose.is_empty() {
        true => String::new(),
        false => {
            let what = format!("{} of job {}", freeze::lines(loose), job.id);
            format!(" by {}", person::allows(cx, &what, tool)?)
        }
    };
    for change in changes {
        let line = clip_to(&format!("plan changed{by}: {}", change.line), MAX_ENTRY_CHARS);
        super::lifecycle::note(cx, &cx.db, job, &line)?;
    }
    Ok(!by.is_empty())
}

/// Logs what is taken out of the plan of a job that has not started. That needs no person, but leaves a trace.
pub(crate) fn taken(cx: &Cx<'_>, db: &Db<'_>, job: &Job, changes: &[Change]) -> Result<(), ToolError> {
    for change in changes {
        let line = clip_to(
            &format!("plan changed before the start: {}", change.line),
            MAX_ENTRY_CHARS,
        );
        super::lifecycle::note(cx, db, job, &line)?;
    }
    Ok(())
}

/// Steps of a running job must pass the checks of the ready gate here, because no other gate follows.
fn ready_still(blocks: &[(String, BlockType)], steps: &[Step]) -> Result<(), ToolError> {
    let mut refusals = Refusals::default();
    for step in steps.iter().filter(|step| step.status != StepStatus::Done) {
        let refs = step.spec.context_refs.iter();
        for named in refs.filter(|named| !blocks.iter().any(|(id, _)| id == *named)) {
            refusals.add(Reason::Gap {
                code: "CONTEXT_MISSING",
                field: step.step_id.to_string(),
                message: format!(
                    "step {} names the context block {named}, which does not exist",
                    step.step_id
                ),
            });
        }
        for (code, fault) in step.spec.gaps() {
            refusals.add(Reason::Gap {
                code,
                field: step.step_id.to_string(),
                message: format!("step {} {fault}", step.step_id),
            });
        }
    }
    refusals.finish()
}
