//! Closing of steps, tasks and plans, and the gate before it. Every tool that closes something uses this
//! module.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{NextCall, Timestamp, ToolError};

use crate::checkpoint;
use crate::dependency::{self, Dependency};
use crate::error::{Reason, Refusals};
use crate::evidence::Proof;
use crate::lease;
use crate::limits::short;
use crate::model::{Checkpoint, EventType, RootKind, Status};
use crate::path::Path;
use crate::record::{Confirmation, Lease, Meta, Node, Plan, Root, Step, Task, step_status};
use crate::scope::{Located, Scope};
use crate::store::record::{From, children_with, count_by_status, of_root};
use crate::store::{self, Kind};
use crate::work;
use crate::write::Write;

/// Most open parts that a refusal lists.
const SHOWN: usize = 20;

/// Step with the new confirmations, without the withdrawn ones.
pub(crate) fn confirmed(
    mut step: Step,
    confirms: &BTreeMap<Checkpoint, Option<String>>,
    names: &BTreeSet<Checkpoint>,
    now: Timestamp,
) -> Step {
    let beyond_gate =
        |checkpoint: &&Checkpoint| !matches!(checkpoint, Checkpoint::Criteria | Checkpoint::Tests);
    step.required.extend(names.iter().filter(beyond_gate));
    step.confirmed
        .retain(|checkpoint, _| !names.contains(checkpoint) || confirms.contains_key(checkpoint));
    for (&checkpoint, note) in confirms {
        step.confirmed.insert(
            checkpoint,
            Confirmation {
                at: now,
                note: note.clone(),
            },
        );
    }
    step
}

/// Requires an unfinished task whose dependencies are finished. Sets a TODO task to ACTIVE.
pub(crate) fn progress(write: &mut Write<'_>, task: &Task, refusals: &mut Refusals) -> Result<(), ToolError> {
    match task.meta.status {
        Status::Active => {}
        Status::Todo => dependency::want_finished(&write.scope, &task.meta, refusals)?,
        Status::Done | Status::Parked | Status::Canceled => refusals.not_open(&write.scope, &task.meta),
    }
    if refusals.is_empty() && task.meta.status == Status::Todo {
        set_status(write, Root::Task(task.clone()), Status::Active)?;
    }
    Ok(())
}

/// Changes a status and plans its event.
pub(crate) fn set_status(write: &mut Write<'_>, mut root: Root, to: Status) -> Result<(), ToolError> {
    let now = write.scope.now();
    let meta = root.meta_mut();
    let from = std::mem::replace(&mut meta.status, to);
    meta.done_at = (to == Status::Done).then_some(now);
    let id = meta.id.clone();
    if from != to {
        write.event(
            EventType::StatusChanged,
            &id,
            None,
            json!({"from": from, "to": to}),
        );
        write.put_root(&root)?;
    }
    Ok(())
}

/// Adds every reason why a step cannot be closed.
pub(crate) fn gate_step(
    write: &Write<'_>,
    step: &Located<Step>,
    gate: &Gate<'_>,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    let scope = &write.scope;
    let path = step.path.to_string();
    if !gate.force {
        let missing = checkpoint::missing(&step.record, gate.names);
        let mut call = Some(confirm_call(scope, step, &missing, gate)?);
        for checkpoint in missing {
            let reason = Reason::NotConfirmed {
                path: path.clone(),
                checkpoint,
            };
            // One call confirms all of them.
            refusals.add_with(reason, call.take());
        }
    }
    for (child, next_call) in open_children(scope, step)? {
        refusals.add_with(
            Reason::ChildOpen {
                parent: format!("step {path}"),
                child,
            },
            next_call,
        );
    }
    if step.record.blocked {
        let unblock = NextCall::new(
            "tasks_block",
            json!({"workspace": scope.workspace, "task": step.record.task, "step_id": step.record.id, "blocked": false}),
        );
        let reason = Reason::StepBlocked {
            path,
            reason: step.record.block_reason.clone(),
        };
        refusals.add_with(reason, unblock);
    }
    Ok(())
}

/// What a call says about a step that it closes.
pub(crate) struct Gate<'a> {
    /// Checkpoints that the call names.
    pub names: &'a BTreeSet<Checkpoint>,
    /// Close despite missing checkpoints.
    pub force: bool,
    /// The caller, as the call says.
    pub owner: Option<&'a str>,
}

/// The call that confirms all missing checkpoints. It shows the step instead if the call itself denied one, or if
/// confirming would be refused.
fn confirm_call(
    scope: &Scope<'_>,
    step: &Located<Step>,
    missing: &[Checkpoint],
    gate: &Gate<'_>,
) -> Result<NextCall, ToolError> {
    let denied = missing.iter().any(|checkpoint| gate.names.contains(checkpoint));
    let held = lease::live(scope, &step.record.id)?.map(|lease| lease.owner);
    let owner = lease::owner(scope, gate.owner);
    let is_free = held.as_deref().is_none_or(|holder| owner == Some(holder));
    let may = step.record.is_done() || can_progress(scope, &step.record.task)?;
    let proof = Proof::of(scope, &step.record.id)?;
    if denied || !is_free || !may || !work::is_proven(scope, &step.record, &proof)? {
        return Ok(work::show_step(scope, &step.record));
    }
    let mut call = verify_call(scope, &step.record, missing.iter().copied());
    if held.is_some() {
        call.arguments.insert("owner".to_owned(), json!(owner));
    }
    Ok(call)
}

/// Returns whether work on the steps of a task is accepted.
fn can_progress(scope: &Scope<'_>, task: &str) -> Result<bool, ToolError> {
    Ok(match scope.get::<Task>(task)? {
        Some(task) if task.meta.status == Status::Active => true,
        Some(task) if task.meta.status == Status::Todo => {
            !dependency::of(scope, &task.meta)?.iter().any(Dependency::is_open)
        }
        _ => false,
    })
}

/// The call that confirms checkpoints of a step.
pub(crate) fn verify_call(
    scope: &Scope<'_>,
    step: &Step,
    checkpoints: impl IntoIterator<Item = Checkpoint>,
) -> NextCall {
    let said: Map<String, Json> = checkpoints
        .into_iter()
        .map(|checkpoint| (checkpoint.to_string(), json!({"confirmed": true})))
        .collect();
    NextCall::new(
        "tasks_verify",
        json!({"workspace": scope.workspace, "task": step.task, "step_id": step.id, "checkpoints": said}),
    )
}

fn open_children(scope: &Scope<'_>, step: &Located<Step>) -> Result<Vec<(String, NextCall)>, ToolError> {
    let mut open = Vec::new();
    for status in [step_status::OPEN, step_status::BLOCKED] {
        for child in children_with::<Step>(scope.db(), &scope.workspace, &step.record.id, status, SHOWN)? {
            let path = format!("{}.s:{}", step.path, child.ordinal);
            let show = work::show_step(scope, &child.record);
            open.push((format!("step {path} {}", short(&child.record.title, 80)), show));
        }
    }
    let may = can_progress(scope, &step.record.task)?;
    for child in children_with::<Node>(
        scope.db(),
        &scope.workspace,
        &step.record.id,
        step_status::OPEN,
        SHOWN,
    )? {
        let path = format!("{}.t:{}", step.path, child.ordinal);
        let call = match child.record.status {
            Status::Todo | Status::Active if may => work::node_call(scope, &child.record),
            _ => work::show_step(scope, &step.record),
        };
        open.push((format!("node {path} {}", short(&child.record.title, 80)), call));
    }
    Ok(open)
}

/// Closes a step that passed the gate and ends its lease.
pub(crate) fn close_step(
    write: &mut Write<'_>,
    step: &Located<Step>,
    forced: Option<&str>,
) -> Result<(), ToolError> {
    let mut closed = step.record.clone();
    closed.completed_at = Some(write.scope.now());
    closed.forced = forced.map(str::to_owned);
    write.put(&closed)?;
    if let Some(lease) = write.scope.get::<Lease>(&closed.id)? {
        write.remove(&lease)?;
    }
    let mut data = json!({"path": step.path.to_string(), "title": short(&closed.title, 120)});
    if let Some(reason) = forced {
        data["forced"] = json!(reason);
    }
    write.event(EventType::StepDone, &closed.task, Some(&closed.id), data);
    Ok(())
}

/// Reopens a step, the closed steps above it, and a task that was DONE.
pub(crate) fn reopen_step(
    write: &mut Write<'_>,
    task: &Task,
    step: &Located<Step>,
    reason: Option<&str>,
) -> Result<(), ToolError> {
    let mut current = Some(step.record.clone());
    let mut depth = step.path.steps.len();
    while let Some(mut step_here) = current {
        let above = step_here.parent.clone();
        if step_here.is_done() {
            step_here.completed_at = None;
            step_here.forced = None;
            write.put(&step_here)?;
            let steps = step.path.steps.iter().take(depth).copied().collect();
            let path = Path { steps, node: None };
            let mut data = json!({"path": path.to_string()});
            if let Some(reason) = reason {
                data["reason"] = json!(reason);
            }
            write.event(EventType::StepReopened, &task.meta.id, Some(&step_here.id), data);
        }
        depth = depth.saturating_sub(1);
        current = match above {
            Some(id) => write.scope.get::<Step>(&id)?,
            None => None,
        };
    }
    if task.meta.status == Status::Done {
        // A dependency may have been reopened first.
        let open = dependency::of(&write.scope, &task.meta)?;
        let to = match open.iter().any(Dependency::is_open) {
            true => Status::Todo,
            false => Status::Active,
        };
        set_status(write, Root::Task(task.clone()), to)?;
    }
    Ok(())
}

/// Adds every reason why a plan or task cannot get a status.
pub(crate) fn gate_status(
    scope: &Scope<'_>,
    root: &Root,
    to: Status,
    allow_empty: bool,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    if to == Status::Done {
        match root {
            Root::Task(task) => gate_task(scope, task, allow_empty, refusals)?,
            Root::Plan(plan) => gate_plan(scope, &plan.meta.id, allow_empty, refusals)?,
        }
    }
    if let Root::Task(task) = root
        && task.meta.status.is_finished()
        && !to.is_finished()
    {
        want_open_plan(scope, task, refusals)?;
    }
    if matches!(to, Status::Active | Status::Done) && root.meta().status != to {
        dependency::want_finished(scope, root.meta(), refusals)?;
    }
    Ok(())
}

/// Requires an unfinished plan. A finished plan has no open tasks, so it is reopened before any of them.
pub(crate) fn want_open_plan(
    scope: &Scope<'_>,
    task: &Task,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    if let Some(plan) = scope.get::<Plan>(&task.plan)?
        && plan.meta.status.is_finished()
    {
        let reason = Reason::NotOpen {
            id: plan.meta.id.clone(),
            status: plan.meta.status,
        };
        // The caller asked to reopen, and the plan comes first.
        refusals.add_with(reason, reopen_call(scope, &plan.meta)?);
    }
    Ok(())
}

/// The call that reopens a plan or task, to ACTIVE if its dependencies allow that.
fn reopen_call(scope: &Scope<'_>, meta: &Meta) -> Result<NextCall, ToolError> {
    let waits = dependency::of(scope, meta)?.iter().any(Dependency::is_open);
    let status = if waits { Status::Todo } else { Status::Active };
    Ok(NextCall::new(
        "tasks_complete",
        json!({"workspace": scope.workspace, "task": meta.id, "status": status}),
    ))
}

fn gate_task(
    scope: &Scope<'_>,
    task: &Task,
    allow_empty: bool,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    let id = &task.meta.id;
    let counts = count_by_status(scope.db(), &scope.workspace, id, Kind::Step)?;
    if counts.is_empty() && !allow_empty {
        refusals.add(Reason::NoSteps(id.clone()));
    }
    let piece = work::of_task(scope, task, None)?.piece;
    for (status, _) in counts.iter().filter(|(status, _)| status != step_status::DONE) {
        for step in of_root::<Step>(scope.db(), &scope.workspace, id, status, From::Oldest, SHOWN)? {
            let path = scope.placed_path(&step)?;
            let step = Located {
                record: step.record,
                path,
            };
            if status == step_status::FORCED {
                unconfirmed(scope, &step, refusals)?;
                continue;
            }
            let child = format!("step {} {}", step.path, short(&step.record.title, 80));
            let at_hand = piece
                .as_ref()
                .filter(|piece| piece.step().is_some_and(|at| at.record.id == step.record.id));
            let call = match at_hand {
                Some(piece) => piece.call(scope, None)?,
                None => work::show_step(scope, &step.record),
            };
            let parent = id.clone();
            refusals.add_with(Reason::ChildOpen { parent, child }, call);
        }
    }
    Ok(())
}

/// Adds the missing checkpoints of a step that was closed without them, with one call that confirms all.
fn unconfirmed(scope: &Scope<'_>, step: &Located<Step>, refusals: &mut Refusals) -> Result<(), ToolError> {
    let missing = checkpoint::missing(&step.record, &BTreeSet::new());
    let gate = Gate {
        names: &BTreeSet::new(),
        force: false,
        owner: None,
    };
    let mut call = Some(confirm_call(scope, step, &missing, &gate)?);
    for checkpoint in missing {
        let reason = Reason::NotConfirmed {
            path: step.path.to_string(),
            checkpoint,
        };
        refusals.add_with(reason, call.take());
    }
    Ok(())
}

fn gate_plan(
    scope: &Scope<'_>,
    plan: &str,
    allow_empty: bool,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    let wanted = |statuses: &'static [Status]| store::root::Wanted {
        kind: RootKind::Task,
        plan: Some(plan),
        statuses,
        after: 0,
        limit: SHOWN,
    };
    let open = store::root::page(
        scope.db(),
        &scope.workspace,
        &wanted(&[Status::Todo, Status::Active, Status::Parked]),
    )?;
    for task in &open {
        let status = task.status.map_or("gone", Status::as_str);
        let child = format!("{} is {status}", task.id);
        let radar = NextCall::new(
            "tasks_radar",
            json!({"workspace": scope.workspace, "task": task.id}),
        );
        refusals.add_with(
            Reason::ChildOpen {
                parent: plan.to_owned(),
                child,
            },
            radar,
        );
    }
    if open.is_empty() && !allow_empty {
        let finished = wanted(&[Status::Done, Status::Canceled]);
        if store::root::page(scope.db(), &scope.workspace, &finished)?.is_empty() {
            refusals.add(Reason::NoSteps(plan.to_owned()));
        }
    }
    Ok(())
}

impl Refusals {
    /// Requires an unfinished plan or task.
    pub(crate) fn unfinished(&mut self, scope: &Scope<'_>, meta: &Meta) {
        if meta.status.is_finished() {
            self.not_open(scope, meta);
        }
    }

    fn not_open(&mut self, scope: &Scope<'_>, meta: &Meta) {
        let reason = Reason::NotOpen {
            id: meta.id.clone(),
            status: meta.status,
        };
        self.add_with(reason, work::show_root(scope, &meta.id));
    }

    /// Requires an open step.
    pub(crate) fn step_open(&mut self, scope: &Scope<'_>, step: &Located<Step>) {
        if step.record.is_done() {
            let show = work::show_step(scope, &step.record);
            self.add_with(Reason::StepClosed(step.path.to_string()), show);
        }
    }
}
