//! Two agents on two hosts at once: one wins, and the other's error says why.

use serde_json::{Value, json};

use super::{at, completion, place, plan, with};
use crate::harness::Session;

#[tokio::test]
async fn two_agents_on_two_hosts_race_and_one_wins() {
    let (place, app) = place();
    let (one, two) = (place.serve(&[]).await, place.serve(&[]).await);
    for round in 1..=5 {
        let milestone = format!("M{round:02}");
        plan(&one, &milestone).await;
        let task = format!("{milestone}/S01/T01");
        let named = |actor: &str| with(completion(&task), "actor_name", actor);
        let claim = |actor: &str| at(&task, json!({"actor_name": actor}));
        let lost = race(&one, &two, "gsd_claim", claim("one"), claim("two")).await;
        assert_eq!(lost.1["code"], "NOT_CLAIM_OWNER");
        let (owner, other) = if lost.0 { ("two", "one") } else { ("one", "two") };
        assert_eq!(
            lost.1["message"],
            format!("Unit {task} is owned by {owner}, not {other}")
        );
        // Both are the owner now, as far as they say.
        let lost = race(&one, &two, "gsd_task_complete", named(owner), named(owner)).await;
        assert_eq!(lost.1["code"], "ALREADY_COMPLETE");
        assert_eq!(lost.1["message"], "Task T01 is already complete");
        let reopen = |actor: &str| at(&task, json!({"actor_name": actor, "reason": "again"}));
        let lost = race(&one, &two, "gsd_task_reopen", reopen("one"), reopen("two")).await;
        assert_eq!(lost.1["code"], "NOT_CLOSED");
    }
    // Each winner is one event, each loser one entry.
    let events = place.sql("SELECT count(*) FROM gsd_events");
    assert_eq!(events, [(5 * 5).to_string()]);
    let refusals = place.sql("SELECT count(*) FROM gsd_audit WHERE severity = 'error'");
    assert_eq!(refusals, [(5 * 3).to_string()]);
    // The next change puts the files of the logs right, whatever the race left there.
    plan(&one, "M09").await;
    let lines = std::fs::read_to_string(app.join(".gsd/event-log.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 5 * 5 + 2);
}

/// Makes two calls at once, and returns whether the first one lost, with the loser's error.
async fn race(one: &Session, two: &Session, tool: &str, first: Value, second: Value) -> (bool, Value) {
    let (first, second) = tokio::join!(one.call_raw(tool, first), two.call_raw(tool, second));
    let error = |result: rmcp::model::CallToolResult| {
        let failed = result.is_error == Some(true);
        failed.then(|| result.structured_content.unwrap()["error"].clone())
    };
    match (error(first), error(second)) {
        (Some(error), None) => (true, error),
        (None, Some(error)) => (false, error),
        both => panic!("{tool}: not one winner: {both:?}"),
    }
}
