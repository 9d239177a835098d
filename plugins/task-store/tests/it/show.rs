//! Snapshots: bounded, and honest about it.

use serde_json::json;
use tollgate_sdk::native::Session;

use crate::harness::{EXECUTING, reply, run};

#[test]
fn a_snapshot_adds_the_latest_events_in_order() {
    let session = Session::new(&task_store::PACK);
    run(&session, EXECUTING);
    let ids = |limit: u32| -> Vec<i64> {
        let snapshot = reply(
            &session,
            &format!(
                "task_get {}",
                json!({"task_id": "tsk_1", "include_events_limit": limit})
            ),
        );
        let events = snapshot
            .get("events")
            .and_then(|events| events.as_array().cloned());
        events
            .unwrap_or_default()
            .iter()
            .map(|event| event["id"].as_i64().unwrap())
            .collect()
    };
    assert_eq!(ids(0), Vec::<i64>::new());
    assert_eq!(ids(2), [5, 6]);
    assert_eq!(ids(200), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn lists_of_a_snapshot_are_cut_and_say_so() {
    let session = Session::new(&task_store::PACK);
    run(&session, "reach 7");
    for n in 0..11 {
        run(
            &session,
            &format!("- review tsk_1 att_1 quality approved\n - ask tsk_1 att_1 v{n}"),
        );
    }
    let snapshot = reply(
        &session,
        r#"task_get {"task_id": "tsk_1", "include_spec_markdown": true}"#,
    );
    assert_eq!(snapshot["truncated"], json!(["reviews", "approvals"]));
    assert_eq!(snapshot["reviews"].as_array().unwrap().len(), 10);
    assert_eq!(snapshot["reviews"][0]["id"], "rev_12");
    assert_eq!(snapshot["reviews"][0].get("findings"), None);
    assert_eq!(snapshot["latest_review"]["id"], "rev_12");
    assert_eq!(snapshot["latest_review"]["findings"], json!([]));
    assert_eq!(snapshot["latest_approval"]["idempotency_key"], "v10");
    assert_eq!(snapshot["spec_markdown"], crate::harness::SPEC);
}

/// Upper bound of a reply's size, whatever was stored.
#[test]
fn the_largest_snapshot_is_bounded() {
    let session = Session::new(&task_store::PACK);
    run(&session, "reach 7");
    let findings = vec![json!({"severity": "minor", "message": "m".repeat(1_950)}); 32];
    let review = json!({"task_id": "tsk_1", "attempt_id": "att_1", "review_type": "spec", "reviewer_ref": "e",
        "verdict": "approved", "summary": "s".repeat(8_192), "findings": findings, "actor": "e",
        "actor_role": "spec_reviewer"});
    let artifact = json!({"task_id": "tsk_1", "kind": "diff", "uri": "u".repeat(2_000), "summary": "s".repeat(8_192),
        "produced_by": "e", "actor": "e", "actor_role": "spec_reviewer"});
    let checkpoint = json!({"task_id": "tsk_1", "checkpoint_type": "note", "payload": {"text": "p".repeat(60_000)},
        "actor": "e", "actor_role": "spec_reviewer"});
    for _ in 0..12 {
        reply(&session, &format!("task_append_review {review}"));
        reply(&session, &format!("task_record_artifact {artifact}"));
        reply(&session, &format!("task_record_checkpoint {checkpoint}"));
    }
    let everything = json!({"task_id": "tsk_1", "include_events_limit": 200, "include_spec_markdown": true});
    for line in [
        format!("task_get {everything}"),
        "recover tsk_1".to_owned(),
        "task_events".to_owned(),
    ] {
        let size = reply(&session, &line).to_string().len();
        assert!(size < 512 * 1024, "{line}: {size} bytes");
    }
}
