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
use crate::record::{Confirmation, Lease, Meta, Node, Root, Step, Task, step_status};
use crate::scope::{Located, Scope};
use crate::store::record::{children_with, count_by_status};
use crate::store::{self, Kind};
use crate::work;
use crate::write::Write;

/// Most open parts that a refusal lists.
const MAX_SHOWN_PARTS: usize = 20;

/// Step with the new confirmations, without the withdrawn ones.
pub(crate) fn confirmed(
    mut step: Step,
    confirms: &BTreeMap<Checkpoint, Option<String>>,
    names: &BTreeSet<Checkpoint>,
    (now, actor): (Timestamp, Option<&str>),
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
                actor: actor.map(str::to_owned),
            },
        );
    }
    step
}

/// Confirmed checkpoints of a step with their notes, for the event that takes them back.
pub(crate) fn notes(step: &Step, checkpoints: &[Checkpoint]) -> BTreeMap<Checkpoint, Option<String>> {
    let confirmed = step.confirmed.iter();
    confirmed
        .filter(|(checkpoint, _)| checkpoints.contains(checkpoint))
        .map(|(&checkpoint, said)| (checkpoint, said.note.clone()))
        .collect()
}

/// Requires an unfinished task whose dependencies are finished. Sets a TODO task to ACTIVE.
pub(crate) fn progress(write: &mut Write<'_>, task: &Task, refusals: &mut Refusals) -> Result<(), ToolError> {
    match task.meta.status {
        Status::Active => {}
        Status::Todo => dependency::want_finished(&write.scope, &task.meta, refusals)?,
        Status::Done | Status::Parked | Status::Canceled => refusals.not_open(&write.scope, &task.meta),
    }
    if refusals.is_empty() && task.meta.status == Status::Todo {
        let task = write.get::<Task>(&task.meta.id)?.unwrap_or_else(|| task.clone());
        set_status(write, Root::Task(task), Status::Active, None)?;
    }
    Ok(())
}

/// Changes a status, for a reason if one is given, and plans its event.
pub(crate) fn set_status(
    write: &mut Write<'_>,
    mut root: Root,
    to: Status,
    reason: Option<&str>,
) -> Result<(), ToolError> {
    let now = write.scope.now();
    let meta = root.meta_mut();
    let from = std::mem::replace(&mut meta.status, to);
    meta.done_at = (to == Status::Done).then_some(now);
    let id = meta.id.clone();
    if from != to {
        meta.status_reason = reason.map(str::to_owned);
        let mut data = json!({"from": from, "to": to});
        if let Some(reason) = reason {
            data["reason"] = json!(reason);
        }
        write.event(EventType::StatusChanged, &id, None, data);
        write.put_root(&root)?;
    }
    Ok(())
}

/// Cancels the unfinished tasks of a plan.
pub(crate) fn cancel_tasks(
    write: &mut Write<'_>,
    plan: &str,
    reason: Option<&str>,
) -> Result<Vec<String>, ToolError> {
    let mut canceled = Vec::new();
    for task in write.open_tasks(plan, usize::MAX)? {
        canceled.push(task.meta.id.clone());
        set_status(write, Root::Task(task), Status::Canceled, reason)?;
    }
    Ok(canceled)
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
    for (child, next_call) in open_children(scope, step, gate.owner)? {
        refusals.add_with(
            Reason::ChildOpen {
                parent: format!("step {path}"),
                child,
            },
            next_call,
        );
    }
    if step.record.blocked {
        let reason = Reason::StepBlocked {
            path,
            reason: step.record.block_reason.clone(),
        };
        // Somebody blocked it for a reason. Whether that is settled is for the caller to find out.
        refusals.add_with(reason, work::show_step(scope, &step.record));
    }
    Ok(())
}

/// Arguments of a call about a step that it closes.
pub(crate) struct Gate<'a> {
    /// Checkpoints that the call names.
    pub names: &'a BTreeSet<Checkpoint>,
    /// Close despite missing checkpoints.
    pub force: bool,
    /// The caller, as the call says.
    pub owner: Option<&'a str>,
}

/// The call that confirms all missing checkpoints, of a closed step those that something was shown for. It shows the
/// step instead if the call itself denied one, or if confirming would be refused.
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
    let is_backed = |checkpoint: &Checkpoint| !step.record.is_done() || proof.backs(*checkpoint);
    let backed: Vec<Checkpoint> = missing.iter().copied().filter(is_backed).collect();
    let is_proven = work::is_proven(scope, &step.record, &proof)?;
    if denied || !is_free || !may || backed.is_empty() || !is_proven {
        return Ok(work::show_step(scope, &step.record));
    }
    let mut call = verify_call(scope, &step.record, backed);
    if held.is_some() {
        call.arguments.insert("actor".to_owned(), json!(owner));
    }
    work::sign(scope, &mut call, gate.owner);
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

/// The call that confirms missing checkpoints of a closed step, or shows the step if nothing was shown for them or
/// confirming would be refused.
pub(crate) fn confirm_or_show(
    scope: &Scope<'_>,
    step: &Located<Step>,
    missing: &[Checkpoint],
) -> Result<NextCall, ToolError> {
    let gate = Gate {
        names: &BTreeSet::new(),
        force: false,
        owner: None,
    };
    confirm_call(scope, step, missing, &gate)
}

/// The call that confirms checkpoints of a step.
fn verify_call(
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

fn open_children(
    scope: &Scope<'_>,
    step: &Located<Step>,
    owner: Option<&str>,
) -> Result<Vec<(String, NextCall)>, ToolError> {
    let mut open = Vec::new();
    for status in [step_status::OPEN, step_status::BLOCKED] {
        for child in children_with::<Step>(
            scope.db(),
            &scope.workspace,
            &step.record.id,
            status,
            MAX_SHOWN_PARTS,
        )? {
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
        MAX_SHOWN_PARTS,
    )? {
        let path = format!("{}.t:{}", step.path, child.ordinal);
        let call = match child.record.status {
            Status::Todo | Status::Active if may => {
                let mut call = work::node_call(scope, &child.record);
                work::sign(scope, &mut call, owner);
                call
            }
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
    closed.reopen_reason = None;
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

/// Reopens a step, the closed steps above it, and a task that was DONE, for a reason if one is given.
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
            // What was checked then is to be checked again. The notes stay in the event.
            let confirmed: Vec<Checkpoint> = step_here.confirmed.keys().copied().collect();
            let before = notes(&step_here, &confirmed);
            step_here.confirmed.clear();
            step_here.reopen_reason = reason.map(str::to_owned);
            write.put(&step_here)?;
            let steps = step.path.steps.iter().take(depth).copied().collect();
            let path = Path { steps, node: None };
            let mut data = json!({"path": path.to_string()});
            if let Some(reason) = reason {
                data["reason"] = json!(reason);
            }
            if !before.is_empty() {
                data["confirmed_before"] = json!(before);
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
        set_status(write, Root::Task(task.clone()), to, reason)?;
    }
    Ok(())
}

/// Adds the missing checkpoints of a step that was closed without them, with one call that confirms all.
pub(crate) fn unconfirmed(
    scope: &Scope<'_>,
    step: &Located<Step>,
    owner: Option<&str>,
    refusals: &mut Refusals,
) -> Result<(), ToolError> {
    let missing = checkpoint::missing(&step.record, &BTreeSet::new());
    let gate = Gate {
        names: &BTreeSet::new(),
        force: false,
        owner,
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

/// Requires steps in a task and tasks in a plan that becomes DONE, and one that is DONE where evidence is required.
/// Everything else about a status is a rule that every write keeps.
pub(crate) fn want_content(scope: &Scope<'_>, root: &Root, refusals: &mut Refusals) -> Result<(), ToolError> {
    let id = &root.meta().id;
    match root {
        Root::Task(_) if count_by_status(scope.db(), &scope.workspace, id, Kind::Step)?.is_empty() => {
            refusals.add(Reason::NoSteps(id.clone()));
        }
        Root::Plan(_) if !has_tasks(scope, id, Status::ALL)? => refusals.add(Reason::NoSteps(id.clone())),
        Root::Plan(_) if scope.config.requires_evidence(&scope.workspace) && proves_nothing(scope, id)? => {
            refusals.add_with(Reason::NothingDone(id.clone()), work::show_root(scope, id));
        }
        Root::Task(_) | Root::Plan(_) => {}
    }
    Ok(())
}

/// Returns whether a plan has only canceled tasks.
pub(crate) fn proves_nothing(scope: &Scope<'_>, plan: &str) -> Result<bool, ToolError> {
    Ok(!has_tasks(scope, plan, NOT_CANCELED)?)
}

/// All statuses but CANCELED.
const NOT_CANCELED: &[Status] = &[Status::Todo, Status::Active, Status::Parked, Status::Done];

fn has_tasks(scope: &Scope<'_>, plan: &str, statuses: &[Status]) -> Result<bool, ToolError> {
    let wanted = store::root::Wanted {
        kind: RootKind::Task,
        plan: Some(plan),
        statuses,
        after: 0,
        limit: 1,
    };
    Ok(!store::root::page(scope.db(), &scope.workspace, &wanted)?.is_empty())
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
