//! Relevant mistakes for a step, and the draft of one from a rejection: pure.

use serde_json::json;
use tollgate_sdk::NextCall;

use crate::arguments::clip_to;
use crate::model::{AttemptId, JobId, StepId};
use crate::step::StepSpec;
use crate::store::mistake::Mistake;
use crate::submission::{Rejection, Stage};

/// Maximum mistakes in a prompt.
const SHOWN: usize = 3;

/// Tags that every mistake may have and that do not relate it to a step.
const COMMON: &[&str] = &["rejection", "checkpoint"];

/// Mistakes that share a step or a tag with a step, newest first, at most three.
pub(crate) fn relevant<'a>(newest_first: &'a [Mistake], id: &StepId, spec: &StepSpec) -> Vec<&'a Mistake> {
    let shares = |mistake: &&Mistake| {
        let tags = mistake.tags.iter().filter(|tag| !COMMON.contains(&tag.as_str()));
        mistake.related_step_id.as_ref() == Some(id) || tags.into_iter().any(|tag| spec.tags.contains(tag))
    };
    newest_first.iter().filter(shares).take(SHOWN).collect()
}

/// Call that records the lesson of a rejection, ready to run. The caller may improve the texts.
pub(crate) fn draft(
    job: &JobId,
    step: &StepId,
    spec: &StepSpec,
    attempt: &AttemptId,
    rejection: &Rejection,
) -> NextCall {
    let reasons = rejection.reasons.join("; ");
    let [why, lesson, avoid] = teaching(rejection.stage);
    let mut tags = vec!["rejection".to_owned(), rejection.stage.as_str().to_owned()];
    tags.extend(spec.tags.iter().take(8).cloned());
    NextCall::new(
        "mistake_record",
        json!({
            "job_id": job,
            "related_step_id": step,
            "attempt_id": attempt,
            "title": clip_to(&format!("{step} rejected: {reasons}"), 120),
            "what_happened": clip_to(&reasons, 900),
            "why": why,
            "lesson": lesson,
            "avoid_next_time": avoid,
            "tags": tags,
        }),
    )
}

/// Cause, lesson and advice for a rejection at a stage.
const fn teaching(stage: Stage) -> [&'static str; 3] {
    match stage {
        Stage::Evidence => [
            "The evidence was incomplete or of the wrong type.",
            "Gather the evidence that the prompt lists while doing the step, not after it.",
            "Submitting before every key of the evidence format is filled in.",
        ],
        Stage::Records => [
            "The devlog line or the commit was missing.",
            "Write the devlog line and commit before submitting.",
            "Submitting without the records that the policies require.",
        ],
        Stage::Checklist => [
            "Not every acceptance criterion was met.",
            "Go through the criteria one by one before submitting.",
            "Marking a criterion as met without checking it.",
        ],
        Stage::Claim => [
            "The step was submitted before it was finished.",
            "Fix what fails first; submit once everything holds.",
            "Submitting unfinished work in the hope that it passes.",
        ],
        Stage::Gates => [
            "The checked facts did not match the claims.",
            "Run the same checks that the gates run before submitting.",
            "Claiming results that were not checked.",
        ],
    }
}
