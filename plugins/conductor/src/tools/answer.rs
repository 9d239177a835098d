//! The tool that stores answers of the planning interview.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Db, Effect, NextCall, Tier, Tool, ToolError};

use super::conductor::{baseline, check_root, questions};
use super::{editable, save};
use crate::arguments::MAX_ENTRY_CHARS;
use crate::error::{Reason, Refusals};
use crate::interview::Interview;
use crate::model::JobId;
use crate::plan::{Plan, Risk, entries, sentence};
use crate::repo::survey::Before;
use crate::root::Root;
use crate::state::{Event, Status};
use crate::store::job::Job;
use crate::store::workspace;
use crate::workspaces;

/// Any object: keys of answers that the listed schema leaves out are accepted.
pub(super) fn any_object() -> serde_json::Value {
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
    /// Priority of the work: a minimal or a robust solution, and the deadline if there is one.
    #[serde(deserialize_with = "sentence")]
    timeline_priority: Option<String>,
    /// Abilities and limits of the user. One per entry.
    #[serde(deserialize_with = "entries")]
    user_constraints: Option<Vec<String>>,
    /// Exact outputs: files, endpoints, docs. One per entry.
    #[serde(deserialize_with = "entries")]
    deliverables: Option<Vec<String>>,
    /// Conditions that must hold when the job is done. One per entry, each of them checkable.
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
            "Call conductor_next_questions through tool_call, and follow the format in its reply.",
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
pub(super) struct Stored {
    pub(super) job: Job,
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
    pub(super) fn store(
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
        refusals.optional_text(&format!("{field}.goal"), goal.as_deref(), MAX_ENTRY_CHARS);
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
