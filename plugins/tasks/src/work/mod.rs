//! Work that can be done now. The queue, the radar, the reports and the replies of writes all ask this module, so
//! that they never disagree.

mod offer;
mod queue;
mod search;

use serde_json::json;
use tollgate_sdk::{NextCall, ToolError};

pub(crate) use self::offer::{is_proven, node_call, show_root, show_step, sign, step_call};
pub(crate) use self::queue::{Limits, Ready, queue};
pub(crate) use self::search::of_task;

use crate::dependency::{self, Dependency};
use crate::limits::short;
use crate::model::Status;
use crate::record::{Meta, Node, Plan, Root, Step, Task};
use crate::reply::{NodeRef, StepRef};
use crate::scope::{Located, Scope};
use crate::store::root::{count_open, count_tasks};

/// Characters of one line.
const MAX_LINE_CHARS: usize = 240;

/// A piece of work that can be done now.
#[derive(Debug, Clone)]
#[allow(
    clippy::large_enum_variant,
    reason = "one piece is held at a time, and sizes differ by target"
)]
pub(crate) enum Piece {
    /// A step with nothing open below it.
    Step(Located<Step>),
    /// An open node, with its step.
    Node(Located<Step>, Located<Node>),
    /// A step that was closed without its checkpoints.
    Confirm(Located<Step>),
    /// A task or plan with nothing open below it.
    Complete(Meta),
}

/// Obstacle to the work on a plan or task.
#[derive(Debug, Clone)]
pub(crate) enum Wait {
    /// The plan or task, or the task's plan, is parked or finished.
    Standing {
        id: String,
        status: Status,
        /// Reason for the status, if one was given.
        reason: Option<String>,
    },
    /// A dependency is open or deleted. `of` is the plan or task that depends on it.
    Dependency {
        of: Meta,
        on: Dependency,
    },
    Blocked(Located<Step>),
    Held {
        step: Located<Step>,
        owner: String,
    },
    /// All open nodes of a step are parked.
    Parked(Located<Step>, Located<Node>),
    /// The plan has no tasks, or the task no steps.
    Empty(Meta),
    /// Every task of the plan is canceled.
    Undone(Meta),
    /// The plan's open tasks are parked or wait.
    Tasks {
        plan: String,
        open: usize,
    },
}

/// The work on a plan or task: the first piece, or else everything that it waits for.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    pub piece: Option<Piece>,
    /// Obstacles that were met before the piece was found, or all if there is no piece.
    pub waits: Vec<Wait>,
}

impl Outlook {
    fn waiting(waits: Vec<Wait>) -> Outlook {
        Outlook { piece: None, waits }
    }
}

impl Piece {
    /// The step that the piece belongs to.
    pub(crate) const fn step(&self) -> Option<&Located<Step>> {
        match self {
            Piece::Step(step) | Piece::Node(step, _) | Piece::Confirm(step) => Some(step),
            Piece::Complete(_) => None,
        }
    }

    pub(crate) fn step_ref(&self) -> Option<StepRef> {
        self.step().map(|step| StepRef::new(&step.record.id, &step.path))
    }

    pub(crate) fn node_ref(&self) -> Option<NodeRef> {
        match self {
            Piece::Node(_, node) => Some(NodeRef::new(&node.record.id, &node.path)),
            _ => None,
        }
    }

    /// Title of the step, node, task or plan.
    pub(crate) fn title(&self) -> &str {
        match self {
            Piece::Step(step) | Piece::Confirm(step) => &step.record.title,
            Piece::Node(_, node) => &node.record.title,
            Piece::Complete(meta) => &meta.title,
        }
    }

    /// The action, in one sentence.
    pub(crate) fn action(&self) -> String {
        let line = match self {
            Piece::Step(step) => match &step.record.reopen_reason {
                Some(reason) => format!(
                    "Do {} again, which was reopened: {}. Attach evidence, then confirm and close it.",
                    step.path,
                    short(reason, MAX_LINE_CHARS - 100)
                ),
                None => format!("Do {}, attach evidence, then confirm and close it.", step.path),
            },
            Piece::Node(_, node) => format!("Finish node {}: {}", node.path, node.record.title),
            Piece::Confirm(step) => format!(
                "Check {}, which was closed without its checkpoints, then confirm them.",
                step.path
            ),
            Piece::Complete(meta) if meta.id.starts_with("PLAN") => {
                "Every task is finished; complete the plan.".to_owned()
            }
            Piece::Complete(_) => "Every step is closed; complete the task.".to_owned(),
        };
        short(&line, MAX_LINE_CHARS)
    }

    /// The action with its title, for the reply of a write.
    pub(crate) fn line(&self) -> String {
        let line = match self {
            Piece::Step(step) => format!("Do {}: {}", step.path, step.record.title),
            Piece::Node(_, node) => format!("Finish node {}: {}", node.path, node.record.title),
            Piece::Confirm(step) => format!("Check and confirm {}: {}", step.path, step.record.title),
            Piece::Complete(meta) => format!("Complete {}: {}", meta.id, meta.title),
        };
        short(&line, 120)
    }

    /// The call that works on the piece. For work that nobody began it is the call that starts or shows it.
    pub(crate) fn call(&self, scope: &Scope<'_>, owner: Option<&str>) -> Result<NextCall, ToolError> {
        Ok(match self {
            Piece::Step(step) => step_call(scope, step, owner)?,
            Piece::Node(_, node) => signed(scope, node_call(scope, &node.record), owner),
            Piece::Confirm(step) => show_step(scope, &step.record),
            Piece::Complete(meta) => {
                let arguments = json!({"workspace": scope.workspace, "task": meta.id});
                signed(scope, NextCall::new("tasks_complete", arguments), owner)
            }
        })
    }
}

impl Wait {
    /// The status of a plan or task as an obstacle.
    fn standing(meta: &Meta) -> Wait {
        Wait::Standing {
            id: meta.id.clone(),
            status: meta.status,
            reason: meta.status_reason.clone(),
        }
    }

    /// The obstacle as the end of a sentence that starts with "waits for".
    pub(crate) fn line(&self) -> String {
        let line = match self {
            Wait::Standing { id, status, reason } => format!("{id}, which is {status}{}", because(reason)),
            Wait::Dependency { on, .. } => format!("{}, which is {}", on.id, status(on)),
            Wait::Blocked(step) => {
                let reason = step.record.block_reason.as_deref().unwrap_or("no reason given");
                format!("step {}, which is blocked: {reason}", step.path)
            }
            Wait::Held { step, owner } => format!("step {}, which is leased to {owner}", step.path),
            Wait::Parked(_, node) => format!("node {}, which is {}", node.path, node.record.status),
            Wait::Empty(meta) if meta.id.starts_with("PLAN") => "a task: the plan has none".to_owned(),
            Wait::Empty(_) => "an open step: the task has none".to_owned(),
            Wait::Undone(_) => "a DONE task, but all tasks are canceled".to_owned(),
            Wait::Tasks { open, .. } => format!("its unfinished tasks ({open}), none of which can start"),
        };
        short(&line, MAX_LINE_CHARS)
    }

    /// The obstacle as a blocker of the radar. Blocked steps are listed there already.
    pub(crate) fn blocker(&self) -> Option<String> {
        let line = match self {
            Wait::Dependency { of, on } => format!("{} depends on {}, which is {}", of.id, on.id, status(on)),
            Wait::Held { step, owner } => format!("step {} is leased to {owner}", step.path),
            Wait::Standing { id, status, reason } => format!("{id} is {status}{}", because(reason)),
            Wait::Parked(_, node) => format!("node {} is {}", node.path, node.record.status),
            Wait::Blocked(_) | Wait::Empty(_) | Wait::Undone(_) | Wait::Tasks { .. } => return None,
        };
        Some(short(&line, MAX_LINE_CHARS))
    }

    /// The next action, in one sentence.
    pub(crate) fn action(&self) -> String {
        let line = match self {
            Wait::Standing { id, status, .. } if status.is_finished() => {
                format!("Nothing, because {id} is {status}.")
            }
            Wait::Standing { id, status, .. } => {
                format!(
                    "Nothing, because {id} is {status}; set it to ACTIVE with tasks_complete to continue."
                )
            }
            Wait::Dependency { on, .. } if on.status.is_none() => {
                format!("Remove the dependency on {}, which is deleted.", on.id)
            }
            Wait::Dependency { on, .. } => format!("Finish {} first, which is {}.", on.id, status(on)),
            Wait::Blocked(step) => format!("Remove the obstacle of {}, then unblock it.", step.path),
            Wait::Held { step, owner } => format!("Wait for {owner}, who has leased step {}.", step.path),
            Wait::Parked(_, node) => format!("Continue node {}, which is {}.", node.path, node.record.status),
            Wait::Empty(meta) if meta.id.starts_with("PLAN") => {
                "Add a task with tasks_create or tasks_bootstrap.".to_owned()
            }
            Wait::Empty(_) => "Add steps with tasks_decompose.".to_owned(),
            Wait::Undone(_) => "Cancel the plan, or add a task; all of its tasks are canceled.".to_owned(),
            Wait::Tasks { .. } => "No task can start; check parked tasks and dependencies.".to_owned(),
        };
        short(&line, MAX_LINE_CHARS)
    }

    /// The call that removes the obstacle or shows it. It never starts anything that was put aside or blocked.
    pub(crate) fn call(&self, scope: &Scope<'_>) -> NextCall {
        let task =
            |tool: &str, id: &str| NextCall::new(tool, json!({"workspace": scope.workspace, "task": id}));
        match self {
            Wait::Standing { id, .. } => show_root(scope, id),
            Wait::Empty(meta) | Wait::Undone(meta) => show_root(scope, &meta.id),
            Wait::Dependency { of, on } if on.status.is_none() => show_root(scope, &of.id),
            Wait::Dependency { on, .. } => task("tasks_radar", &on.id),
            Wait::Blocked(step) | Wait::Held { step, .. } | Wait::Parked(step, _) => {
                show_step(scope, &step.record)
            }
            Wait::Tasks { plan, .. } => {
                NextCall::new("tasks_next", json!({"workspace": scope.workspace, "plan": plan}))
            }
        }
    }
}

/// A reason as the end of a sentence.
fn because(reason: &Option<String>) -> String {
    reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {reason}"))
}

fn status(dependency: &Dependency) -> &'static str {
    dependency.status.map_or("deleted", Status::as_str)
}

/// Open dependencies of a plan or task.
fn dependencies(scope: &Scope<'_>, meta: &Meta) -> Result<Vec<Wait>, ToolError> {
    let open = dependency::of(scope, meta)?
        .into_iter()
        .filter(Dependency::is_open);
    Ok(open.map(|on| Wait::Dependency { of: meta.clone(), on }).collect())
}

/// Obstacles of a plan that stop all of its tasks: its status and its dependencies.
pub(crate) fn plan_waits(scope: &Scope<'_>, plan: &Meta) -> Result<Vec<Wait>, ToolError> {
    if matches!(plan.status, Status::Todo | Status::Active) {
        return dependencies(scope, plan);
    }
    Ok(vec![Wait::standing(plan)])
}

/// The work on a plan: its first ready task's piece, or its completion.
pub(crate) fn of_plan(
    scope: &Scope<'_>,
    plan: &Plan,
    owner: Option<&str>,
) -> Result<(Option<String>, Outlook), ToolError> {
    let id = &plan.meta.id;
    let waits = plan_waits(scope, &plan.meta)?;
    if !waits.is_empty() {
        return Ok((None, Outlook::waiting(waits)));
    }
    let first = Limits { ready: 1, waiting: 0 };
    let found = queue(scope, Some(id), owner, first)?;
    if let Some(ready) = found.ready.into_iter().next() {
        let task = (ready.root.id != *id).then_some(ready.root.id);
        let outlook = Outlook {
            piece: Some(ready.piece),
            waits: ready.waits,
        };
        return Ok((task, outlook));
    }
    let first = Limits { ready: 0, waiting: 1 };
    if let Some((task, waits)) = queue(scope, Some(id), owner, first)?.waiting.into_iter().next() {
        return Ok((Some(task.id), Outlook::waiting(waits)));
    }
    let open = count_open(scope.db(), &scope.workspace, id)?;
    let counts = count_tasks(scope.db(), &scope.workspace, id)?;
    let is_empty = counts.iter().all(|(status, _)| status.is_none());
    let wait = if is_empty {
        Wait::Empty(plan.meta.clone())
    } else {
        Wait::Tasks {
            plan: id.clone(),
            open,
        }
    };
    Ok((None, Outlook::waiting(vec![wait])))
}

/// Next step, as a line with its call.
#[derive(Debug, Default)]
pub(crate) struct Upcoming {
    pub line: Option<String>,
    pub call: Option<NextCall>,
}

/// Next step after a write on a plan, a task or one of its steps. After the last piece of a task, this is the plan's
/// next step.
pub(crate) fn upcoming(
    scope: &Scope<'_>,
    root: &Root,
    step: Option<&str>,
    owner: Option<&str>,
) -> Result<Upcoming, ToolError> {
    if let (Root::Task(task), Some(step)) = (root, step)
        && let Some(piece) = at_step(scope, task, step, owner)?
    {
        return begun(scope, &piece, owner);
    }
    let outlook = match root {
        Root::Task(task) if task.meta.status.is_finished() => match scope.get::<Plan>(&task.plan)? {
            Some(plan) => of_plan(scope, &plan, owner)?.1,
            None => Outlook::default(),
        },
        Root::Task(task) => of_task(scope, task, owner)?,
        Root::Plan(plan) => of_plan(scope, plan, owner)?.1,
    };
    match (outlook.piece, outlook.waits.first()) {
        (Some(piece), _) => begun(scope, &piece, owner),
        (None, Some(wait)) => Ok(Upcoming {
            line: Some(wait.action()),
            call: Some(wait.call(scope)),
        }),
        (None, None) => Ok(Upcoming::default()),
    }
}

/// The call that ends work which was begun: a step with evidence, or a plan or task with everything closed. For other
/// work there is none, because a view that shows the work is not answered with the call that shows it.
pub(crate) fn at_hand(
    scope: &Scope<'_>,
    root: &Root,
    step: Option<&str>,
) -> Result<Option<NextCall>, ToolError> {
    let call = upcoming(scope, root, step, None)?.call;
    Ok(call.filter(|call| call.tool != "tasks_show"))
}

fn at_step(
    scope: &Scope<'_>,
    task: &Task,
    step: &str,
    owner: Option<&str>,
) -> Result<Option<Piece>, ToolError> {
    let Some(record) = scope.get::<Step>(step)? else {
        return Ok(None);
    };
    let path = scope.step_path(step)?;
    search::of_step(scope, task, &Located { record, path }, owner)
}

/// A call with the name of the caller.
fn signed(scope: &Scope<'_>, mut call: NextCall, actor: Option<&str>) -> NextCall {
    sign(scope, &mut call, actor);
    call
}

fn begun(scope: &Scope<'_>, piece: &Piece, owner: Option<&str>) -> Result<Upcoming, ToolError> {
    let call = piece.call(scope, owner)?;
    let line = match call.tool.as_str() {
        "tasks_close_step" | "tasks_done" => short(
            &format!("Close {}", piece.line().trim_start_matches("Do ")),
            MAX_LINE_CHARS,
        ),
        _ => piece.line(),
    };
    Ok(Upcoming {
        line: Some(line),
        call: Some(call),
    })
}
