//! After a crash, the next host re-renders the files that the killed host did not write.

use std::path::Path;

use serde_json::{Value, json};

use super::{at, completion, place, plan};
use crate::harness::{Place, params, until};

const PLAN: &str = ".gsd/milestones/M01/slices/S01/S01-PLAN.md";

fn read(app: &Path, path: &str) -> String {
    std::fs::read_to_string(app.join(path)).unwrap_or_default()
}

/// Number of times that hosts rendered all files.
fn renderings(place: &Place) -> usize {
    let ledger = place.ledger();
    ledger.iter().filter(|row| *row == "gsd_render run ok").count()
}

#[tokio::test]
async fn the_next_host_writes_what_a_killed_one_may_not_have() {
    let (place, app) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    client.kill();
    let whole = read(&app, PLAN);
    // As if it had been killed before it wrote these.
    std::fs::write(app.join(PLAN), "older").unwrap();
    std::fs::remove_file(app.join(".gsd/event-log.jsonl")).unwrap();

    let next = place.serve(&[]).await;
    until(async || read(&app, ".gsd/event-log.jsonl").lines().count() == 3).await;
    until(async || renderings(&place) == 1).await;
    assert_eq!(read(&app, PLAN), whole);
    next.close().await;
    // Nothing is left to do, and nothing is done.
    std::fs::write(app.join(PLAN), "edited").unwrap();
    assert_eq!(place.call("gsd_status", &json!({})).0, 0);
    assert_eq!(read(&app, PLAN), "edited");
    assert_eq!(renderings(&place), 1);
    assert_eq!(std::fs::read_dir(place.data().join("hosts")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_right_after_its_commit() {
    let (place, app) = place();
    for round in 1..=5 {
        let client = place.serve(&[]).await;
        let milestone = at(
            &format!("M{round:02}"),
            json!({"title": format!("round {round}")}),
        );
        let call = client.client().call_tool(params("gsd_plan_milestone", milestone));
        let killer = async {
            let committed = format!("SELECT count(*) FROM gsd_milestones WHERE id = 'M{round:02}'");
            until(async || place.sql(&committed) == ["1"]).await;
            client.kill();
        };
        // Whether it got to its files, or even to its reply, is anybody's guess.
        let _ = tokio::join!(call, killer);
        let (code, status) = place.call("gsd_status", &json!({}));
        assert_eq!((code, status["milestones"].as_array().unwrap().len()), (0, round));
        let state = read(&app, ".gsd/STATE.md");
        assert!(
            state.contains(&format!("M{round:02} round {round} (active)")),
            "{state}"
        );
        let events = read(&app, ".gsd/event-log.jsonl");
        assert_eq!(events.lines().count(), round, "{events}");
    }
}

#[tokio::test]
async fn a_host_without_the_workspace_leaves_it_to_one_that_has_it() {
    let (place, app) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    client.kill();
    let events = read(&app, ".gsd/event-log.jsonl");
    std::fs::remove_dir_all(app.join(".gsd")).unwrap();
    let config = std::fs::read_to_string(place.config()).unwrap();
    std::fs::write(place.config(), "").unwrap();
    assert_eq!(place.call("gsd_status", &json!({})).0, 0);
    assert!(!app.join(".gsd").exists());
    std::fs::write(place.config(), config).unwrap();
    let (_, status): (_, Value) = place.call("gsd_status", &json!({}));
    assert_eq!(status["milestones"][0]["milestone_id"], "M01");
    assert_eq!(read(&app, ".gsd/event-log.jsonl"), events);
    assert_eq!(renderings(&place), 1);
}
