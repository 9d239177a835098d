//! Questions that wait for a person, wherever they are kept: approvals of task-store, steps of the conductor, and calls
//! that were denied until somebody approves them.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension as _, params};
use serde_json::{Value, json};

use super::error::StoreResult;
use super::operations::{OperationFilter, StoredOperation};
use super::session::Session;

/// Code of a call that wants an approval first.
const APPROVAL_REQUIRED: &str = "APPROVAL_REQUIRED";
/// Gate of a conductor's step that only a person opens.
const HUMAN_GATE: &str = "human_approval";

/// Keeper of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// An approval of task-store, about a task.
    TaskStore {
        /// Id of the approval.
        approval_id: String,
        /// Id of the task.
        task_id: String,
        /// Side effect, for example a tool's name.
        side_effect: String,
        /// Key of the side effect: the arguments' hash, if the policy side-effect-approval asks.
        key: String,
    },
    /// A step of the conductor with the gate `human_approval`.
    Conductor {
        /// Id of the job.
        job_id: String,
        /// Id of the step.
        step_id: String,
    },
    /// A call that was denied, and for which nobody was asked yet.
    Denied(Box<StoredOperation>),
}

/// A question that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// Keeper of the question.
    pub asked: Asked,
    /// Action that a person is asked to allow.
    pub title: String,
    /// Subject of the question.
    pub about: String,
    /// Workspace, if it has one.
    pub workspace: Option<String>,
    /// Caller who asks.
    pub asked_by: Option<String>,
    /// Since when.
    pub asked_at: String,
}

impl Waiting {
    /// Tool that answers the question, with the arguments that approve. `None` if a request must be made first.
    pub fn approves(&self) -> Option<(&'static str, Value)> {
        match &self.asked {
            Asked::TaskStore {
                approval_id, task_id, ..
            } => Some((
                "task_resolve_approval",
                json!({
                    "task_id": task_id, "approval_id": approval_id, "resolution": "approved",
                    "resolved_by": "YOUR_NAME", "actor_role": "human",
                }),
            )),
            Asked::Conductor { job_id, step_id } => Some((
                "step_approve",
                json!({"job_id": job_id, "step_id": step_id, "approved_by": "YOUR_NAME"}),
            )),
            Asked::Denied(_) => None,
        }
    }
}

impl Session {
    /// Questions that wait for a person, the oldest first within each kind.
    pub fn waiting(&self, limit: u32) -> StoreResult<Vec<Waiting>> {
        let mut waiting = self.waiting_in_task_store(limit)?;
        waiting.extend(self.waiting_in_conductor(limit)?);
        waiting.extend(self.waiting_after_denial(limit)?);
        Ok(waiting)
    }

    fn waiting_in_task_store(&self, limit: u32) -> StoreResult<Vec<Waiting>> {
        if !self.has_table("task_store_approvals")? {
            return Ok(Vec::new());
        }
        Ok(self
            .db
            .prepare_cached(
                "SELECT a.id, a.task_id, a.side_effect_kind, a.idempotency_key, a.requested_action, t.title, t.workspace,
                     a.requested_by, a.created_at
                 FROM task_store_approvals a JOIN task_store_tasks t ON t.id = a.task_id
                 WHERE a.status = 'pending' ORDER BY a.seq LIMIT ?1",
            )?
            .query_map(params![limit], |row| {
                Ok(Waiting {
                    asked: Asked::TaskStore {
                        approval_id: row.get(0)?,
                        task_id: row.get(1)?,
                        side_effect: row.get(2)?,
                        key: row.get(3)?,
                    },
                    title: row.get(4)?,
                    about: row.get(5)?,
                    workspace: row.get(6)?,
                    asked_by: row.get(7)?,
                    asked_at: row.get(8)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?)
    }

    fn waiting_in_conductor(&self, limit: u32) -> StoreResult<Vec<Waiting>> {
        if !self.has_table("conductor_steps")? {
            return Ok(Vec::new());
        }
        let mut statement = self.db.prepare_cached(
            "SELECT s.job_id, s.step_id, s.spec_json, j.title, j.updated_at
             FROM conductor_steps s JOIN conductor_jobs j ON j.id = s.job_id
             WHERE s.status = 'ACTIVE' AND s.approval_json IS NULL AND j.status = 'EXECUTING'
                 AND instr(s.spec_json, 'human_approval') > 0
             ORDER BY j.updated_at LIMIT ?1",
        )?;
        let mut rows = statement.query(params![limit])?;
        let mut waiting = Vec::new();
        while let Some(row) = rows.next()? {
            let spec: String = row.get(2)?;
            let spec: Value = serde_json::from_str(&spec).unwrap_or_default();
            if !has_human_gate(&spec) {
                continue;
            }
            let title = spec.get("title").and_then(Value::as_str).unwrap_or("a step");
            waiting.push(Waiting {
                asked: Asked::Conductor {
                    job_id: row.get(0)?,
                    step_id: row.get(1)?,
                },
                title: title.to_owned(),
                about: row.get(3)?,
                workspace: None,
                asked_by: None,
                asked_at: row.get(4)?,
            });
        }
        Ok(waiting)
    }

    /// Calls that were denied for want of an approval, and that did not succeed since.
    fn waiting_after_denial(&self, limit: u32) -> StoreResult<Vec<Waiting>> {
        let denied = OperationFilter {
            success: Some(false),
            error_code: Some(APPROVAL_REQUIRED.to_owned()),
            after: Some(self.head()?.seq.saturating_sub(10_000)),
            newest_first: true,
            ..OperationFilter::default()
        };
        let mut seen = BTreeSet::new();
        let mut waiting = Vec::new();
        for operation in self.operations(&denied, limit)? {
            if !seen.insert((operation.tool.clone(), operation.args_hash.clone()))
                || self.was_allowed_since(&operation)?
                || self.was_asked_for(&operation)?
            {
                continue;
            }
            waiting.push(Waiting {
                title: operation.tool.clone(),
                about: "denied until somebody approves it".to_owned(),
                workspace: None,
                asked_by: operation.actor.clone(),
                asked_at: operation.timestamp.clone(),
                asked: Asked::Denied(Box::new(operation)),
            });
        }
        waiting.reverse();
        Ok(waiting)
    }

    fn was_allowed_since(&self, operation: &StoredOperation) -> StoreResult<bool> {
        let allowed: Option<i64> = self
            .db
            .prepare_cached(
                "SELECT 1 FROM core_operations WHERE seq > ?1 AND tool = ?2 AND args_hash = ?3 AND success = 1 LIMIT 1",
            )?
            .query_row(params![operation.seq, operation.tool, operation.args_hash], |row| row.get(0))
            .optional()?;
        Ok(allowed.is_some())
    }

    /// True if an approval of exactly this call was requested, whatever became of it: the key begins with the
    /// arguments' hash.
    fn was_asked_for(&self, operation: &StoredOperation) -> StoreResult<bool> {
        if !self.has_table("task_store_approvals")? {
            return Ok(false);
        }
        let start = operation.args_hash.get(..32).unwrap_or(&operation.args_hash);
        let asked: Option<i64> = self
            .db
            .prepare_cached(
                "SELECT 1 FROM task_store_approvals
                 WHERE side_effect_kind = ?1 AND substr(idempotency_key, 1, length(?2)) = ?2",
            )?
            .query_row(params![operation.tool, start], |row| row.get(0))
            .optional()?;
        Ok(asked.is_some())
    }
}

/// True if a step's specification has the gate that only a person opens, at any depth.
fn has_human_gate(spec: &Value) -> bool {
    match spec {
        Value::Object(fields) => {
            fields.get("gate").and_then(Value::as_str) == Some(HUMAN_GATE)
                || fields.values().any(has_human_gate)
        }
        Value::Array(items) => items.iter().any(has_human_gate),
        _ => false,
    }
}
