//! Invalid input: each kind is refused with a code and a message for every mistake, and is not stored.

use serde_json::{Value, json};

use super::{at, place, plan};
use crate::harness::{Place, Session};

/// The codes of all reasons.
fn codes(error: &Value) -> Vec<&str> {
    let blockers = error["blockers"].as_array().unwrap();
    blockers.iter().map(|one| one["code"].as_str().unwrap()).collect()
}

/// The messages of all reasons.
fn messages(error: &Value) -> Vec<&str> {
    let blockers = error["blockers"].as_array().unwrap();
    blockers
        .iter()
        .map(|one| one["message"].as_str().unwrap())
        .collect()
}

/// Stored milestones, slices, tasks and events.
fn stored(place: &Place) -> Vec<String> {
    place.sql(
        "SELECT 'm ' || id || title || status FROM gsd_milestones \
         UNION ALL SELECT 's ' || id || title || status FROM gsd_slices \
         UNION ALL SELECT 't ' || id || title || status FROM gsd_tasks \
         UNION ALL SELECT 'e ' || id || hash FROM gsd_events",
    )
}

/// A place with milestone M01 planned, and the rows that this stored.
async fn planned() -> (Place, Session, Vec<String>) {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    let before = stored(&place);
    (place, client, before)
}

#[tokio::test]
async fn unknown_units() {
    let (place, client, before) = planned().await;
    for (unit, message) in [
        ("M07/S01/T01", "Milestone M07 does not exist (M07)"),
        ("M01/S07/T01", "Slice S07 does not exist (M01/S07)"),
        ("M01/S01/T07", "Task T07 does not exist (M01/S01/T07)"),
    ] {
        for tool in ["gsd_task_start", "gsd_claim"] {
            let error = client.refused(tool, at(unit, json!({"actor_name": "a"}))).await;
            assert_eq!(
                (&error["code"], &error["message"]),
                (&json!("NOT_FOUND"), &json!(message))
            );
            assert_eq!(error["next_call"]["tool"], "gsd_status");
        }
    }
    // Parents are not made on the way.
    let task = at("M01/S07/T01", json!({"title": "x"}));
    let error = client.refused("gsd_plan_task", task).await;
    assert_eq!(error["code"], "NOT_FOUND");
    assert_eq!(stored(&place), before);
}

#[tokio::test]
async fn malformed_ids() {
    let (place, client, before) = planned().await;
    for id in [
        "", "M1", "M0001", "m01", "../M01", "M01/S01", "M01\n", "M٠١", "S01",
    ] {
        let plan = json!({"milestone_id": id, "title": "x", "workspace": "app"});
        let error = client.refused("gsd_plan_milestone", plan).await;
        assert_eq!(error["code"], "INVALID_ARGUMENTS", "{id:?}");
    }
    // One number is one unit, however it is written.
    let error = client
        .refused("gsd_plan_milestone", at("M001", json!({"title": "x"})))
        .await;
    assert_eq!(error["message"], "milestone_id spells M01 as M001; use M01");
    assert_eq!(stored(&place), before);
}

#[tokio::test]
async fn what_the_schema_tells_is_told_at_once() {
    let (place, client, before) = planned().await;
    let arguments = json!({"milestone_id": "../M01", "title": "", "slices": [{"slice_id": "S1"}], "why": 1});
    let error = client.refused("gsd_plan_milestone", arguments).await;
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    // Two ids, an empty title, a missing workspace, an unknown field.
    assert_eq!(codes(&error).len(), 5, "{error:#}");
    assert_eq!(stored(&place), before);
}

#[tokio::test]
async fn titles_with_line_breaks() {
    let (place, client, before) = planned().await;
    let slices =
        json!([{"slice_id": "S02", "title": "two\nlines"}, {"slice_id": "S03", "title": "a\u{2028}b"}]);
    let plan = at("M01", json!({"title": "a\r\nb", "slices": slices}));
    let error = client.refused("gsd_plan_milestone", plan).await;
    assert_eq!(
        messages(&error),
        [
            "title has a line break",
            "slices[0].title has a line break",
            "slices[1].title has a line break"
        ]
    );
    assert_eq!(stored(&place), before);
}

#[tokio::test]
async fn pipes_brackets_and_markdown_in_titles_are_text() {
    let (place, app) = place();
    let client = place.serve(&[]).await;
    let title = "** | [x] `T09` # <b> _i_ \\";
    let slices = json!([{"slice_id": "S01", "title": title, "demo": title}]);
    let planned = at("M01", json!({"title": title, "slices": slices}));
    client.ok("gsd_plan_milestone", planned).await;
    let tasks = json!([{"task_id": "T01", "title": title, "description": "- [x] **T99: none**"}]);
    client
        .ok("gsd_plan_slice", at("M01/S01", json!({"tasks": tasks})))
        .await;
    let roadmap = std::fs::read_to_string(app.join(".gsd/milestones/M01/M01-ROADMAP.md")).unwrap();
    let escaped = r"\*\* \| \[x\] \`T09\` \# \<b\> \_i\_ \\";
    let line = format!("\n- [ ] **S01: {escaped}** risk:medium depends:[]\n  > After this: {escaped}\n");
    assert!(roadmap.contains(&line), "{roadmap}");
    let plan = std::fs::read_to_string(app.join(".gsd/milestones/M01/slices/S01/S01-PLAN.md")).unwrap();
    assert!(plan.contains(&format!("\n- [ ] **T01: {escaped}**\n")), "{plan}");
    assert!(!plan.contains("\n- [x]"), "{plan}");
    let status = client.ok("gsd_status", json!({})).await;
    assert_eq!(status["tasks"][0]["title"], title);
}

#[tokio::test]
async fn ten_thousand_tasks_in_a_slice() {
    let (place, client, before) = planned().await;
    let tasks: Vec<Value> = (0..10_000)
        .map(|number| json!({"task_id": format!("T{:03}", number % 1000), "title": "x"}))
        .collect();
    let error = client
        .refused("gsd_plan_slice", at("M01/S01", json!({"tasks": tasks})))
        .await;
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    assert_eq!(messages(&error), ["the value has more than 999 items"]);
    assert_eq!(stored(&place), before);
}

#[tokio::test]
async fn dependencies_on_itself_and_in_circles() {
    let (place, client, before) = planned().await;
    let slices = json!([{"slice_id": "S01", "title": "x", "depends": ["S01"]},
        {"slice_id": "S02", "title": "x", "depends": ["S03"]}, {"slice_id": "S03", "title": "x", "depends": ["S02", "S09"]}]);
    let error = client
        .refused(
            "gsd_plan_milestone",
            at("M01", json!({"title": "a", "slices": slices})),
        )
        .await;
    assert_eq!(
        messages(&error),
        [
            "Slice S03 depends on slice S09, which does not exist",
            "The dependencies form a cycle: M01/S01 → M01/S01"
        ]
    );
    let itself = at("M02", json!({"title": "a", "depends_on": ["M02"]}));
    let error = client.refused("gsd_plan_milestone", itself).await;
    assert_eq!(codes(&error), ["DEPENDENCY_INCOMPLETE", "DEPENDENCY_CYCLE"]);
    assert_eq!(stored(&place), before);
}
