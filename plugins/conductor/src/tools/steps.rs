//! Proposing and refining the chain of steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Hints, Tier, Tool, ToolError};

use super::{editable, save};
use crate::arguments::STEPS;
use crate::checkpoint::with_checkpoints;
use crate::edits::{Edit, apply};
use crate::error::{Reason, Refusals};
use crate::model::{BlockType, JobId, StepId, StepStatus};
use crate::plan::Plan;
use crate::policy::Policies;
use crate::state::{Event, Status};
use crate::step::StepSpec;
use crate::store::step::{self, Step};
use crate::store::{attempt, context};

/// A step in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct StepLine {
    /// The step.
    pub step_id: StepId,
    /// Its title.
    pub title: String,
    /// Where it stands.
    pub status: StepStatus,
    /// It is a review step.
    pub checkpoint: bool,
    /// How many acceptance criteria it has.
    pub criteria: usize,
    /// How many gates it has.
    pub gates: usize,
    /// Rejected submissions since the job last began or resumed.
    pub rejections: u32,
    /// Somebody approved it.
    pub approved: bool,
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
        }
    }
}

/// A chain after it was changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Chain {
    /// The job.
    pub job_id: JobId,
    /// Where it stands now.
    pub status: Status,
    /// It was READY and is not any more.
    pub unreadied: bool,
    /// The steps in order, with the checkpoints that were inserted.
    pub steps: Vec<StepLine>,
    /// What the ready gate will want, and what would make the chain better.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Chain {
    /// What a changed chain looks like.
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

/// New steps with ids and checkpoints, if they are not too many with them.
pub(crate) fn number(specs: Vec<StepSpec>, policies: &Policies, plan: &Plan) -> Result<Vec<Step>, ToolError> {
    let specs = specs.into_iter().map(StepSpec::tidied).collect();
    let specs = with_checkpoints(specs, policies.checkpoint_interval_steps, plan);
    let mut refusals = Refusals::default();
    refusals.at_most("steps", specs.len(), STEPS, "steps with their checkpoints");
    refusals.finish()?;
    let numbered = (1..).zip(specs);
    Ok(numbered
        .map(|(number, spec)| Step::new(StepId::nth(number), spec))
        .collect())
}

/// Set the chain of steps, in place of an earlier one. Make each step atomic, verifiable, backed by
/// evidence, repairable. Checkpoints are inserted as the policies say. Unknown gates are refused. Takes a
/// READY job back to PLANNING.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanProposeSteps {
    /// The job.
    job_id: JobId,
    /// The steps in order.
    #[schemars(length(min = 1, max = STEPS))]
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
        refusals.at_most("steps", self.steps.len(), STEPS, "steps");
        for (place, step) in self.steps.iter().enumerate().take(STEPS) {
            step.check(&format!("steps[{place}]"), &mut refusals);
        }
        refusals.finish()?;
        let (mut job, seen) = editable(&cx.db, &self.job_id, Event::EditPlan)?;
        let steps = number(self.steps, &job.effective(), &job.plan)?;
        step::replace(&cx.db, &job.id, &steps)?;
        save(cx, &cx.db, seen, &mut job)?;
        Ok(Chain::new(job.id, seen, job.status, &steps))
    }
}

/// Edit the chain: update, insert, remove or move steps; all edits or none. While EXECUTING or PAUSED only
/// steps that are not done may change; a step that is being worked on needs its prompt again. Takes a READY
/// job back to PLANNING. Inserts no checkpoints.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanRefineSteps {
    /// The job.
    job_id: JobId,
    /// The edits, in order.
    #[schemars(length(min = 1, max = STEPS))]
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
        let tried = attempt::steps(&cx.db, &job.id)?;
        let steps = apply(step::all(&cx.db, &job.id)?, &tried, self.edits)?;
        let underway = matches!(job.status, Status::Executing | Status::Paused);
        if underway && steps.iter().all(|step| step.status == StepStatus::Done) {
            return Err(
                Reason::argument("edits", "leave no step to do; end the job by its last step").into(),
            );
        }
        if underway {
            ready_still(&context::ids(&cx.db, &job.id)?, &steps)?;
        }
        step::replace(&cx.db, &job.id, &steps)?;
        save(cx, &cx.db, seen, &mut job)?;
        Ok(Chain::new(job.id, seen, job.status, &steps))
    }
}

/// Steps of a job that runs have to pass the ready gate, because no other gate is left.
fn ready_still(blocks: &[(String, BlockType)], steps: &[Step]) -> Result<(), ToolError> {
    let mut refusals = Refusals::default();
    for step in steps.iter().filter(|step| step.status != StepStatus::Done) {
        let refs = step.spec.context_refs.iter();
        for named in refs.filter(|named| !blocks.iter().any(|(id, _)| id == *named)) {
            refusals.add(Reason::Gap {
                code: "CONTEXT_MISSING",
                field: step.step_id.to_string(),
                message: format!(
                    "step {} names the context block {named}, which is not there",
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
