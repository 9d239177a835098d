//! Tools that start a job and run the planning interview.

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

/// Start a job in PLANNING and return the first interview questions. Ask the user what you cannot know, then call
/// conductor_answer. Takes a snapshot if repo_root is readable.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConductorInit {
    /// Short title, for example CSV export.
    #[schemars(length(min = 1, max = TITLE))]
    title: String,
    /// Goal of the job, in one sentence.
    #[schemars(length(min = 1, max = ENTRY))]
    goal: String,
    /// Registered workspace, or a path in one.
    #[schemars(length(min = 1, max = PATH))]
    repo_root: Option<String>,
    /// Policies that differ from the defaults.
    policies: Option<PolicyChanges>,
    /// Labels shown by job_list.
    #[serde(default)]
    tags: Vec<String>,
}

/// A job that was started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Begun {
    job_id: JobId,
    /// Status of the job.
    status: Status,
    /// Open questions of the first phase.
    next_questions: Vec<Question>,
    /// Instructions for the next calls.
    instructions: &'static str,
    /// Baseline snapshot of the repository, if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<SnapshotRecord>,
    /// Problems to know before the work begins.
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
    /// Takes a baseline snapshot of a repository that can be read. A failure is only a warning, because the
    /// ready gate refuses the job if its policies require a baseline.
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
            warnings.push("the snapshot is incomplete: the repository exceeds its limits".to_owned());
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
            "must be the name of a workspace, or a path inside one without `..`",
        ));
    }
}

/// List the open questions of the planning interview by phase, each with its rationale. Then call
/// conductor_answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConductorNextQuestions {
    job_id: JobId,
    /// Also list questions of later phases. Default false: up to the first phase with an open required
    /// question.
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

/// Answers by key. Omitted keys keep their values; an empty list counts as an answer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Answers {
    /// Goal in one sentence. The result, not the work.
    goal: Option<String>,
    /// Registered workspace, or a path in one. For example app/server.
    repo_root: Option<String>,
    /// True if a repository already exists.
    repo_exists: Option<bool>,
    /// Things not to touch. One per entry.
    out_of_scope: Option<Vec<String>>,
    /// Operating system, runtime, language. For example Linux, Python 3.12.
    target_environment: Option<String>,
    /// Minimal or robust, and the deadline.
    timeline_priority: Option<String>,
    /// Abilities and limits of the user. One per entry.
    user_constraints: Option<Vec<String>>,
    /// Exact outputs: files, endpoints, docs. One per entry.
    deliverables: Option<Vec<String>>,
    /// Conditions at the end. One per entry, each of them checkable.
    definition_of_done: Option<Vec<String>>,
    /// Expected tests. One per entry.
    tests_expected: Option<Vec<String>>,
    /// Rules never to violate. One per entry.
    invariants: Option<Vec<String>>,
    /// Paths to read first. One per entry.
    key_files: Option<Vec<String>>,
    /// Files where the program starts. For example src/main.rs.
    entrypoints: Option<Vec<String>>,
    /// Risks with mitigations. One per entry.
    risks: Option<Vec<Risk>>,
}

/// Answer one or more interview questions. Stores the answers in the job's plan and returns the open questions.
/// Moves a READY job back to PLANNING.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConductorAnswer {
    job_id: JobId,
    /// Answers by key; conductor_next_questions lists the keys.
    answers: Answers,
}

/// Stored answers and open questions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answered {
    job_id: JobId,
    /// Status of the job after this call.
    status: Status,
    /// True if the job was READY and is now PLANNING again.
    unreadied: bool,
    /// Keys that were stored.
    stored: Vec<&'static str>,
    /// State of the interview after this call.
    interview: Interview,
    /// Problems to know before the work begins.
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
            refusals.add(Reason::argument("answers", "contains no answer"));
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
