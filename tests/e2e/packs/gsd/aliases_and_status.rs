//! The pack's surface for clients and people.

use serde_json::json;

use super::{at, completion, place, plan};

#[tokio::test]
async fn an_alias_is_called_and_not_listed() {
    let (place, _) = place();
    let client = place.serve(&["--tier", "full"]).await;
    let listed = client.client().list_all_tools().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_ref()).collect();
    assert!(names.contains(&"gsd_task_complete"));
    assert!(!names.contains(&"gsd_complete_task"));
    plan(&client, "M01").await;
    client.ok("gsd_complete_task", completion("M01/S01/T01")).await;
    assert_eq!(place.ledger().last().unwrap(), "gsd_task_complete write ok");
}

#[test]
fn status_prints_a_tree() {
    let (place, _) = place();
    let slices = json!([{"slice_id": "S01", "title": "Storage"}]);
    let (code, _) = place.call(
        "gsd_plan_milestone",
        &at("M01", json!({"title": "Ship it", "slices": slices})),
    );
    assert_eq!(code, 0);
    let output = place.run(&["call", "gsd_status"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        text.trim_end(),
        "workspace app\nM01 Ship it (active, 0 of 1 slices closed)\n└─ [ ] S01 Storage (pending, 0 of 0 tasks closed)\n\
         next: plan the tasks of M01/S01 (gsd_plan_slice)"
    );
    let (_, structured) = place.call("gsd_status", &json!({}));
    assert_eq!(structured["slices"][0]["unit"], "M01/S01");
}
