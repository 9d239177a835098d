//! The work queue of a workspace.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, NextCall, Tier, Tool, ToolError};

use super::views::bounded;
use crate::budget::{self, Bounded, Shrink, View};
use crate::closing;
use crate::dependency::{self, Dependency};
use crate::lease;
use crate::limits::{NAME, short};
use crate::model::{Priority, RootKind, Status, Workspace};
use crate::record::{Step, Task};
use crate::reply::StepRef;
use crate::scope::{Located, Scope};
use crate::store::root::{Wanted, page};
use crate::view::current;

/// Most tasks that one call examines.
const TASKS: usize = 200;

/// Show the work queue of a workspace or plan: ready steps by rank, and blocked tasks with their blockers.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Next {
    workspace: Workspace,
    /// Plan id, to list only its tasks.
    #[schemars(length(max = NAME))]
    plan: Option<String>,
    /// Your name; steps leased to others are blocked.
    #[schemars(length(min = 1, max = NAME))]
    owner: Option<String>,
    /// Entries per list, 1 to 50 (default 5).
    #[schemars(range(min = 1, max = 50))]
    limit: Option<i64>,
    /// Reply size limit in bytes (default 30000).
    max_chars: Option<i64>,
}

/// Ready and blocked work.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Queue {
    /// Steps that are ready to work on, by rank.
    ready: Vec<Ready>,
    /// Tasks without a ready step.
    blocked: Vec<Waiting>,
    /// True if there are more entries of either list.
    has_more: bool,
}

/// A step that is ready to work on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ready {
    /// Id of the step's task.
    task: String,
    /// The ready step.
    step: StepRef,
    /// Title of the step.
    title: String,
    /// Reason for the rank.
    why: String,
    /// The call that closes the step once it is done.
    next_call: NextCall,
}

/// A task that waits.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Waiting {
    /// Id of the task.
    task: String,
    /// Title in one line.
    title: String,
    /// Everything that the task waits for.
    waits_for: Vec<String>,
}

impl View for Queue {
    const ORDER: &'static [Shrink] = &[Shrink::End("blocked"), Shrink::End("ready")];

    fn settle(view: &mut serde_json::Map<String, serde_json::Value>) {
        view.insert("has_more".to_owned(), true.into());
    }
}

impl Tool for Next {
    const NAME: &'static str = "tasks_next";
    const TITLE: &'static str = "Show what to do next";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    type Output = Bounded<Queue>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let limit = bounded("limit", self.limit, 5, 50)?;
        let scope = Scope::known(cx, &self.workspace)?;
        let mut tasks = self.tasks(&scope)?;
        tasks.sort_by_key(rank);
        let mut queue = Queue {
            has_more: tasks.len() >= TASKS,
            ..Queue::default()
        };
        for task in &tasks {
            match look(&scope, task, self.owner.as_deref())? {
                Ok(ready) if queue.ready.len() < limit => queue.ready.push(ready),
                Err(waiting) if queue.blocked.len() < limit => queue.blocked.push(waiting),
                _ => queue.has_more = true,
            }
            if queue.ready.len() >= limit && queue.blocked.len() >= limit {
                queue.has_more = true;
                break;
            }
        }
        budget::fit(&queue, self.max_chars)
    }
}

impl Next {
    fn tasks(&self, scope: &Scope<'_>) -> Result<Vec<Task>, ToolError> {
        if let Some(plan) = &self.plan {
            scope.plan_head(plan)?;
        }
        let mut tasks = Vec::new();
        for statuses in [[Status::Active], [Status::Todo]] {
            let wanted = Wanted {
                kind: RootKind::Task,
                plan: self.plan.as_deref(),
                statuses: &statuses,
                after: 0,
                limit: TASKS - tasks.len(),
            };
            for head in page(scope.db(), &scope.workspace, &wanted)? {
                tasks.extend(scope.get::<Task>(&head.id)?);
            }
        }
        Ok(tasks)
    }
}

/// Sort key: ACTIVE tasks first, then higher priority, then lower number.
fn rank(task: &Task) -> (bool, Reverse<Priority>, i64) {
    (
        task.meta.status != Status::Active,
        Reverse(task.meta.priority),
        task.meta.number,
    )
}

fn look(scope: &Scope<'_>, task: &Task, owner: Option<&str>) -> Result<Result<Ready, Waiting>, ToolError> {
    let open = dependency::of(scope, &task.meta)?
        .into_iter()
        .filter(Dependency::is_open);
    let mut waits_for: Vec<String> = open
        .map(|dependency| {
            let status = dependency.status.map_or("deleted", Status::as_str);
            format!("{}, which is {status}", dependency.id)
        })
        .collect();
    let step = current::step(scope, &task.meta.id)?;
    match &step {
        None => waits_for.push("an open step: the task has none".to_owned()),
        Some(step) => obstacles(scope, step, owner, &mut waits_for)?,
    }
    match step {
        Some(step) if waits_for.is_empty() => Ok(Ok(Ready {
            task: task.meta.id.clone(),
            step: StepRef::new(&step.record.id, &step.path),
            title: short(&step.record.title, 200),
            why: why(task, &step.record),
            next_call: closing::close_call(scope, &step.record),
        })),
        _ => Ok(Err(Waiting {
            task: task.meta.id.clone(),
            title: short(&task.meta.title, 200),
            waits_for,
        })),
    }
}

fn obstacles(
    scope: &Scope<'_>,
    step: &Located<Step>,
    owner: Option<&str>,
    waits_for: &mut Vec<String>,
) -> Result<(), ToolError> {
    if step.record.blocked {
        let reason = step.record.block_reason.as_deref().unwrap_or("no reason given");
        waits_for.push(short(
            &format!("step {}, which is blocked: {reason}", step.path),
            240,
        ));
    }
    if let Some(lease) = lease::live(scope, &step.record.id)?
        && lease::owner(scope, owner) != Some(lease.owner.as_str())
    {
        waits_for.push(short(
            &format!("step {}, which is leased to {}", step.path, lease.owner),
            240,
        ));
    }
    Ok(())
}

fn why(task: &Task, step: &Step) -> String {
    let meta = &task.meta;
    let begun = if meta.status == Status::Active {
        "has been started"
    } else {
        "has no open dependencies"
    };
    let proof = if step.tests.is_empty() {
        ", but the step has no tests"
    } else {
        ""
    };
    format!("{} is {} priority and {begun}{proof}", meta.id, meta.priority)
}
