//! Tools that start a job and list the questions of the planning interview.

use conductor_repo::snapshot::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Db, DbError, Effect, Hints, Tier, Tool, ToolError};

use super::answer::{Answers, any_object};
use super::{find_job, planned, standing};
use crate::arguments::{MAX_ENTRY_CHARS, MAX_PATH_CHARS, MAX_TITLE_CHARS, tidy_tags};
use crate::error::{Reason, Refusals};
use crate::interview::{Interview, Question, interview};
use crate::listed::with_calls;
use crate::model::JobId;
use crate::plan::Plan;
use crate::policy::PolicyChanges;
use crate::repo::survey::{self, Before, Look};
use crate::root::Root;
use crate::state::Status;
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
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: String,
    /// Goal of the job, in one sentence.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    goal: String,
    /// Registered workspace, or a path in one.
    #[schemars(length(min = 1, max = MAX_PATH_CHARS))]
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
const MAX_LESSONS: usize = 5;

/// Lessons that other jobs left on a job's repository.
fn lessons(db: &Db<'_>, job: &JobId) -> Result<Vec<String>, DbError> {
    let known = mistake::latest(db, job, 100)?;
    let taught = known.iter().filter(|mistake| !mistake.lesson.is_empty());
    Ok(taught
        .take(MAX_LESSONS)
        .map(|mistake| mistakes::advice(mistake).line())
        .collect())
}

/// Takes a baseline snapshot of a repository that can be read. A failure is only a warning, because the ready gate
/// refuses a job that needs a baseline and has none.
pub(super) fn baseline<'a>(
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
        refusals.text("title", &self.title, MAX_TITLE_CHARS);
        refusals.text("goal", &self.goal, MAX_ENTRY_CHARS);
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
    refusals.text(field, root, MAX_PATH_CHARS);
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
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
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
pub(super) fn questions(cx: &Cx<'_>, db: &Db<'_>, job: &Job, all: bool) -> Result<Interview, ToolError> {
    let steps = step::all(db, &job.id)?;
    let mut interview = interview(&standing(job, planned(&steps)), all);
    suggest::add(cx, db, job, &mut interview)?;
    Ok(interview)
}
