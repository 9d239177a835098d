//! The radar: now, why, verify, next and blockers, each in one line.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::{NextCall, ToolError};

use crate::budget::{Shrink, View};
use crate::checkpoint;
use crate::limits::short;
use crate::model::{Checkpoint, Status};
use crate::record::{Meta, Plan, Root, Step, Task, step_status};
use crate::reply::StepRef;
use crate::scope::{Located, Scope};
use crate::store::Kind;
use crate::store::record::{From, count_by_status, of_root};
use crate::store::root::{count_stale, count_tasks};
use crate::work::{self, Outlook, Wait};

/// Most blockers that are listed.
const MAX_BLOCKERS: usize = 10;
/// Characters of one line.
const MAX_LINE_CHARS: usize = 240;

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
    /// Number of steps.
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
    /// Tasks in TODO or ACTIVE without a change for `stale_days` (default 14).
    pub stale: usize,
    /// Tasks in status DONE.
    pub done: usize,
    /// Tasks in status CANCELED.
    pub canceled: usize,
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
    let outlook = work::of_task(scope, task, None)?;
    let mut radar = about_task(scope, task)?;
    at_hand(scope, &task.meta, &outlook, &mut radar)?;
    Ok(radar)
}

/// The radar of a task without its work.
fn about_task(scope: &Scope<'_>, task: &Task) -> Result<Radar, ToolError> {
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
    Ok(Radar {
        why: why(scope, task)?,
        blockers: blocked(scope, task, of_status(step_status::BLOCKED) > 0)?,
        progress: Some(progress),
        ..Radar::default()
    })
}

/// Adds the work, or what it waits for.
fn at_hand(scope: &Scope<'_>, meta: &Meta, outlook: &Outlook, radar: &mut Radar) -> Result<(), ToolError> {
    radar.now = short(
        &format!("{} {}: {}", meta.id, meta.status, meta.title),
        MAX_LINE_CHARS,
    );
    let mut blockers: Vec<String> = outlook.waits.iter().filter_map(Wait::blocker).collect();
    if meta.status.is_finished() {
        "Nothing: this work is finished.".clone_into(&mut radar.next);
        blockers.clear();
    } else if let Some(piece) = &outlook.piece {
        if let Some(step) = piece.step() {
            at_step(meta, step, radar);
        }
        radar.next = piece.action();
        radar.next_calls.push(piece.call(scope, None)?);
    } else if let Some(wait) = outlook.waits.first() {
        if let Wait::Blocked(step) | Wait::Held { step, .. } | Wait::Parked(step, _) = wait {
            at_step(meta, step, radar);
        }
        radar.next = wait.action();
        radar.next_calls.push(wait.call(scope));
    }
    blockers.append(&mut radar.blockers);
    blockers.truncate(MAX_BLOCKERS);
    radar.blockers = blockers;
    Ok(())
}

/// Purpose of the task: its own description or its plan's.
fn why(scope: &Scope<'_>, task: &Task) -> Result<String, ToolError> {
    if let Some(description) = &task.meta.description {
        return Ok(short(description, MAX_LINE_CHARS));
    }
    let plan = scope.get::<Plan>(&task.plan)?;
    Ok(plan.map_or_else(String::new, |plan| {
        short(
            plan.contract.as_deref().unwrap_or(&plan.meta.title),
            MAX_LINE_CHARS,
        )
    }))
}

fn blocked(scope: &Scope<'_>, task: &Task, has_blocked: bool) -> Result<Vec<String>, ToolError> {
    let mut blockers = Vec::new();
    if has_blocked {
        let id = &task.meta.id;
        for step in of_root::<Step>(
            scope.db(),
            &scope.workspace,
            id,
            step_status::BLOCKED,
            From::Oldest,
            MAX_BLOCKERS,
        )? {
            let path = scope.placed_path(&step)?;
            let reason = step.record.block_reason.as_deref().unwrap_or("no reason given");
            blockers.push(short(
                &format!("step {path} is blocked: {reason}"),
                MAX_LINE_CHARS,
            ));
        }
    }
    Ok(blockers)
}

fn at_step(meta: &Meta, step: &Located<Step>, radar: &mut Radar) {
    let path = &step.path;
    let now = format!("{} {} at {path}: {}", meta.id, meta.status, step.record.title);
    radar.now = short(&now, MAX_LINE_CHARS);
    radar.step = Some(StepRef::new(&step.record.id, path));
    radar.verify = verify(&step.record);
    let words = step
        .record
        .blockers
        .iter()
        .map(|blocker| short(&format!("step {path}: {blocker}"), MAX_LINE_CHARS));
    radar.blockers.extend(words);
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
    short(&lines.collect::<Vec<_>>().join(" | "), MAX_LINE_CHARS)
}

/// The radar of a plan: that of the task at hand, with the plan's purpose and counts.
fn of_plan(scope: &Scope<'_>, plan: &Plan) -> Result<Radar, ToolError> {
    let (task, outlook) = work::of_plan(scope, plan, None)?;
    let task = match task {
        Some(task) => scope.get::<Task>(&task)?,
        None => None,
    };
    let mut radar = match &task {
        Some(task) => about_task(scope, task)?,
        None => Radar::default(),
    };
    let meta = task.as_ref().map_or(&plan.meta, |task| &task.meta);
    at_hand(scope, meta, &outlook, &mut radar)?;
    let promise = plan.contract.as_deref().or(plan.meta.description.as_deref());
    radar.why = short(promise.unwrap_or(&plan.meta.title), MAX_LINE_CHARS);
    radar.progress = None;
    radar.horizon = Some(horizon(scope, &plan.meta.id)?);
    Ok(radar)
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
            Some(Status::Done) => horizon.done += count,
            Some(Status::Canceled) => horizon.canceled += count,
            None => continue,
        }
        horizon.total += count;
    }
    Ok(horizon)
}
