//! Time of calls on large plans in the pack `tasks`: a plan of 200 tasks with 200 steps each compared with a plan of
//! one task with ten steps. The calls are native, over SQLite in memory, so that no disk hides the difference.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::{Value, json};
use tollgate_sdk::native::Session;

use super::{Setup, per_call};
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, Sample, take_turns};

/// Largest ratio of the large plan's median to the small plan's.
const LIMIT: f64 = 1.5;
/// Calls in one round.
const CALLS: usize = 200;

/// Measured calls: name, tool and target.
const SUBJECTS: [(&str, &str, &str); 5] = [
    ("tasks_radar of a task", "tasks_radar", "TASK-001"),
    ("tasks_radar of a plan", "tasks_radar", "PLAN-001"),
    ("tasks_handoff of a task", "tasks_handoff", "TASK-001"),
    ("tasks_handoff of a plan", "tasks_handoff", "PLAN-001"),
    ("tasks_close_step", "tasks_close_step", "TASK-001"),
];

/// Measures each subject on both plans in turn.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    report.heading("plans of 200 tasks with 200 steps, and of one task with 10");
    let small = Plan::create(1, 10)?;
    let large = Plan::create(200, 200)?;
    for (name, tool, target) in SUBJECTS {
        let round = |plan: &Plan| match tool {
            "tasks_close_step" => plan.closes(),
            _ => plan.reads(tool, target),
        };
        let small_round: Round<'_> = Box::new(|| round(&small));
        let large_round: Round<'_> = Box::new(|| round(&large));
        let [small, large] = take_turns(setup.effort.rounds, [small_round, large_round])?;
        record(report, name, &small, &large);
    }
    Ok(())
}

fn record(report: &mut Report, name: &str, small: &Sample, large: &Sample) {
    report.row(&format!("{name}, small"), small, Unit::Microseconds, small);
    report.row(&format!("{name}, large"), large, Unit::Microseconds, small);
    report.add(Figure {
        name: format!("{name}, large plan"),
        value: Quantity(large.median(), Unit::Microseconds),
        baseline: "small plan",
        baseline_value: Quantity(small.median(), Unit::Microseconds),
        target: Some(Target::at_most(
            "is",
            Quantity(large.median() / small.median(), Unit::Times),
            LIMIT,
        )),
    });
}

/// A plan whose first task has some closed steps.
struct Plan {
    session: Session,
    /// Step that is closed in every call.
    step: String,
}

impl Plan {
    fn create(tasks: usize, steps: usize) -> anyhow::Result<Plan> {
        let db = Connection::open_in_memory().context("a database in memory cannot be opened")?;
        db.set_prepared_statement_cache_capacity(256);
        // Otherwise SQLite prepares a cached statement again whenever its parameters were cleared.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        let plan = Plan {
            session: Session::open(&tasks::PACK, db),
            step: format!("s:{}", steps - 1),
        };
        let titled = |step: usize| json!({"title": format!("Step {step} of some length"), "success_criteria": ["it holds"], "tests": ["cargo test"]});
        let steps: Vec<Value> = (0..steps).map(titled).collect();
        plan.call("tasks_create", json!({"title": "A plan"}))?;
        for task in 0..tasks {
            let title = format!("Task {task} of some length");
            plan.call(
                "tasks_bootstrap",
                json!({"plan": "PLAN-001", "task_title": title, "steps": steps}),
            )?;
        }
        for closed in 0..5 {
            let close = json!({"task": "TASK-001", "path": format!("s:{closed}"), "checkpoints": "gate"});
            plan.call("tasks_close_step", close)?;
        }
        Ok(plan)
    }

    fn call(&self, tool: &str, mut arguments: Value) -> anyhow::Result<()> {
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.insert("workspace".to_owned(), json!("bench"));
        }
        self.session
            .call(tool, &arguments.to_string())
            .with_context(|| format!("{tool} was refused"))?;
        Ok(())
    }

    fn reads(&self, tool: &str, target: &str) -> anyhow::Result<f64> {
        let started = Instant::now();
        for _ in 0..CALLS {
            self.call(tool, json!({"task": target}))?;
        }
        Ok(per_call(started.elapsed(), CALLS))
    }

    /// Closes a step and reopens it. Only the closing is measured.
    fn closes(&self) -> anyhow::Result<f64> {
        let mut spent = Duration::ZERO;
        for _ in 0..CALLS {
            let started = Instant::now();
            self.call(
                "tasks_close_step",
                json!({"task": "TASK-001", "path": self.step, "checkpoints": "gate"}),
            )?;
            spent += started.elapsed();
            self.call(
                "tasks_progress",
                json!({"task": "TASK-001", "path": self.step, "completed": false}),
            )?;
            self.call(
                "tasks_define",
                json!({"task": "TASK-001", "path": self.step, "success_criteria": ["a"], "tests": ["b"]}),
            )?;
            self.call(
                "tasks_define",
                json!({"task": "TASK-001", "path": self.step, "success_criteria": ["it holds"], "tests": ["cargo test"]}),
            )?;
        }
        Ok(per_call(spent, CALLS))
    }
}
