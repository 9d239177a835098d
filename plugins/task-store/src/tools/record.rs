//! Adding evidence to a task without moving the task: checkpoints, artifacts and reviews.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Timestamp, Tool, ToolError};

use super::find_attempt;
use crate::arguments::{ENTRY, FINDINGS, JSON, LABEL, PATH, REFERENCE, TEXT};
use crate::caller::Caller;
use crate::error::{Reason, Refusals};
use crate::model::{ArtifactKind, AttemptId, EventType, ReviewType, TaskId, Verdict};
use crate::phase::Phase;
use crate::role::{Action, Role};
use crate::store::artifact::{self, Artifact};
use crate::store::review::{self, Finding, Review, ReviewLine};
use crate::store::task::{self, TaskHead};

/// Append a checkpoint to a task's log: a heartbeat, summary, scheduled retry, recovery marker or note. Does
/// not move the task. Fails if the task is completed or failed. Roles: all but human.
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
    /// Your name. Stored with the event.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
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
        let caller = Caller::writer(cx, Action::RecordCheckpoint, &self.actor, self.actor_role)?;
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
            EventType::AttemptCheckpoint,
            &self.task_id,
            attempt_id,
            payload,
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

/// Record an artifact by reference. Does not move the task. Fails if the task is completed or failed. Roles:
/// all but human.
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
    /// Your name. Stored with the event.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

impl Tool for TaskRecordArtifact {
    const NAME: &'static str = "task_record_artifact";
    const TITLE: &'static str = "Record an artifact";
    const EFFECT: Effect = Effect::Write;
    type Output = Artifact;

    fn run(self, cx: &Cx<'_>) -> Result<Artifact, ToolError> {
        let caller = Caller::writer(cx, Action::RecordArtifact, &self.actor, self.actor_role)?;
        let mut refusals = caller.check();
        refusals.text("uri", &self.uri, PATH);
        refusals.optional_text("summary", self.summary.as_deref(), TEXT);
        refusals.text("produced_by", &self.produced_by, REFERENCE);
        let task = refusals.known(&self.task_id, task::head(&cx.db, &self.task_id)?);
        find_attempt(cx, &mut refusals, &self.task_id, self.attempt_id.as_ref())?;
        refusals.finish_with(task)?;

        let artifact = Artifact {
            id: cx.new_id(),
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
            EventType::ArtifactRecorded,
            &artifact.task_id,
            artifact.attempt_id.as_ref(),
            json!({"after": artifact}),
        )?;
        Ok(artifact)
    }
}

/// Append a review of a spec or an attempt. The latest review of each type counts. Does not move the task;
/// the orchestrator calls task_transition next. Roles: spec_reviewer for `spec`, quality_reviewer for
/// `quality`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskAppendReview {
    /// Task id from task_create.
    task_id: TaskId,
    /// Id of the reviewed attempt. Leave it out only for a spec review in `spec_review`.
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
    /// Your name. Stored with the event.
    #[schemars(length(min = 1, max = REFERENCE))]
    actor: String,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

impl Tool for TaskAppendReview {
    const NAME: &'static str = "task_append_review";
    const TITLE: &'static str = "Append a review";
    const EFFECT: Effect = Effect::Write;
    type Output = ReviewLine;

    fn run(self, cx: &Cx<'_>) -> Result<ReviewLine, ToolError> {
        let action = Action::AppendReview(self.review_type);
        let caller = Caller::writer(cx, action, &self.actor, self.actor_role)?;
        let task = self.check(cx, &caller)?;
        let line = ReviewLine {
            id: cx.new_id(),
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
        let (event_type, payload) = (EventType::ReviewAppended, json!({"after": review}));
        let line = review.line;
        caller.log(cx, event_type, &line.task_id, line.attempt_id.as_ref(), payload)?;
        Ok(line)
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
        let task = refusals.known(&self.task_id, task::head(&cx.db, &self.task_id)?);
        find_attempt(cx, &mut refusals, &self.task_id, self.attempt_id.as_ref())?;
        let of_spec =
            |task: &TaskHead| self.review_type == ReviewType::Spec && task.phase == Phase::SpecReview;
        if self.attempt_id.is_none() && task.as_ref().is_some_and(|task| !of_spec(task)) {
            refusals.add(Reason::AttemptRequired);
        }
        refusals.finish_with(task)
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
