//! Recording of a verdict on a submission: the attempt, the step, the job, the logs.

use std::collections::BTreeMap;

use conductor_repo::describe::MAX_DESCRIPTION;
use tollgate_sdk::{Cx, Db, ToolError};

use crate::arguments::clip_to;
use crate::asked;
use crate::gate::facts::Aftermath;
use crate::listed::with_calls;
use crate::mistakes;
use crate::model::{AttemptId, LogType, NextAction, StepStatus};
use crate::state::{Event, Status};
use crate::store::attempt::{self, Attempt};
use crate::store::batch::{self, Batch};
use crate::store::description;
use crate::store::job::{self, Job};
use crate::store::step::{self, Step};
use crate::store::{log, mistake, short_id};
use crate::submission::{Rejection, Submission};
use crate::tools::execute::attempts_left;
use crate::tools::submit::exhausted;

/// Maximum characters of the hint in feedback, and of the reasons for a job's status.
const MAX_HINT_CHARS: usize = 200;
const MAX_REASONS_CHARS: usize = 1_000;

/// Accepted, or the rejection.
pub(crate) type Verdict = Result<(), Rejection>;

/// Facts that the gates checked.
#[derive(Debug, Default)]
pub(crate) struct LookedUp {
    /// Commands that the gates ran, with their results.
    pub commands: BTreeMap<String, String>,
    /// Observations that do not cause a rejection.
    pub notes: Vec<String>,
}

/// A submission with its verdict.
pub(crate) struct JudgedSubmission<'a> {
    pub job: Job,
    pub step: Step,
    pub last: bool,
    pub batch: Option<Batch>,
    pub attempt_id: AttemptId,
    pub submission: Submission<'a>,
    pub verdict: Verdict,
    /// Facts that the gates checked.
    pub looked_up: &'a LookedUp,
    /// State after the commands of the gates.
    pub aftermath: &'a Aftermath,
}

/// Records of a verdict.
pub(crate) struct Settled {
    pub attempt_id: AttemptId,
    pub status: Status,
    pub feedback: String,
    pub next_action: NextAction,
}

/// Records a verdict in the open transaction.
pub(crate) fn settle(cx: &Cx<'_>, db: &Db<'_>, outcome: JudgedSubmission<'_>) -> Result<Settled, ToolError> {
    let (next_action, event) = next(&outcome);
    let feedback = feedback(&outcome, next_action);
    let mut job = outcome.job.clone();
    let mut step = outcome.step.clone();
    match outcome.verdict {
        Ok(()) => {
            step.status = StepStatus::Done;
            job.baseline = outcome.aftermath.baseline.clone().or(job.baseline);
        }
        Err(_) => {
            step.rejections = step.rejections.saturating_add(1);
            if let Some(baseline) = job.baseline.as_mut() {
                let written = &outcome.aftermath.written;
                baseline.droppings.extend(written.keys().cloned());
                baseline.dropped.extend(written.clone());
                for earlier in [baseline.guard.as_mut(), baseline.judged.as_mut()] {
                    let Some(earlier) = earlier else { continue };
                    earlier.droppings.extend(written.keys().cloned());
                    earlier.dropped.extend(written.clone());
                }
            }
        }
    }
    if let Some(event) = event {
        job.status = job.status.on(event).map_err(crate::error::Reason::from)?;
        job.status_reason = outcome.verdict.as_ref().err().map(|rejection| {
            let reasons = rejection.reasons.join("; ");
            format!(
                "{feedback} Last reasons: {}",
                clip_to(&reasons, MAX_REASONS_CHARS)
            )
        });
    }
    job.updated_at = cx.now();
    let stored =
        job::update(db, outcome.job.status, &job)? && step::update(db, &job.id, outcome.step.status, &step)?;
    if !stored {
        return Err(tollgate_sdk::DbError::Internal.into());
    }
    attempt::insert(db, &job.id, &record(cx, &outcome, &feedback))?;
    match &outcome.verdict {
        Ok(()) => accepted(cx, db, &outcome)?,
        Err(rejection) => rejected(cx, db, &outcome, rejection)?,
    }
    asked::keep_up(cx, db, &job)?;
    if job.status != outcome.job.status {
        let line = job.status.as_str().to_lowercase();
        log::append(cx, db, &job.id, LogType::System, None, None, &line)?;
    }
    Ok(Settled {
        attempt_id: outcome.attempt_id,
        status: job.status,
        feedback,
        next_action,
    })
}

/// Next action, and the event of the job.
fn next(outcome: &JudgedSubmission<'_>) -> (NextAction, Option<Event>) {
    let policies = outcome.job.effective();
    match outcome.verdict {
        Ok(()) if outcome.last => (NextAction::JobComplete, Some(Event::Finish)),
        Ok(()) => (NextAction::NextStepAvailable, None),
        Err(_) if attempts_left(&outcome.step, &policies) > 1 => (NextAction::Retry, None),
        Err(_) => {
            let (action, event) = exhausted(policies.retry_exhausted_action);
            (action, Some(event))
        }
    }
}

/// Explanation of a verdict. The reasons of a rejection are in `rejection_reasons` and not repeated here.
fn feedback(outcome: &JudgedSubmission<'_>, next_action: NextAction) -> String {
    let id = &outcome.step.step_id;
    let text = match (&outcome.verdict, next_action) {
        (Ok(()), _) if outcome.last => {
            format!(
                "{id} is accepted, and with it the job is complete. Export the job with job_export_bundle."
            )
        }
        (Ok(()), _) => format!("{id} is accepted. Get the next step with job_next_step_prompt."),
        (Err(rejection), NextAction::PauseForHuman) => format!(
            "{id} is not accepted (stage {}) and was rejected too often: the job is paused until a person resumes it \
             with job_resume. Stop and tell the user the reasons.",
            rejection.stage
        ),
        (Err(rejection), NextAction::FailJob) => format!(
            "{id} is not accepted (stage {}) and was rejected too often: the job has failed. Stop and tell the user the \
             reasons.",
            rejection.stage
        ),
        (Err(rejection), _) => {
            let stuck = match outcome.step.spec.remediation_prompt.as_str() {
                "" => String::new(),
                prompt => format!(" If stuck: {}", clip_to(prompt, MAX_HINT_CHARS)),
            };
            let keep = match mistakes::is_of_form(rejection) {
                true => "",
                false => " To record the lesson, make the call in mistake_draft through tool_call.",
            };
            format!(
                "{id} is not accepted (stage {}). Fix exactly the rejection_reasons and submit again.{keep}{stuck}",
                rejection.stage
            )
        }
    };
    with_calls(text)
}

fn record(cx: &Cx<'_>, outcome: &JudgedSubmission<'_>, feedback: &str) -> Attempt {
    let said = &outcome.submission;
    Attempt {
        attempt_id: outcome.attempt_id.clone(),
        step_id: outcome.step.step_id.clone(),
        at: cx.now(),
        model_claim: said.claim,
        accepted: outcome.verdict.is_ok(),
        commit_hash: said.commit.map(str::to_owned),
        batch_commit_token: said.token.map(str::to_owned),
        devlog_line: said.devlog.map(str::to_owned),
        summary: said.summary.to_owned(),
        feedback: feedback.to_owned(),
        rejection_reasons: match &outcome.verdict {
            Ok(()) => Vec::new(),
            Err(rejection) => rejection.reasons.clone(),
        },
        evidence: said.evidence.clone(),
        commands: outcome.looked_up.commands.clone(),
        notes: outcome.looked_up.notes.clone(),
    }
}

/// Mistake that a rejection records by itself. A repeated one is not recorded again, unless a policy wants a lesson
/// for each.
fn rejected(
    cx: &Cx<'_>,
    db: &Db<'_>,
    outcome: &JudgedSubmission<'_>,
    rejection: &Rejection,
) -> Result<(), ToolError> {
    let job = &outcome.job;
    let wants_lesson = job.effective().require_mistake_on_reject;
    if mistakes::is_of_form(rejection) && !wants_lesson {
        return Ok(());
    }
    let mistake = mistakes::recorded(mistakes::Rejected {
        mistake_id: short_id(cx, |id| mistake::exists(db, id))?,
        step: &outcome.step.step_id,
        spec: &outcome.step.spec,
        attempt: &outcome.attempt_id,
        claim: outcome.submission.claim,
        summary: outcome.submission.summary,
        rejection,
        at: cx.now(),
    });
    let known = mistake::unlearned(db, &job.id, &outcome.step.step_id)?;
    let repeats = known
        .iter()
        .any(|known| known.what_happened == mistake.what_happened);
    if !repeats || wants_lesson {
        mistake::insert(db, &job.id, &mistake)?;
    }
    Ok(())
}

/// Records that follow an accepted submission: log lines, file descriptions, and the batch that it belongs to
/// or closes.
fn accepted(cx: &Cx<'_>, db: &Db<'_>, outcome: &JudgedSubmission<'_>) -> Result<(), ToolError> {
    let (job, step, said) = (&outcome.job.id, &outcome.step, &outcome.submission);
    if let Some(line) = said.devlog.filter(|line| !line.trim().is_empty()) {
        log::append(
            cx,
            db,
            job,
            LogType::Devlog,
            Some(&step.step_id),
            said.commit,
            line,
        )?;
    }
    if step.spec.checkpoint {
        let notes = said.evidence.get("notes").and_then(serde_json::Value::as_str);
        let text = notes.unwrap_or(said.summary);
        log::append(
            cx,
            db,
            job,
            LogType::Checkpoint,
            Some(&step.step_id),
            said.commit,
            text,
        )?;
    }
    let described = said.evidence.get("file_descriptions");
    for (path, text) in described
        .and_then(serde_json::Value::as_object)
        .into_iter()
        .flatten()
    {
        let line = text.as_str().and_then(|text| text.trim().lines().next());
        if let Some(line) = line.filter(|line| !line.is_empty()) {
            let line = clip_to(line, MAX_DESCRIPTION - 1);
            description::set(db, job, path, &line, cx.now())?;
        }
    }
    match (&outcome.batch, said.commit, said.token) {
        (_, Some(commit), _) => {
            batch::settle(db, job, commit)?;
        }
        (Some(open), None, Some(_)) => {
            let mut open = open.clone();
            open.steps_left = open.steps_left.saturating_sub(1);
            open.steps.push(step.step_id.to_string());
            batch::spend(db, &open)?;
        }
        _ => {}
    }
    Ok(())
}
