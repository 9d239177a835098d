//! The pack `task-store`: tasks made, moved and read by everybody at once.

use fastrand::Rng;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{Kind, Load, Request};
use crate::known::Known;
use crate::promise::{Broken, Promise};

const TASK: &str = "task";
/// Phases that moves are tried between, legal or not.
const PHASES: [&str; 4] = ["spec_draft", "spec_review", "execution_ready", "failed"];

pub(crate) struct TaskStore;

impl Load for TaskStore {
    fn next(&self, random: &mut Rng, known: &Known) -> Request {
        let by = |tool, mut arguments: Value| {
            arguments["actor"] = json!("torture");
            arguments["actor_role"] = json!("orchestrator");
            Request {
                tool,
                arguments,
                kind: Kind::Write,
            }
        };
        let create = |title: String| {
            let arguments = json!({"title": title, "spec_markdown": "# Goal\nSurvive.\n# Acceptance\n- it is there",
                "workspace": "torture", "initial_phase": "spec_draft"});
            by("task_create", arguments)
        };
        let Some(task) = known.any(TASK, random) else {
            return create("The first".to_owned());
        };
        match random.u8(..20) {
            0..5 => create(format!("Task {}", random.u32(..))),
            5 => create(String::new()),
            6..12 => {
                let mut phases = PHASES;
                random.shuffle(&mut phases);
                let [from, to, ..] = phases;
                let arguments =
                    json!({"task_id": task, "from_phase": from, "to_phase": to, "reason": "torture"});
                by("task_transition", arguments)
            }
            12..14 => {
                let arguments =
                    json!({"task_id": task, "checkpoint_type": "note", "payload": {"n": random.u32(..)}});
                by("task_record_checkpoint", arguments)
            }
            14..19 => read("task_get", json!({"task_id": task})),
            _ => read("task_list", json!({"limit": 5})),
        }
    }

    fn learn(&self, request: &Request, reply: &Value, known: &mut Known) {
        if request.tool == "task_create"
            && let Some(id) = reply["task"]["id"].as_str()
        {
            known.learn(TASK, id);
        }
    }

    fn lost(&self, code: &str) -> bool {
        code == "TASK_NOT_FOUND"
    }

    fn check(&self, db: &Connection) -> rusqlite::Result<Vec<Broken>> {
        let tasks = "SELECT (SELECT count(*) FROM task_store_tasks)
            - (SELECT count(*) FROM core_operations WHERE tool = 'task_create' AND success = 1)";
        let events = "SELECT (SELECT count(*) FROM task_store_events)
            - (SELECT count(*) FROM core_operations WHERE pack = 'task-store' AND effect = 'write' AND success = 1)";
        let mut broken = Vec::new();
        if !super::none(db, tasks)? {
            broken.push(Broken::new(
                Promise::Whole,
                "there are not as many tasks as the ledger says were created",
            ));
        }
        if !super::none(db, events)? {
            broken.push(Broken::new(
                Promise::Whole,
                "there are not as many events as the ledger has changes",
            ));
        }
        Ok(broken)
    }
}

fn read(tool: &'static str, arguments: Value) -> Request {
    Request {
        tool,
        arguments,
        kind: Kind::Read,
    }
}
