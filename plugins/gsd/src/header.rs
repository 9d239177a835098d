//! The argument blocks that name a change's unit and its caller, shared by the tools through
//! `#[serde(flatten)]`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_kit::text::clip;

use crate::arguments::{MAX_NAME_CHARS, MAX_TEXT_CHARS, MAX_WORKSPACE_CHARS};
use crate::model::{MilestoneId, SliceId, SlicePath, TaskId, TaskPath, Unit};

/// Scope of a change: workspaces share no rows and no files, so that changes in different ones need not wait for each
/// other. A name has one form, because it is compared as it is given.
fn scope() -> Json {
    json!(["workspace"])
}

/// Workspace, actor and reason of a change. Its schema adds the scope to that of each tool that flattens it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-scope" = scope()))]
pub(crate) struct Header {
    /// Registered workspace (gets .gsd/ files) or any label.
    #[schemars(length(min = 1, max = MAX_WORKSPACE_CHARS))]
    pub workspace: String,
    /// Your name (default agent).
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    pub actor: Option<String>,
    /// Old name of `actor`, which is accepted.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), extend("deprecated" = true))]
    pub actor_name: Option<String>,
    /// Reason, kept in the event log.
    #[schemars(length(max = MAX_TEXT_CHARS))]
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
pub(crate) struct Given {
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
            return Err(format!(
                "is {unit}, but milestone_id, slice_id or task_id names another unit; pass only one of the two forms"
            ));
        }
        Ok(unit)
    }
}

/// Key of the unit that a call is about.
pub(crate) trait Key: Sized {
    /// Arguments that name the unit.
    type Given: DeserializeOwned + Into<Given>;
    /// Name of such units in messages, with its article.
    const KIND: &'static str;
    /// Example of such a key.
    const EXAMPLE: &'static str;

    /// Key of a unit. `None` for units of other kinds.
    fn of(unit: Unit) -> Option<Self>;

    /// Reads the key that arguments name, or their fault.
    fn read(given: Self::Given) -> Result<Self, String> {
        let unit = given.into().unit(Self::EXAMPLE)?;
        let named = unit.to_string();
        let other = || format!("is {named}, not {} such as {}", Self::KIND, Self::EXAMPLE);
        Self::of(unit).ok_or_else(other)
    }
}

/// Reads a key from the arguments that name it, and describes it by them.
macro_rules! read_from {
    ($key:ident: $given:ident { $($id:ident),+ }) => {
        impl From<$given> for Given {
            fn from(given: $given) -> Given {
                let mut all = Given {
                    unit: given.unit,
                    ..Given::default()
                };
                $(all.$id = given.$id;)+
                all
            }
        }

        impl TryFrom<$given> for $key {
            type Error = String;

            fn try_from(given: $given) -> Result<$key, String> {
                Key::read(given)
            }
        }

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
    /// Milestone id, for example M01.
    milestone_id: Option<MilestoneId>,
    /// Slice id, for example S01.
    slice_id: Option<SliceId>,
}

/// Arguments that name a task.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct GivenTask {
    /// Task key, for example M01/S01/T01, instead of the three ids.
    unit: Option<String>,
    /// Milestone id, for example M01.
    milestone_id: Option<MilestoneId>,
    /// Slice id, for example S01.
    slice_id: Option<SliceId>,
    /// Task id, for example T01.
    task_id: Option<TaskId>,
}

/// Arguments that name a slice or a task.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct GivenClaim {
    /// Key of the slice or task, for example M01/S01/T01, instead of the ids.
    unit: Option<String>,
    /// Milestone id, for example M01.
    milestone_id: Option<MilestoneId>,
    /// Slice id, for example S01.
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
read_from!(SliceKey: GivenSlice { milestone_id, slice_id });

impl SliceKey {
    pub(crate) fn unit(&self) -> Unit {
        Unit::slice(&self.milestone_id, &self.slice_id)
    }

    pub(crate) const fn path(&self) -> SlicePath<'_> {
        self.milestone_id.slice(&self.slice_id)
    }
}

impl Key for SliceKey {
    type Given = GivenSlice;
    const KIND: &'static str = "a slice";
    const EXAMPLE: &'static str = "M01/S01";

    fn of(unit: Unit) -> Option<SliceKey> {
        Some(SliceKey {
            milestone_id: unit.milestone,
            slice_id: unit.slice.filter(|_| unit.task.is_none())?,
        })
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
read_from!(TaskKey: GivenTask { milestone_id, slice_id, task_id });

impl TaskKey {
    pub(crate) fn unit(&self) -> Unit {
        Unit::task(&self.milestone_id, &self.slice_id, &self.task_id)
    }

    pub(crate) const fn path(&self) -> TaskPath<'_> {
        self.slice().task(&self.task_id)
    }

    /// Path of the slice that contains the task.
    pub(crate) const fn slice(&self) -> SlicePath<'_> {
        self.milestone_id.slice(&self.slice_id)
    }
}

impl Key for TaskKey {
    type Given = GivenTask;
    const KIND: &'static str = "a task";
    const EXAMPLE: &'static str = "M01/S01/T01";

    fn of(unit: Unit) -> Option<TaskKey> {
        Some(TaskKey {
            milestone_id: unit.milestone,
            slice_id: unit.slice?,
            task_id: unit.task?,
        })
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
read_from!(ClaimKey: GivenClaim { milestone_id, slice_id, task_id });

impl ClaimKey {
    pub(crate) fn unit(&self) -> Unit {
        match &self.task_id {
            Some(task) => Unit::task(&self.milestone_id, &self.slice_id, task),
            None => Unit::slice(&self.milestone_id, &self.slice_id),
        }
    }
}

impl Key for ClaimKey {
    type Given = GivenClaim;
    const KIND: &'static str = "a slice or task";
    const EXAMPLE: &'static str = "M01/S01 or M01/S01/T01";

    fn of(unit: Unit) -> Option<ClaimKey> {
        Some(ClaimKey {
            milestone_id: unit.milestone,
            slice_id: unit.slice?,
            task_id: unit.task,
        })
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
