//! The records that make up the state. Each record is JSON in one row. Undo restores that JSON.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use tollgate_sdk::{DbError, Timestamp};

use crate::checkpoint;
use crate::model::{Checkpoint, EvidenceKind, Priority, RootKind, Status};
use crate::mutation::Moment;
use crate::store::{Columns, Kind};

/// A record, with the columns of its row beside the JSON.
pub(crate) trait Record: Serialize + DeserializeOwned {
    const KIND: Kind;
    fn columns(&self) -> Columns;
}

/// Fields that plans and tasks share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub id: String,
    pub number: i64,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    pub status: Status,
    pub priority: Priority,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Timestamp>,
    /// Reason given for the present status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
}

/// A plan: container of tasks, with a checklist and a contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    #[serde(flatten)]
    pub meta: Meta,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_data: Option<Map<String, Json>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// The checklist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Index of the checklist's current item, or the number of items if all are done.
    #[serde(default)]
    pub current: usize,
}

/// A task of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    #[serde(flatten)]
    pub meta: Meta,
    pub plan: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

/// A plan or a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Root {
    Plan(Plan),
    Task(Task),
}

impl Root {
    pub(crate) fn meta(&self) -> &Meta {
        match self {
            Root::Plan(plan) => &plan.meta,
            Root::Task(task) => &task.meta,
        }
    }

    pub(crate) fn meta_mut(&mut self) -> &mut Meta {
        match self {
            Root::Plan(plan) => &mut plan.meta,
            Root::Task(task) => &mut task.meta,
        }
    }

    pub(crate) const fn kind(&self) -> RootKind {
        match self {
            Root::Plan(_) => RootKind::Plan,
            Root::Task(_) => RootKind::Task,
        }
    }
}

/// A confirmed checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Confirmation {
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Name of the caller, absent if unknown and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// A step in a task's tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub id: String,
    pub task: String,
    /// Parent step, if the step is nested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub position: i64,
    pub title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub success_criteria: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// Known obstacles, as text. They do not block the step; tasks_block does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
    /// Checkpoints beyond criteria and tests, required because they were declared or have evidence.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub required: BTreeSet<Checkpoint>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub confirmed: BTreeMap<Checkpoint, Confirmation>,
    #[serde(default)]
    pub blocked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_reason: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Reason given for closing the step without its checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
    /// Reason given for reopening the step, until it is closed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopen_reason: Option<String>,
}

/// Status of a step in its row's column.
pub(crate) mod step_status {
    pub(crate) const OPEN: &str = "open";
    pub(crate) const BLOCKED: &str = "blocked";
    pub(crate) const DONE: &str = "done";
    /// Closed although checkpoints are missing.
    pub(crate) const FORCED: &str = "forced";
}

impl Step {
    pub(crate) const fn is_done(&self) -> bool {
        self.completed_at.is_some()
    }

    pub(crate) fn status(&self) -> &'static str {
        match (self.is_done(), self.blocked) {
            (true, _) if checkpoint::missing(self, &BTreeSet::new()).is_empty() => step_status::DONE,
            (true, _) => step_status::FORCED,
            (false, true) => step_status::BLOCKED,
            (false, false) => step_status::OPEN,
        }
    }
}

/// A task inside a step's own plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub id: String,
    pub task: String,
    pub step: String,
    pub position: i64,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    pub status: Status,
    pub priority: Priority,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub created_at: Timestamp,
}

/// Proof that work was done. The body is stored separately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Evidence {
    /// Evidence, note or record id.
    pub id: String,
    /// Id of the plan or task.
    pub task: String,
    /// Id of the step, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Position in the order of capture.
    pub position: i64,
    /// Kind of evidence.
    pub kind: EvidenceKind,
    /// Title in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Path or URL of external evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Exit code of the command that produced the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Operation of a test run that the evidence claims. Without an exit code the ledger did not have the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Checkpoint that the evidence supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// Size of the body in bytes.
    pub bytes: usize,
    /// Id of the artifact with the whole body, for artifact_get. The pack keeps only the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// Name of the caller, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Mutation counts at the time of capture.
    #[serde(flatten)]
    pub taken: Moment,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// A remark on a plan, a task or a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Note {
    /// Evidence, note or record id.
    pub id: String,
    /// Id of the plan or task.
    pub task: String,
    /// Id of the step, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Position in the order of writing.
    pub position: i64,
    /// Text of the note.
    pub text: String,
    /// True if the note records a decision.
    #[serde(default)]
    pub decision: bool,
    /// Name of the author, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Exclusive lease on a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Lease {
    /// Id of the leased step.
    pub step: String,
    /// Id of the step's task.
    pub task: String,
    /// Owner of the lease.
    pub owner: String,
    /// Event sequence number of the workspace after which the lease has expired.
    pub expires_after: i64,
    /// Time at which the lease expires, absent in leases of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Name of the connection with which the lease ends, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// Time of the claim.
    pub claimed_at: Timestamp,
}

/// Template of a plan or task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Template {
    pub name: String,
    /// Kind of record that the template makes.
    pub kind: RootKind,
    /// Purpose of the template.
    pub description: String,
    /// Tasks that the template makes; exactly one for a task template.
    pub tasks: Vec<TemplateTask>,
}

/// A task that a template makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TemplateTask {
    pub title: String,
    pub steps: Vec<TemplateStep>,
}

/// A step that a template creates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TemplateStep {
    pub title: String,
    pub success_criteria: Vec<String>,
    pub tests: Vec<String>,
}

impl Record for Plan {
    const KIND: Kind = Kind::Plan;
    fn columns(&self) -> Columns {
        Columns::new(
            &self.meta.id,
            &self.meta.id,
            "",
            self.meta.number,
            self.meta.status.as_str(),
        )
    }
}

impl Record for Task {
    const KIND: Kind = Kind::Task;
    fn columns(&self) -> Columns {
        Columns::new(
            &self.meta.id,
            &self.meta.id,
            &self.plan,
            self.meta.number,
            self.meta.status.as_str(),
        )
    }
}

impl Record for Step {
    const KIND: Kind = Kind::Step;
    fn columns(&self) -> Columns {
        let parent = self.parent.as_deref().unwrap_or(&self.task);
        Columns::new(&self.id, &self.task, parent, self.position, self.status())
    }
}

impl Record for Node {
    const KIND: Kind = Kind::Node;
    fn columns(&self) -> Columns {
        let status = if self.status.is_finished() {
            step_status::DONE
        } else {
            step_status::OPEN
        };
        Columns::new(&self.id, &self.task, &self.step, self.position, status)
    }
}

impl Record for Evidence {
    const KIND: Kind = Kind::Evidence;
    fn columns(&self) -> Columns {
        let parent = self.step.as_deref().unwrap_or(&self.task);
        Columns::new(&self.id, &self.task, parent, self.position, "")
    }
}

impl Record for Note {
    const KIND: Kind = Kind::Note;
    fn columns(&self) -> Columns {
        let parent = self.step.as_deref().unwrap_or(&self.task);
        let status = if self.decision { "decision" } else { "note" };
        Columns::new(&self.id, &self.task, parent, self.position, status)
    }
}

impl Record for Lease {
    const KIND: Kind = Kind::Lease;
    fn columns(&self) -> Columns {
        Columns::new(&self.step, &self.task, &self.step, 0, "")
    }
}

impl Record for Template {
    const KIND: Kind = Kind::Template;
    fn columns(&self) -> Columns {
        Columns::new(&self.name, "", "", 0, self.kind.as_str())
    }
}

fn parse<T: Record>(body: &str) -> Result<T, DbError> {
    serde_json::from_str(body).map_err(|_| DbError::Internal)
}

/// The columns of a record in the journal's JSON.
pub(crate) fn columns(kind: Kind, body: &str) -> Result<Columns, DbError> {
    Ok(match kind {
        Kind::Plan => parse::<Plan>(body)?.columns(),
        Kind::Task => parse::<Task>(body)?.columns(),
        Kind::Step => parse::<Step>(body)?.columns(),
        Kind::Node => parse::<Node>(body)?.columns(),
        Kind::Evidence => parse::<Evidence>(body)?.columns(),
        Kind::Note => parse::<Note>(body)?.columns(),
        Kind::Lease => parse::<Lease>(body)?.columns(),
        Kind::Template => parse::<Template>(body)?.columns(),
    })
}

/// The plan or task in the journal's JSON, if the record is one.
pub(crate) fn root(kind: Kind, body: &str) -> Result<Option<Root>, DbError> {
    Ok(match kind {
        Kind::Plan => Some(Root::Plan(parse(body)?)),
        Kind::Task => Some(Root::Task(parse(body)?)),
        _ => None,
    })
}
