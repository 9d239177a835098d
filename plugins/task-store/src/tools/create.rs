//! Creating tasks and replacing their specs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, Effect, Hints, Tier, Tool, ToolError};

use super::moved_meanwhile;
use crate::arguments::{
    MAX_LABEL_CHARS, MAX_LABELS, MAX_MARKDOWN_BYTES, MAX_PATH_CHARS, MAX_REFERENCE_CHARS, MAX_TITLE_CHARS,
};
use crate::caller::{Caller, Change};
use crate::error::{Reason, Refusals};
use crate::model::{EventType, InitialPhase, TaskId};
use crate::phase::Phase;
use crate::retry::Hold;
use crate::role::{Action, Role};
use crate::spec::Spec;
use crate::store::standing::{self, Standing};
use crate::store::task::{self, Task, TaskHead};

/// Create a task with its spec, read from the Markdown headings Goal, Scope (In, Out), Inputs, Outputs,
/// Acceptance and Risks; `spec` overrides parts. Missing parts become warnings. Next: task_transition. Role:
/// orchestrator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
// The task is new, so no other call is about it.
#[schemars(extend("x-scope" = json!([])))]
pub(crate) struct TaskCreate {
    /// Title of the task in one line.
    #[schemars(length(min = 1, max = MAX_TITLE_CHARS))]
    title: String,
    /// Spec as Markdown. At most 256 KiB.
    #[schemars(length(min = 1, max = MAX_MARKDOWN_BYTES))]
    spec_markdown: String,
    /// Registered workspace or any label.
    #[schemars(length(min = 1, max = MAX_PATH_CHARS))]
    workspace: String,
    /// Phase in which the task starts, for example `spec_draft`.
    initial_phase: InitialPhase,
    /// Labels to filter task_list by.
    #[serde(default)]
    #[schemars(length(max = MAX_LABELS))]
    labels: Vec<String>,
    /// Spec parts that override the Markdown.
    spec: Option<Spec>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

/// A task with its stored spec.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Specified {
    /// The task with its stored spec.
    task: Task,
    /// Missing parts of the spec.
    warnings: Vec<String>,
    /// Id of the event in the log.
    event_id: i64,
}

impl Specified {
    /// Logs the change of a stored task.
    fn log(
        cx: &Cx<'_>,
        caller: &Caller,
        event_type: EventType,
        task: Task,
        payload: Json,
    ) -> Result<Specified, ToolError> {
        let event_id = caller.log(cx, Change::of(event_type, &task.head.id, payload))?;
        Ok(Specified {
            warnings: task.spec.warnings(),
            task,
            event_id,
        })
    }
}

impl Tool for TaskCreate {
    const NAME: &'static str = "task_create";
    const TITLE: &'static str = "Create a task";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Core;
    type Output = Specified;

    fn run(self, cx: &Cx<'_>) -> Result<Specified, ToolError> {
        let caller = Caller::writer(cx, Action::Create, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        refusals.text("title", &self.title, MAX_TITLE_CHARS);
        refusals.text("workspace", &self.workspace, MAX_PATH_CHARS);
        let labels = check_labels(&mut refusals, self.labels);
        let spec = check_spec(&mut refusals, &self.spec_markdown, self.spec);
        refusals.finish()?;

        let head = TaskHead::new(
            cx.new_id(),
            self.title,
            self.workspace,
            self.initial_phase.into(),
            labels,
            cx.now(),
        );
        let task = Task { head, spec };
        task::insert(&cx.db, &task, &self.spec_markdown)?;
        let payload = json!({"after": task});
        Specified::log(cx, &caller, EventType::TaskCreated, task, payload)
    }
}

/// Replace the spec of a task in `spec_draft`, or in `execution_ready` while no attempt runs. The spec is read as in
/// task_create. Earlier reviews no longer count. Role: orchestrator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct TaskUpdateSpec {
    /// Task id from task_create.
    task_id: TaskId,
    /// Spec as Markdown. At most 256 KiB.
    #[schemars(length(min = 1, max = MAX_MARKDOWN_BYTES))]
    spec_markdown: String,
    /// Spec parts that override the Markdown.
    spec: Option<Spec>,
    /// Your name, for the event log.
    #[schemars(length(min = 1, max = MAX_REFERENCE_CHARS))]
    actor: Option<String>,
    /// Your role; each tool lists its allowed roles.
    actor_role: Role,
}

impl Tool for TaskUpdateSpec {
    const NAME: &'static str = "task_update_spec";
    const TITLE: &'static str = "Replace a task's spec";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = Specified;

    fn run(self, cx: &Cx<'_>) -> Result<Specified, ToolError> {
        let caller = Caller::writer(cx, Action::UpdateSpec, self.actor.as_deref(), self.actor_role)?;
        let mut refusals = caller.check();
        let spec = check_spec(&mut refusals, &self.spec_markdown, self.spec);
        let seen = refusals.known(&self.task_id, task::get(&cx.db, &self.task_id)?);
        let standing = standing::get(&cx.db, &self.task_id)?;
        if let Some(standing) = &standing {
            refuse_frozen(&caller, &mut refusals, standing);
        }
        let seen = refusals.finish_with(seen)?;

        let head = TaskHead {
            spec_revision: seen.head.spec_revision.saturating_add(1),
            updated_at: cx.now(),
            ..seen.head
        };
        let task = Task { head, spec };
        if !task::replace_spec(&cx.db, &task, &self.spec_markdown)? {
            return Err(moved_meanwhile(cx, &task.head)?);
        }
        let payload = json!({
            "before": {"spec": seen.spec},
            "after": {"spec": task.spec, "spec_revision": task.head.spec_revision},
        });
        Specified::log(cx, &caller, EventType::SpecUpdated, task, payload)
    }
}

/// Requires a task whose work has not begun. Later, attempts and reviews depend on the spec.
fn refuse_frozen(caller: &Caller, refusals: &mut Refusals, standing: &Standing) {
    let task = &standing.task;
    match task.phase {
        Phase::SpecDraft => {}
        Phase::ExecutionReady => {
            if let Some(running) = standing.running() {
                refusals.add(Hold::AttemptRunning(running.clone()));
            }
        }
        phase => {
            let back = phase != Phase::CircuitOpen && phase.leads_to(Phase::SpecDraft);
            let reason = Reason::WrongPhase {
                tool: TaskUpdateSpec::NAME,
                phase,
                allowed: vec![Phase::SpecDraft, Phase::ExecutionReady],
            };
            let call =
                back.then(|| caller.transition(&task.id, phase, Phase::SpecDraft, "the spec must change"));
            refusals.add_with(reason, call);
        }
    }
}

/// Reads the spec and checks it.
fn check_spec(refusals: &mut Refusals, markdown: &str, given: Option<Spec>) -> Spec {
    refusals.not_blank("spec_markdown", markdown);
    refusals.printable("spec_markdown", markdown);
    refusals.at_most("spec_markdown", markdown.len(), MAX_MARKDOWN_BYTES, "bytes");
    let spec = Spec::read(markdown, given.unwrap_or_default());
    spec.check(refusals);
    spec
}

/// Checks labels and drops repeated ones.
fn check_labels(refusals: &mut Refusals, labels: Vec<String>) -> Vec<String> {
    refusals.at_most("labels", labels.len(), MAX_LABELS, "labels");
    let mut distinct: Vec<String> = Vec::new();
    for (index, label) in labels.into_iter().take(MAX_LABELS).enumerate() {
        refusals.text(&format!("labels[{index}]"), &label, MAX_LABEL_CHARS);
        if !distinct.contains(&label) {
            distinct.push(label);
        }
    }
    distinct
}
