//! Adding evidence to a task without moving the task: checkpoints, artifacts and reviews.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Timestamp, Tool, ToolError};

use super::find_attempt;
use crate::arguments::{ENTRY, FINDINGS, JSON, LABEL, PATH, REFERENCE, TEXT};
use crate::caller::{Caller, Change};
use crate::condition::takes_spec_review;
use crate::error::{Reason, Refusals};
use crate::model::{ArtifactId, ArtifactKind, AttemptId, EventType, ReviewId, ReviewType, TaskId, Verdict};
use crate::phase::Phase;
use crate::role::{Action, Role};
use crate::store::artifact::{self, Artifact};
use crate::store::review::{self, Finding, Review, ReviewLine};
use crate::store::standing::{self, Standing};
use crate::store::task::{self, TaskHead};

/// Append a checkpoint to a task's log: a heartbeat, summary, scheduled retry, recovery marker or note. Does
/// not move the task. Checkpoints of a running attempt show that its worker is there. Roles: all but human.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskRecordCheckpoint {
    /// Task id from task_create.
    task_id: TaskId,
    /// Id of the attempt. Leave it out for the task as a whole.
    attempt_id: Option<AttemptId>,
    /// Type: `heartbeat`, `execution_summary`, `retry_scheduled`, `recovery_marker`, `note`, or your own.
    #[schemars(length(min = 1, max = LABEL))]
    checkpoint_type: String,
    /// Data to store, at most 64 KiB of JSON.
    payload: Map<String, Json>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// A checkpoint in the log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checkpoint {
    /// Id of the event in the log.
    event_id: i64,
    /// Task id from task_create.
    task_id: TaskId,
    /// The attempt it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<AttemptId>,
    /// Type of the checkpoint.
    checkpoint_type: String,
    /// Time of the record.
    created_at: Timestamp,
}

impl Tool for TaskRecordCheckpoint {
    const NAME: &'static str = "task_record_checkpoint";
    const TITLE: &'static str = "Record a checkpoint";
    const EFFECT: Effect = Effect::Write;
    type Output = Checkpoint;

    fn run(self, cx: &Cx<'_>) -> Result<Checkpoint, ToolError> {
        let caller = Caller::writer(
            cx,
            Action::RecordCheckpoint,
            self.actor.as_deref(),
            self.actor_role,
        )?;
        let mut refusals = caller.check();
        refusals.text("checkpoint_type", &self.checkpoint_type, LABEL);
        let payload = json!({"checkpoint_type": self.checkpoint_type, "payload": self.payload});
        refusals.json("payload", &payload, JSON);
        let task = refusals.known(&self.task_id, task::head(&cx.db, &self.task_id)?);
        find_attempt(cx, &mut refusals, &self.task_id, self.attempt_id.as_ref())?;
        refusals.finish_with(task)?;

        let attempt_id = self.attempt_id.as_ref();
        let event_id = caller.log(
            cx,
            Change {
                event_type: EventType::AttemptCheckpoint,
                task_id: &self.task_id,
                attempt_id,
                part: attempt_id.map(AttemptId::as_str),
                payload,
            },
        )?;
        Ok(Checkpoint {
            event_id,
            task_id: self.task_id,
            attempt_id: self.attempt_id,
            checkpoint_type: self.checkpoint_type,
            created_at: cx.now(),
        })
    }
}

/// Record an artifact by reference. Does not move the task. Roles: all but human.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskRecordArtifact {
    /// Task id from task_create.
    task_id: TaskId,
    /// Id of the attempt that produced the artifact. Leave it out if none did.
    attempt_id: Option<AttemptId>,
    /// Kind of artifact, for example patch.
    kind: ArtifactKind,
    /// Location of the artifact: a path or URI.
    #[schemars(length(min = 1, max = PATH))]
    uri: String,
    /// Short description of the content.
    #[schemars(length(min = 1, max = TEXT))]
    summary: Option<String>,
    /// Name of the producer, for example a worker.
    #[schemars(length(min = 1, max = REFERENCE))]
    produced_by: String,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// A recorded artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Recorded {
    /// The artifact after the call.
    artifact: Artifact,
    /// The same fields, where earlier versions had them.
    #[serde(flatten)]
    flat: Artifact,
}

impl Tool for TaskRecordArtifact {
    const NAME: &'static str = "task_record_artifact";
    const TITLE: &'static str = "Record an artifact";
    const EFFECT: Effect = Effect::Write;
    type Output = Recorded;

    fn run(self, cx: &Cx<'_>) -> Result<Recorded, ToolError> {
        let caller = Caller::writer(cx, Action::RecordArtifact, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        refusals.text("uri", &self.uri, PATH);
        refusals.optional_text("summary", self.summary.as_deref(), TEXT);
        refusals.text("produced_by", &self.produced_by, REFERENCE);
        let task = refusals.known(&self.task_id, task::head(&cx.db, &self.task_id)?);
        find_attempt(cx, &mut refusals, &self.task_id, self.attempt_id.as_ref())?;
        refusals.finish_with(task)?;

        let id: ArtifactId = cx.new_id();
        let artifact = Artifact {
            artifact_id: id.clone(),
            id,
            task_id: self.task_id,
            attempt_id: self.attempt_id,
            kind: self.kind,
            uri: self.uri,
            summary: self.summary,
            produced_by: self.produced_by,
            created_at: cx.now(),
        };
        artifact::insert(&cx.db, &artifact)?;
        caller.log(
            cx,
            Change {
                event_type: EventType::ArtifactRecorded,
                task_id: &artifact.task_id,
                attempt_id: artifact.attempt_id.as_ref(),
                part: Some(artifact.id.as_str()),
                payload: json!({"after": artifact}),
            },
        )?;
        Ok(Recorded {
            artifact: artifact.clone(),
            flat: artifact,
        })
    }
}

/// Append a review of the spec or of the current attempt. The latest review of each type counts. Fails with
/// STALE_ATTEMPT for an earlier attempt. Does not move the task; the orchestrator calls task_transition next. Roles: spec_reviewer for `spec`, quality_reviewer for
/// `quality`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskAppendReview {
    /// Task id from task_create.
    task_id: TaskId,
    /// Id of the reviewed attempt, which is the task's current one. Leave it out for a review of the spec itself.
    attempt_id: Option<AttemptId>,
    /// Type of the review: `spec` or `quality`.
    review_type: ReviewType,
    /// Name of the reviewer, for example reviewer-1.
    #[schemars(length(min = 1, max = REFERENCE))]
    reviewer_ref: String,
    /// Verdict on the reviewed work.
    verdict: Verdict,
    /// Reasons for the verdict, in words.
    #[schemars(length(min = 1, max = TEXT))]
    summary: Option<String>,
    /// Findings, at most 64 KiB of JSON. Empty if there are none.
    #[schemars(length(max = FINDINGS))]
    findings: Vec<Finding>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// An appended review.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Appended {
    /// The review after the call, without its findings.
    review: ReviewLine,
    /// The same fields, where earlier versions had them.
    #[serde(flatten)]
    flat: ReviewLine,
}

impl Tool for TaskAppendReview {
    const NAME: &'static str = "task_append_review";
    const TITLE: &'static str = "Append a review";
    const EFFECT: Effect = Effect::Write;
    type Output = Appended;

    fn run(self, cx: &Cx<'_>) -> Result<Appended, ToolError> {
        let action = Action::AppendReview(self.review_type);
        let caller = Caller::writer(cx, action, self.actor.as_deref(), self.actor_role)?;
        let task = self.check(cx, &caller)?;
        let id: ReviewId = cx.new_id();
        let line = ReviewLine {
            review_id: id.clone(),
            id,
            task_id: self.task_id,
            attempt_id: self.attempt_id,
            review_type: self.review_type,
            reviewer_ref: self.reviewer_ref,
            verdict: self.verdict,
            summary: self.summary,
            finding_count: u32::try_from(self.findings.len()).unwrap_or(u32::MAX),
            spec_revision: task.spec_revision,
            created_at: cx.now(),
        };
        let findings = self.findings;
        let review = Review { line, findings };
        review::insert(&cx.db, &review)?;
        let payload = json!({"after": review});
        let line = review.line;
        caller.log(
            cx,
            Change {
                event_type: EventType::ReviewAppended,
                task_id: &line.task_id,
                attempt_id: line.attempt_id.as_ref(),
                part: Some(line.id.as_str()),
                payload,
            },
        )?;
        Ok(Appended {
            review: line.clone(),
            flat: line,
        })
    }
}

impl TaskAppendReview {
    /// The task, if the review can be appended to it.
    fn check(&self, cx: &Cx<'_>, caller: &Caller) -> Result<TaskHead, ToolError> {
        let mut refusals = caller.check();
        refusals.text("reviewer_ref", &self.reviewer_ref, REFERENCE);
        refusals.optional_text("summary", self.summary.as_deref(), TEXT);
        refusals.at_most("findings", self.findings.len(), FINDINGS, "findings");
        for (index, finding) in self.findings.iter().take(FINDINGS).enumerate() {
            finding.check(&format!("findings[{index}]"), &mut refusals);
        }
        refusals.json("findings", &self.findings, JSON);
        let standing = refusals.known(&self.task_id, standing::get(&cx.db, &self.task_id)?);
        let named = find_attempt(cx, &mut refusals, &self.task_id, self.attempt_id.as_ref())?;
        if let Some(standing) = &standing {
            refusals.current(&standing.task, named.as_ref());
            self.check_subject(caller, standing, &mut refusals);
        }
        Ok(refusals.finish_with(standing)?.task)
    }

    /// Requires an attempt, unless the review is of the spec itself and that may be reviewed.
    fn check_subject(&self, caller: &Caller, standing: &Standing, refusals: &mut Refusals) {
        let task = &standing.task;
        let is_of_spec = self.review_type == ReviewType::Spec
            && takes_spec_review(task.phase, &standing.facts(&caller.config.retry));
        if self.attempt_id.is_some() || is_of_spec {
            return;
        }
        let is_draft = self.review_type == ReviewType::Spec && task.phase == Phase::SpecDraft;
        let call = is_draft.then(|| {
            caller.transition(
                &task.id,
                task.phase,
                Phase::SpecReview,
                "the spec is to be reviewed",
            )
        });
        refusals.add_with(Reason::AttemptRequired, call);
    }
}

impl Finding {
    fn check(&self, field: &str, refusals: &mut Refusals) {
        refusals.text(&format!("{field}.message"), &self.message, ENTRY);
        refusals.optional_text(&format!("{field}.file"), self.file.as_deref(), PATH);
        refusals.optional_text(
            &format!("{field}.artifact_uri"),
            self.artifact_uri.as_deref(),
            PATH,
        );
    }
}
