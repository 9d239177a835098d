//! The files in `.gsd/`, which the pack writes and never reads as state.

use std::path::Path;

use serde_json::{Value, json};

use super::{at, completion, place, plan};
use crate::harness::Place;

/// The files below a directory.
fn files(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    files.sort();
    files
}

#[tokio::test]
async fn files_are_written_and_written_anew() {
    let (place, app) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    let claim = at("M01/S01", json!({"actor_name": "ada"}));
    client.ok("gsd_claim", claim).await;
    let all = [
        "M01-ROADMAP.md",
        "S01-PLAN.md",
        "STATE.md",
        "T01-SUMMARY.md",
        "audit-log.jsonl",
        "event-log.jsonl",
        "unit-claims.json",
    ];
    assert_eq!(files(&app.join(".gsd")), all);
    let claims = std::fs::read_to_string(app.join(".gsd/unit-claims.json")).unwrap();
    let claims: Value = serde_json::from_str(&claims).unwrap();
    assert_eq!(claims["M01/S01"]["agent"], "ada");
    std::fs::remove_dir_all(app.join(".gsd")).unwrap();
    let before = client.ok("gsd_status", json!({})).await;
    let rendered = client.ok("gsd_render", json!({"workspace": "app"})).await;
    assert_eq!(rendered["written"], 7);
    assert_eq!(files(&app.join(".gsd")), all);
    assert_eq!(client.ok("gsd_status", json!({})).await, before);
}

#[tokio::test]
async fn without_a_workspace_to_write_to_everything_else_works() {
    // `app` is only a label here.
    let place = Place::new();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    let done = client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    assert_eq!((done.get("stale"), done.get("warnings")), (None, None));
    let error = client.refused("gsd_render", json!({"workspace": "app"})).await;
    assert_eq!(error["code"], "WORKSPACE_UNKNOWN");
    // Registered, but nothing may be written.
    let place = Place::new();
    let app = place.path().join("app");
    std::fs::create_dir(&app).unwrap();
    std::fs::write(place.config(), format!("[workspaces.app]\npath = {app:?}\n")).unwrap();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    assert!(!app.join(".gsd").exists());
    let error = client.refused("gsd_render", json!({"workspace": "app"})).await;
    assert_eq!(error["code"], "WORKSPACE_DENIED");
}

#[tokio::test]
async fn a_link_in_the_place_of_the_directory_is_not_followed() {
    let (place, app) = place();
    let outside = place.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, app.join(".gsd")).unwrap();
    let client = place.serve(&[]).await;
    let planned = client
        .ok("gsd_plan_milestone", at("M01", json!({"title": "Ship it"})))
        .await;
    assert_eq!(planned["stale"], true);
    assert!(!planned["warnings"].as_array().unwrap().is_empty());
    assert_eq!(files(&outside), Vec::<String>::new());
    assert_eq!(
        client.ok("gsd_status", json!({})).await["milestones"][0]["title"],
        "Ship it"
    );
}
