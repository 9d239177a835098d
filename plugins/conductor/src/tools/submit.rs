//! Tool that submits the result of a step.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tollgate_sdk::{Cx, Db, DbError, Effect, NextCall, Tier, Tool, ToolError};

use super::execute::attempts_left;
use super::{after, conflict, current, find_job, internal, job_call};
use crate::arguments::{MAX_ENTRY_CHARS, MAX_EVIDENCE_BYTES};
use crate::error::{Reason, Refusals};
use crate::evidence::COMMIT_KEY;
use crate::gate::commit::{Rules, SUMMARY_MARK};
use crate::gate::delivered;
use crate::gate::facts::{self, Aftermath, Asked};
use crate::gate::learn;
use crate::git::Git;
use crate::mistakes;
use crate::model::{AttemptId, Claim, Exhausted, JobId, NextAction, StepId, StepStatus};
use crate::policy::Policies;
use crate::settle::{JudgedSubmission, LookedUp, Verdict, settle};
use crate::state::{Event, Status};
use crate::store::description;
use crate::store::job::Job;
use crate::store::step::{self, Step};
use crate::store::{attempt, batch, mistake, short_id};
use crate::submission::{self, Batch, Rejection, Submission, is_hash};

/// Submit the result of the current step with its evidence. Validated in stages (evidence, devlog and commit,
/// criteria, claim, gates); the first failing stage reports all errors. Gates check Git, files and exit codes,
/// not claims. A rejection returns the fixes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct JobSubmitStepResult {
    job_id: JobId,
    /// Id of the current step. For example S1.
    step_id: StepId,
    /// MET only if every criterion holds; otherwise PARTIAL or NOT_MET.
    model_claim: Claim,
    /// Summary of the work done.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    summary: String,
    /// Evidence in the format of the prompt.
    #[serde(default)]
    evidence: Map<String, Value>,
    /// One line for the devlog. Required unless the policies say otherwise.
    devlog_line: Option<String>,
    /// Hash of the commit with the changes, if the prompt asks for one.
    commit_hash: Option<String>,
    /// Token from git_commit with defer_reason, in place of commit_hash.
    batch_commit_token: Option<String>,
}

/// Verdict on a submission.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Submitted {
    /// True if the step is done.
    accepted: bool,
    attempt_id: AttemptId,
    step_id: StepId,
    /// Status of the job after this call.
    status: Status,
    /// Explanation of the verdict.
    feedback: String,
    /// Action to take next.
    next_action: NextAction,
    /// Missing keys and fields.
    missing_fields: Vec<String>,
    /// All errors of the stage that rejected the submission.
    rejection_reasons: Vec<String>,
    /// Stage that rejected the submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<submission::Stage>,
    /// Number of submissions of this step that are left.
    attempts_left: u32,
    /// Commands that gates ran, with their results.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    commands: BTreeMap<String, String>,
    /// Observations that do not cause a rejection.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Draft of a mistake_record call that adds a lesson to this rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    mistake_draft: Option<NextCall>,
    /// Next call to make.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

/// Job and step that a submission is for, with the records that it is checked against.
struct Standing {
    job: Job,
    policies: Policies,
    step: Step,
    last: bool,
    batch: Option<batch::Batch>,
    /// Files that have a description, if the policies require descriptions of new files.
    described: BTreeSet<String>,
    /// Rules for the submitted commit.
    rules: Rules,
}

impl Tool for JobSubmitStepResult {
    const NAME: &'static str = "job_submit_step_result";
    const TITLE: &'static str = "Submit a step";
    const EFFECT: Effect = Effect::Run;
    const TIER: Tier = Tier::Core;
    type Output = Submitted;

    fn run(mut self, cx: &Cx<'_>) -> Result<Submitted, ToolError> {
        self.check()?;
        // A plan may want the hash as evidence, where it means the same.
        let told = self.evidence.get(COMMIT_KEY).and_then(Value::as_str);
        self.commit_hash = self.commit_hash.or_else(|| told.map(str::to_owned));
        let standing = cx.transaction(|db| self.standing(&db))?;
        let (verdict, mut looked_up, aftermath) = self.judge(cx, &standing);
        let stuck = aftermath
            .tests
            .tell(cx, &standing.job.id, Some(&standing.step.step_id))?;
        looked_up.notes.extend(stuck);
        let settled = cx.transaction(|db| {
            // Gathering facts took time: another call may have submitted since.
            let now = self.standing(&db)?;
            if now.step != standing.step || now.job.status != standing.job.status {
                return Err(conflict(&self.job_id));
            }
            let outcome = JudgedSubmission {
                job: now.job,
                step: now.step,
                last: now.last,
                batch: now.batch,
                attempt_id: short_id(cx, |id| attempt::exists(&db, id))?,
                submission: self.submission(&standing.job),
                verdict: verdict.as_ref().map_err(Clone::clone).copied(),
                looked_up: &looked_up,
                aftermath: &aftermath,
            };
            settle(cx, &db, outcome)
        })?;
        Ok(self.reply(&standing, verdict.err(), settled, looked_up))
    }
}

impl JobSubmitStepResult {
    fn check(&self) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("summary", &self.summary, MAX_ENTRY_CHARS);
        refusals.json(
            "evidence",
            &Value::Object(self.evidence.clone()),
            MAX_EVIDENCE_BYTES,
        );
        let line = self.devlog_line.as_deref().unwrap_or_default();
        refusals.at_most("devlog_line", line.chars().count(), MAX_ENTRY_CHARS, "characters");
        refusals.finish()
    }

    fn submission(&self, job: &Job) -> Submission<'_> {
        let tests = job.baseline.as_ref().map(|since| &since.tests);
        Submission {
            claim: self.model_claim,
            summary: &self.summary,
            evidence: &self.evidence,
            devlog: self.devlog_line.as_deref(),
            commit: self.commit_hash.as_deref(),
            token: self.batch_commit_token.as_deref(),
            was_red: tests.is_some_and(|tests| tests.values().any(|tally| tally.failed)),
        }
    }

    /// First stage: the job and its current step. A failure here does not count as a submission.
    fn standing(&self, db: &Db<'_>) -> Result<Standing, ToolError> {
        let job = find_job(db, &self.job_id)?;
        after(&job, Event::Submit)?;
        let steps = step::all(db, &job.id)?;
        let (place, step) = current(&steps).ok_or_else(internal)?;
        let mut refusals = Refusals::default();
        let prompt = Some(job_call("job_next_step_prompt", &job.id));
        if step.step_id != self.step_id {
            let wrong = Reason::WrongStep {
                given: crate::arguments::clip(self.step_id.as_str()),
                current: step.step_id.to_string(),
            };
            refusals.add_with(wrong, prompt);
        } else if step.status != StepStatus::Active {
            refusals.add_with(Reason::StepNotActive(step.step_id.to_string()), prompt);
        }
        let policies = job.effective();
        if policies.require_mistake_on_reject {
            lesson_due(db, &job, step, &mut refusals)?;
        }
        refusals.finish()?;
        Ok(Standing {
            last: place + 1 == steps.len(),
            batch: batch::open(db, &job.id)?,
            described: match policies.require_file_descriptions {
                true => description::all(db, &job.id)?.into_keys().collect(),
                false => BTreeSet::new(),
            },
            rules: self.rules(db, &job, &steps, step)?,
            step: step.clone(),
            policies,
            job,
        })
    }

    /// Remaining stages. Programs run only if everything before them holds.
    fn judge(&self, cx: &Cx<'_>, standing: &Standing) -> (Verdict, LookedUp, Aftermath) {
        let mut looked_up = LookedUp::default();
        let Standing {
            job, step, policies, ..
        } = standing;
        let said = self.submission(job);
        let batch = Batch {
            open: standing
                .batch
                .as_ref()
                .map(|batch| (batch.token.as_str(), batch.steps_left)),
            last_step: standing.last,
            is_idle: self.is_idle(cx, standing),
        };
        if let Err(rejection) = submission::review(&step.spec, (policies, &job.plan), &said, &batch) {
            return (Err(rejection), looked_up, Aftermath::default());
        }
        let commit = self.commit_hash.as_deref().filter(|hash| is_hash(hash));
        let asked = Asked {
            commit,
            evidence: &self.evidence,
            wants_git: policies.require_file_descriptions,
        };
        let (mut facts, aftermath) = facts::gather(cx, job, step, &asked);
        facts.described.clone_from(&standing.described);
        facts.rules.clone_from(&standing.rules);
        if standing.last {
            facts.deliverables = delivered::found(cx, job);
        }
        let verdict = submission::gates(&step.spec, policies, &said, &facts);
        looked_up.commands = learn::runs(&facts);
        if !aftermath.written.is_empty() {
            let written: Vec<String> = aftermath.written.keys().cloned().collect();
            let written = crate::gate::decide::some(&written);
            looked_up.notes.push(format!(
                "written by the commands of the gates, so not counted as changes: {written}"
            ));
        }
        looked_up.notes.extend(crate::gate::suite::gone(&facts));
        let unmentioned = submission::unmentioned(&said, &facts);
        if !unmentioned.is_empty() {
            let paths = crate::gate::decide::some(&unmentioned);
            looked_up
                .notes
                .push(format!("changed, but not in changed_files: {paths}"));
        }
        if let (Some(hash), None) = (commit, &facts.git) {
            looked_up.notes.push(format!(
                "commit {hash} was not checked: Git is not available here"
            ));
        }
        if facts.git.is_none() && self.evidence.contains_key("changed_files") {
            let note = "changed_files was not checked: Git is not available here";
            looked_up.notes.push(note.to_owned());
        }
        (verdict, looked_up, aftermath)
    }

    /// Checks whether a commit is missing because there is nothing to commit.
    fn is_idle(&self, cx: &Cx<'_>, standing: &Standing) -> bool {
        let wanted = standing.policies.require_commit_per_step && !standing.step.spec.strict_git;
        let given = self.commit_hash.is_some() || self.batch_commit_token.is_some();
        let job = &standing.job;
        let Some(since) = job.baseline.as_ref().filter(|since| since.is_of_git()) else {
            return false;
        };
        let facts = || Git::open(cx, job.repo_root.as_deref()).and_then(|git| git.facts(Some(since), false));
        wanted && !given && facts().is_ok_and(|facts| facts.changed.is_empty() && facts.hides.is_empty())
    }

    fn reply(
        self,
        standing: &Standing,
        rejection: Option<Rejection>,
        settled: crate::settle::Settled,
        looked_up: LookedUp,
    ) -> Submitted {
        let Standing {
            job, step, policies, ..
        } = standing;
        let mistake_draft = rejection
            .as_ref()
            .filter(|why| !mistakes::is_of_form(why) || policies.require_mistake_on_reject)
            .map(|_| mistakes::draft(&job.id, &settled.attempt_id));
        let due = mistake_draft
            .as_ref()
            .filter(|_| policies.require_mistake_on_reject);
        let next_call = following(job, settled.next_action, due);
        let left = attempts_left(step, policies);
        Submitted {
            accepted: rejection.is_none(),
            attempt_id: settled.attempt_id,
            step_id: self.step_id,
            status: settled.status,
            feedback: settled.feedback,
            next_action: settled.next_action,
            attempts_left: if rejection.is_some() {
                left.saturating_sub(1)
            } else {
                left
            },
            stage: rejection.as_ref().map(|why| why.stage),
            missing_fields: rejection
                .as_ref()
                .map(|why| why.missing.clone())
                .unwrap_or_default(),
            rejection_reasons: rejection.map(|why| why.reasons).unwrap_or_default(),
            commands: looked_up.commands,
            notes: looked_up.notes,
            mistake_draft,
            next_call,
        }
    }
}

impl JobSubmitStepResult {
    /// Rules for the commit of a step.
    fn rules(&self, db: &Db<'_>, job: &Job, steps: &[Step], current: &Step) -> Result<Rules, DbError> {
        let mut rules = rules(db, job, steps, current)?;
        if let Some(hash) = self.commit_hash.as_deref().filter(|hash| is_hash(hash)) {
            let used = attempt::used_elsewhere(db, &job.id, job.repo_root.as_deref(), hash)?;
            rules
                .used
                .extend(used.map(|(job, step)| (hash.to_owned(), format!("step {step} of {job}"))));
        }
        Ok(rules)
    }
}

/// Rules for the commit of a step.
fn rules(db: &Db<'_>, job: &Job, steps: &[Step], current: &Step) -> Result<Rules, DbError> {
    let batch = batch::open(db, &job.id)?;
    let template = job.effective().commit_message_template;
    // The commit of a batch may name any of its steps.
    let named = |step: &&Step| {
        step.step_id == current.step_id
            || batch
                .as_ref()
                .is_some_and(|batch| batch.steps.contains(&step.step_id.to_string()))
    };
    let mut named: Vec<&Step> = steps.iter().filter(named).collect();
    named.reverse();
    let fill = |step: &Step| {
        let summary = SUMMARY_MARK.to_string();
        super::git_write::fill(
            &template,
            job.id.as_str(),
            step.step_id.as_str(),
            &step.spec.title,
            &summary,
        )
    };
    Ok(Rules {
        messages: named.into_iter().map(fill).collect(),
        used: attempt::commits(db, &job.id, &current.step_id)?
            .into_iter()
            .map(|(hash, step)| (hash, format!("step {step}")))
            .collect(),
        in_batch: batch.is_some(),
    })
}

/// Refuses a submission while the last rejection of the step has no recorded mistake.
fn lesson_due(db: &Db<'_>, job: &Job, step: &Step, refusals: &mut Refusals) -> Result<(), DbError> {
    let last = attempt::last(db, &job.id, &step.step_id)?;
    let Some(rejected) = last.filter(|last| !last.accepted) else {
        return Ok(());
    };
    if !mistake::learns_from(db, &job.id, &rejected.attempt_id)? {
        let draft = mistakes::draft(&job.id, &rejected.attempt_id);
        refusals.add_with(Reason::MistakeRequired, Some(draft));
    }
    Ok(())
}

/// Call to make after a submission. `draft` is the lesson that a policy wants before the next one.
fn following(job: &Job, next: NextAction, draft: Option<&NextCall>) -> Option<NextCall> {
    match next {
        NextAction::NextStepAvailable => Some(job_call("job_next_step_prompt", &job.id)),
        NextAction::JobComplete => Some(NextCall::new(
            "job_export_bundle",
            serde_json::json!({"job_id": job.id, "format": "md"}),
        )),
        NextAction::Retry | NextAction::PauseForHuman | NextAction::FailJob => draft.cloned(),
    }
}

/// Action and event for a step that has used up its rejections.
pub(crate) const fn exhausted(action: Exhausted) -> (NextAction, Event) {
    match action {
        Exhausted::PauseForHuman => (NextAction::PauseForHuman, Event::Pause),
        Exhausted::FailJob => (NextAction::FailJob, Event::Fail),
    }
}
