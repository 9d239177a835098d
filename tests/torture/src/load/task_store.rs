//! The pack `task-store`: tasks created, moved and read by all clients at once. The version of a task is its last
//! event.

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Load, Request, text};
use crate::known::{Known, Told};
use crate::look::Look;
use crate::place::Seen;
use crate::promise::Broken;

const TASK: &str = "task";
/// Phases of the random moves, legal or not.
const PHASES: [&str; 4] = ["spec_draft", "spec_review", "execution_ready", "failed"];

pub(crate) struct TaskStore;

impl Load for TaskStore {
    fn next(&self, random: &mut Rng, known: &Known) -> Request {
        let by = |tool, mut arguments: Value| {
            arguments["actor"] = json!("torture");
            arguments["actor_role"] = json!("orchestrator");
            Request::write(tool, arguments)
        };
        let create = |title: String| {
            let arguments = json!({"title": title, "spec_markdown": "# Goal\nSurvive.\n# Acceptance\n- it is there",
                "workspace": "torture", "initial_phase": "spec_draft"});
            by("task_create", arguments)
        };
        let Some(task) = known.any(TASK, random) else {
            return create(super::word(random));
        };
        match random.u8(..20) {
            0..5 => create(super::word(random)),
            5 => create(String::new()),
            6..12 => {
                let mut phases = PHASES;
                random.shuffle(&mut phases);
                let [from, to, ..] = phases;
                let arguments =
                    json!({"task_id": task.id, "from_phase": from, "to_phase": to, "reason": "torture"});
                by("task_transition", arguments).about(&task)
            }
            12..14 => {
                let arguments =
                    json!({"task_id": task.id, "checkpoint_type": "note", "payload": {"n": random.u32(..)}});
                by("task_record_checkpoint", arguments).about(&task)
            }
            14..16 => Request::read("task_get", json!({"task_id": task.id})).about(&task),
            16..19 => events(&task),
            _ => Request::read("task_list", json!({"limit": 5})),
        }
    }

    fn told(&self, request: &Request, reply: &Value) -> Vec<Told> {
        let events = reply["events"].as_array().into_iter().flatten();
        let mut told: Vec<Told> = events
            .filter_map(|event| Some(Told::of(TASK, event["task_id"].as_str()?, event["id"].as_i64()?)))
            .collect();
        let id = match request.tool {
            "task_create" => text(reply, "/task/id"),
            _ => text(reply, "/task_id").or_else(|| request.arguments["task_id"].as_str()),
        };
        if let (Some(id), Some(version)) = (id, reply["event_id"].as_i64()) {
            told.push(Told::of(TASK, id, version));
        }
        told
    }

    fn ask(&self, thing: &Told) -> Option<Request> {
        (thing.kind == TASK).then(|| events(thing))
    }

    fn lost(&self, code: &str) -> bool {
        code == "NOT_FOUND"
    }

    fn check(&self, db: &dyn Look, _: &Seen) -> anyhow::Result<Vec<Broken>> {
        let tasks = super::equal(
            db,
            "SELECT count(*) FROM task_store_tasks",
            "SELECT count(*) FROM core_operations WHERE tool = 'task_create' AND success = 1",
            "tasks, and as many as the ledger says were created",
        )?;
        let events = super::equal(
            db,
            "SELECT count(*) FROM task_store_events",
            "SELECT count(*) FROM core_operations WHERE pack = 'task-store' AND effect = 'write' AND success = 1",
            "events of tasks, and changes in the ledger",
        )?;
        let twice = super::equal(
            db,
            "SELECT count(*) FROM task_store_tasks",
            "SELECT count(DISTINCT title) FROM task_store_tasks",
            "tasks, and titles of tasks",
        )?;
        Ok([tasks, events, twice].into_iter().flatten().collect())
    }
}

/// Reads the events of a task from the last acknowledged one.
fn events(task: &Told) -> Request {
    let arguments = json!({"task_id": task.id, "cursor": (task.version - 1).max(0), "limit": 200});
    Request::read("task_events", arguments).telling(task)
}
