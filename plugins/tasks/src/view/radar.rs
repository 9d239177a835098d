//! The radar: now, why, verify, next and blockers, each in one line.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tollgate_sdk::{NextCall, ToolError};

use super::current;
use crate::budget::{Shrink, View};
use crate::checkpoint;
use crate::closing;
use crate::dependency::{self, Dependency};
use crate::lease;
use crate::limits::short;
use crate::model::{Checkpoint, RootKind, Status};
use crate::record::{Meta, Plan, Root, Step, Task, step_status};
use crate::reply::StepRef;
use crate::scope::{Located, Scope};
use crate::store::Kind;
use crate::store::record::{From, count_by_status, of_root};
use crate::store::root::{Wanted, count_stale, count_tasks, page};

/// Most blockers that are listed.
const BLOCKERS: usize = 10;
/// Characters of one line.
const LINE: usize = 240;
/// Most tasks of a plan that are examined for one that can start.
const CANDIDATES: usize = 20;

/// State of a plan or task.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Radar {
    /// The plan or task.
    pub task: String,
    /// Revision, for `expected_revision` of the next write.
    pub revision: i64,
    /// Current plan, task or step.
    pub now: String,
    /// Next action.
    pub next: String,
    /// Checkpoints to confirm before the step closes.
    pub verify: String,
    /// Purpose of the work.
    pub why: String,
    /// Blockers, at most 10.
    pub blockers: Vec<String>,
    /// Current step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepRef>,
    /// Progress of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Counts of the plan's tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<Horizon>,
    /// Next calls with complete arguments.
    pub next_calls: Vec<NextCall>,
}

/// Closed and total steps.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub(crate) struct Progress {
    /// Closed steps.
    pub done: usize,
    /// Steps.
    pub total: usize,
}

/// The tasks of a plan, counted.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub(crate) struct Horizon {
    /// Tasks in status ACTIVE.
    pub active: usize,
    /// Tasks in status TODO.
    pub backlog: usize,
    /// Tasks in status PARKED.
    pub parked: usize,
    /// TODO or ACTIVE tasks without a change for `stale_days` (default 14).
    pub stale: usize,
    /// Tasks in status DONE or CANCELED.
    pub done: usize,
    /// Total number of tasks.
    pub total: usize,
}

impl View for Radar {
    const ORDER: &'static [Shrink] = &[
        Shrink::End("next_calls"),
        Shrink::Drop("horizon"),
        Shrink::Drop("progress"),
        Shrink::End("blockers"),
        Shrink::Drop("why"),
        Shrink::Drop("verify"),
        Shrink::Drop("step"),
        Shrink::Drop("next"),
    ];
}

/// The radar of a plan or task.
pub(crate) fn of(scope: &Scope<'_>, id: &str) -> Result<Radar, ToolError> {
    let revision = scope.head(id)?.revision;
    let mut radar = match scope.root(id)? {
        Root::Task(task) => of_task(scope, &task)?,
        Root::Plan(plan) => of_plan(scope, &plan)?,
    };
    id.clone_into(&mut radar.task);
    radar.revision = revision;
    Ok(radar)
}

fn of_task(scope: &Scope<'_>, task: &Task) -> Result<Radar, ToolError> {
    let id = &task.meta.id;
    let counts = count_by_status(scope.db(), &scope.workspace, id, Kind::Step)?;
    let of_status = |wanted: &str| -> usize {
        counts
            .iter()
            .filter(|(status, _)| status == wanted)
            .map(|(_, count)| count)
            .sum()
    };
    let progress = Progress {
        done: of_status(step_status::DONE) + of_status(step_status::FORCED),
        total: counts.iter().map(|(_, count)| count).sum(),
    };
    let mut radar = Radar {
        why: why(scope, task)?,
        blockers: blockers(scope, task, of_status(step_status::BLOCKED) > 0)?,
        progress: Some(progress),
        ..Radar::default()
    };
    let at_hand = if task.meta.status.is_finished() {
        None
    } else {
        current::step(scope, id)?
    };
    match at_hand {
        Some(step) => at_step(scope, task, &step, &mut radar)?,
        None => without_step(scope, &task.meta, progress, &mut radar),
    }
    radar.blockers.truncate(BLOCKERS);
    Ok(radar)
}

/// Purpose of the task: its own description or its plan's.
fn why(scope: &Scope<'_>, task: &Task) -> Result<String, ToolError> {
    if let Some(description) = &task.meta.description {
        return Ok(short(description, LINE));
    }
    let plan = scope.get::<Plan>(&task.plan)?;
    Ok(plan.map_or_else(String::new, |plan| {
        short(plan.contract.as_deref().unwrap_or(&plan.meta.title), LINE)
    }))
}

fn blockers(scope: &Scope<'_>, task: &Task, has_blocked: bool) -> Result<Vec<String>, ToolError> {
    let mut blockers = depends(&dependency::of(scope, &task.meta)?);
    if has_blocked {
        let id = &task.meta.id;
        for step in of_root::<Step>(
            scope.db(),
            &scope.workspace,
            id,
            step_status::BLOCKED,
            From::Oldest,
            BLOCKERS,
        )? {
            let path = scope.placed_path(&step)?;
            let reason = step.record.block_reason.as_deref().unwrap_or("no reason given");
            blockers.push(short(&format!("step {path} is blocked: {reason}"), LINE));
        }
    }
    Ok(blockers)
}

fn depends(dependencies: &[Dependency]) -> Vec<String> {
    let open = dependencies.iter().filter(|dependency| dependency.is_open());
    open.map(|dependency| {
        let status = dependency.status.map_or("deleted", Status::as_str);
        format!("depends on {}, which is {status}", dependency.id)
    })
    .collect()
}

fn at_step(scope: &Scope<'_>, task: &Task, step: &Located<Step>, radar: &mut Radar) -> Result<(), ToolError> {
    let path = &step.path;
    radar.now = short(
        &format!(
            "{} {} at {path}: {}",
            task.meta.id, task.meta.status, step.record.title
        ),
        LINE,
    );
    radar.step = Some(StepRef::new(&step.record.id, path));
    radar.verify = verify(&step.record);
    let words = step
        .record
        .blockers
        .iter()
        .map(|blocker| short(&format!("step {path}: {blocker}"), LINE));
    radar.blockers.extend(words);
    if let Some(lease) = lease::live(scope, &step.record.id)? {
        radar
            .blockers
            .push(short(&format!("step {path} is leased to {}", lease.owner), LINE));
    }
    if step.record.blocked {
        radar.next = format!("Remove the obstacle of {path}, then unblock it.");
        radar.next_calls.push(NextCall::new(
            "tasks_block",
            json!({"workspace": scope.workspace, "task": task.meta.id, "step_id": step.record.id, "blocked": false}),
        ));
    } else if let Some(node) = current::node(scope, step)? {
        radar.next = short(&format!("Finish node {}: {}", node.path, node.record.title), LINE);
        radar.next_calls.push(NextCall::new(
            "tasks_task_define",
            json!({"workspace": scope.workspace, "task": task.meta.id, "task_node_id": node.record.id, "status": "DONE"}),
        ));
    } else {
        radar.next = format!("Do {path}, attach evidence, then confirm and close it.");
        radar.next_calls.push(closing::close_call(scope, &step.record));
    }
    Ok(())
}

/// Checkpoints that a step still needs, with their items.
fn verify(step: &Step) -> String {
    let missing = checkpoint::missing(step, &BTreeSet::new());
    if missing.is_empty() {
        return "every checkpoint is confirmed".to_owned();
    }
    let lines = missing.iter().map(|checkpoint| {
        let items = match checkpoint {
            Checkpoint::Criteria => step.success_criteria.join("; "),
            Checkpoint::Tests => step.tests.join("; "),
            _ => "declared".to_owned(),
        };
        format!("{checkpoint}: {}", short(&items, 100))
    });
    short(&lines.collect::<Vec<_>>().join(" | "), LINE)
}

fn without_step(scope: &Scope<'_>, meta: &Meta, progress: Progress, radar: &mut Radar) {
    let id = &meta.id;
    radar.now = short(&format!("{id} {}: {}", meta.status, meta.title), LINE);
    let (next, call) = if meta.status.is_finished() {
        ("Nothing, it is finished.", None)
    } else if progress.total == 0 {
        let steps = json!([{"title": "First step", "success_criteria": ["criterion for done"], "tests": ["command or check that proves it"]}]);
        let add = json!({"workspace": scope.workspace, "task": id, "steps": steps});
        ("Add steps.", Some(NextCall::new("tasks_decompose", add)))
    } else {
        let complete = json!({"workspace": scope.workspace, "task": id});
        (
            "Every step is closed; complete the task.",
            Some(NextCall::new("tasks_complete", complete)),
        )
    };
    next.clone_into(&mut radar.next);
    radar.next_calls.extend(call);
}

fn of_plan(scope: &Scope<'_>, plan: &Plan) -> Result<Radar, ToolError> {
    let mut radar = match task_at_hand(scope, plan)? {
        Some(task) => of_task(scope, &task)?,
        None => idle(scope, plan),
    };
    let promise = plan.contract.as_deref().or(plan.meta.description.as_deref());
    radar.why = short(promise.unwrap_or(&plan.meta.title), LINE);
    let mut blockers = depends(&dependency::of(scope, &plan.meta)?);
    blockers.append(&mut radar.blockers);
    blockers.truncate(BLOCKERS);
    radar.blockers = blockers;
    radar.progress = None;
    let horizon = horizon(scope, &plan.meta.id)?;
    if radar.now.is_empty() {
        radar.now = short(
            &format!("{} {}: {}", plan.meta.id, plan.meta.status, plan.meta.title),
            LINE,
        );
    }
    if radar.next.is_empty() {
        radar.next = match horizon.total {
            0 => "Add a task.".to_owned(),
            _ if plan.meta.status.is_finished() => "Nothing, it is finished.".to_owned(),
            _ if horizon.done == horizon.total => "Every task is finished; complete the plan.".to_owned(),
            _ => "No task can start; check parked tasks and dependencies.".to_owned(),
        };
    }
    radar.horizon = Some(horizon);
    Ok(radar)
}

/// The plan's current task: an ACTIVE one, or the first that can start.
fn task_at_hand(scope: &Scope<'_>, plan: &Plan) -> Result<Option<Task>, ToolError> {
    if plan.meta.status.is_finished() {
        return Ok(None);
    }
    for (statuses, limit) in [([Status::Active], 1), ([Status::Todo], CANDIDATES)] {
        let wanted = Wanted {
            kind: RootKind::Task,
            plan: Some(&plan.meta.id),
            statuses: &statuses,
            after: 0,
            limit,
        };
        for head in page(scope.db(), &scope.workspace, &wanted)? {
            let Some(task) = scope.get::<Task>(&head.id)? else {
                continue;
            };
            let waits = dependency::of(scope, &task.meta)?.iter().any(Dependency::is_open);
            if head.status == Some(Status::Active) || !waits {
                return Ok(Some(task));
            }
        }
    }
    Ok(None)
}

fn idle(scope: &Scope<'_>, plan: &Plan) -> Radar {
    let id = &plan.meta.id;
    let call = if plan.meta.status.is_finished() {
        None
    } else {
        let next = json!({"workspace": scope.workspace, "plan": id});
        Some(NextCall::new("tasks_next", next))
    };
    Radar {
        next_calls: call.into_iter().collect(),
        ..Radar::default()
    }
}

/// The tasks of a plan, counted over an index.
fn horizon(scope: &Scope<'_>, plan: &str) -> Result<Horizon, ToolError> {
    let since = scope.now().plus_ms(-scope.config.stale_ms());
    let mut horizon = Horizon {
        stale: count_stale(scope.db(), &scope.workspace, plan, since)?,
        ..Horizon::default()
    };
    for (status, count) in count_tasks(scope.db(), &scope.workspace, plan)? {
        match status {
            Some(Status::Active) => horizon.active += count,
            Some(Status::Todo) => horizon.backlog += count,
            Some(Status::Parked) => horizon.parked += count,
            Some(Status::Done | Status::Canceled) => horizon.done += count,
            None => continue,
        }
        horizon.total += count;
    }
    Ok(horizon)
}
