//! The records that make up the state. Each is JSON in one row; undoing a change puts the JSON back.

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

/// A record: what its row's columns hold beside its JSON.
pub(crate) trait Record: Serialize + DeserializeOwned {
    const KIND: Kind;
    fn columns(&self) -> Columns;
}

/// What plans and tasks have in common.
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
    /// The checklist's current item, as many as there are items once all are done.
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
}

/// A step in a task's tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub id: String,
    pub task: String,
    /// The step above, unless it is the task's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub position: i64,
    pub title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub success_criteria: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// What stands in the way, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
    /// Checkpoints beyond criteria and tests that were declared or that evidence is linked to.
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
    /// Why it was closed without its checkpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
}

/// How far a step is, as its row says.
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

/// Something that shows that work was done. Its body is kept apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Evidence {
    /// Its identifier.
    pub id: String,
    /// The plan or task.
    pub task: String,
    /// The step it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// In the order of capture.
    pub position: i64,
    /// What it is.
    pub kind: EvidenceKind,
    /// One line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where it is, if elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The exit code of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The checkpoint it is linked to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// Bytes of its body.
    pub bytes: usize,
    /// The artifact that holds the whole body, for `artifact_get`; the pack keeps its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
    /// What had happened when it was taken.
    #[serde(flatten)]
    pub taken: Moment,
    /// When.
    pub created_at: Timestamp,
}

/// A remark on a plan, a task or a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Note {
    /// Its identifier.
    pub id: String,
    /// The plan or task.
    pub task: String,
    /// The step it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// In the order of writing.
    pub position: i64,
    /// What it says.
    pub text: String,
    /// It records a decision.
    #[serde(default)]
    pub decision: bool,
    /// When.
    pub created_at: Timestamp,
}

/// Somebody works on a step and wants no company.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Lease {
    /// The step.
    pub step: String,
    /// The task.
    pub task: String,
    /// Who holds it.
    pub owner: String,
    /// The workspace's event sequence number after which it is over.
    pub expires_after: i64,
    /// When it was taken.
    pub claimed_at: Timestamp,
}

/// Steps to start from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Template {
    pub name: String,
    /// What it makes.
    pub kind: RootKind,
    /// What it is for.
    pub description: String,
    /// The tasks it makes; one for a task template.
    pub tasks: Vec<TemplateTask>,
}

/// A task that a template makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TemplateTask {
    pub title: String,
    pub steps: Vec<TemplateStep>,
}

/// A step that a template makes.
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

/// The columns of a record that the journal has as JSON.
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

/// The plan or task that a record of the journal is, if it is one.
pub(crate) fn root(kind: Kind, body: &str) -> Result<Option<Root>, DbError> {
    Ok(match kind {
        Kind::Plan => Some(Root::Plan(parse(body)?)),
        Kind::Task => Some(Root::Task(parse(body)?)),
        _ => None,
    })
}
