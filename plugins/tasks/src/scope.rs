//! Lookup of the plans, tasks, steps and nodes that a call names.

use serde_json::json;
use tollgate_sdk::{Cx, Db, DbError, NextCall, Timestamp, ToolError};

use crate::config::Config;
use crate::error::{Reason, Refusals, refusal};
use crate::model::{RootKind, Workspace};
use crate::path::Path;
use crate::record::{Node, Plan, Record, Root, Step, Task};
use crate::store::record::Placed;
use crate::store::root::Head;
use crate::store::workspace::Counters;
use crate::store::{self, Kind};

/// A workspace during a call.
pub(crate) struct Scope<'a> {
    pub cx: &'a Cx<'a>,
    pub workspace: Workspace,
    pub config: Config,
    pub counters: Counters,
    /// True if the workspace has been written to before.
    known: bool,
}

/// A record with its path in the tree.
#[derive(Debug, Clone)]
pub(crate) struct Located<T> {
    pub record: T,
    pub path: Path,
}

/// Arguments that select a step or node.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Selector<'a> {
    pub path: Option<&'a str>,
    pub id: Option<&'a str>,
    pub expected: Option<&'a str>,
}

impl Selector<'_> {
    /// The selected step, or `None` if the call is about the plan or task itself.
    pub(crate) fn step_of(&self, scope: &Scope<'_>, root: &str) -> Result<Option<Located<Step>>, ToolError> {
        if self.path.is_none() && self.id.is_none() {
            expect_target(self.expected, root)?;
            return Ok(None);
        }
        scope.step(root, self).map(Some)
    }
}

impl<'a> Scope<'a> {
    /// Opens a workspace that may be new.
    pub(crate) fn open(cx: &'a Cx<'a>, workspace: &Workspace) -> Result<Scope<'a>, ToolError> {
        let mut refusals = Refusals::default();
        refusals.workspace(workspace);
        refusals.finish()?;
        let counters = store::workspace::counters(&cx.db, workspace)?;
        Ok(Scope {
            cx,
            workspace: workspace.clone(),
            config: cx.config()?,
            known: counters.is_some(),
            counters: counters.unwrap_or_default(),
        })
    }

    /// Opens a workspace that has been written to. Fails with `NOT_FOUND` otherwise.
    pub(crate) fn known(cx: &'a Cx<'a>, workspace: &Workspace) -> Result<Scope<'a>, ToolError> {
        let scope = Scope::open(cx, workspace)?;
        if scope.known {
            return Ok(scope);
        }
        Err(Reason::UnknownWorkspace(workspace.as_str().to_owned()).into())
    }

    pub(crate) fn db(&self) -> &Db<'a> {
        &self.cx.db
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.cx.now()
    }

    /// Id of the plan or task that a read is about: the named one, otherwise the focus.
    pub(crate) fn root_id(&self, task: Option<&str>, plan: Option<&str>) -> Result<String, ToolError> {
        if let Some(plan) = plan {
            self.plan_head(plan)?;
        }
        match (task, plan) {
            (Some(task), Some(plan)) if task != plan => {
                // A task together with its own plan is one target; any other pair is two.
                let head = self.head(task)?;
                if head.plan.as_deref() == Some(plan) {
                    return Ok(task.to_owned());
                }
                Err(Reason::TargetMismatch {
                    given: task.to_owned(),
                    other: plan.to_owned(),
                }
                .into())
            }
            (Some(id), _) | (None, Some(id)) => Ok(id.to_owned()),
            (None, None) => self.focus("task"),
        }
    }

    /// Id of the plan or task that has the focus.
    pub(crate) fn focus(&self, field: &str) -> Result<String, ToolError> {
        let fault = match &self.counters.focus {
            Some(id) if self.head(id).is_ok() => return Ok(id.clone()),
            Some(id) => format!("is missing, and the focus is on {id}, which does not exist"),
            None => "is missing, and the workspace has no focus".to_owned(),
        };
        let context = NextCall::new("tasks_context", json!({"workspace": self.workspace}));
        Err(refusal(Reason::input(field, fault), Some(context)))
    }

    /// Index entry of an existing plan or task.
    pub(crate) fn head(&self, id: &str) -> Result<Head, ToolError> {
        store::root::head(self.db(), &self.workspace, id)?
            .filter(|head| head.status.is_some())
            .ok_or_else(|| self.unknown_root(id))
    }

    /// Index entry of an existing plan.
    pub(crate) fn plan_head(&self, id: &str) -> Result<Head, ToolError> {
        let head = self.head(id)?;
        match head.kind {
            RootKind::Plan => Ok(head),
            RootKind::Task => {
                let fault = format!("is the task {id}, but must be a plan");
                Err(Reason::input("plan", fault).into())
            }
        }
    }

    /// Requires that a named plan or task has existed. Its events and operations outlive it.
    pub(crate) fn was_there(&self, id: Option<&str>) -> Result<(), ToolError> {
        let Some(id) = id else {
            return Ok(());
        };
        match store::root::head(self.db(), &self.workspace, id)? {
            Some(_) => Ok(()),
            None => Err(self.unknown_root(id)),
        }
    }

    /// The record of a plan or task.
    pub(crate) fn root(&self, id: &str) -> Result<Root, ToolError> {
        let root = match RootKind::of(id) {
            Some(RootKind::Plan) => self.get::<Plan>(id)?.map(Root::Plan),
            Some(RootKind::Task) => self.get::<Task>(id)?.map(Root::Task),
            None => None,
        };
        root.ok_or_else(|| self.unknown_root(id))
    }

    fn unknown_root(&self, id: &str) -> ToolError {
        let context = NextCall::new("tasks_context", json!({"workspace": self.workspace}));
        let what = RootKind::of(id).map_or("plan or task", RootKind::as_str);
        refusal(Reason::unknown(what, id), Some(context))
    }

    /// A record by identifier.
    pub(crate) fn get<T: Record>(&self, id: &str) -> Result<Option<T>, DbError> {
        store::record::get(self.db(), &self.workspace, id)
    }

    /// The path of a step.
    pub(crate) fn step_path(&self, step: &str) -> Result<Path, DbError> {
        let mut steps = Vec::new();
        let mut id = step.to_owned();
        while let Some(place) = store::record::place(self.db(), &self.workspace, Kind::Step, &id)? {
            steps.push(u32::try_from(place.ordinal).unwrap_or(u32::MAX));
            id = place.parent;
        }
        steps.reverse();
        Ok(Path { steps, node: None })
    }

    /// The path of a step whose index is known.
    pub(crate) fn placed_path(&self, step: &Placed<Step>) -> Result<Path, DbError> {
        let mut path = match &step.record.parent {
            Some(parent) => self.step_path(parent)?,
            None => Path {
                steps: Vec::new(),
                node: None,
            },
        };
        path.steps.push(u32::try_from(step.ordinal).unwrap_or(u32::MAX));
        Ok(path)
    }

    /// The path of a node.
    pub(crate) fn node_path(&self, node: &Node) -> Result<Path, DbError> {
        let place = store::record::place(self.db(), &self.workspace, Kind::Node, &node.id)?;
        let mut path = self.step_path(&node.step)?;
        path.node = place.map(|place| u32::try_from(place.ordinal).unwrap_or(u32::MAX));
        Ok(path)
    }

    /// The step that a call selects. Fails with `TARGET_MISMATCH` if path and id select two.
    pub(crate) fn step(&self, task: &str, selector: &Selector<'_>) -> Result<Located<Step>, ToolError> {
        let by_id = match selector.id {
            Some(id) => Some(self.step_by_id(task, id)?),
            None => None,
        };
        let by_path = match selector.path {
            Some(path) => Some(self.step_by_path(task, path)?),
            None => None,
        };
        let located = match (by_id, by_path) {
            (Some(id), Some(path)) if id.record.id != path.record.id => {
                return Err(mismatch(
                    &format!("step_id {}", id.record.id),
                    &format!("path {} ({})", path.path, path.record.id),
                ));
            }
            (Some(located), _) | (None, Some(located)) => located,
            (None, None) => return Err(Reason::input("step_id", "or path is required").into()),
        };
        expect_target(selector.expected, &located.record.id)?;
        Ok(located)
    }

    /// The step that an identifier or a path names.
    pub(crate) fn step_named(&self, task: &str, name: &str) -> Result<Located<Step>, ToolError> {
        match name.starts_with("s:") {
            true => self.step_by_path(task, name),
            false => self.step_by_id(task, name),
        }
    }

    fn step_by_id(&self, task: &str, id: &str) -> Result<Located<Step>, ToolError> {
        let step = self.get::<Step>(id)?.filter(|step| step.task == task);
        let step = step.ok_or_else(|| self.unknown_step(task, id))?;
        Ok(Located {
            path: self.step_path(&step.id)?,
            record: step,
        })
    }

    fn step_by_path(&self, task: &str, text: &str) -> Result<Located<Step>, ToolError> {
        let path = parse(text)?;
        if path.node.is_some() {
            return Err(Reason::input("path", "is the path of a node, but must be that of a step").into());
        }
        let mut parent = task.to_owned();
        let mut found = None;
        for &index in &path.steps {
            let step: Option<Step> = store::record::at(self.db(), &self.workspace, &parent, index.into())?;
            let step = step.ok_or_else(|| self.unknown_step(task, text))?;
            parent.clone_from(&step.id);
            found = Some(step);
        }
        let record = found.ok_or_else(|| self.unknown_step(task, text))?;
        Ok(Located { record, path })
    }

    /// The node that a call selects.
    pub(crate) fn node(&self, task: &str, selector: &Selector<'_>) -> Result<Located<Node>, ToolError> {
        let by_path = match selector.path {
            Some(text) => Some(self.node_by_path(task, text)?),
            None => None,
        };
        let by_id = match selector.id {
            Some(id) => {
                let node = self.get::<Node>(id)?.filter(|node| node.task == task);
                let node = node.ok_or_else(|| self.unknown(task, "node", id))?;
                Some(Located {
                    path: self.node_path(&node)?,
                    record: node,
                })
            }
            None => None,
        };
        let located = match (by_id, by_path) {
            (Some(id), Some(path)) if id.record.id != path.record.id => {
                return Err(mismatch(
                    &format!("task_node_id {}", id.record.id),
                    &format!("path {} ({})", path.path, path.record.id),
                ));
            }
            (Some(located), _) | (None, Some(located)) => located,
            (None, None) => {
                return Err(Reason::input("path", "of a node is required, for example s:0.t:1").into());
            }
        };
        expect_target(selector.expected, &located.record.id)?;
        Ok(located)
    }

    fn node_by_path(&self, task: &str, text: &str) -> Result<Located<Node>, ToolError> {
        let path = parse(text)?;
        let Some(index) = path.node else {
            return Err(Reason::input(
                "path",
                "is the path of a step, but must be that of a node and end with .t:N",
            )
            .into());
        };
        let steps = Path {
            steps: path.steps.clone(),
            node: None,
        };
        let step = self.step_by_path(task, &steps.to_string())?;
        let node = store::record::at(self.db(), &self.workspace, &step.record.id, index.into())?;
        let record = node.ok_or_else(|| self.unknown(task, "node", text))?;
        Ok(Located { record, path })
    }

    fn unknown_step(&self, task: &str, id: &str) -> ToolError {
        self.unknown(task, "step", id)
    }

    fn unknown(&self, task: &str, what: &str, id: &str) -> ToolError {
        let mirror = NextCall::new("tasks_mirror", json!({"workspace": self.workspace, "task": task}));
        refusal(Reason::unknown(format!("{what} of {task},"), id), Some(mirror))
    }
}

fn parse(text: &str) -> Result<Path, ToolError> {
    Path::parse(text).map_err(|err| Reason::input("path", err.to_string()).into())
}

/// Requires the target to be the one that the caller expects.
pub(crate) fn expect_target(expected: Option<&str>, id: &str) -> Result<(), ToolError> {
    match expected {
        Some(expected) if expected != id => Err(mismatch(&format!("expected_target_id {expected}"), id)),
        _ => Ok(()),
    }
}

fn mismatch(given: &str, other: &str) -> ToolError {
    Reason::TargetMismatch {
        given: crate::error::clip(given),
        other: crate::error::clip(other),
    }
    .into()
}
