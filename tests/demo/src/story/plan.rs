//! First part: a task from its idea to an approved spec.

use serde_json::json;
use tollgate_sdk::ToolError;

use super::{Story, next_call};
use crate::actor::{BUILDER, PLANNER, SPEC_CHECKER};

/// A spec without acceptance criteria.
const SPEC_WITHOUT_ACCEPTANCE: &str = "## Goal\nEverybody can take their notes with them.\n\n\
    ## Scope\n### In\n- all notes as one Markdown file\n### Out\n- pictures\n\n\
    ## Inputs\n- the notes table\n\n## Outputs\n- export.md\n\n## Risks\n- very large accounts\n";

/// The section that [`SPEC_WITHOUT_ACCEPTANCE`] lacks.
const ACCEPTANCE: &str =
    "\n## Acceptance\n- an export of 10,000 notes takes less than 5 s\n- no note is missing\n";

impl Story<'_> {
    /// Creates the task, after a call with mistakes.
    pub(super) async fn a_spec(&mut self) -> anyhow::Result<()> {
        self.stage.scene("A task begins with a spec");
        self.stage.say(
            "The planner is the orchestrator: it decides, and alone may move the task. Its first call is \
             careless. The gate checks arguments against the tool's schema before any pack code runs, and \
             names every mistake at once.",
        );
        let careless = json!({
            "titel": "Export notes",
            "spec_markdown": SPEC_WITHOUT_ACCEPTANCE,
            "workspace": "notes-app",
            "initial_phase": "ready",
            "labels": "export",
        });
        let refusal = self
            .stage
            .refused_as("INVALID_ARGUMENTS", PLANNER, "task_create", careless)
            .await?;
        mentions(&refusal, &["title", "titel", "initial_phase", "labels"])?;
        self.stage.say(
            "The same without mistakes. The spec is read from its headings; what it lacks is a warning.",
        );
        let careful = json!({
            "title": "Export notes",
            "spec_markdown": SPEC_WITHOUT_ACCEPTANCE,
            "workspace": "notes-app",
            "initial_phase": "spec_draft",
            "labels": ["export"],
        });
        let shown = ["task.id", "task.phase", "task.spec.goal", "warnings"];
        let created = self.stage.ok(PLANNER, "task_create", careful, &shown).await?;
        self.task = created.text("task.id")?;
        Ok(())
    }

    /// Tries to start the task with an incomplete spec, and moves it back.
    pub(super) async fn a_first_look(&mut self) -> anyhow::Result<()> {
        self.stage
            .scene("Only the orchestrator moves it, and only on evidence");
        self.stage
            .say("Whoever does the work does not decide where it stands.");
        let early = self.moving("spec_draft", "spec_review", "let us get going");
        self.stage
            .refused(BUILDER, "task_transition", early, &["ROLE_FORBIDDEN"])
            .await?;
        self.advance("spec_draft", "spec_review", "ready to be read")
            .await?;
        self.stage
            .say("On to the work? Two things are missing, and both are told at once.");
        let missing = ["ACCEPTANCE_MISSING", "SPEC_NOT_APPROVED"];
        let refusal = self
            .held("spec_review", "execution_ready", "start the work", &missing)
            .await?;
        self.stage
            .say("The refusal holds a call that is ready to run. The planner makes it as it is.");
        let moved = self
            .stage
            .follow(&next_call(&refusal)?, &["from_phase", "phase"])
            .await?;
        moved.wants("phase", &json!("spec_draft"))?;
        Ok(())
    }

    /// Tries a move with stale state, and a move that skips phases.
    pub(super) async fn a_stale_look(&mut self) -> anyhow::Result<()> {
        self.stage.say(
            "Somebody who looked before that move now acts on what they saw. `from_phase` is compared with \
             the actual phase, so nothing is overwritten. And phases cannot be skipped.",
        );
        self.held(
            "spec_review",
            "execution_ready",
            "I saw it in spec_review",
            &["PHASE_CONFLICT"],
        )
        .await?;
        let leap = self
            .held(
                "spec_draft",
                "completed",
                "it is a small thing",
                &["ILLEGAL_TRANSITION"],
            )
            .await?;
        let legal = leap.context.get("legal_transitions");
        let wanted = json!(["spec_review", "failed"]);
        anyhow::ensure!(legal == Some(&wanted), "the legal transitions are {legal:?}");
        Ok(())
    }

    /// Completes the spec and has it approved.
    pub(super) async fn a_better_spec(&mut self) -> anyhow::Result<()> {
        self.stage
            .say("The planner adds what is missing, and a reviewer reads it.");
        let spec = json!({
            "task_id": self.task,
            "spec_markdown": format!("{SPEC_WITHOUT_ACCEPTANCE}{ACCEPTANCE}"),
        });
        let shown = ["task.spec.acceptance", "task.spec_revision", "warnings"];
        let updated = self.stage.ok(PLANNER, "task_update_spec", spec, &shown).await?;
        updated.wants("warnings", &json!([]))?;
        self.advance("spec_draft", "spec_review", "acceptance criteria added")
            .await?;
        self.approve(SPEC_CHECKER, "spec", None).await?;
        self.advance("spec_review", "execution_ready", "the spec is approved")
            .await
    }
}

/// Fails unless each of these fields is named by a blocker.
fn mentions(refusal: &ToolError, fields: &[&str]) -> anyhow::Result<()> {
    for field in fields {
        let named = refusal.blockers.iter().any(|blocker| {
            blocker.field.as_deref() == Some(field)
                || blocker.message.contains(&format!("{field:?}"))
                || blocker.message.contains(&format!("'{field}'"))
        });
        anyhow::ensure!(named, "no blocker names {field}");
    }
    Ok(())
}
