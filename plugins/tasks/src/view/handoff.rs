//! The handoff report: done, remaining, risks.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::ToolError;

use super::radar::{self, Radar};
use crate::budget::{Shrink, View};
use crate::dependency::{self, Dependency};
use crate::limits::short;
use crate::model::{RootKind, Status};
use crate::record::{Meta, Root, Step, Task, step_status};
use crate::scope::Scope;
use crate::store::record::{From, of_plan as of_plan_steps, of_root};
use crate::store::root::{Head, Wanted, page};

/// Characters of one line.
const MAX_LINE_CHARS: usize = 200;
/// Most finished tasks of a plan whose dependencies are examined.
const MAX_TASKS: usize = 200;

/// Handoff report.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Handoff {
    /// The plan or task.
    pub task: String,
    /// Revision, for `expected_revision` of the next write.
    pub revision: i64,
    /// Finished work.
    pub done: Vec<String>,
    /// Remaining work, in order.
    pub remaining: Vec<String>,
    /// Risks: forced, blocked or stale work.
    pub risks: Vec<String>,
    /// Current state.
    pub radar: Radar,
}

impl View for Handoff {
    const ORDER: &'static [Shrink] = &[
        Shrink::End("radar.next_calls"),
        Shrink::End("done"),
        Shrink::End("remaining"),
        Shrink::Drop("radar.horizon"),
        Shrink::Drop("radar.progress"),
        Shrink::End("risks"),
        Shrink::End("radar.blockers"),
        Shrink::Drop("radar.why"),
        Shrink::Drop("radar.verify"),
        Shrink::Drop("radar.step"),
        Shrink::Drop("radar"),
    ];
}

/// The handoff of a plan or task, each list at most `limit` long.
pub(crate) fn of(scope: &Scope<'_>, id: &str, limit: usize) -> Result<Handoff, ToolError> {
    let root = scope.root(id)?;
    let radar = radar::of(scope, id)?;
    let mut handoff = Handoff {
        task: id.to_owned(),
        revision: radar.revision,
        radar,
        ..Handoff::default()
    };
    handoff.risks = waiting(scope, root.meta())?;
    match root {
        Root::Task(_) => of_task(scope, id, limit, &mut handoff)?,
        Root::Plan(_) => of_plan(scope, id, limit, &mut handoff)?,
    }
    handoff.risks.truncate(limit);
    Ok(handoff)
}

fn waiting(scope: &Scope<'_>, meta: &Meta) -> Result<Vec<String>, ToolError> {
    let open = dependency::of(scope, meta)?
        .into_iter()
        .filter(Dependency::is_open);
    Ok(open
        .map(|dependency| {
            let status = dependency.status.map_or("deleted", Status::as_str);
            match meta.status.is_finished() {
                true => format!(
                    "{} is {}, but depends on {}, which is {status}",
                    meta.id, meta.status, dependency.id
                ),
                false => format!("waits for {}", dependency.id),
            }
        })
        .collect())
}

fn of_task(scope: &Scope<'_>, id: &str, limit: usize, handoff: &mut Handoff) -> Result<(), ToolError> {
    let steps = |status: &str, from: From| -> Result<Vec<(String, Step)>, ToolError> {
        of_root::<Step>(scope.db(), &scope.workspace, id, status, from, limit)?
            .into_iter()
            .map(|step| {
                let path = scope.placed_path(&step)?;
                Ok((
                    short(&format!("{path} {}", step.record.title), MAX_LINE_CHARS),
                    step.record,
                ))
            })
            .collect()
    };
    handoff.done.extend(
        steps(step_status::DONE, From::Latest)?
            .into_iter()
            .map(|(line, _)| line),
    );
    for (line, step) in steps(step_status::FORCED, From::Latest)? {
        let why = step.forced.as_deref().unwrap_or("unconfirmed");
        handoff.risks.push(short(
            &format!("{line}: closed without its checkpoints: {why}"),
            MAX_LINE_CHARS,
        ));
        handoff.done.push(line);
    }
    for (line, step) in steps(step_status::OPEN, From::Oldest)? {
        if let Some(why) = &step.reopen_reason {
            handoff
                .risks
                .push(short(&format!("{line}: reopened: {why}"), MAX_LINE_CHARS));
        }
        handoff.remaining.push(line);
    }
    for (line, step) in steps(step_status::BLOCKED, From::Oldest)? {
        let why = step.block_reason.as_deref().unwrap_or("no reason given");
        handoff
            .risks
            .push(short(&format!("{line}: blocked: {why}"), MAX_LINE_CHARS));
        handoff.remaining.push(line);
    }
    handoff.done.truncate(limit);
    handoff.remaining.truncate(limit);
    Ok(())
}

fn of_plan(scope: &Scope<'_>, id: &str, limit: usize, handoff: &mut Handoff) -> Result<(), ToolError> {
    let stale = scope.now().plus_ms(-scope.config.stale_ms());
    // Started tasks come first, and only as many are read as are listed.
    let tasks = |statuses: &[Status]| -> Result<Vec<Head>, ToolError> {
        let mut heads = Vec::new();
        for status in statuses {
            let wanted = Wanted {
                kind: RootKind::Task,
                plan: Some(id),
                statuses: std::slice::from_ref(status),
                after: 0,
                limit: limit.saturating_sub(heads.len()),
            };
            if wanted.limit > 0 {
                heads.extend(page(scope.db(), &scope.workspace, &wanted)?);
            }
        }
        Ok(heads)
    };
    let line = |head: &Head| {
        let status = head.status.map_or("", Status::as_str);
        short(&format!("{} {status} {}", head.id, head.title), MAX_LINE_CHARS)
    };
    for head in tasks(&[Status::Done, Status::Canceled])? {
        handoff.done.push(line(&head));
    }
    handoff.risks.extend(of_steps(scope, id, limit)?);
    handoff.risks.extend(done_over_open(scope, id)?);
    for head in tasks(&[Status::Active, Status::Todo, Status::Parked])? {
        let told = line(&head);
        if head.status == Some(Status::Parked)
            && let Some(why) = scope
                .get::<Task>(&head.id)?
                .and_then(|task| task.meta.status_reason)
        {
            handoff
                .risks
                .push(short(&format!("{told}: parked: {why}"), MAX_LINE_CHARS));
        }
        if head.touched_at < stale && head.status != Some(Status::Parked) {
            handoff.risks.push(short(
                &format!("{told}: unchanged since {}", head.touched_at),
                MAX_LINE_CHARS,
            ));
        }
        handoff.remaining.push(told);
    }
    Ok(())
}

/// Risks of the steps of a plan's tasks: blocked ones, those closed without their checkpoints, and reopened ones.
fn of_steps(scope: &Scope<'_>, plan: &str, limit: usize) -> Result<Vec<String>, ToolError> {
    let mut risks = Vec::new();
    for status in [step_status::BLOCKED, step_status::FORCED, step_status::OPEN] {
        for step in of_plan_steps::<Step>(scope.db(), &scope.workspace, plan, status, From::Oldest, limit)? {
            let path = scope.placed_path(&step)?;
            let step = step.record;
            if scope.head(&step.task)?.status == Some(Status::Canceled) {
                continue;
            }
            let why = match status {
                step_status::OPEN => match &step.reopen_reason {
                    Some(reason) => format!("reopened: {reason}"),
                    None => continue,
                },
                step_status::BLOCKED => {
                    format!(
                        "blocked: {}",
                        step.block_reason.as_deref().unwrap_or("no reason given")
                    )
                }
                _ => format!(
                    "closed without its checkpoints: {}",
                    step.forced.as_deref().unwrap_or("unconfirmed")
                ),
            };
            risks.push(short(
                &format!("{} {path} {}: {why}", step.task, step.title),
                MAX_LINE_CHARS,
            ));
        }
    }
    Ok(risks)
}

/// Finished tasks whose dependencies were reopened.
fn done_over_open(scope: &Scope<'_>, plan: &str) -> Result<Vec<String>, ToolError> {
    let wanted = Wanted {
        kind: RootKind::Task,
        plan: Some(plan),
        statuses: &[Status::Done],
        after: 0,
        limit: MAX_TASKS,
    };
    let mut risks = Vec::new();
    for head in page(scope.db(), &scope.workspace, &wanted)? {
        if let Some(task) = scope.get::<Task>(&head.id)? {
            risks.extend(waiting(scope, &task.meta)?);
        }
    }
    Ok(risks)
}
