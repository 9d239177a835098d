//! A plan of the largest size: usable, and within every limit of the host.

use serde_json::{Value, json};

use super::{at, completion, place, slice_completion};

#[tokio::test]
async fn a_slice_with_as_many_tasks_as_ids_can_number() {
    let (place, app) = place();
    if !place.is_in_file() {
        // Thousands of statements of a host that is not optimised, each a trip to the server.
        let config = std::fs::read_to_string(place.config()).unwrap();
        let longer = format!("{config}[packs.gsd]\nlimits = {{ write_ms = 60000 }}\n");
        std::fs::write(place.config(), longer).unwrap();
    }
    let client = place.serve(&[]).await;
    let slices = json!([{"slice_id": "S01", "title": "Many"}]);
    let milestone = at("M01", json!({"title": "Large", "slices": slices}));
    client.ok("gsd_plan_milestone", milestone).await;
    // Ten plans of a hundred tasks, each as long as it may be.
    for tens in 0..10_u32 {
        let tasks: Vec<Value> = (tens * 100..tens * 100 + 100)
            .map(|number| json!({"task_id": format!("T{number:03}"), "title": "t".repeat(300), "description": "d".repeat(8_000)}))
            .collect();
        let planned = client
            .ok("gsd_plan_slice", at("M01/S01", json!({"tasks": tasks})))
            .await;
        // A file has at most 2 MiB; the plan has more from the third hundred on.
        assert_eq!(
            planned["stale"] == true,
            tens >= 2,
            "{tens}: {}",
            planned["warnings"]
        );
    }
    assert!(app.join(".gsd/milestones/M01/slices/S01/S01-PLAN.md").exists());
    let open = client
        .refused("gsd_slice_complete", slice_completion("M01/S01"))
        .await;
    assert_eq!(open["code"], "TASKS_OPEN");
    let skip = at("M01/S01", json!({"reason": "too much"}));
    client.ok("gsd_slice_skip", skip).await;
    // The reason is with each of a thousand tasks then.
    let reopen = at("M01/S01", json!({"reason": "r".repeat(8_000)}));
    let reopened = client.ok("gsd_slice_reopen", reopen).await;
    assert_eq!(reopened["also"].as_array().unwrap().len(), 1000);
    let status = client.ok("gsd_status", json!({"milestone_id": "M01"})).await;
    assert_eq!(status["slices"][0]["tasks_total"], 1000);
    let started = client.ok("gsd_task_start", at("M01/S01/T999", json!({}))).await;
    assert_eq!(started["reopened"][0]["reason"].as_str().unwrap().len(), 8_000);
    client.ok("gsd_task_complete", completion("M01/S01/T999")).await;
    let rendered = client.ok("gsd_render", json!({"workspace": "app"})).await;
    let warnings = rendered["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].as_str().unwrap().contains("S01-PLAN.md"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn milestones_and_slices_as_long_as_they_may_be() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    let lines: Vec<String> = (0..100).map(|number| format!("{number:0>300}")).collect();
    for number in 1..=60 {
        let arguments = json!({"title": "t".repeat(300), "vision": "v".repeat(8_000), "success_criteria": lines,
            "key_risks": lines, "definition_of_done": lines});
        let planned = client
            .ok("gsd_plan_milestone", at(&format!("M{number:02}"), arguments))
            .await;
        assert_eq!(planned.get("stale"), None, "{number}: {}", planned["warnings"]);
    }
    for first in (0..600).step_by(100) {
        let slices: Vec<Value> = (first..first + 100)
            .map(|number| json!({"slice_id": format!("S{number:03}"), "title": "t".repeat(300), "goal": "g".repeat(8_000)}))
            .collect();
        let arguments = json!({"title": "Slices", "slices": slices});
        let planned = client.ok("gsd_plan_milestone", at("M61", arguments)).await;
        assert_eq!(planned.get("stale"), None, "{first}: {}", planned["warnings"]);
    }
    let status = client.ok("gsd_status", json!({})).await;
    assert_eq!(status["milestones"].as_array().unwrap().len(), 61);
    assert_eq!(status["slices"].as_array().unwrap().len(), 600);
    let rendered = client.ok("gsd_render", json!({"workspace": "app"})).await;
    assert_eq!(rendered["stale"], false, "{}", rendered["warnings"]);
}
