//! The argument blocks that name a change's unit and its caller, shared by the tools through
//! `#[serde(flatten)]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::{NAME, TEXT, WORKSPACE};
use crate::model::{MilestoneId, SliceId, TaskId, Unit};

/// Workspace, actor and reason of a change.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Header {
    /// Registered workspace or any label; only the former gets .gsd/ files.
    #[schemars(length(min = 1, max = WORKSPACE))]
    pub workspace: String,
    /// Your name (default agent).
    #[schemars(length(min = 1, max = NAME))]
    pub actor_name: Option<String>,
    /// Reason, kept in the event log.
    #[schemars(length(max = TEXT))]
    pub trigger_reason: Option<String>,
}

impl Header {
    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller {
            workspace: &self.workspace,
            actor_name: self.actor_name.as_deref(),
            trigger_reason: self.trigger_reason.as_deref(),
        }
    }
}

/// [`Header`] of a change that needs the caller's name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OwnerHeader {
    /// Your name, which owns the claim.
    #[schemars(length(min = 1, max = NAME))]
    pub actor_name: String,
    /// Registered workspace or any label; only the former gets .gsd/ files.
    #[schemars(length(min = 1, max = WORKSPACE))]
    pub workspace: String,
    /// Reason, kept in the event log.
    #[schemars(length(max = TEXT))]
    pub trigger_reason: Option<String>,
}

impl OwnerHeader {
    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller {
            workspace: &self.workspace,
            actor_name: Some(&self.actor_name),
            trigger_reason: self.trigger_reason.as_deref(),
        }
    }
}

/// Workspace, name and reason of a call, from either header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub workspace: &'a str,
    pub actor_name: Option<&'a str>,
    pub trigger_reason: Option<&'a str>,
}

/// The slice that a call is about.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SliceKey {
    pub milestone_id: MilestoneId,
    pub slice_id: SliceId,
}

impl SliceKey {
    pub(crate) fn unit(&self) -> Unit {
        Unit::slice(&self.milestone_id, &self.slice_id)
    }
}

/// The task that a call is about.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TaskKey {
    pub milestone_id: MilestoneId,
    pub slice_id: SliceId,
    pub task_id: TaskId,
}

impl TaskKey {
    pub(crate) fn unit(&self) -> Unit {
        Unit::task(&self.milestone_id, &self.slice_id, &self.task_id)
    }
}

/// The slice or task that a call is about.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ClaimKey {
    pub milestone_id: MilestoneId,
    pub slice_id: SliceId,
    /// Task id, for example T01. Leave it out for the slice itself.
    pub task_id: Option<TaskId>,
}

impl ClaimKey {
    pub(crate) fn unit(&self) -> Unit {
        match &self.task_id {
            Some(task) => Unit::task(&self.milestone_id, &self.slice_id, task),
            None => Unit::slice(&self.milestone_id, &self.slice_id),
        }
    }
}

/// Gives a change its caller and, with `header!(at)`, its unit, from the blocks that it flattens.
macro_rules! header {
    () => {
        fn caller(&self) -> $crate::header::Caller<'_> {
            self.header.caller()
        }
    };
    (at) => {
        $crate::header::header!();

        fn unit(&self) -> $crate::model::Unit {
            self.at.unit()
        }
    };
}
pub(crate) use header;
