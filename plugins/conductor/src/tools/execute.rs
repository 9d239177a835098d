//! Tools that start the execution and return the prompt of the current step.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Db, DbError, Effect, Hints, NextCall, Tier, Tool, ToolError};

use super::{after, conflict, current, find_job, internal, job_call};
use crate::access;
use crate::asked;
use crate::briefing::{Accepted, Briefing};
use crate::gate::{Gate, judge_changes, start};
use crate::model::{BlockType, Claim, EvidenceType, JobId, LogType, StepId, StepStatus};
use crate::policy::Policies;
use crate::prompt::{self, Advice, Material};
use crate::state::Event;
use crate::store::attempt::Attempt;
use crate::store::job::Job;
use crate::store::mistake::Mistake;
use crate::store::step::{self, Step};
use crate::store::{attempt, batch, context, log, mistake};
use crate::workspaces::WorkspaceLine;
use crate::{evidence, mistakes, rules};

/// Return the prompt of the current step: objective, invariants, criteria, required evidence, mistakes. On a READY
/// job call job_start first. Then call job_submit_step_result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct JobNextStepPrompt {
    job_id: JobId,
}

/// Prompt of a step, and its parts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepPrompt {
    job_id: JobId,
    step_id: StepId,
    /// Number of the step, from 1.
    place: usize,
    /// Number of steps of the job.
    steps: usize,
    /// Complete prompt.
    prompt: String,
    /// Acceptance criteria, c1 first.
    acceptance_criteria: Vec<String>,
    /// Keys of the evidence with their types, including those that policies require.
    required_evidence_schema: BTreeMap<String, EvidenceType>,
    /// Relevant mistakes, newest first.
    relevant_mistakes: Vec<String>,
    /// Rules that must never be violated.
    invariants: Vec<String>,
    /// Number of submissions left before the job pauses or fails.
    attempts_left: u32,
    /// Open batch-commit token, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_commit_token: Option<String>,
}

impl Tool for JobNextStepPrompt {
    const NAME: &'static str = "job_next_step_prompt";
    const TITLE: &'static str = "Get the next step";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = StepPrompt;

    fn run(self, cx: &Cx<'_>) -> Result<StepPrompt, ToolError> {
        let job = find_job(&cx.db, &self.job_id)?;
        after(&job, Event::Prompt)?;
        let steps = step::all(&cx.db, &job.id)?;
        let (place, found) = current(&steps).ok_or_else(internal)?;
        if found.status == StepStatus::Pending {
            let active = Step {
                status: StepStatus::Active,
                ..found.clone()
            };
            if !step::update(&cx.db, &job.id, found.status, &active)? {
                return Err(conflict(&job.id));
            }
            asked::keep_up(cx, &cx.db, &job)?;
        }
        let workspace = access::workspace_line(cx, &cx.db, job.repo_root.as_deref())?;
        let told = Telling::gather(&cx.db, &job, found, workspace)?;
        let policies = job.effective();
        Ok(StepPrompt {
            prompt: told.prompt(&job, &policies, found, (place + 1, steps.len())),
            place: place + 1,
            steps: steps.len(),
            step_id: found.step_id.clone(),
            acceptance_criteria: found.spec.acceptance_criteria.clone(),
            required_evidence_schema: evidence::required(&found.spec.required_evidence, &policies, &job.plan),
            relevant_mistakes: told.mistakes.iter().map(Advice::line).collect(),
            invariants: job.plan.invariants.clone().unwrap_or_default(),
            attempts_left: attempts_left(found, &policies),
            batch_commit_token: told.batch.map(|(token, _)| token),
            job_id: job.id,
        })
    }

    fn text(output: &StepPrompt) -> Option<String> {
        Some(output.prompt.clone())
    }
}

/// Number of submissions of a step that may still be rejected; the last rejection pauses or ends the job.
pub(crate) fn attempts_left(step: &Step, policies: &Policies) -> u32 {
    let allowed = step
        .spec
        .max_attempts
        .unwrap_or_else(|| policies.max_retries_per_step.saturating_add(1));
    allowed.saturating_sub(step.rejections)
}

/// Reasons of a rejection. An honest claim of failure has its facts in the summary.
fn told(last: Attempt) -> Vec<String> {
    match last.model_claim {
        Claim::Met => last.rejection_reasons,
        claim => vec![format!("it claimed {claim}: {}", last.summary)],
    }
}

/// Limits of the next step that looks at changes, if this one does not: its changes count there.
fn later(steps: &[Step], step: &Step) -> Vec<String> {
    let looks = |step: &Step| judge_changes(&step.spec.parsed_gates());
    if looks(step) {
        return Vec::new();
    }
    let after = steps
        .iter()
        .skip_while(|other| other.step_id != step.step_id)
        .skip(1);
    let Some(next) = after.into_iter().find(|other| looks(other)) else {
        return Vec::new();
    };
    let limits = next.spec.parsed_gates().into_iter().filter(Gate::limits_changes);
    limits
        .map(|gate| format!("{}: {}", next.step_id, gate.describe()))
        .collect()
}

/// Facts for a prompt, besides the job and the step.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    briefing: Briefing,
    contexts: Vec<(String, String, String)>,
    rules: Vec<String>,
    mistakes: Vec<Advice>,
    batch: Option<(String, u32)>,
    rejection: Vec<String>,
    later: Vec<String>,
}

impl Telling {
    /// Maximum number of research blocks that rules are taken from, of mistakes searched, and of decisions.
    const MAX_BLOCKS: u32 = 20;
    const MAX_MISTAKES: u32 = 200;
    const MAX_DECISIONS: u32 = 20;

    /// Reads the facts from the database.
    pub(crate) fn gather(
        db: &Db<'_>,
        job: &Job,
        step: &Step,
        workspace: Option<WorkspaceLine>,
    ) -> Result<Telling, DbError> {
        let mut contexts = Vec::new();
        for id in &step.spec.context_refs {
            if let Some(block) = context::get(db, &job.id, id)? {
                let changed = block
                    .changed_at
                    .map_or("", |_| ", changed since the plan was agreed");
                contexts.push((
                    id.clone(),
                    format!("{}{changed}", block.block_type),
                    block.content,
                ));
            }
        }
        let research = context::of_type(db, &job.id, BlockType::Research, Telling::MAX_BLOCKS)?;
        let rejected = attempt::last(db, &job.id, &step.step_id)?.filter(|last| !last.accepted);
        let newest = mistake::latest(db, &job.id, Telling::MAX_MISTAKES)?;
        let mut relevant: Vec<&Mistake> = match job.effective().inject_mistakes_every_step {
            true => mistakes::relevant(&newest, &step.step_id, &step.spec),
            false => Vec::new(),
        };
        // The last rejection is told with its reasons, unless a lesson says more.
        relevant.retain(|mistake| {
            !mistake.lesson.is_empty()
                || rejected.as_ref().is_none_or(|last| {
                    let is_same = mistake.attempt_id.as_ref() == Some(&last.attempt_id);
                    !is_same && !mistakes::repeats(mistake, &last.rejection_reasons)
                })
        });
        Ok(Telling {
            briefing: Telling::briefing(db, job, workspace)?,
            contexts,
            rules: rules::distil(&research),
            mistakes: relevant.into_iter().map(mistakes::advice).collect(),
            batch: batch::open(db, &job.id)?.map(|batch| (batch.token.to_string(), batch.steps_left)),
            rejection: rejected.map(told).unwrap_or_default(),
            later: later(&step::all(db, &job.id)?, step),
        })
    }

    fn briefing(db: &Db<'_>, job: &Job, workspace: Option<WorkspaceLine>) -> Result<Briefing, DbError> {
        let (decisions, _) = log::latest(
            db,
            &job.id,
            log::Filter::of_type(LogType::Decision),
            Telling::MAX_DECISIONS,
        )?;
        let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
        let mut accepted = Vec::new();
        let steps = step::all(db, &job.id)?;
        for (step_id, summary, commit) in attempt::accepted(db, &job.id)? {
            let spec = steps
                .iter()
                .find(|step| step.step_id == step_id)
                .map(|step| &step.spec);
            let wants_notes =
                spec.is_some_and(|spec| !spec.checkpoint && spec.required_evidence.contains_key("notes"));
            accepted.push(Accepted {
                notes: match wants_notes {
                    true => attempt::notes(db, &job.id, &step_id)?,
                    false => None,
                },
                step_id: step_id.to_string(),
                summary,
                commit,
            });
        }
        Ok(Briefing {
            workspace,
            decisions: decisions
                .into_iter()
                .map(|entry| first_line(entry.content))
                .collect(),
            accepted,
            blocks: context::ids(db, &job.id)?,
        })
    }

    fn material<'a>(
        &'a self,
        job: &'a Job,
        policies: &'a Policies,
        step: &'a Step,
        place: (usize, usize),
    ) -> Material<'a> {
        Material {
            job_id: job.id.as_str(),
            job_title: &job.title,
            goal: &job.goal,
            repo_root: job.repo_root.as_deref(),
            plan: &job.plan,
            policies,
            step_id: step.step_id.as_str(),
            step: &step.spec,
            place,
            briefing: &self.briefing,
            contexts: &self.contexts,
            rules: &self.rules,
            mistakes: &self.mistakes,
            batch: self.batch.as_ref().map(|(token, left)| (token.as_str(), *left)),
            rejection: &self.rejection,
            later: &self.later,
            attempts_left: attempts_left(step, policies),
        }
    }

    /// Builds the prompt.
    pub(crate) fn prompt(
        &self,
        job: &Job,
        policies: &Policies,
        step: &Step,
        place: (usize, usize),
    ) -> String {
        prompt::build(&self.material(job, policies, step, place))
    }

    /// Minimum length of the prompt.
    pub(crate) fn least_length(job: &Job, policies: &Policies, step: &Step, place: (usize, usize)) -> usize {
        prompt::least_length(&Telling::default().material(job, policies, step, place))
    }
}

/// Start executing a READY job. A person must agree if its tests changed since it became READY. Then call
/// job_next_step_prompt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct JobStart {
    job_id: JobId,
}

/// A job in execution.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Running {
    job_id: JobId,
    /// Status of the job.
    status: crate::state::Status,
    /// Id of the current step.
    step_id: StepId,
    /// Title of the current step.
    title: String,
    /// Number of steps.
    steps: usize,
    /// Number of steps that are done.
    steps_done: usize,
    /// Problems to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Call that returns the prompt of the current step.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

impl Running {
    /// Describes a job in execution, at its current step.
    pub(crate) fn new(job: &Job, steps: &[Step], warnings: Vec<String>) -> Result<Running, ToolError> {
        let (_, step) = current(steps).ok_or_else(internal)?;
        let done = steps
            .iter()
            .filter(|step| step.status == StepStatus::Done)
            .count();
        Ok(Running {
            job_id: job.id.clone(),
            status: job.status,
            step_id: step.step_id.clone(),
            title: step.spec.title.clone(),
            steps: steps.len(),
            steps_done: done,
            warnings,
            next_call: Some(job_call("job_next_step_prompt", &job.id)),
        })
    }
}

impl Tool for JobStart {
    const NAME: &'static str = "job_start";
    const TITLE: &'static str = "Start execution";
    const EFFECT: Effect = Effect::Run;
    const TIER: Tier = Tier::Core;
    type Output = Running;

    fn run(self, cx: &Cx<'_>) -> Result<Running, ToolError> {
        let (job, steps) = cx.transaction(|db| {
            let job = find_job(&db, &self.job_id)?;
            let steps = step::all(&db, &job.id)?;
            Ok::<_, ToolError>((job, steps))
        })?;
        after(&job, Event::Start)?;
        let start = start::begin(cx, &job, &steps)?;
        start.tests.tell(cx, &job.id, None)?;
        cx.transaction(|db| {
            let mut job = find_job(&db, &self.job_id)?;
            if step::all(&db, &job.id)? != steps {
                return Err(conflict(&job.id));
            }
            let seen = job.status;
            job.status = after(&job, Event::Start)?;
            job.baseline = start.baseline;
            super::save(cx, &db, seen, &mut job)?;
            if let Some(line) = &start.allowed {
                super::lifecycle::note(cx, &db, &job, line)?;
            }
            super::lifecycle::note(cx, &db, &job, "started")?;
            Running::new(&job, &steps, start.warnings)
        })
    }
}
