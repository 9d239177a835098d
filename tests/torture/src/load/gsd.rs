//! The pack `gsd`: milestones, slices and tasks with guards, and their files. The version of a unit is its last event.

use std::collections::HashSet;

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Load, Request, text};
use crate::known::{Known, Told};
use crate::look::Look;
use crate::place::{PROJECT, Seen};
use crate::promise::{Broken, Promise};

const UNIT: &str = "unit of gsd";
/// Number of milestones, and of slices and tasks below each. The numbers are small, so that files are often rendered
/// again.
const MILESTONES: u8 = 12;
const BELOW: u8 = 3;

pub(crate) struct Gsd;

impl Load for Gsd {
    fn next(&self, random: &mut Rng, known: &Known) -> Request {
        let Some(unit) = known.any(UNIT, random) else {
            return plan(random);
        };
        match (random.u8(..10), unit.id.matches('/').count()) {
            (0, _) => plan(random),
            (1, _) => Request::read("gsd_status", super::at(PROJECT, json!({}))),
            (2..5, _) => events(&unit),
            (_, 0) => plan_slice(&unit, random),
            (5, 1) => about(&unit.id, "gsd_slice_complete", completion(random)),
            (_, 1) => {
                let task = format!("{}/T{:02}", unit.id, random.u8(1..=BELOW));
                act(&task, random)
            }
            _ => act(&unit.id, random).about(&unit),
        }
    }

    fn told(&self, _: &Request, reply: &Value) -> Vec<Told> {
        let events = reply["events"].as_array().into_iter().flatten();
        let listed = events.filter_map(|event| Some((event["unit"].as_str()?, event["id"].as_i64()?)));
        let changed = text(reply, "/unit").zip(reply["event_id"].as_i64());
        let told = listed.chain(changed);
        told.map(|(unit, event)| Told::of(UNIT, unit, event)).collect()
    }

    fn ask(&self, thing: &Told) -> Option<Request> {
        (thing.kind == UNIT).then(|| events(thing))
    }

    fn lost(&self, code: &str) -> bool {
        code == "NOT_FOUND"
    }

    fn check(&self, db: &dyn Look, seen: &Seen) -> anyhow::Result<Vec<Broken>> {
        let events = super::equal(
            db,
            "SELECT count(DISTINCT op_id) FROM gsd_audit WHERE severity = 'info'",
            "SELECT count(*) FROM core_operations WHERE pack = 'gsd' AND effect = 'write' AND success = 1",
            "audited changes of units, and changes in the ledger",
        )?;
        let audited = super::equal(
            db,
            "SELECT count(DISTINCT op_id) FROM gsd_audit",
            "SELECT count(*) FROM core_operations WHERE op_id IN (SELECT op_id FROM gsd_audit)",
            "operations that were audited, and those of them in the ledger",
        )?;
        let mut broken: Vec<Broken> = [events, audited].into_iter().flatten().collect();
        broken.extend(ahead(db, seen)?);
        Ok(broken)
    }
}

/// Text in files that no row has. Rows may be ahead of the files.
fn ahead(db: &dyn Look, seen: &Seen) -> anyhow::Result<Vec<Broken>> {
    let texts = |sql| anyhow::Ok(db.texts(sql)?.into_iter().collect::<HashSet<String>>());
    let events: String = texts("SELECT params_json FROM gsd_events")?.into_iter().collect();
    let hashes = texts("SELECT hash FROM gsd_events")?;
    let operations = texts("SELECT op_id FROM gsd_audit")?;
    let mut broken = Vec::new();
    let mut unknown = |path: &str, what: &str| {
        let what = format!("{path} shows {what}, which no row does");
        broken.push(Broken::new(Promise::Behind, what));
    };
    for (path, content) in &seen.files {
        for word in words(content).filter(|word| !events.contains(*word)) {
            unknown(path, word);
        }
        for line in content.lines().filter(|_| path.ends_with(".jsonl")) {
            // A line that a killed host did not finish is repaired with the next change.
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let id = |name: &str| line[name].as_str().map(str::to_owned);
            if let Some(hash) = id("hash").filter(|hash| !hashes.contains(hash)) {
                unknown(path, &hash);
            }
            if let Some(operation) = id("op_id").filter(|id| !operations.contains(id)) {
                unknown(path, &operation);
            }
        }
    }
    Ok(broken)
}

/// Unique words of calls in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let length = super::MARK.len() + 16;
    let found = text.match_indices(super::MARK);
    found.filter_map(move |(at, _)| text.get(at..at + length))
}

/// Renders all files, which then show everything.
pub(crate) fn render() -> Request {
    Request::control("gsd_render", super::at(PROJECT, json!({})))
}

/// Broken promises of logs that have more or fewer lines than rows after a rendering.
pub(crate) fn shown(db: &dyn Look, seen: &Seen) -> anyhow::Result<Vec<Broken>> {
    let file = |name: &str| seen.files.iter().find(|file| file.0.ends_with(name));
    let lines = |name: &str| file(name).map_or(0, |file| file.1.lines().count());
    let rows = |sql| {
        db.count(sql)
            .map(|rows| usize::try_from(rows).unwrap_or_default())
    };
    let mut broken = Vec::new();
    for (name, sql) in [
        ("event-log.jsonl", "SELECT count(*) FROM gsd_events"),
        ("audit-log.jsonl", "SELECT count(*) FROM gsd_audit"),
    ] {
        let (lines, rows) = (lines(name), rows(sql)?);
        if lines != rows {
            let what =
                format!("{name} has {lines} lines after it was written anew, and there are {rows} rows");
            broken.push(Broken::new(Promise::Behind, what));
        }
    }
    Ok(broken)
}

fn plan(random: &mut Rng) -> Request {
    let milestone = format!("M{:02}", random.u8(1..=MILESTONES));
    about(
        &milestone,
        "gsd_plan_milestone",
        json!({"title": super::word(random)}),
    )
}

fn plan_slice(milestone: &Told, random: &mut Rng) -> Request {
    let slice = format!("{}/S{:02}", milestone.id, random.u8(1..=BELOW));
    let title = super::word(random);
    let known = json!([{"slice_id": &slice[slice.len() - 3..], "title": title}]);
    if random.bool() {
        let arguments = json!({"title": super::word(random), "slices": known});
        return about(&milestone.id, "gsd_plan_milestone", arguments).about(milestone);
    }
    let tasks = (1..=BELOW).map(|number| json!({"task_id": format!("T{number:02}"), "title": title}));
    let tasks: Vec<Value> = tasks.collect();
    about(
        &slice,
        "gsd_plan_slice",
        json!({"goal": super::word(random), "tasks": tasks}),
    )
}

/// A change of a task, which its guards may refuse.
fn act(task: &str, random: &mut Rng) -> Request {
    match random.u8(..8) {
        0 => about(task, "gsd_claim", json!({"actor_name": "torture"})),
        1 => about(task, "gsd_release", json!({"actor_name": "torture"})),
        2 | 3 => about(task, "gsd_task_start", json!({"actor_name": "torture"})),
        4 => about(
            task,
            "gsd_task_reopen",
            json!({"actor_name": "torture", "reason": super::word(random)}),
        ),
        _ => about(task, "gsd_task_complete", completion(random)),
    }
}

fn completion(random: &mut Rng) -> Value {
    let word = super::word(random);
    json!({"one_liner": word, "narrative": "All of it.", "verification": "It was killed.", "actor_name": "torture"})
}

/// A change of a unit, such as `M01/S01`.
fn about(unit: &str, tool: &'static str, mut arguments: Value) -> Request {
    let names = ["milestone_id", "slice_id", "task_id"];
    for (name, id) in names.iter().zip(unit.split('/')) {
        arguments[name] = json!(id);
    }
    if tool == "gsd_slice_complete" {
        arguments["uat_content"] = json!("Kill it.");
    }
    Request::write(tool, super::at(PROJECT, arguments))
}

/// Reads the events of a unit from the last acknowledged one.
fn events(unit: &Told) -> Request {
    let arguments = json!({"unit": unit.id, "cursor": (unit.version - 1).max(0), "limit": 200});
    Request::read("gsd_events", super::at(PROJECT, arguments)).telling(unit)
}
