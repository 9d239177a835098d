//! Adding evidence to a task without moving the task: checkpoints, artifacts and reviews.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Timestamp, Tool, ToolError};

use super::find_attempt;
use crate::arguments::{
    MAX_ENTRY_CHARS, MAX_FINDINGS, MAX_JSON_BYTES, MAX_LABEL_CHARS, MAX_PATH_CHARS, MAX_REFERENCE_CHARS,
    MAX_TEXT_CHARS,
};
use crate::caller::{Caller, Change};
use crate::condition::{Facts, takes_spec_review, tells_of_spec};
use crate::error::{Reason, Refusals};
use crate::model::{
    ArtifactId, ArtifactKind, AttemptId, AttemptStatus, EventType, ReviewId, ReviewType, TaskId, Verdict,
};
use crate::phase::Phase;
use crate::role::{Action, Role};
use crate::store::artifact::{self, Artifact};
use crate::store::review::{self, Finding, Review, ReviewLine};
use crate::store::standing::{self, Standing};
use crate::store::task;
use crate::worker;

/// Append a checkpoint to a task's log: a heartbeat, summary, scheduled retry, recovery marker or note. Does
/// not move the task. Checkpoints of a running attempt show that its worker is alive. Roles: all but human.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct TaskRecordCheckpoint {
    /// Task id from task_create.
    task_id: TaskId,
    /// Id of the attempt. Leave it out for the task as a whole.
    attempt_id: Option<AttemptId>,
    /// Type: `heartbeat`, `execution_summary`, `retry_scheduled`, `recovery_marker`, `note`, or your own.
    #[schemars(length(min = 1, max = MAX_LABEL_CHARS))]
    checkpoint_type: String,
    /// Data to store, at most 64 KiB of JSON.
    payload: Map<String, Json>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
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
    /// Attempt that the checkpoint is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<AttemptId>,
    /// Type that was recorded.
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
        refusals.text("checkpoint_type", &self.checkpoint_type, MAX_LABEL_CHARS);
        let payload = json!({"checkpoint_type": self.checkpoint_type, "payload": self.payload});
        refusals.json("payload", &payload, MAX_JSON_BYTES);
        let task = refusals.known(&self.task_id, task::head(&cx.db, &self.task_id)?);
        find_attempt(cx, &mut refusals, &self.task_id, self.attempt_id.as_ref())?;
        refusals.finish_with(task)?;

        let attempt_id = self.attempt_id.as_ref();
        let change = Change {
            part: attempt_id.map(AttemptId::as_str),
            ..Change::of(EventType::AttemptCheckpoint, &self.task_id, payload)
        };
        let event_id = caller.log(cx, change.in_attempt(attempt_id))?;
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
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct TaskRecordArtifact {
    /// Task id from task_create.
    task_id: TaskId,
    /// Id of the attempt that produced the artifact. Leave it out if none did.
    attempt_id: Option<AttemptId>,
    /// Kind of artifact, for example patch.
    kind: ArtifactKind,
    /// Location of the artifact: a path or URI.
    #[schemars(length(min = 1, max = MAX_PATH_CHARS))]
    uri: String,
    /// Short description of the content.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    summary: Option<String>,
    /// Name of the producer, for example a worker.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    produced_by: String,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// A recorded artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Recorded {
    /// The artifact after the call.
    artifact: Artifact,
    /// Fields of the artifact at the top level, for clients of earlier versions.
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
        refusals.text("uri", &self.uri, MAX_PATH_CHARS);
        refusals.optional_text("summary", self.summary.as_deref(), MAX_TEXT_CHARS);
        refusals.text("produced_by", &self.produced_by, MAX_REFERENCE_CHARS);
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
        let payload = json!({"after": artifact});
        let change = Change::of(EventType::ArtifactRecorded, &artifact.task_id, payload)
            .in_attempt(artifact.attempt_id.as_ref())
            .part(artifact.id.as_str());
        caller.log(cx, change)?;
        Ok(Recorded {
            artifact: artifact.clone(),
            flat: artifact,
        })
    }
}

/// Append a review of the spec or of the current attempt, once that has ended. The latest review of each type counts; a
/// later review of the spec withdraws an approval. Fails with STALE_ATTEMPT for an earlier attempt. Does not move the
/// task; the orchestrator calls task_transition next. Roles: spec_reviewer for `spec`, quality_reviewer for `quality`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct TaskAppendReview {
    /// Task id from task_create.
    task_id: TaskId,
    /// Id of the reviewed attempt, which must be the current one. Leave it out to review the spec itself.
    attempt_id: Option<AttemptId>,
    /// Type of the review: `spec` or `quality`.
    review_type: ReviewType,
    /// Name of the reviewer, for example reviewer-1.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    reviewer_ref: String,
    /// Verdict on the reviewed work.
    verdict: Verdict,
    /// Reasons for the verdict, in words.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    summary: Option<String>,
    /// Findings, at most 64 KiB of JSON. Empty if there are none.
    #[schemars(length(max = MAX_FINDINGS))]
    findings: Vec<Finding>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// An appended review.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Appended {
    /// The review after the call, without its findings.
    review: ReviewLine,
    /// Fields of the review at the top level, for clients of earlier versions.
    #[serde(flatten)]
    flat: ReviewLine,
    /// Consequences that the reviewer may not expect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Tool for TaskAppendReview {
    const NAME: &'static str = "task_append_review";
    const TITLE: &'static str = "Append a review";
    const EFFECT: Effect = Effect::Write;
    type Output = Appended;

    fn run(self, cx: &Cx<'_>) -> Result<Appended, ToolError> {
        let action = Action::AppendReview(self.review_type);
        let caller = Caller::writer(cx, action, self.actor.as_deref(), self.actor_role)?;
        let standing = self.check(cx, &caller)?;
        let warnings = self.warnings(&standing.facts(&caller.config.retry));
        let task = standing.task;
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
        let change = Change::of(EventType::ReviewAppended, &line.task_id, payload)
            .in_attempt(line.attempt_id.as_ref())
            .part(line.id.as_str());
        caller.log(cx, change)?;
        Ok(Appended {
            review: line.clone(),
            flat: line,
            warnings,
        })
    }
}

impl TaskAppendReview {
    /// The state of the task, if the review can be appended to it.
    fn check(&self, cx: &Cx<'_>, caller: &Caller) -> Result<Standing, ToolError> {
        let mut refusals = caller.check();
        refusals.text("reviewer_ref", &self.reviewer_ref, MAX_REFERENCE_CHARS);
        refusals.optional_text("summary", self.summary.as_deref(), MAX_TEXT_CHARS);
        refusals.at_most("findings", self.findings.len(), MAX_FINDINGS, "findings");
        for (index, finding) in self.findings.iter().take(MAX_FINDINGS).enumerate() {
            finding.check(&format!("findings[{index}]"), &mut refusals);
        }
        refusals.json("findings", &self.findings, MAX_JSON_BYTES);
        let standing = refusals.known(&self.task_id, standing::get(&cx.db, &self.task_id)?);
        let named = find_attempt(cx, &mut refusals, &self.task_id, self.attempt_id.as_ref())?;
        if let Some(running) = named
            .as_ref()
            .filter(|named| named.status == AttemptStatus::Running)
        {
            let remedy = worker::find(cx, caller, running)?.next_call;
            refusals.add_with(Reason::ReviewTooEarly(running.id.to_string()), remedy);
        }
        if let Some(standing) = &standing {
            refusals.current(&standing.task, named.as_ref());
            if self.attempt_id.is_none() {
                self.check_spec(caller, standing, &mut refusals);
            }
        }
        refusals.finish_with(standing)
    }

    /// Requires a review without an attempt to be of the spec, which may be reviewed, and to say something new of it.
    fn check_spec(&self, caller: &Caller, standing: &Standing, refusals: &mut Refusals) {
        let task = &standing.task;
        let facts = standing.facts(&caller.config.retry);
        if self.review_type != ReviewType::Spec {
            refusals.add(Reason::AttemptRequired);
        } else if !takes_spec_review(task.phase) {
            let allowed = Phase::ALL.iter().filter(|phase| takes_spec_review(**phase));
            let reason = Reason::WrongPhase {
                tool: Self::NAME,
                phase: task.phase,
                allowed: allowed.copied().collect(),
            };
            let (from, to) = (Phase::SpecDraft, Phase::SpecReview);
            let call = || caller.transition(&task.id, from, to, "the spec is ready for review");
            refusals.add_with(reason, (task.phase == from).then(call));
        } else if !tells_of_spec(task.phase, &facts, self.verdict) {
            refusals.add(Reason::SpecApproved);
        }
    }

    /// A warning if the review withdraws the approval of a spec by which work may have begun.
    fn warnings(&self, before: &Facts) -> Vec<String> {
        let approved = Verdict::Approved;
        let is_withdrawn = self.review_type == ReviewType::Spec
            && self.attempt_id.is_none()
            && self.verdict != approved
            && before.spec_review == Some(approved);
        let warning = "the approval of the spec is withdrawn: until a spec_reviewer approves it again, no attempt starts \
            and the task is not completed";
        is_withdrawn.then(|| warning.to_owned()).into_iter().collect()
    }
}

impl Finding {
    fn check(&self, field: &str, refusals: &mut Refusals) {
        refusals.text(&format!("{field}.message"), &self.message, MAX_ENTRY_CHARS);
        refusals.optional_text(&format!("{field}.file"), self.file.as_deref(), MAX_PATH_CHARS);
        refusals.optional_text(
            &format!("{field}.artifact_uri"),
            self.artifact_uri.as_deref(),
            MAX_PATH_CHARS,
        );
    }
}
