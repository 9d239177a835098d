//! Tools that start a job and run the planning interview.

use conductor_repo::snapshot::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Db, DbError, Effect, Hints, NextCall, Tier, Tool, ToolError};

use super::{editable, find_job, planned, save, standing};
use crate::arguments::{ENTRY, PATH, TITLE, tidy_tags};
use crate::error::{Reason, Refusals};
use crate::interview::{Interview, Question, interview};
use crate::listed::with_calls;
use crate::model::JobId;
use crate::plan::{Plan, Risk, entries, sentence};
use crate::policy::PolicyChanges;
use crate::repo::survey::{self, Before, Look};
use crate::root::Root;
use crate::state::{Event, Status};
use crate::store::job::{self, Job};
use crate::store::snapshot::SnapshotRecord;
use crate::store::{mistake, short_id, step, workspace};
use crate::workspaces::{self, WorkspaceLine};
use crate::{mistakes, suggest};

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
    instructions: String,
    /// Registered workspaces: what repo_root can be, and the tests that gates can name.
    workspaces: Vec<WorkspaceLine>,
    /// Invariants to choose from.
    invariant_templates: &'static [&'static str],
    /// Lessons of earlier jobs on this repository, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lessons: Vec<String>,
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

    fn run(mut self, cx: &Cx<'_>) -> Result<Begun, ToolError> {
        let paths = workspaces::learn(cx);
        self.repo_root = self.repo_root.map(|root| workspaces::root_of(&root, &paths));
        self.check(cx)?;
        let mut warnings = crate::access::workspace_warning(cx, self.repo_root.as_deref());
        let look = baseline(cx, self.repo_root.as_deref(), Before::default(), &mut warnings)?;
        cx.transaction(|db| {
            workspace::replace(&db, &paths)?;
            let job = self.job(cx, short_id(cx, |id| job::exists(&db, id))?);
            job::insert(&db, &job)?;
            let store = |look: &Look<'_>| {
                look.keep_facts(&db, &job.id)?;
                look.store(cx, &db, &job.id, None)
            };
            let snapshot = look.as_ref().map(store).transpose()?;
            let mut interview = interview(&standing(&job, 0), false);
            suggest::add(cx, &db, &job, &mut interview)?;
            Ok(Begun {
                next_questions: interview.questions,
                warnings,
                instructions: with_calls(INSTRUCTIONS.to_owned()),
                workspaces: workspaces::all(cx, &paths),
                invariant_templates: suggest::INVARIANTS,
                lessons: lessons(&db, &job.id)?,
                job_id: job.id,
                status: job.status,
                snapshot,
            })
        })
    }
}

/// Instructions of a new job.
const INSTRUCTIONS: &str = "Ask the user what you do not know, and confirm suggestions; store the answers with \
    conductor_answer, research and notes with context_add_block. conductor_next_questions lists all questions, among \
    them four that look for faults in the plan. Propose small, verifiable steps with plan_propose_steps; then call \
    job_set_ready, which lists what is missing.";

/// Maximum number of lessons in a reply.
const LESSONS: usize = 5;

/// Lessons that other jobs left on a job's repository.
fn lessons(db: &Db<'_>, job: &JobId) -> Result<Vec<String>, DbError> {
    let known = mistake::latest(db, job, 100)?;
    let taught = known.iter().filter(|mistake| !mistake.lesson.is_empty());
    Ok(taught
        .take(LESSONS)
        .map(|mistake| mistakes::advice(mistake).line())
        .collect())
}

/// Takes a baseline snapshot of a repository that can be read. A failure is only a warning, because the ready gate
/// refuses a job that needs a baseline and has none.
fn baseline<'a>(
    cx: &'a Cx<'a>,
    root: Option<&str>,
    before: Before,
    warnings: &mut Vec<String>,
) -> Result<Option<Look<'a>>, ToolError> {
    let Some(root) = root.filter(|_| warnings.is_empty()) else {
        return Ok(None);
    };
    let mut look = match survey::look(cx, root, before, &Limits::default()) {
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

impl ConductorInit {
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
            last_step: 0,
            created_at: cx.now(),
            updated_at: cx.now(),
        }
    }

    fn check(&self, cx: &Cx<'_>) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("title", &self.title, TITLE);
        refusals.text("goal", &self.goal, ENTRY);
        refusals.tags("tags", &self.tags);
        check_root(cx, "repo_root", self.repo_root.as_deref(), &mut refusals);
        if let Some(policies) = &self.policies {
            policies.check("policies", &mut refusals);
        }
        refusals.finish()
    }
}

/// Refuses a repository that no workspace can have, and names the workspaces.
pub(super) fn check_root(cx: &Cx<'_>, field: &str, root: Option<&str>, refusals: &mut Refusals) {
    let Some(root) = root else {
        return;
    };
    refusals.text(field, root, PATH);
    if Root::parse(root).is_none() {
        let fault = format!(
            "must be the name of a workspace, or a path in one without `..` ({})",
            workspaces::names(cx)
        );
        refusals.add(Reason::argument(field, fault));
    }
}

/// List the open questions of the planning interview by phase, each with its rationale and what the repository
/// suggests. Stores last_answers first, if there are any. Then call conductor_answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct ConductorNextQuestions {
    job_id: JobId,
    /// Also list questions of later phases. Default false: up to the first phase with an open required
    /// question.
    #[serde(default)]
    all: bool,
    /// Answers to store first, as in conductor_answer. Default none.
    #[schemars(extend("x-accepts" = any_object()))]
    last_answers: Option<Answers>,
}

impl Tool for ConductorNextQuestions {
    const NAME: &'static str = "conductor_next_questions";
    const TITLE: &'static str = "List open questions";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Interview;

    fn run(self, cx: &Cx<'_>) -> Result<Interview, ToolError> {
        let job = match self.last_answers {
            Some(answers) => answers.store((cx, &cx.db), "last_answers", &self.job_id)?.job,
            None => find_job(&cx.db, &self.job_id)?,
        };
        questions(cx, &cx.db, &job, self.all)
    }
}

/// Open questions of a job with what the repository suggests.
fn questions(cx: &Cx<'_>, db: &Db<'_>, job: &Job, all: bool) -> Result<Interview, ToolError> {
    let steps = step::all(db, &job.id)?;
    let mut interview = interview(&standing(job, planned(&steps)), all);
    suggest::add(cx, db, job, &mut interview)?;
    Ok(interview)
}

/// Any object: keys of answers that the listed schema leaves out are accepted.
fn any_object() -> serde_json::Value {
    serde_json::json!({"type": "object"})
}

/// Answers by key. Omitted keys keep their values; an empty list counts as an answer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Answers {
    /// Goal in one sentence. The result, not the work.
    #[serde(deserialize_with = "sentence")]
    goal: Option<String>,
    /// Registered workspace, or a path in one. For example app/server.
    repo_root: Option<String>,
    /// True if a repository already exists.
    repo_exists: Option<bool>,
    /// Things not to touch. One per entry.
    #[serde(deserialize_with = "entries")]
    out_of_scope: Option<Vec<String>>,
    /// Operating system, runtime, language. For example Linux, Python 3.12.
    #[serde(deserialize_with = "sentence")]
    target_environment: Option<String>,
    /// Minimal or robust, and the deadline.
    #[serde(deserialize_with = "sentence")]
    timeline_priority: Option<String>,
    /// Abilities and limits of the user. One per entry.
    #[serde(deserialize_with = "entries")]
    user_constraints: Option<Vec<String>>,
    /// Exact outputs: files, endpoints, docs. One per entry.
    #[serde(deserialize_with = "entries")]
    deliverables: Option<Vec<String>>,
    /// Conditions at the end. One per entry, each of them checkable.
    #[serde(deserialize_with = "entries")]
    definition_of_done: Option<Vec<String>>,
    /// Expected tests. One per entry.
    #[serde(deserialize_with = "entries")]
    tests_expected: Option<Vec<String>>,
    /// Rules never to violate. One per entry.
    #[serde(deserialize_with = "entries")]
    invariants: Option<Vec<String>>,
    /// Paths to read first. One per entry.
    #[serde(deserialize_with = "entries")]
    key_files: Option<Vec<String>>,
    /// Files where the program starts. For example src/main.rs.
    #[serde(deserialize_with = "entries")]
    entrypoints: Option<Vec<String>>,
    /// Risks with mitigations. One per entry.
    risks: Option<Vec<Risk>>,
    // Questions ask for these; the listed schema leaves them out, because it is read in every conversation.
    #[schemars(skip)]
    #[serde(deserialize_with = "entries")]
    constraints: Option<Vec<String>>,
    #[schemars(skip)]
    #[serde(deserialize_with = "entries")]
    assumptions: Option<Vec<String>>,
    #[schemars(skip)]
    #[serde(deserialize_with = "entries")]
    unknowns: Option<Vec<String>>,
    #[schemars(skip)]
    #[serde(deserialize_with = "entries")]
    architecture: Option<Vec<String>>,
    #[schemars(skip)]
    #[serde(deserialize_with = "entries")]
    failure_modes: Option<Vec<String>>,
    #[schemars(skip)]
    #[serde(deserialize_with = "entries")]
    hidden_dependencies: Option<Vec<String>>,
    #[schemars(skip)]
    #[serde(deserialize_with = "entries")]
    smallest_proof: Option<Vec<String>>,
    #[schemars(skip)]
    #[serde(deserialize_with = "entries")]
    decide_now: Option<Vec<String>>,
}

/// Answer one or more interview questions. Stores the answers in the job's plan and returns the open questions.
/// Moves a READY job back to PLANNING.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct ConductorAnswer {
    job_id: JobId,
    /// Answers by key, for example {"goal": "…"}. The questions name the keys.
    #[schemars(extend("x-accepts" = any_object(), "x-brief" = true))]
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
    const EFFECT: Effect = Effect::Run;
    const TIER: Tier = Tier::Core;
    type Output = Answered;

    fn run(self, cx: &Cx<'_>) -> Result<Answered, ToolError> {
        let Some(root) = self.answers.repo_root.clone() else {
            return cx.transaction(|db| {
                let stored = self.answers.store((cx, &db), "answers", &self.job_id)?;
                let warnings = crate::access::workspace_warning(cx, stored.job.repo_root.as_deref());
                stored.answered(cx, &db, warnings)
            });
        };
        let (before, paths) = cx.transaction(|db| {
            editable(&db, &self.job_id, Event::EditPlan)?;
            let before = Before::load(&db, &self.job_id)?;
            Ok::<_, ToolError>((before, workspace::paths(&db)?))
        })?;
        let root = workspaces::root_of(&root, &paths);
        let mut warnings = crate::access::workspace_warning(cx, Some(&root));
        let legal = Root::parse(&root).map(|_| root.as_str());
        let look = baseline(cx, legal, before, &mut warnings)?;
        cx.transaction(|db| {
            let stored = self.answers.store((cx, &db), "answers", &self.job_id)?;
            if let Some(look) = &look {
                look.keep_facts(&db, &stored.job.id)?;
                look.store(cx, &db, &stored.job.id, None)?;
            }
            stored.answered(cx, &db, warnings)
        })
    }
}

/// Refusal of answers with keys that no question has or of another type, with the call that stores the others.
pub(crate) fn with_known_answers(refusal: ToolError, arguments: &str) -> ToolError {
    let Ok(given) = serde_json::from_str::<serde_json::Value>(arguments) else {
        return refusal;
    };
    let answers = given.get("answers").and_then(serde_json::Value::as_object);
    let Some(job) = given.get("job_id").filter(|_| answers.is_some()) else {
        return refusal;
    };
    let (mut kept, mut unknown, mut faults) = (serde_json::Map::new(), Vec::new(), Vec::new());
    for (key, value) in answers.into_iter().flatten() {
        let one = serde_json::json!({key: value});
        match serde_json::from_value::<Answers>(one).map_err(|err| err.to_string()) {
            Ok(_) => drop(kept.insert(key.clone(), value.clone())),
            Err(err) if err.starts_with("unknown field") => unknown.push(key.as_str()),
            Err(err) => faults.push(format!("answers.{key}: {}", crate::arguments::clip(&err))),
        }
    }
    if !unknown.is_empty() {
        let names = crate::arguments::clip(&unknown.join(", "));
        faults.insert(0, format!("no question has the key {names}; {}", refusal.message));
    }
    if faults.is_empty() {
        return refusal;
    }
    let (next, remediation) = match kept.is_empty() {
        true => (
            NextCall::new(
                "conductor_next_questions",
                serde_json::json!({"job_id": job, "all": true}),
            ),
            "Call conductor_next_questions through tool_call, and answer as it says.",
        ),
        false => (
            NextCall::new(
                ConductorAnswer::NAME,
                serde_json::json!({"job_id": job, "answers": kept}),
            ),
            "Call again with next_call, which has the other answers. Then send the rest with the keys and types of the \
             questions.",
        ),
    };
    ToolError {
        message: format!("nothing was stored: {}", faults.join("; ")),
        ..refusal
    }
    .remediation(remediation)
    .next_call(next)
}

/// A job with the answers that were just stored.
struct Stored {
    job: Job,
    /// Status before the call.
    seen: Status,
    keys: Vec<&'static str>,
}

impl Stored {
    fn answered(self, cx: &Cx<'_>, db: &Db<'_>, warnings: Vec<String>) -> Result<Answered, ToolError> {
        let Stored { job, seen, keys } = self;
        Ok(Answered {
            unreadied: seen == Status::Ready,
            status: job.status,
            stored: keys,
            interview: questions(cx, db, &job, false)?,
            warnings,
            job_id: job.id,
        })
    }
}

impl Answers {
    /// Checks the answers and stores them in a job's plan.
    fn store(
        mut self,
        (cx, db): (&Cx<'_>, &Db<'_>),
        field: &str,
        job_id: &JobId,
    ) -> Result<Stored, ToolError> {
        let (mut job, seen) = editable(db, job_id, Event::EditPlan)?;
        let (goal, root) = (self.goal.take(), self.repo_root.take());
        let paths = workspace::paths(db)?;
        let root = root.map(|root| workspaces::root_of(&root, &paths));
        let later = self.into_plan();
        let mut keys = later.answered();
        let mut refusals = Refusals::default();
        later.check(&format!("{field}."), &mut refusals);
        refusals.optional_text(&format!("{field}.goal"), goal.as_deref(), ENTRY);
        check_root(cx, &format!("{field}.repo_root"), root.as_deref(), &mut refusals);
        keys.extend(goal.as_ref().map(|_| "goal"));
        keys.extend(root.as_ref().map(|_| "repo_root"));
        if keys.is_empty() {
            refusals.add(Reason::argument(field, "contains no answer"));
        }
        refusals.finish()?;
        if root.is_some() && later.repo_exists.is_none() {
            job.plan.repo_exists = Some(true);
        }
        job.goal = goal.unwrap_or(job.goal);
        job.repo_root = root.or(job.repo_root);
        super::merge(cx, db, &mut job, later)?;
        let mut refusals = Refusals::default();
        job.plan.check_size(&mut refusals);
        refusals.finish()?;
        save(cx, db, seen, &mut job)?;
        Ok(Stored { job, seen, keys })
    }

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
            constraints: self.constraints,
            assumptions: self.assumptions,
            unknowns: self.unknowns,
            architecture: self.architecture,
            failure_modes: self.failure_modes,
            hidden_dependencies: self.hidden_dependencies,
            smallest_proof: self.smallest_proof,
            decide_now: self.decide_now,
            key_files: self.key_files,
            entrypoints: self.entrypoints,
            risks: self.risks,
        }
    }
}
