//! Mistakes: those relevant for a step, and the one that a rejection records. Pure.

use serde_json::json;
use tollgate_sdk::{NextCall, Timestamp};

use crate::arguments::clip_to;
use crate::model::{AttemptId, Claim, JobId, MistakeId, StepId};
use crate::prompt::Advice;
use crate::step::StepSpec;
use crate::store::mistake::Mistake;
use crate::submission::{Rejection, Stage};

/// Maximum mistakes in a prompt.
const MAX_SHOWN_MISTAKES: usize = 3;
/// Maximum characters of what happened in a rejection.
const MAX_HAPPENED_CHARS: usize = 900;
/// Maximum characters of one half of an advice.
const MAX_ADVICE_CHARS: usize = 240;

/// Tags that say how a mistake was found and do not relate it to a step.
fn is_common(tag: &str) -> bool {
    matches!(tag, "rejection" | "checkpoint") || Stage::ALL.iter().any(|stage| stage.as_str() == tag)
}

/// Mistakes that share a step or a tag with a step, newest first, at most three. Steps of other jobs have other
/// numbers, so only tags relate them, and only a lesson is worth telling.
pub(crate) fn relevant<'a>(newest_first: &'a [Mistake], id: &StepId, spec: &StepSpec) -> Vec<&'a Mistake> {
    let shares = |mistake: &&Mistake| {
        let own = mistake.job_id.is_none();
        let same_step = own && mistake.related_step_id.as_ref() == Some(id);
        let mut tags = mistake.tags.iter().filter(|tag| !is_common(tag));
        same_step || ((own || !mistake.lesson.is_empty()) && tags.any(|tag| spec.tags.contains(tag)))
    };
    newest_first
        .iter()
        .filter(shares)
        .take(MAX_SHOWN_MISTAKES)
        .collect()
}

/// Advice from a mistake, for a prompt.
pub(crate) fn advice(mistake: &Mistake) -> Advice {
    let line = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        clip_to(&words.join(" "), MAX_ADVICE_CHARS)
    };
    Advice {
        avoid: line(&mistake.avoid_next_time),
        instead: line(&mistake.lesson),
    }
}

/// Submission that was rejected.
pub(crate) struct Rejected<'a> {
    pub mistake_id: MistakeId,
    pub step: &'a StepId,
    pub spec: &'a StepSpec,
    pub attempt: &'a AttemptId,
    pub claim: Claim,
    pub summary: &'a str,
    pub rejection: &'a Rejection,
    pub at: Timestamp,
}

/// Mistake that a rejection records by itself. It holds facts only; the lesson is the caller's.
pub(crate) fn recorded(rejected: Rejected<'_>) -> Mistake {
    let Rejected {
        step,
        spec,
        rejection,
        ..
    } = rejected;
    let reasons = rejection.reasons.join("; ");
    // An honest claim of failure has its facts in the summary. To avoid is the submission, not what it says was done.
    let (happened, avoid) = match rejected.claim {
        Claim::Met => (reasons.clone(), reasons),
        claim => (
            format!("claimed {claim}: {}", rejected.summary),
            format!("a submission as {claim}: {}", rejected.summary),
        ),
    };
    let mut tags = vec!["rejection".to_owned(), rejection.stage.as_str().to_owned()];
    tags.extend(
        spec.tags
            .iter()
            .filter(|tag| !tags.contains(tag))
            .take(8)
            .cloned()
            .collect::<Vec<_>>(),
    );
    Mistake {
        mistake_id: rejected.mistake_id,
        job_id: None,
        related_step_id: Some(step.clone()),
        attempt_id: Some(rejected.attempt.clone()),
        title: clip_to(&format!("{step}: {}", spec.title), 120),
        what_happened: clip_to(&happened, MAX_HAPPENED_CHARS),
        why: String::new(),
        lesson: String::new(),
        avoid_next_time: clip_to(&avoid, MAX_ADVICE_CHARS),
        tags,
        at: rejected.at,
        automatic: true,
    }
}

/// Checks whether a recorded mistake says nothing but reasons that a later rejection gives as well.
pub(crate) fn repeats(mistake: &Mistake, reasons: &[String]) -> bool {
    let reasons = reasons.join("; ");
    mistake.automatic && !reasons.is_empty() && mistake.what_happened == clip_to(&reasons, MAX_HAPPENED_CHARS)
}

/// Checks whether a rejection is about the form of the submission alone. Nobody learns from a forgotten field.
pub(crate) fn is_of_form(rejection: &Rejection) -> bool {
    !rejection.missing.is_empty() && rejection.missing.len() == rejection.reasons.len()
}

/// Call that adds the lesson to the mistake of a rejection.
pub(crate) fn draft(job: &JobId, attempt: &AttemptId) -> NextCall {
    NextCall::new(
        "mistake_record",
        json!({"job_id": job, "attempt_id": attempt, "lesson": "<what to do instead>"}),
    )
}
