//! The story: a task from its first spec to its end, with all failures on the way.

mod judgement;
mod limits;
mod plan;
mod work;

use serde_json::{Value, json};
use tollgate_sdk::{NextCall, ToolError};

use crate::actor::{Actor, PLANNER};
use crate::stage::{Seen, Stage};

/// Stage and state of the story.
pub(crate) struct Story<'a> {
    stage: Stage<'a>,
    task: String,
}

impl<'a> Story<'a> {
    /// Creates a story without calls.
    pub(crate) fn new(stage: Stage<'a>) -> Story<'a> {
        Story {
            stage,
            task: String::new(),
        }
    }

    /// Runs the whole story, and returns its calls.
    pub(crate) async fn tell(mut self) -> anyhow::Result<Vec<Seen>> {
        self.a_spec().await?;
        self.a_first_look().await?;
        self.a_stale_look().await?;
        self.a_better_spec().await?;
        let attempt = self.an_attempt().await?;
        self.a_crash(&attempt).await?;
        self.a_recovery(&attempt).await?;
        let attempt = self.a_failure(&attempt).await?;
        self.the_gates(&attempt).await?;
        let approval = self.a_request(&attempt).await?;
        self.an_answer(&approval).await?;
        self.the_end().await?;
        self.an_envelope().await?;
        self.stage.close().await
    }

    /// Moves the task and checks that it moved.
    async fn advance(&mut self, from: &str, to: &str, reason: &str) -> anyhow::Result<()> {
        let arguments = self.moving(from, to, reason);
        let moved = self
            .stage
            .ok(PLANNER, "task_transition", arguments, &["from_phase", "phase"])
            .await?;
        moved.wants("phase", &json!(to))
    }

    /// Tries to move the task, and checks that it is refused for exactly these reasons.
    async fn held(&mut self, from: &str, to: &str, why: &str, reasons: &[&str]) -> anyhow::Result<ToolError> {
        let arguments = self.moving(from, to, why);
        self.stage
            .refused(PLANNER, "task_transition", arguments, reasons)
            .await
    }

    /// Has a reviewer approve the spec, before the first attempt, or an attempt.
    async fn approve(&mut self, who: Actor, kind: &str, attempt: Option<&str>) -> anyhow::Result<()> {
        let arguments = self.reviewing(kind, attempt);
        let shown = ["id", "review_type", "verdict"];
        let review = self
            .stage
            .ok(who, "task_append_review", arguments, &shown)
            .await?;
        review.wants("verdict", &json!("approved"))
    }

    fn moving(&self, from: &str, to: &str, reason: &str) -> Value {
        json!({"task_id": self.task, "from_phase": from, "to_phase": to, "reason": reason})
    }

    fn starting(&self) -> Value {
        json!({"task_id": self.task, "phase": "executing", "runtime": "local", "executor_kind": "builder"})
    }

    fn finishing(&self, attempt: &str, status: &str) -> Value {
        let mut arguments = json!({"attempt_id": attempt, "status": status});
        if status == "failed" {
            arguments["error_summary"] = json!("ran out of memory at note 8,191");
        }
        arguments
    }

    fn reviewing(&self, kind: &str, attempt: Option<&str>) -> Value {
        let mut arguments = json!({
            "task_id": self.task,
            "review_type": kind,
            "reviewer_ref": format!("{kind}-review"),
            "verdict": "approved",
            "findings": [],
        });
        if let Some(attempt) = attempt {
            arguments["attempt_id"] = json!(attempt);
        }
        arguments
    }
}

/// The suggested call of a refusal.
fn next_call(refusal: &ToolError) -> anyhow::Result<NextCall> {
    refusal
        .next_call
        .clone()
        .ok_or_else(|| anyhow::anyhow!("{} names no next call", refusal.code))
}
