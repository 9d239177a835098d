//! The argument blocks that name a change's unit and its caller, shared by the tools through
//! `#[serde(flatten)]`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_kit::text::clip;

use crate::arguments::{NAME, TEXT, WORKSPACE};
use crate::model::{MilestoneId, SliceId, TaskId, Unit};

/// Scope of a change: workspaces share no rows and no files, so that changes in different ones need not wait for each other.
/// A name has one form, because it is compared as it is given.
fn scope() -> Json {
    json!(["workspace"])
}

/// Workspace, actor and reason of a change. Its schema adds the scope to that of each tool that flattens it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-scope" = scope()))]
pub(crate) struct Header {
    /// Registered workspace (gets .gsd/ files) or any label.
    #[schemars(length(min = 1, max = WORKSPACE))]
    pub workspace: String,
    /// Your name (default agent).
    #[schemars(length(min = 1, max = NAME))]
    pub actor: Option<String>,
    /// Old name of `actor`, which is accepted.
    #[schemars(length(min = 1, max = NAME), extend("deprecated" = true))]
    pub actor_name: Option<String>,
    /// Reason, kept in the event log.
    #[schemars(length(max = TEXT))]
    pub trigger_reason: Option<String>,
}

impl Header {
    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller {
            workspace: &self.workspace,
            actor: self.actor.as_deref().or(self.actor_name.as_deref()),
            is_ambiguous: self.actor.is_some() && self.actor_name.is_some() && self.actor != self.actor_name,
            trigger_reason: self.trigger_reason.as_deref(),
        }
    }
}

/// Workspace, name and reason of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub workspace: &'a str,
    pub actor: Option<&'a str>,
    /// True if `actor` and `actor_name` name two actors.
    pub is_ambiguous: bool,
    pub trigger_reason: Option<&'a str>,
}

/// Ids of a unit as calls give them: its key, its ids, or both.
#[derive(Debug, Default)]
struct Given {
    unit: Option<String>,
    milestone_id: Option<MilestoneId>,
    slice_id: Option<SliceId>,
    task_id: Option<TaskId>,
}

impl Given {
    /// The unit, which is missing, malformed or contradicts its ids otherwise. `example` is a key of its kind.
    fn unit(self, example: &str) -> Result<Unit, String> {
        let Given {
            unit,
            milestone_id,
            slice_id,
            task_id,
        } = self;
        let Some(key) = unit else {
            let milestone =
                milestone_id.ok_or_else(|| format!("is missing; pass a key, for example {example}"))?;
            return Ok(Unit {
                milestone,
                slice: slice_id,
                task: task_id,
            });
        };
        let unit = Unit::parse(&key)
            .ok_or_else(|| format!("is `{}`, not a key such as {example}", clip(&key).escape_debug()))?;
        let differs = milestone_id.is_some_and(|id| id != unit.milestone)
            || slice_id.is_some_and(|id| Some(id) != unit.slice)
            || task_id.is_some_and(|id| Some(id) != unit.task);
        if differs {
            return Err(format!("is {unit}, which contradicts the ids beside it"));
        }
        Ok(unit)
    }
}

/// Describes a type by the arguments that it is read from.
macro_rules! described_as {
    ($key:ty, $given:ty) => {
        impl JsonSchema for $key {
            fn schema_name() -> Cow<'static, str> {
                <$given>::schema_name()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$given>::json_schema(generator)
            }
        }
    };
}

/// Arguments that name a slice.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct GivenSlice {
    /// Slice key, for example M01/S01, instead of the two ids.
    unit: Option<String>,
    /// Id of the milestone that it is in.
    milestone_id: Option<MilestoneId>,
    /// Id of the slice, which it is or is in.
    slice_id: Option<SliceId>,
}

/// Arguments that name a task.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct GivenTask {
    /// Task key, for example M01/S01/T01, instead of the three ids.
    unit: Option<String>,
    /// Id of the milestone that it is in.
    milestone_id: Option<MilestoneId>,
    /// Id of the slice, which it is or is in.
    slice_id: Option<SliceId>,
    /// Id of the task, which it is.
    task_id: Option<TaskId>,
}

/// Arguments that name a slice or a task.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct GivenClaim {
    /// Key of the slice or task, for example M01/S01/T01, instead of the ids.
    unit: Option<String>,
    /// Id of the milestone that it is in.
    milestone_id: Option<MilestoneId>,
    /// Id of the slice, which it is or is in.
    slice_id: Option<SliceId>,
    /// Task id, for example T01. Leave it out for the slice itself.
    task_id: Option<TaskId>,
}

/// The slice that a call is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "GivenSlice")]
pub(crate) struct SliceKey {
    pub milestone_id: MilestoneId,
    pub slice_id: SliceId,
}
described_as!(SliceKey, GivenSlice);

impl SliceKey {
    pub(crate) fn unit(&self) -> Unit {
        Unit::slice(&self.milestone_id, &self.slice_id)
    }
}

/// Reads the slice that arguments name, or their fault.
pub(crate) fn slice_unit(given: GivenSlice) -> Result<SliceKey, String> {
    SliceKey::try_from(given)
}

impl TryFrom<GivenSlice> for SliceKey {
    type Error = String;

    fn try_from(given: GivenSlice) -> Result<SliceKey, String> {
        const EXAMPLE: &str = "M01/S01";
        let unit = Given {
            unit: given.unit,
            milestone_id: given.milestone_id,
            slice_id: given.slice_id,
            task_id: None,
        }
        .unit(EXAMPLE)?;
        match unit {
            Unit {
                milestone,
                slice: Some(slice),
                task: None,
            } => Ok(SliceKey {
                milestone_id: milestone,
                slice_id: slice,
            }),
            other => Err(format!("is {other}, not a slice such as {EXAMPLE}")),
        }
    }
}

/// The task that a call is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "GivenTask")]
pub(crate) struct TaskKey {
    pub milestone_id: MilestoneId,
    pub slice_id: SliceId,
    pub task_id: TaskId,
}
described_as!(TaskKey, GivenTask);

impl TaskKey {
    pub(crate) fn unit(&self) -> Unit {
        Unit::task(&self.milestone_id, &self.slice_id, &self.task_id)
    }
}

/// Reads the task that arguments name, or their fault.
pub(crate) fn task_unit(given: GivenTask) -> Result<TaskKey, String> {
    TaskKey::try_from(given)
}

impl TryFrom<GivenTask> for TaskKey {
    type Error = String;

    fn try_from(given: GivenTask) -> Result<TaskKey, String> {
        const EXAMPLE: &str = "M01/S01/T01";
        let unit = Given {
            unit: given.unit,
            milestone_id: given.milestone_id,
            slice_id: given.slice_id,
            task_id: given.task_id,
        }
        .unit(EXAMPLE)?;
        match unit {
            Unit {
                milestone,
                slice: Some(slice),
                task: Some(task),
            } => Ok(TaskKey {
                milestone_id: milestone,
                slice_id: slice,
                task_id: task,
            }),
            other => Err(format!("is {other}, not a task such as {EXAMPLE}")),
        }
    }
}

/// The slice or task that a call is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "GivenClaim")]
pub(crate) struct ClaimKey {
    pub milestone_id: MilestoneId,
    pub slice_id: SliceId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
}
described_as!(ClaimKey, GivenClaim);

impl ClaimKey {
    pub(crate) fn unit(&self) -> Unit {
        match &self.task_id {
            Some(task) => Unit::task(&self.milestone_id, &self.slice_id, task),
            None => Unit::slice(&self.milestone_id, &self.slice_id),
        }
    }
}

/// Reads the unit of a claim that arguments name, or their fault.
pub(crate) fn claim_unit(given: GivenClaim) -> Result<ClaimKey, String> {
    ClaimKey::try_from(given)
}

impl TryFrom<GivenClaim> for ClaimKey {
    type Error = String;

    fn try_from(given: GivenClaim) -> Result<ClaimKey, String> {
        const EXAMPLE: &str = "M01/S01 or M01/S01/T01";
        let unit = Given {
            unit: given.unit,
            milestone_id: given.milestone_id,
            slice_id: given.slice_id,
            task_id: given.task_id,
        }
        .unit(EXAMPLE)?;
        match unit {
            Unit {
                milestone,
                slice: Some(slice),
                task,
            } => Ok(ClaimKey {
                milestone_id: milestone,
                slice_id: slice,
                task_id: task,
            }),
            other => Err(format!("is {other}, not a slice or task such as {EXAMPLE}")),
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
