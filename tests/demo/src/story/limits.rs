//! Limits of the host: a policy that denies a call, and an envelope that closes.

use serde_json::json;

use super::Story;
use crate::actor::PLANNER;

/// Number of changes that the envelope permits.
const MUTATIONS: usize = 3;

impl Story<'_> {
    /// Has the planner give the task up, which the operator's policy denies.
    pub(super) async fn a_denial(&mut self) -> anyhow::Result<()> {
        self.stage.say(
            "The planner would rather give up. The pack allows that move, but the operator's configuration has a \
             policy, one line of CEL, which denies it. A denied call changes nothing, and the pack never sees it.",
        );
        let arguments = self.moving("executing", "failed", "too hard");
        self.stage
            .refused_as("GIVING_UP", PLANNER, "task_transition", arguments)
            .await
            .map(drop)
    }

    /// Has a planner make calls until its envelope stops it.
    pub(super) async fn an_envelope(&mut self) -> anyhow::Result<()> {
        self.stage.scene("An envelope closes");
        self.stage.say(&format!(
            "An envelope bounds the work that happens in it. This one allows {MUTATIONS} changes. The planner splits \
             the next idea into ever more tasks, and does not notice.",
        ));
        let envelope = json!({"label": "plan the import", "limits": {"max_mutations": MUTATIONS}});
        self.stage
            .unsigned(PLANNER, "envelope_open", envelope, &["id", "state", "limits"])
            .await?;
        for part in 1..=MUTATIONS {
            let created = self
                .stage
                .ok(PLANNER, "task_create", part_of_the_import(part), &["task.title"])
                .await?;
            created.wants("task.title", &json!(format!("Import, part {part}")))?;
        }
        let more = part_of_the_import(MUTATIONS + 1);
        for code in ["MUTATION_BUDGET_EXHAUSTED", "ENVELOPE_CLOSED"] {
            self.stage
                .refused_as(code, PLANNER, "task_create", more.clone())
                .await?;
        }
        self.stage.say(
            "A closed envelope never opens again. Reading is still free, and the refusal names the call that tells \
             what happened. The report at the end is the same for people.",
        );
        Ok(())
    }
}

fn part_of_the_import(part: usize) -> serde_json::Value {
    json!({
        "title": format!("Import, part {part}"),
        "spec_markdown": "## Goal\nNotes of other programs come in.",
        "workspace": "notes-app",
        "initial_phase": "spec_draft",
    })
}
