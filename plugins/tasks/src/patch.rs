//! Patches: set, unset, append and remove on the fields of one record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{ToolError, text_enum};

use crate::closing;
use crate::dependency;
use crate::error::{Reason, Refusals, clip};
use crate::limits::{MAX_NAME_CHARS, MAX_OPERATIONS, short};
use crate::model::{EventType, Status};
use crate::path::Path;
use crate::record::{Node, Root, Step, Task};
use crate::scope::{Located, Selector};
use crate::tools::steps::redefine;
use crate::write::Write;

text_enum! {
    /// Target of a patch: the plan or task itself, a step, or a node.
    pub(crate) enum PatchKind {
        TaskDetail = "task_detail",
        Step = "step",
        Task = "task",
    }
}

text_enum! {
    /// Operation on a field.
    pub(crate) enum PatchVerb {
        Set = "set",
        Unset = "unset",
        Append = "append",
        Remove = "remove",
    }
}

fn anything() -> Json {
    json!({})
}

/// Change of a field.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchOp {
    /// Operation on the field. `append` and `remove` work on lists only.
    pub op: PatchVerb,
    /// Field to change, for example title, description, priority, tags, success_criteria, tests or blockers.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    pub field: String,
    /// Value of the type that the field has: text, list, boolean or object. Leave it out for unset.
    #[serde(default)]
    #[schemars(with = "String", extend("x-accepts" = anything()))]
    pub value: Option<Json>,
}

/// Patch of a task that is being closed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Patch {
    /// Kind of target: `task_detail` (the plan or task itself), `step`, or `task` (a node).
    pub kind: PatchKind,
    /// Step or node by path, for example s:0 or s:0.t:1.
    #[schemars(length(max = MAX_NAME_CHARS))]
    pub path: Option<String>,
    /// Step by id, for example STEP-8QZ3M0T4.
    #[schemars(length(max = MAX_NAME_CHARS))]
    pub step_id: Option<String>,
    /// Node by id, for example NODE-8QZ3M0T4.
    #[schemars(length(max = MAX_NAME_CHARS))]
    pub task_node_id: Option<String>,
    /// Changes to the fields, applied in order.
    #[schemars(length(min = 1, max = MAX_OPERATIONS))]
    pub ops: Vec<PatchOp>,
}

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Text,
    Optional,
    List,
    Flag,
    Object,
}

const PLAN_FIELDS: &[(&str, Field)] = &[
    ("title", Field::Text),
    ("description", Field::Optional),
    ("context", Field::Optional),
    ("priority", Field::Text),
    ("tags", Field::List),
    ("depends_on", Field::List),
    ("contract", Field::Optional),
    ("contract_data", Field::Object),
    ("doc", Field::Optional),
    ("steps", Field::List),
];
const TASK_FIELDS: &[(&str, Field)] = &[
    ("title", Field::Text),
    ("description", Field::Optional),
    ("context", Field::Optional),
    ("domain", Field::Optional),
    ("priority", Field::Text),
    ("tags", Field::List),
    ("depends_on", Field::List),
];
const STEP_FIELDS: &[(&str, Field)] = &[
    ("title", Field::Text),
    ("success_criteria", Field::List),
    ("tests", Field::List),
    ("blockers", Field::List),
    ("required", Field::List),
    ("blocked", Field::Flag),
    ("block_reason", Field::Optional),
];
const NODE_FIELDS: &[(&str, Field)] = &[
    ("title", Field::Text),
    ("description", Field::Optional),
    ("context", Field::Optional),
    ("status", Field::Text),
    ("priority", Field::Text),
    ("tags", Field::List),
];

/// Record that a patch changed.
pub(crate) enum Patched {
    Root,
    Step(Located<Step>),
    Node(Located<Node>),
}

/// Patches one record.
pub(crate) fn apply(
    write: &mut Write<'_>,
    root: &str,
    kind: PatchKind,
    selector: &Selector<'_>,
    ops: &[PatchOp],
) -> Result<Patched, ToolError> {
    match kind {
        PatchKind::TaskDetail => {
            crate::scope::expect_target(selector.expected, root)?;
            if selector.path.is_some() || selector.id.is_some() {
                return Err(Reason::input(
                    "path",
                    "selects a step or node, but kind task_detail is the plan or task itself",
                )
                .into());
            }
            patch_root(write, root, ops)?;
            Ok(Patched::Root)
        }
        PatchKind::Step => {
            let mut located = write.scope.step(root, selector)?;
            located.record = write.get(&located.record.id)?.unwrap_or(located.record);
            let step: Step = patched(&located.record, STEP_FIELDS, ops)?;
            patch_step(write, &located, step)?;
            Ok(Patched::Step(located))
        }
        PatchKind::Task => {
            let mut located = write.scope.node(root, selector)?;
            located.record = write.get(&located.record.id)?.unwrap_or(located.record);
            let node: Node = patched(&located.record, NODE_FIELDS, ops)?;
            redefine_node(write, &located, &node)?;
            Ok(Patched::Node(located))
        }
    }
}

fn patch_root(write: &mut Write<'_>, id: &str, ops: &[PatchOp]) -> Result<(), ToolError> {
    let old = match write.scope.root(id)? {
        Root::Plan(plan) => Root::Plan(write.get(id)?.unwrap_or(plan)),
        Root::Task(task) => Root::Task(write.get(id)?.unwrap_or(task)),
    };
    let new = match &old {
        Root::Plan(plan) => Root::Plan(patched(plan, PLAN_FIELDS, ops)?),
        Root::Task(task) => Root::Task(patched(task, TASK_FIELDS, ops)?),
    };
    replace_root(write, &old, &new)
}

/// Replaces a plan or task after checking it in full, with one event.
pub(crate) fn replace_root(write: &mut Write<'_>, old: &Root, new: &Root) -> Result<(), ToolError> {
    let mut refusals = Refusals::default();
    refusals.root(new);
    dependency::check(write, &old.meta().depends_on, new, &mut refusals)?;
    refusals.finish()?;
    if old != new {
        write.put_root(new)?;
        let event = match new {
            Root::Plan(_) => EventType::PlanEdited,
            Root::Task(_) => EventType::TaskEdited,
        };
        let data = json!({"title": short(&new.meta().title, 120)});
        write.event(event, &new.meta().id, None, data);
    }
    Ok(())
}

fn patch_step(write: &mut Write<'_>, located: &Located<Step>, mut new: Step) -> Result<(), ToolError> {
    if new.blocked != located.record.blocked {
        let mut refusals = Refusals::default();
        refusals.step_open(&write.scope, located);
        refusals.finish()?;
        if !new.blocked {
            new.block_reason = None;
        }
        let event = if new.blocked {
            EventType::StepBlocked
        } else {
            EventType::StepUnblocked
        };
        let data = json!({"path": located.path.to_string(), "reason": new.block_reason});
        write.event(event, &new.task, Some(&new.id), data);
    }
    redefine(write, located, new)
}

/// Replaces a node after checking it in full.
pub(crate) fn redefine_node(write: &mut Write<'_>, old: &Located<Node>, new: &Node) -> Result<(), ToolError> {
    let mut refusals = Refusals::default();
    refusals.node(new);
    if new != &old.record
        && let Some(task) = write.get::<Task>(&new.task)?
    {
        refusals.unfinished(&write.scope, &task.meta);
    }
    if refusals.is_empty()
        && new.status != old.record.status
        && let Some(step) = write.scope.get::<Step>(&new.step)?
    {
        // Open nodes below a closed step would be overlooked.
        let path = Path {
            steps: old.path.steps.clone(),
            node: None,
        };
        refusals.step_open(&write.scope, &Located { record: step, path });
        // Work on a node is progress of its task. Parking or canceling a node is not.
        if matches!(new.status, Status::Active | Status::Done)
            && let Some(task) = write.get::<Task>(&new.task)?
        {
            closing::progress(write, &task, &mut refusals)?;
        }
    }
    refusals.finish()?;
    if *new != old.record {
        write.put(new)?;
        let data =
            json!({"path": old.path.to_string(), "title": short(&new.title, 120), "status": new.status});
        write.event(EventType::NodeDefined, &new.task, Some(&new.id), data);
    }
    Ok(())
}

/// A record after some operations. Every faulty operation is reported.
fn patched<T: Serialize + serde::de::DeserializeOwned>(
    record: &T,
    fields: &[(&str, Field)],
    ops: &[PatchOp],
) -> Result<T, ToolError> {
    let mut refusals = Refusals::default();
    if ops.is_empty() {
        refusals.add(Reason::input("ops", "is empty"));
    }
    refusals.at_most("ops", ops.len(), MAX_OPERATIONS, "entries");
    let mut body = match serde_json::to_value(record) {
        Ok(Json::Object(body)) => body,
        _ => Map::new(),
    };
    for (place, op) in ops.iter().take(MAX_OPERATIONS).enumerate() {
        match fields.iter().find(|(name, _)| *name == op.field) {
            None => {
                let legal: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
                let fault = format!("is {}, but must be one of {}", clip(&op.field), legal.join(", "));
                refusals.add(Reason::input(format!("ops[{place}].field"), fault));
            }
            Some((_, field)) => {
                if let Err(fault) = change(&mut body, op, *field) {
                    refusals.add(Reason::input(format!("ops[{place}].{}", fault.0), fault.1));
                }
            }
        }
    }
    refusals.finish()?;
    serde_json::from_value(Json::Object(body)).map_err(|err| {
        Reason::input(
            "ops",
            format!("contains a value that is not valid for its field: {err}"),
        )
        .into()
    })
}

/// Fault of an operation: the faulty part and the message.
struct Fault(&'static str, String);

fn change(body: &mut Map<String, Json>, op: &PatchOp, field: Field) -> Result<(), Fault> {
    let value = || {
        op.value
            .clone()
            .filter(|value| !value.is_null())
            .ok_or_else(|| Fault("value", "is missing".to_owned()))
    };
    match (op.op, field) {
        (PatchVerb::Unset, Field::Text) => {
            return Err(Fault(
                "op",
                format!("must not be unset, because {} is required", op.field),
            ));
        }
        (PatchVerb::Unset, _) => drop(body.shift_remove(&op.field)),
        (PatchVerb::Set, field) => {
            let value = value()?;
            if !takes(field, &value) {
                return Err(Fault(
                    "value",
                    format!("must be a {}, like the field `{}`", wanted(field), op.field),
                ));
            }
            body.insert(op.field.clone(), value);
        }
        (PatchVerb::Append | PatchVerb::Remove, Field::List) => {
            let given = texts(&value()?)
                .ok_or_else(|| Fault("value", "must be a string or a list of strings".to_owned()))?;
            let mut entries = body.get(&op.field).and_then(texts).unwrap_or_default();
            if op.op == PatchVerb::Append {
                entries.extend(given);
            } else {
                let before = entries.len();
                entries.retain(|entry| !given.contains(entry));
                if entries.len() == before {
                    return Err(Fault("value", format!("is not in {}", op.field)));
                }
            }
            body.insert(op.field.clone(), json!(entries));
        }
        (PatchVerb::Append | PatchVerb::Remove, _) => {
            return Err(Fault(
                "op",
                format!("is {}, but `{}` is not a list", op.op, op.field),
            ));
        }
    }
    Ok(())
}

fn takes(field: Field, value: &Json) -> bool {
    match field {
        Field::Text | Field::Optional => value.is_string(),
        Field::List => value.is_array() && texts(value).is_some(),
        Field::Flag => value.is_boolean(),
        Field::Object => value.is_object(),
    }
}

const fn wanted(field: Field) -> &'static str {
    match field {
        Field::Text | Field::Optional => "string",
        Field::List => "list of strings",
        Field::Flag => "boolean",
        Field::Object => "object",
    }
}

fn texts(value: &Json) -> Option<Vec<String>> {
    match value {
        Json::String(text) => Some(vec![text.clone()]),
        Json::Array(entries) => entries
            .iter()
            .map(|entry| entry.as_str().map(str::to_owned))
            .collect(),
        _ => None,
    }
}
