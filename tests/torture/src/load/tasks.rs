//! The pack `tasks`: trees of steps that all clients change at once, with and without the expected revision. The
//! version of a task is its revision.

use fastrand::Rng;
use serde_json::{Value, json};

use super::artifacts::ARTIFACT;
use super::{Load, Request, text};
use crate::known::{Known, Told};
use crate::look::Look;
use crate::place::Seen;
use crate::promise::Broken;

const ROOT: &str = "root of tasks";
/// Name of the workspace, which needs no files.
const WORKSPACE: &str = "acme/torture";
/// Size of evidence in bytes, large enough to become an artifact.
const LARGE: usize = 6_000;

pub(crate) struct Tasks;

impl Load for Tasks {
    fn next(&self, random: &mut Rng, known: &Known) -> Request {
        let Some(root) = known.any(ROOT, random) else {
            return begin(random);
        };
        let on = |mut arguments: Value| {
            arguments["task"] = json!(root.id);
            super::at(WORKSPACE, arguments)
        };
        let write = |tool, arguments| Request::write(tool, on(arguments)).about(&root);
        match random.u8(..24) {
            0..3 => begin(random),
            3..8 => write("tasks_note", json!({"note": super::word(random)})),
            8..12 => {
                let steps = json!([{"title": super::word(random)}]);
                let stale = json!({"steps": steps, "expected_revision": root.version});
                write("tasks_decompose", stale)
            }
            12 | 13 => write("tasks_done", json!({"path": "s:0"})),
            14 | 15 => {
                let items = json!([{"kind": "cmd_output", "body": super::prose(random, LARGE)}]);
                write(
                    "tasks_evidence_capture",
                    json!({"path": "s:0", "checkpoint": "tests", "items": items}),
                )
            }
            16 => {
                let note =
                    json!({"tool": "tasks_note", "args": {"task": root.id, "note": super::word(random)}});
                let radar = json!({"tool": "tasks_radar", "args": {"task": root.id}});
                let arguments = json!({"operations": [note, radar], "atomic": true});
                Request::write("tasks_batch", super::at(WORKSPACE, arguments)).about(&root)
            }
            17 => Request::read("tasks_mirror", on(json!({}))).telling(&root),
            18 => Request::read("tasks_next", super::at(WORKSPACE, json!({}))),
            _ => radar(&root),
        }
    }

    fn told(&self, _: &Request, reply: &Value) -> Vec<Told> {
        let kept = reply["artifacts"].as_array().into_iter().flatten();
        let kept = kept.filter_map(Value::as_str).map(|id| Told::of(ARTIFACT, id, 0));
        let revision = reply["revision"].as_i64();
        let root = text(reply, "/task").zip(revision);
        let root = root.map(|(id, revision)| Told::of(ROOT, id, revision));
        root.into_iter().chain(kept).collect()
    }

    fn ask(&self, thing: &Told) -> Option<Request> {
        (thing.kind == ROOT).then(|| radar(thing))
    }

    fn lost(&self, code: &str) -> bool {
        code == "NOT_FOUND"
    }

    fn check(&self, db: &dyn Look, _: &Seen) -> anyhow::Result<Vec<Broken>> {
        let operations = super::equal(
            db,
            "SELECT count(*) FROM tasks_operations",
            "SELECT count(*) FROM core_operations WHERE pack = 'tasks' AND effect = 'write' AND success = 1",
            "operations on tasks, and changes in the ledger",
        )?;
        let events = super::equal(
            db,
            "SELECT count(*) FROM tasks_events",
            "SELECT coalesce(max(seq), 0) FROM tasks_events",
            "events of tasks, and the last one's number",
        )?;
        let revisions = super::equal(
            db,
            "SELECT count(*) FROM tasks_roots",
            "SELECT count(*) FROM tasks_roots WHERE revision =
                (SELECT max(revision) FROM tasks_events WHERE root = tasks_roots.id)",
            "plans and tasks, and those whose revision is their last event's",
        )?;
        let all = [operations, events, revisions];
        Ok(all.into_iter().flatten().collect())
    }
}

fn begin(random: &mut Rng) -> Request {
    let step = json!({"title": "survive", "success_criteria": ["it is there"], "tests": ["torture"]});
    let arguments = json!({"plan_title": "Torture", "task_title": super::word(random), "steps": [step]});
    Request::write("tasks_bootstrap", super::at(WORKSPACE, arguments))
}

fn radar(root: &Told) -> Request {
    Request::read("tasks_radar", super::at(WORKSPACE, json!({"task": root.id}))).telling(root)
}
