//! The start of a job, and the interview.

use conductor_repo::snapshot::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tier, Tool, ToolError};

use super::{editable, find_job, save, standing};
use crate::arguments::{ENTRY, PATH, TITLE, tidy_tags};
use crate::error::{Reason, Refusals};
use crate::interview::{Interview, Question, interview};
use crate::model::JobId;
use crate::plan::{Plan, Risk};
use crate::policy::PolicyChanges;
use crate::repo::survey::{self, Before, Look};
use crate::root::Root;
use crate::state::{Event, Status};
use crate::store::job::{self, Job};
use crate::store::snapshot::SnapshotRecord;
use crate::store::{short_id, step};

/// Start a job in PLANNING and get the first questions of the interview. Ask the user what you cannot
/// know, then call conductor_answer. A repository that can be read gets a snapshot. The job id is all that another thread needs to go on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConductorInit {
    /// A short title.
    #[schemars(length(min = 1, max = TITLE))]
    title: String,
    /// What is built, in one sentence.
    #[schemars(length(min = 1, max = ENTRY))]
    goal: String,
    /// The name of a registered workspace, or a path in one. Says that a repository exists.
    #[schemars(length(min = 1, max = PATH))]
    repo_root: Option<String>,
    /// Policies that differ from the defaults.
    policies: Option<PolicyChanges>,
    /// Tags.
    #[serde(default)]
    tags: Vec<String>,
}

/// A job that began.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Begun {
    /// The job's id, such as JOB-7F2A.
    job_id: JobId,
    /// Where it stands.
    status: Status,
    /// The open questions of the first phase.
    next_questions: Vec<Question>,
    /// How to go on.
    instructions: &'static str,
    /// The baseline of the repository, if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<SnapshotRecord>,
    /// What should be known before the work begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Tool for ConductorInit {
    const NAME: &'static str = "conductor_init";
    const TITLE: &'static str = "Start a job";
    const EFFECT: Effect = Effect::Run;
    const TIER: Tier = Tier::Core;
    type Output = Begun;

    fn run(self, cx: &Cx<'_>) -> Result<Begun, ToolError> {
        self.check()?;
        let mut warnings = crate::access::workspace_warning(cx, self.repo_root.as_deref());
        let look = self.look(cx, &mut warnings)?;
        let (job, snapshot) = cx.transaction(|db| {
            let job = self.job(cx, short_id(cx, |id| job::exists(&db, id))?);
            job::insert(&db, &job)?;
            let store = |look: &Look<'_>| {
                look.keep_facts(&db, &job.id)?;
                look.store(cx, &db, &job.id, None)
            };
            let snapshot = look.as_ref().map(store).transpose()?;
            Ok::<_, ToolError>((job, snapshot))
        })?;
        Ok(Begun {
            next_questions: interview(&standing(&job, 0), false).questions,
            warnings,
            instructions: "Answer with conductor_answer, asking the user what you do not know; store research and notes \
                with context_add_block; propose small, verifiable steps with plan_propose_steps; then call \
                job_set_ready, which lists what is missing.",
            job_id: job.id,
            status: job.status,
            snapshot,
        })
    }
}

impl ConductorInit {
    /// The baseline of a repository that can be read. One that cannot is worth a warning; the ready gate
    /// asks for a baseline if the policies do.
    fn look<'a>(&self, cx: &'a Cx<'a>, warnings: &mut Vec<String>) -> Result<Option<Look<'a>>, ToolError> {
        let Some(root) = self.repo_root.as_deref().filter(|_| warnings.is_empty()) else {
            return Ok(None);
        };
        let looked = survey::look(cx, root, Before::default(), &Limits::default());
        let mut look = match looked {
            Ok(look) => look,
            Err(err) => {
                warnings.push(format!("no snapshot was taken: {}", err.message));
                return Ok(None);
            }
        };
        warnings.append(&mut look.warnings);
        if look.is_partial() {
            warnings
                .push("the snapshot is not complete: the repository is larger than its limits".to_owned());
        }
        Ok(Some(look))
    }

    fn job(&self, cx: &Cx<'_>, id: JobId) -> Job {
        Job {
            id,
            title: self.title.trim().to_owned(),
            goal: self.goal.trim().to_owned(),
            status: Status::Planning,
            status_reason: None,
            repo_root: self.repo_root.clone(),
            tags: tidy_tags(self.tags.clone()),
            policies: self.policies.clone().unwrap_or_default(),
            plan: Plan {
                repo_exists: self.repo_root.as_ref().map(|_| true),
                ..Plan::default()
            },
            baseline: None,
            created_at: cx.now(),
            updated_at: cx.now(),
        }
    }

    fn check(&self) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("title", &self.title, TITLE);
        refusals.text("goal", &self.goal, ENTRY);
        refusals.tags("tags", &self.tags);
        check_root("repo_root", self.repo_root.as_deref(), &mut refusals);
        if let Some(policies) = &self.policies {
            policies.check("policies", &mut refusals);
        }
        refusals.finish()
    }
}

pub(super) fn check_root(field: &str, root: Option<&str>, refusals: &mut Refusals) {
    let Some(root) = root else {
        return;
    };
    refusals.text(field, root, PATH);
    if Root::parse(root).is_none() {
        refusals.add(Reason::argument(
            field,
            "has to be the name of a workspace, or a path inside one without `..`",
        ));
    }
}

/// List the open questions of the planning interview, phase by phase, each with why it is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConductorNextQuestions {
    /// The job.
    job_id: JobId,
    /// Show the open questions of all phases, not only up to the first with something required.
    #[serde(default)]
    all: bool,
}

impl Tool for ConductorNextQuestions {
    const NAME: &'static str = "conductor_next_questions";
    const TITLE: &'static str = "List open questions";
    const EFFECT: Effect = Effect::Read;
    type Output = Interview;

    fn run(self, cx: &Cx<'_>) -> Result<Interview, ToolError> {
        let job = find_job(&cx.db, &self.job_id)?;
        let steps = step::all(&cx.db, &job.id)?;
        Ok(interview(&standing(&job, steps.len()), self.all))
    }
}

/// What the interview asks for. What is left out stays as it is; an empty list is an answer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Answers {
    /// What is built, in one sentence.
    goal: Option<String>,
    /// The name of a registered workspace, or a path in one.
    repo_root: Option<String>,
    /// Whether there is a repository already.
    repo_exists: Option<bool>,
    /// What the job leaves alone.
    out_of_scope: Option<Vec<String>>,
    /// Operating system, runtime, language.
    target_environment: Option<String>,
    /// Minimal or robust, and by when.
    timeline_priority: Option<String>,
    /// What to know about the user's abilities and limits.
    user_constraints: Option<Vec<String>>,
    /// Exact outputs: files, endpoints, docs.
    deliverables: Option<Vec<String>>,
    /// What has to be true in the end.
    definition_of_done: Option<Vec<String>>,
    /// The tests that are expected.
    tests_expected: Option<Vec<String>>,
    /// What must never be violated.
    invariants: Option<Vec<String>>,
    /// Files to know first.
    key_files: Option<Vec<String>>,
    /// Where the program starts.
    entrypoints: Option<Vec<String>>,
    /// What can go wrong.
    risks: Option<Vec<Risk>>,
}

/// Answer questions of the interview, any number at once. Answers go straight into the job's plan; the
/// reply has what is still open. Takes a READY job back to PLANNING.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConductorAnswer {
    /// The job.
    job_id: JobId,
    /// The answers by key.
    answers: Answers,
}

/// What was answered, and what is open.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answered {
    /// The job.
    job_id: JobId,
    /// Where it stands now.
    status: Status,
    /// It was READY and is not any more.
    unreadied: bool,
    /// The keys that were stored.
    stored: Vec<&'static str>,
    /// What is open.
    interview: Interview,
    /// What should be known before the work begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Tool for ConductorAnswer {
    const NAME: &'static str = "conductor_answer";
    const TITLE: &'static str = "Answer questions";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    type Output = Answered;

    fn run(self, cx: &Cx<'_>) -> Result<Answered, ToolError> {
        let (mut job, seen) = editable(&cx.db, &self.job_id, Event::EditPlan)?;
        let mut answers = self.answers;
        let (goal, root) = (answers.goal.take(), answers.repo_root.take());
        let later = answers.into_plan();
        let mut stored = later.answered();
        let mut refusals = Refusals::default();
        later.check("answers.", &mut refusals);
        refusals.optional_text("answers.goal", goal.as_deref(), ENTRY);
        check_root("answers.repo_root", root.as_deref(), &mut refusals);
        stored.extend(goal.as_ref().map(|_| "goal"));
        stored.extend(root.as_ref().map(|_| "repo_root"));
        if stored.is_empty() {
            refusals.add(Reason::argument("answers", "answers nothing"));
        }
        refusals.finish()?;
        if root.is_some() && later.repo_exists.is_none() {
            job.plan.repo_exists = Some(true);
        }
        job.goal = goal.unwrap_or(job.goal);
        job.repo_root = root.or(job.repo_root);
        job.plan = job.plan.merged(later);
        let mut refusals = Refusals::default();
        job.plan.check_size(&mut refusals);
        refusals.finish()?;
        save(cx, &cx.db, seen, &mut job)?;
        let steps = step::all(&cx.db, &job.id)?;
        Ok(Answered {
            unreadied: seen == Status::Ready,
            status: job.status,
            stored,
            interview: interview(&standing(&job, steps.len()), false),
            warnings: crate::access::workspace_warning(cx, job.repo_root.as_deref()),
            job_id: job.id,
        })
    }
}

impl Answers {
    fn into_plan(self) -> Plan {
        Plan {
            out_of_scope: self.out_of_scope,
            target_environment: self.target_environment,
            timeline_priority: self.timeline_priority,
            user_constraints: self.user_constraints,
            repo_exists: self.repo_exists,
            deliverables: self.deliverables,
            definition_of_done: self.definition_of_done,
            tests_expected: self.tests_expected,
            invariants: self.invariants,
            constraints: None,
            assumptions: None,
            key_files: self.key_files,
            entrypoints: self.entrypoints,
            risks: self.risks,
        }
    }
}
