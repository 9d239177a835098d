//! The pack `gsd` through real clients.
#![allow(clippy::disallowed_methods, reason = "the tests look at files")]

mod aliases_and_status;
mod files;
mod input;
mod large_plans;
mod races;
mod recovery;
mod stories;
mod success_criteria;
mod unwritable_directories;
mod walkthrough;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Place, Session};

/// A place with a workspace `app` in a folder of its own, where packs may write `.gsd/`.
pub(super) fn place() -> (Place, PathBuf) {
    let place = Place::new();
    let app = place.path().join("app");
    std::fs::create_dir(&app).unwrap();
    let config = format!("[workspaces.app]\npath = {app:?}\nwrite = [\".gsd/\"]\n");
    std::fs::write(place.config(), config).unwrap();
    (place, app)
}

/// Arguments for a unit of workspace `app`, such as `M01/S01/T01`, merged with others.
pub(super) fn at(unit: &str, mut arguments: Value) -> Value {
    for (name, id) in ["milestone_id", "slice_id", "task_id"]
        .iter()
        .zip(unit.split('/'))
    {
        arguments[name] = json!(id);
    }
    arguments["workspace"] = json!("app");
    arguments
}

/// Plans a milestone with one slice of two tasks.
pub(super) async fn plan(client: &Session, milestone: &str) {
    let slices = json!([{"slice_id": "S01", "title": "Storage", "risk": "high", "demo": "rows survive"}]);
    client
        .ok(
            "gsd_plan_milestone",
            at(milestone, json!({"title": "Ship it", "slices": slices})),
        )
        .await;
    let tasks = json!([{"task_id": "T01", "title": "Schema"}, {"task_id": "T02", "title": "Queries"}]);
    client
        .ok(
            "gsd_plan_slice",
            at(
                &format!("{milestone}/S01"),
                json!({"goal": "Keep rows", "tasks": tasks}),
            ),
        )
        .await;
}

pub(super) fn completion(unit: &str) -> Value {
    at(
        unit,
        json!({"one_liner": "Did it", "narrative": "All of it.", "verification": "Ran the tests.",
            "verification_evidence": [{"command": "make test", "exit_code": 0, "verdict": "pass", "duration_ms": 1200}]}),
    )
}

pub(super) fn slice_completion(unit: &str) -> Value {
    at(
        unit,
        json!({"one_liner": "Did it", "narrative": "All of it.", "verification": "Ran it.", "uat_content": "Start it."}),
    )
}

pub(super) fn with(mut arguments: Value, name: &str, value: &str) -> Value {
    arguments[name] = json!(value);
    arguments
}
