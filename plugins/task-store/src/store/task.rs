//! Tasks and their labels.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, Value, params};

use super::Where;
use crate::model::{AttemptId, CircuitStatus, TaskId};
use crate::phase::{Phase, Place};
use crate::retry::Candidate;
use crate::spec::Spec;

/// A task without its spec.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct TaskHead {
    /// Id of the task.
    pub id: TaskId,
    /// The same id, under the name of the argument for it.
    pub task_id: TaskId,
    /// Title of the task.
    pub title: String,
    /// Name of a registered workspace, or any label.
    pub workspace: String,
    /// Phase of the task.
    pub phase: Phase,
    /// Labels of the task.
    pub labels: Vec<String>,
    /// `open` only in the phase `circuit_open`.
    pub circuit_status: CircuitStatus,
    /// Phase that the open circuit returns to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuit_from: Option<Phase>,
    /// Id of the latest attempt, running or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_attempt_id: Option<AttemptId>,
    /// Number of attempts so far.
    pub attempt_count: u32,
    /// Number of attempts that no longer count as retries.
    #[serde(skip)]
    pub retry_base: u32,
    /// Number of times that leaving the open circuit has reset the retry count, absent if none.
    #[serde(skip_serializing_if = "is_zero")]
    pub circuit_resets: u32,
    /// Earliest start of the next attempt, if it must wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_retry_at: Option<Timestamp>,
    /// Revision of the spec. Reviews of an older revision do not count.
    pub spec_revision: u32,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last record about the task.
    pub updated_at: Timestamp,
}

/// The columns that [`TaskHead`] is read from, with `t` as the table.
pub(super) const HEAD_COLUMNS: &str = "t.id, t.title, t.workspace, t.phase, t.labels_json, t.circuit_status, \
    t.current_attempt_id, t.attempt_count, t.retry_base, t.next_retry_at, t.spec_revision, t.created_at, t.updated_at, \
    CASE WHEN t.phase = 'circuit_open' THEN (SELECT c.from_phase FROM task_store_circuits c WHERE c.task_id = t.id) END, \
    coalesce((SELECT r.resets FROM task_store_resets r WHERE r.task_id = t.id), 0)";

from_row! {
    TaskHead {
        id, task_id: copy id, title, workspace, phase, labels: json, circuit_status, current_attempt_id, attempt_count,
        retry_base, next_retry_at, spec_revision, created_at, updated_at, circuit_from, circuit_resets
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl TaskHead {
    /// A new task.
    pub(crate) fn new(
        id: TaskId,
        title: String,
        workspace: String,
        phase: Phase,
        labels: Vec<String>,
        now: Timestamp,
    ) -> TaskHead {
        TaskHead {
            task_id: id.clone(),
            id,
            title,
            workspace,
            phase,
            labels,
            circuit_status: CircuitStatus::Closed,
            circuit_from: None,
            current_attempt_id: None,
            attempt_count: 0,
            retry_base: 0,
            circuit_resets: 0,
            next_retry_at: None,
            spec_revision: 1,
            created_at: now,
            updated_at: now,
        }
    }

    /// The task's place in the table of phases.
    pub(crate) fn place(&self) -> Place {
        Place {
            phase: self.phase,
            circuit_from: self.circuit_from,
        }
    }

    /// Attempts since the retry count was last reset.
    pub(crate) fn attempts_used(&self) -> u32 {
        self.attempt_count.saturating_sub(self.retry_base)
    }

    /// Returns whether leaving the present phase resets the retry count: that of an open circuit with attempts since
    /// the last reset.
    pub(crate) fn resets_retries(&self) -> bool {
        self.phase == Phase::CircuitOpen && self.attempts_used() > 0
    }

    /// Facts of the task for starting an attempt.
    pub(crate) fn candidate<'a>(&self, running: Option<&'a AttemptId>) -> Candidate<'a> {
        Candidate {
            phase: self.phase,
            used: self.attempts_used(),
            running,
            next_retry_at: self.next_retry_at,
        }
    }

    /// Fields that a transition changes, for the log.
    pub(crate) fn position(&self) -> Json {
        let mut position = json!({
            "phase": self.phase,
            "circuit_status": self.circuit_status,
            "attempts_used": self.attempts_used(),
        });
        if self.circuit_resets > 0 {
            position["circuit_resets"] = json!(self.circuit_resets);
        }
        position
    }

    /// The task after a transition. Entering `circuit_open` opens the circuit. Leaving it closes the circuit
    /// and resets the retry count. Resets after which work goes on are counted.
    pub(crate) fn moved(&self, to: Phase) -> TaskHead {
        let mut moved = TaskHead {
            phase: to,
            circuit_from: self.place().moved(to).circuit_from,
            circuit_status: match to {
                Phase::CircuitOpen => CircuitStatus::Open,
                _ => CircuitStatus::Closed,
            },
            ..self.clone()
        };
        if self.resets_retries() && !to.is_terminal() {
            moved.circuit_resets = self.circuit_resets.saturating_add(1);
        }
        if self.phase == Phase::CircuitOpen {
            moved.retry_base = self.attempt_count;
            moved.next_retry_at = None;
        }
        moved
    }
}

/// A task with its spec in parts.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Task {
    /// The task without its spec.
    #[serde(flatten)]
    pub head: TaskHead,
    /// Spec of the task, in parts: goal, scope_in, scope_out, inputs, outputs, acceptance and risks.
    #[schemars(with = "Map<String, Json>")]
    pub spec: Spec,
}

from_row! {
    Task { head: nested, spec: nested }
}

from_row! {
    Spec {
        goal, scope_in: json, scope_out: json, inputs: json, outputs: json, acceptance: json, risks: json
    }
}

/// A task without its spec.
pub(crate) fn head(db: &Db<'_>, id: &TaskId) -> Result<Option<TaskHead>, DbError> {
    db.query_one(
        &format!("SELECT {HEAD_COLUMNS} FROM task_store_tasks t WHERE t.id = ?1"),
        params![id],
    )
}

/// A task with its spec.
pub(crate) fn get(db: &Db<'_>, id: &TaskId) -> Result<Option<Task>, DbError> {
    db.query_one(
        &format!(
            "SELECT {HEAD_COLUMNS}, t.goal, t.scope_in_json, t.scope_out_json, t.inputs_json, t.outputs_json, \
             t.acceptance_json, t.risks_json FROM task_store_tasks t WHERE t.id = ?1"
        ),
        params![id],
    )
}

/// The Markdown of a task's spec.
pub(crate) fn spec_markdown(db: &Db<'_>, id: &TaskId) -> Result<Option<String>, DbError> {
    db.query_row(
        "SELECT spec_markdown FROM task_store_tasks WHERE id = ?1",
        params![id],
    )?
    .map(|row| row.get(0))
    .transpose()
}

/// Stores a new task with its labels.
pub(crate) fn insert(db: &Db<'_>, task: &Task, spec_markdown: &str) -> Result<(), DbError> {
    let Task { head, spec } = task;
    let head_values = params![
        head.id,
        head.title,
        head.workspace,
        head.phase,
        json!(head.labels),
        head.circuit_status,
        head.attempt_count,
        head.retry_base,
        head.spec_revision,
        head.created_at,
        head.updated_at,
    ];
    db.execute(
        "INSERT INTO task_store_tasks (id, title, workspace, phase, labels_json, circuit_status, attempt_count, \
         retry_base, spec_revision, created_at, updated_at, goal, scope_in_json, scope_out_json, inputs_json, \
         outputs_json, acceptance_json, risks_json, spec_markdown) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
        &[head_values.as_slice(), &spec_values(spec, spec_markdown)].concat(),
    )?;
    for label in &head.labels {
        db.execute(
            "INSERT INTO task_store_labels (label, task_id) VALUES (?1, ?2)",
            params![label, head.id],
        )?;
    }
    Ok(())
}

/// Replaces the spec of a task in its known phase. `false` if the task has left that phase.
pub(crate) fn replace_spec(db: &Db<'_>, task: &Task, spec_markdown: &str) -> Result<bool, DbError> {
    let Task { head, spec } = task;
    let changed = db.execute(
        "UPDATE task_store_tasks SET goal = ?2, scope_in_json = ?3, scope_out_json = ?4, inputs_json = ?5, \
         outputs_json = ?6, acceptance_json = ?7, risks_json = ?8, spec_markdown = ?9, spec_revision = ?10 \
         WHERE id = ?1 AND phase = ?11",
        &[
            params![head.id].as_slice(),
            &spec_values(spec, spec_markdown),
            params![head.spec_revision, head.phase],
        ]
        .concat(),
    )?;
    Ok(changed == 1)
}

/// Values of the columns of a spec: `goal` to `risks_json` in the order of the fields, then `spec_markdown`.
fn spec_values(spec: &Spec, markdown: &str) -> Vec<Value> {
    params![
        spec.goal,
        json!(spec.scope_in),
        json!(spec.scope_out),
        spec.inputs.to_json(),
        spec.outputs.to_json(),
        json!(spec.acceptance),
        json!(spec.risks),
        markdown,
    ]
    .to_vec()
}

/// Moves a task from its known phase, and notes or forgets where its circuit returns to, and how often it was reset.
/// `false` if the phase has changed.
pub(crate) fn set_phase(db: &Db<'_>, seen: Phase, moved: &TaskHead) -> Result<bool, DbError> {
    let is_moved = move_row(db, seen, moved)?;
    if is_moved && seen == Phase::CircuitOpen {
        db.execute(
            "DELETE FROM task_store_circuits WHERE task_id = ?1",
            params![moved.id],
        )?;
        db.execute(
            "INSERT INTO task_store_resets (task_id, resets) VALUES (?1, ?2) \
             ON CONFLICT (task_id) DO UPDATE SET resets = excluded.resets",
            params![moved.id, moved.circuit_resets],
        )?;
    }
    if let Some(from) = moved.circuit_from.filter(|_| is_moved) {
        db.execute(
            "INSERT INTO task_store_circuits (task_id, from_phase) VALUES (?1, ?2)",
            params![moved.id, from],
        )?;
    }
    Ok(is_moved)
}

fn move_row(db: &Db<'_>, seen: Phase, moved: &TaskHead) -> Result<bool, DbError> {
    let changed = db.execute(
        "UPDATE task_store_tasks SET phase = ?3, circuit_status = ?4, retry_base = ?5, next_retry_at = ?6 \
         WHERE id = ?1 AND phase = ?2",
        params![
            moved.id,
            seen,
            moved.phase,
            moved.circuit_status,
            moved.retry_base,
            moved.next_retry_at,
        ],
    )?;
    Ok(changed == 1)
}

/// Makes an attempt the current one and clears the wait.
pub(crate) fn set_attempt(
    db: &Db<'_>,
    id: &TaskId,
    attempt: &AttemptId,
    ordinal: u32,
) -> Result<(), DbError> {
    db.execute(
        "UPDATE task_store_tasks SET current_attempt_id = ?2, attempt_count = ?3, next_retry_at = NULL WHERE id = ?1",
        params![id, attempt, ordinal],
    )?;
    Ok(())
}

/// Sets the retry count and the earliest start of the next attempt.
pub(crate) fn set_retry(db: &Db<'_>, task: &TaskHead) -> Result<(), DbError> {
    db.execute(
        "UPDATE task_store_tasks SET retry_base = ?2, next_retry_at = ?3 WHERE id = ?1",
        params![task.id, task.retry_base, task.next_retry_at],
    )?;
    Ok(())
}

/// Updates the time of a task's last record.
pub(crate) fn touch(db: &Db<'_>, id: &TaskId, now: Timestamp) -> Result<(), DbError> {
    db.execute(
        "UPDATE task_store_tasks SET updated_at = ?2 WHERE id = ?1",
        params![id, now],
    )?;
    Ok(())
}

/// Filter of a list of tasks.
#[derive(Debug, Default)]
pub(crate) struct Filter<'a> {
    pub phase: Option<Phase>,
    pub workspace: Option<&'a String>,
    pub label: Option<&'a String>,
}

/// Up to `limit` tasks after the cursor, newest first.
pub(crate) fn list(
    db: &Db<'_>,
    filter: &Filter<'_>,
    after: Option<&String>,
    limit: u32,
) -> Result<Vec<TaskHead>, DbError> {
    // The index of the labels is in the order of their tasks, so a list by label is read off it.
    let (tables, id) = match filter.label {
        Some(_) => (
            "task_store_labels l JOIN task_store_tasks t ON t.id = l.task_id",
            "l.task_id",
        ),
        None => ("task_store_tasks t", "t.id"),
    };
    let mut wanted = Where::new("1 = 1");
    wanted.and_if("l.label =", filter.label);
    wanted.and_if("t.phase =", filter.phase.as_ref());
    wanted.and_if("t.workspace =", filter.workspace);
    wanted.and_if(&format!("{id} <"), after);
    let limit = wanted.param(&limit);
    db.query_as(
        &format!(
            "SELECT {HEAD_COLUMNS} FROM {tables} WHERE {} ORDER BY {id} DESC LIMIT {limit}",
            wanted.sql
        ),
        &wanted.params,
    )
}
