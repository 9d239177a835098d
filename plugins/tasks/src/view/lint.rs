//! Lint: problems of a plan or task, each with a call that is accepted as it is. The call fixes the problem, or shows
//! what has to be decided or written first.

mod broken;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};
use tollgate_sdk::{NextCall, ToolError, text_enum};

use crate::budget::{Shrink, View};
use crate::checkpoint;
use crate::closing;
use crate::dependency;
use crate::lease;
use crate::limits::short;
use crate::model::{RootKind, Status};
use crate::record::{Lease, Meta, Plan, Root, Step, Task, step_status};
use crate::scope::{Located, Scope};
use crate::store;
use crate::store::record::{From, of_root};
use crate::store::root::{Head, Wanted, page};
use crate::work;

/// Most tasks of a plan that are examined.
const MAX_TASKS: usize = 200;
/// Most open steps of one task that are examined.
const MAX_STEPS_PER_TASK: usize = 50;
/// Most steps that are examined in total.
const MAX_ALL_STEPS: usize = 1_000;

text_enum! {
    /// Severity of an issue.
    pub(crate) enum Severity {
        Error = "error",
        Warning = "warning",
        Info = "info",
    }
}

/// Problem of a plan, task or step.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Issue {
    /// Stable code in UPPER_SNAKE_CASE.
    pub code: &'static str,
    /// Severity of an issue.
    pub severity: Severity,
    /// Id of the plan, task or step.
    pub target: String,
    /// Message in one sentence.
    pub message: String,
    /// Recommended fix.
    pub recovery: String,
    /// Call that fixes the issue, or shows what has to be decided or written first.
    pub patch: NextCall,
}

/// Problems of a plan or task.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Lint {
    /// The plan or task.
    pub task: String,
    /// True if there is no issue of severity error.
    pub ok: bool,
    /// Issues, by target.
    pub issues: Vec<Issue>,
    /// True if tasks or steps beyond the limits of one call were skipped.
    pub partial: bool,
}

impl View for Lint {
    const ORDER: &'static [Shrink] = &[Shrink::End("issues")];
}

/// Examines a plan with its tasks, or a task.
pub(crate) fn of(scope: &Scope<'_>, id: &str) -> Result<Lint, ToolError> {
    let head = scope.head(id)?;
    let mut linter = Linter {
        scope,
        issues: Vec::new(),
        steps_left: MAX_ALL_STEPS,
        partial: false,
    };
    match scope.root(id)? {
        Root::Task(task) => {
            linter.task(&head, &task)?;
            linter.open_in_finished_plan(&task)?;
        }
        Root::Plan(plan) => linter.plan(&head, &plan)?,
    }
    linter.active_limit(&head)?;
    Ok(Lint {
        task: id.to_owned(),
        ok: linter
            .issues
            .iter()
            .all(|issue| issue.severity != Severity::Error),
        issues: linter.issues,
        partial: linter.partial,
    })
}

struct Linter<'a> {
    scope: &'a Scope<'a>,
    issues: Vec<Issue>,
    steps_left: usize,
    partial: bool,
}

impl Linter<'_> {
    fn add(
        &mut self,
        code: &'static str,
        severity: Severity,
        target: &str,
        message: String,
        patch: NextCall,
    ) {
        self.issues.push(Issue {
            code,
            severity,
            target: target.to_owned(),
            message,
            recovery: recovery(code).to_owned(),
            patch,
        });
    }

    /// A call in this workspace.
    fn call(&self, tool: &str, mut arguments: Json) -> NextCall {
        arguments["workspace"] = json!(self.scope.workspace);
        NextCall::new(tool, arguments)
    }

    fn plan(&mut self, head: &Head, plan: &Plan) -> Result<(), ToolError> {
        let id = &plan.meta.id;
        self.root(head, &Root::Plan(plan.clone()))?;
        if plan.current > plan.steps.len() {
            let message = format!(
                "current is {}, but the checklist has {} entries",
                plan.current,
                plan.steps.len()
            );
            let patch = self.call("tasks_plan", json!({"plan": id, "current": plan.steps.len()}));
            self.add(
                "CHECKLIST_INDEX_OUT_OF_RANGE",
                Severity::Error,
                id,
                message,
                patch,
            );
        }
        let wanted = Wanted {
            kind: RootKind::Task,
            plan: Some(id),
            statuses: Status::ALL,
            after: 0,
            limit: MAX_TASKS + 1,
        };
        let mut tasks = page(self.scope.db(), &self.scope.workspace, &wanted)?;
        if tasks.is_empty() && !plan.meta.status.is_finished() {
            let patch = work::show_root(self.scope, id);
            self.add(
                "EMPTY_PLAN",
                Severity::Warning,
                id,
                format!("{id} has no task"),
                patch,
            );
        }
        self.finished_over_open(&plan.meta, &tasks)?;
        self.partial |= tasks.len() > MAX_TASKS;
        tasks.truncate(MAX_TASKS);
        for head in tasks {
            if let Some(task) = self.scope.get::<Task>(&head.id)? {
                self.task(&head, &task)?;
            }
        }
        Ok(())
    }

    fn task(&mut self, head: &Head, task: &Task) -> Result<(), ToolError> {
        self.root(head, &Root::Task(task.clone()))?;
        let (scope, id) = (self.scope, &task.meta.id);
        let counts = store::record::count_by_status(scope.db(), &scope.workspace, id, store::Kind::Step)?;
        let open = counts
            .iter()
            .any(|(status, _)| [step_status::OPEN, step_status::BLOCKED].contains(&status.as_str()));
        if counts.is_empty() && !task.meta.status.is_finished() {
            let patch = work::show_root(scope, id);
            self.add(
                "NO_STEPS",
                Severity::Warning,
                id,
                format!("{id} has no step"),
                patch,
            );
        } else if task.meta.status == Status::Active && !open {
            let outlook = work::of_task(scope, task, None)?;
            let patch = match (&outlook.piece, outlook.waits.first()) {
                (Some(piece), _) => piece.call(scope, None)?,
                (None, Some(wait)) => wait.call(scope),
                (None, None) => work::show_root(scope, id),
            };
            self.add(
                "ACTIVE_NO_OPEN_STEPS",
                Severity::Info,
                id,
                format!("{id} is ACTIVE and every step is closed"),
                patch,
            );
        }
        if task.meta.status == Status::Done && open {
            self.done_with_open_steps(task)?;
        }
        self.open_below_closed(task)?;
        self.unconfirmed_evidence(task)?;
        for status in [step_status::OPEN, step_status::BLOCKED, step_status::FORCED] {
            let most = MAX_STEPS_PER_TASK.min(self.steps_left);
            let mut steps = of_root::<Step>(
                scope.db(),
                &scope.workspace,
                id,
                status,
                From::Oldest,
                most.saturating_add(1),
            )?;
            self.partial |= steps.len() > most;
            steps.truncate(most);
            self.steps_left = self.steps_left.saturating_sub(steps.len());
            for step in steps {
                let path = scope.placed_path(&step)?;
                let record = step.record;
                self.step(&Located { record, path })?;
            }
        }
        Ok(())
    }

    fn step(&mut self, located: &Located<Step>) -> Result<(), ToolError> {
        let (step, path) = (&located.record, &located.path);
        let name = format!("step {path} {}", short(&step.title, 60));
        if step.is_done() {
            let missing = checkpoint::missing(step, &BTreeSet::new());
            let patch = closing::confirm_or_show(self.scope, located, &missing)?;
            self.add(
                "UNCONFIRMED_DONE",
                Severity::Error,
                &step.id,
                format!("{name} is closed without confirmed checkpoints"),
                patch,
            );
            return Ok(());
        }
        let show = || work::show_step(self.scope, step);
        let mut issues = Vec::new();
        if step.success_criteria.is_empty() {
            issues.push(("MISSING_CRITERIA", format!("{name} has no success criteria")));
        }
        if step.tests.is_empty() {
            issues.push(("MISSING_TESTS", format!("{name} has no tests")));
        }
        if step.blocked {
            let reason = step.block_reason.as_deref().unwrap_or("no reason given");
            issues.push((
                "BLOCKED_STEPS",
                short(&format!("{name} is blocked: {reason}"), 300),
            ));
        }
        let issues: Vec<_> = issues.into_iter().map(|issue| (issue, show())).collect();
        for ((code, message), patch) in issues {
            self.add(code, Severity::Warning, &step.id, message, patch);
        }
        Ok(())
    }

    /// Checks that apply to plans and tasks.
    fn root(&mut self, head: &Head, root: &Root) -> Result<(), ToolError> {
        let (scope, meta) = (self.scope, root.meta());
        for dependency in dependency::of(scope, meta)?
            .iter()
            .filter(|dependency| dependency.status.is_none())
        {
            let patch = dependency::without(scope, meta, &dependency.id);
            let message = format!("{} depends on {}, which was deleted", meta.id, dependency.id);
            self.add("ORPHAN_DEPENDENCY", Severity::Error, &meta.id, message, patch);
        }
        if let Some(circle) = dependency::circle(scope, meta)?
            && let Some(first) = circle.get(1)
        {
            let patch = dependency::without(scope, meta, first);
            let message = format!("dependencies form a cycle: {}", circle.join(" → "));
            self.add("DEPENDENCY_CYCLE", Severity::Error, &meta.id, message, patch);
        }
        self.over_open_dependencies(root)?;
        let stale = scope.now().plus_ms(-scope.config.stale_ms());
        if is_under_way(meta) && head.touched_at < stale {
            let patch = self.call("tasks_complete", json!({"task": meta.id, "status": "PARKED"}));
            let message = format!("{} is unchanged since {}", meta.id, head.touched_at);
            self.add("STALE_TASK", Severity::Info, &meta.id, message, patch);
        }
        Ok(())
    }

    fn active_limit(&mut self, head: &Head) -> Result<(), ToolError> {
        let (scope, limit) = (self.scope, self.scope.config.active_limit);
        let active = store::root::count(scope.db(), &scope.workspace, RootKind::Task, Status::Active)?;
        if active > limit {
            let wanted = Wanted {
                kind: RootKind::Task,
                plan: None,
                statuses: &[Status::Active],
                after: 0,
                limit: MAX_TASKS,
            };
            let mut tasks = page(scope.db(), &scope.workspace, &wanted)?;
            // Of other work than the examined one, and of work that somebody holds, nothing is known.
            tasks.retain(|task| task.id == head.id || task.plan.as_deref() == Some(head.id.as_str()));
            tasks.sort_by_key(|task| (task.touched_at, task.number));
            let mut stalest = None;
            for task in tasks {
                if stalest.is_none() && !is_held(scope, &task.id)? {
                    stalest = Some(task.id);
                }
            }
            let patch = match &stalest {
                Some(park) => self.call("tasks_complete", json!({"task": park, "status": "PARKED"})),
                None => self.call("tasks_next", json!({})),
            };
            let target = stalest.as_deref().unwrap_or(&head.id);
            let message = format!("{active} tasks are ACTIVE; at most {limit} are recommended");
            self.add("ACTIVE_LIMIT_EXCEEDED", Severity::Warning, target, message, patch);
        }
        Ok(())
    }
}

/// Returns whether somebody holds a step of a task.
fn is_held(scope: &Scope<'_>, task: &str) -> Result<bool, ToolError> {
    let (db, workspace) = (scope.db(), &scope.workspace);
    let leases = of_root::<Lease>(db, workspace, task, "", From::Oldest, usize::MAX)?;
    Ok(leases
        .iter()
        .any(|held| lease::left(scope, &held.record).is_some()))
}

fn is_under_way(meta: &Meta) -> bool {
    matches!(meta.status, Status::Todo | Status::Active)
}

fn recovery(code: &str) -> &'static str {
    match code {
        "NO_STEPS" => "Add steps with criteria and tests with tasks_decompose.",
        "MISSING_CRITERIA" => "Add the criteria for done with tasks_define.",
        "MISSING_TESTS" => "Add the tests that prove the step is done with tasks_define.",
        "BLOCKED_STEPS" => "Remove the obstacle, then unblock the step with tasks_block.",
        "CHECKLIST_INDEX_OUT_OF_RANGE" => "Set current to an entry of the checklist.",
        "ACTIVE_LIMIT_EXCEEDED" => "Finish or park a task before you begin another.",
        "ACTIVE_NO_OPEN_STEPS" => {
            "Complete the task once it is confirmed, or add the remaining work as steps."
        }
        "DEPENDENCY_CYCLE" => "Remove one of the dependencies in the cycle.",
        "ORPHAN_DEPENDENCY" => "Remove the dependency, or replace it.",
        "STALE_TASK" => "Continue or park the plan or task.",
        "EMPTY_PLAN" => "Add a task with tasks_create, or delete the plan.",
        "FINISHED_PLAN_OPEN_TASKS" => "Reopen the plan, then finish its tasks.",
        "DONE_OVER_OPEN_DEPENDENCY" => {
            "Reopen the plan or task that depends on open work, or remove the dependency."
        }
        "ACTIVE_OVER_OPEN_DEPENDENCY" => "Set the plan or task to TODO until its dependencies are finished.",
        "DONE_WITH_OPEN_STEPS" => "Reopen the task, then close its steps.",
        "CLOSED_OVER_OPEN" => "Reopen the step, then close what is below it.",
        "UNCONFIRMED_EVIDENCE" => "Check the evidence, then confirm the checkpoint.",
        _ => "Check the work and confirm the checkpoints, or reopen the step.",
    }
}
