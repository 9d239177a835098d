//! Work on the task: an attempt, a crash of the server, a failure and a retry.

use serde_json::{Value, json};
use tollgate_sdk::NextCall;

use super::{Story, next_call};
use crate::actor::{BUILDER, PLANNER};

impl Story<'_> {
    /// Starts an attempt. Returns its id.
    pub(super) async fn an_attempt(&mut self) -> anyhow::Result<String> {
        self.stage.scene("An attempt");
        let blockers = ["NO_RUNNING_ATTEMPT"];
        let refusal = self
            .held("execution_ready", "executing", "somebody will do it", &blockers)
            .await?;
        self.stage
            .say("Again the refusal knows the way, and so does the reply to the call it names.");
        let shown = ["attempt.id", "attempt.ordinal", "attempt.status", "attempts_left"];
        let started = self.stage.follow(&next_call(&refusal)?, &shown).await?;
        let next: NextCall = serde_json::from_value(started.get("next_call").cloned().unwrap_or_default())?;
        self.stage.follow(&next, &["from_phase", "phase"]).await?;
        self.stage
            .say("One attempt runs at a time, however many planners there are.");
        let second = self.starting();
        self.stage
            .refused(PLANNER, "task_start_attempt", second, &["ATTEMPT_RUNNING"])
            .await?;
        started.text("attempt.id")
    }

    /// Kills the server and starts it again.
    pub(super) async fn a_crash(&mut self, attempt: &str) -> anyhow::Result<()> {
        self.stage.scene("The server dies");
        let halfway = json!({
            "task_id": self.task,
            "attempt_id": attempt,
            "checkpoint_type": "execution_summary",
            "payload": {"done": ["query"], "next": "write the file"},
        });
        self.stage
            .ok(
                BUILDER,
                "task_record_checkpoint",
                halfway,
                &["event_id", "created_at"],
            )
            .await?;
        self.stage.crash().await
    }

    /// Checks that all data is still there.
    pub(super) async fn a_recovery(&mut self, attempt: &str) -> anyhow::Result<()> {
        self.stage.say(
            "Whoever comes back needs no memory of its own: task_recover has the phase, the latest of \
             everything, what is pending, and each legal move as a ready call.",
        );
        let shown = [
            "phase",
            "latest_attempt.status",
            "latest_checkpoint.payload",
            "pending.0.code",
        ];
        let task = json!({"task_id": self.task});
        let recovered = self
            .stage
            .ok(PLANNER, "task_recover", task.clone(), &shown)
            .await?;
        recovered.wants("phase", &json!("executing"))?;
        recovered.wants("latest_attempt.id", &json!(attempt))?;
        recovered.wants("latest_checkpoint.payload.payload.next", &json!("write the file"))?;
        let shown = [
            "task.title",
            "task.phase",
            "task.spec_revision",
            "latest_review.verdict",
        ];
        let kept = self.stage.ok(PLANNER, "task_get", task, &shown).await?;
        kept.wants("latest_review.verdict", &json!("approved"))
    }

    /// Fails the attempt, and starts another one after a wait. Returns its id.
    pub(super) async fn a_failure(&mut self, attempt: &str) -> anyhow::Result<String> {
        self.stage
            .scene("The attempt fails, and the next one has to wait");
        let failed = self.finishing(attempt, "failed");
        let shown = ["attempt.status", "attempts_left", "next_retry_at"];
        self.stage
            .ok(BUILDER, "task_finish_attempt", failed, &shown)
            .await?;
        self.a_denial().await?;
        self.stage
            .say("So another attempt. A retry straight away is too early, and the refusal says when.");
        let retry = self.starting();
        let blockers = ["RETRY_TOO_EARLY"];
        let refusal = self
            .stage
            .refused(PLANNER, "task_start_attempt", retry.clone(), &blockers)
            .await?;
        let instant = refusal
            .context
            .get("next_retry_at")
            .and_then(Value::as_str)
            .unwrap_or_default();
        self.stage.sleep_until(instant).await?;
        let shown = ["attempt.id", "attempt.ordinal", "attempts_left"];
        let started = self
            .stage
            .ok(PLANNER, "task_start_attempt", retry, &shown)
            .await?;
        started.text("attempt.id")
    }
}
