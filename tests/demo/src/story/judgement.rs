//! Reviews of the work: two gates, a person's approval, and the task's log.

use serde_json::{Value, json};

use super::Story;
use crate::actor::{BUILDER, MARIA, PLANNER, QUALITY_CHECKER, SPEC_CHECKER};
use crate::answer::Answer;

impl Story<'_> {
    /// Ends the attempt with success, and has reviewers judge it at both gates.
    pub(super) async fn the_gates(&mut self, attempt: &str) -> anyhow::Result<()> {
        self.stage.scene("Two gates");
        let output = json!({
            "task_id": self.task,
            "attempt_id": attempt,
            "kind": "primary_output",
            "uri": "file:///notes-app/export.md",
            "summary": "the export of the test account",
            "produced_by": BUILDER.name,
        });
        self.stage
            .ok(BUILDER, "task_record_artifact", output, &["id", "uri"])
            .await?;
        let succeeded = self.finishing(attempt, "succeeded");
        self.stage
            .ok(BUILDER, "task_finish_attempt", succeeded, &["attempt.status"])
            .await?;
        self.advance("executing", "spec_gate", "the attempt succeeded")
            .await?;
        self.stage
            .say("The review of the spec was about the plan. The gate wants one of this attempt.");
        self.held(
            "spec_gate",
            "quality_gate",
            "it works for me",
            &["SPEC_NOT_APPROVED"],
        )
        .await?;
        self.stage.say("And a reviewer cannot stand in for the other.");
        let (swapped, reasons) = (self.reviewing("spec", Some(attempt)), ["ROLE_FORBIDDEN"]);
        self.stage
            .refused(QUALITY_CHECKER, "task_append_review", swapped, &reasons)
            .await?;
        self.approve(SPEC_CHECKER, "spec", Some(attempt)).await?;
        self.advance("spec_gate", "quality_gate", "the spec is met").await
    }

    /// Requests an approval for a side effect. Returns the request's id.
    pub(super) async fn a_request(&mut self, attempt: &str) -> anyhow::Result<String> {
        self.stage.scene("A person has the last word");
        self.stage
            .say("Publishing is a side effect, so it is asked for. Asking twice is asking once.");
        let request = json!({
            "task_id": self.task,
            "attempt_id": attempt,
            "requested_action": "publish the export feature",
            "side_effect_kind": "release",
            "idempotency_key": "export-notes-1",
        });
        let shown = ["approval.id", "approval.status", "replayed"];
        let asked = self
            .stage
            .ok(PLANNER, "task_request_approval", request.clone(), &shown)
            .await?;
        let again = self
            .stage
            .ok(PLANNER, "task_request_approval", request, &shown)
            .await?;
        let approval = asked.text("approval.id")?;
        again.wants("replayed", &json!(true))?;
        again.wants("approval.id", &json!(approval))?;
        let missing = ["QUALITY_NOT_APPROVED", "APPROVAL_PENDING"];
        self.held("quality_gate", "completed", "done is done", &missing)
            .await?;
        self.approve(QUALITY_CHECKER, "quality", Some(attempt)).await?;
        self.stage.say("One condition is met now, the other is not.");
        self.held("quality_gate", "completed", "done is done", &["APPROVAL_PENDING"])
            .await?;
        Ok(approval)
    }

    /// Has a person approve, and completes the task.
    pub(super) async fn an_answer(&mut self, approval: &str) -> anyhow::Result<()> {
        self.stage.say("The planner may ask, but not answer.");
        let answer = json!({
            "task_id": self.task,
            "approval_id": approval,
            "resolution": "approved",
            "resolved_by": MARIA.name,
        });
        let (tool, reasons) = ("task_resolve_approval", ["ROLE_FORBIDDEN"]);
        self.stage
            .refused(PLANNER, tool, answer.clone(), &reasons)
            .await?;
        let shown = ["approval.status", "approval.resolved_by"];
        self.stage.ok(MARIA, tool, answer, &shown).await?;
        self.advance("quality_gate", "completed", "reviewed and approved")
            .await
    }

    /// Shows the task's own log.
    pub(super) async fn the_end(&mut self) -> anyhow::Result<()> {
        self.stage.scene("What happened, as the task's own log has it");
        let log = json!({"task_id": self.task, "limit": 200});
        let events = self.stage.ok(PLANNER, "task_events", log, &[]).await?;
        let lines = event_lines(&events);
        self.stage.show(&lines.join("\n"));
        let last = lines.last().map_or("", String::as_str);
        anyhow::ensure!(
            last.contains("quality_gate -> completed"),
            "the last event is {last:?}"
        );
        self.stage
            .say("Refusals left no event, because they changed nothing. The ledger at the end has them.");
        Ok(())
    }
}

/// One line for each event of a log.
fn event_lines(events: &Answer) -> Vec<String> {
    let events = events.get("events").and_then(Value::as_array);
    let text = |event: &Value, pointer: &str| {
        event
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let line = |event: &Value| {
        let moved = match (
            text(event, "/payload/before/phase"),
            text(event, "/payload/after/phase"),
        ) {
            (before, after) if before.is_empty() || after.is_empty() => String::new(),
            (before, after) => format!("{before} -> {after}"),
        };
        let line = format!(
            "    {:<20} {:<16} {moved}",
            text(event, "/event_type"),
            text(event, "/actor")
        );
        line.trim_end().to_owned()
    };
    events.into_iter().flatten().map(line).collect()
}
