//! Concurrent writing calls on one host with a database server. Skipped unless the tests have a PostgreSQL server.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Place, Session};
use crate::storage::many_hosts::verified;

/// Time after which a call that should not wait counts as waiting.
const PATIENCE: Duration = Duration::from_secs(30);

fn plan(workspace: &str, title: &str) -> Value {
    json!({"kind": "plan", "workspace": workspace, "title": title})
}

async fn made(session: &Session, workspace: &str, title: &str) {
    session.ok("tasks_create", plan(workspace, title)).await;
}

fn titles(place: &Place, workspace: &str) -> Vec<String> {
    place.sql(&format!(
        "SELECT title FROM tasks_roots WHERE workspace = '{workspace}' ORDER BY number"
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_about_other_things_do_not_wait_for_one_that_waits() {
    let mut place = Place::new();
    if place.server().is_none() {
        return;
    }
    let session = place.serve(&["--tier", "full"]).await;
    for workspace in ["one", "two"] {
        made(&session, workspace, "before").await;
    }
    let rows = "SELECT 1 FROM \"SCHEMA/tasks\".tasks_workspaces WHERE name = 'one' FOR UPDATE";
    let held = place.server().unwrap().hold(rows);
    // More calls of the same kind than there are lanes: they wait in the queue, and occupy no lanes.
    let waiting = async {
        tokio::join!(
            made(&session, "one", "a"),
            made(&session, "one", "b"),
            made(&session, "one", "c"),
            made(&session, "one", "d"),
            made(&session, "one", "e"),
            made(&session, "one", "f"),
        )
    };
    let beside = async {
        for title in ["1", "2", "3"] {
            let made = tokio::time::timeout(PATIENCE, made(&session, "two", title)).await;
            assert!(made.is_ok(), "it waits for another workspace");
        }
        assert_eq!(titles(&place, "two"), ["before", "1", "2", "3"]);
        assert_eq!(titles(&place, "one"), ["before"]);
        drop(held);
    };
    tokio::join!(waiting, beside);
    assert_eq!(titles(&place, "one").len(), 7);
    session.close().await;
    verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_wants_the_turn_of_all_comes_after_what_is_at_work_and_before_the_rest() {
    let mut place = Place::new();
    if place.server().is_none() {
        return;
    }
    let session = place.serve(&["--tier", "full"]).await;
    made(&session, "one", "before").await;
    let rows = "SELECT 1 FROM \"SCHEMA/tasks\".tasks_workspaces WHERE name = 'one' FOR UPDATE";
    let held = place.server().unwrap().hold(rows);
    let waiting = made(&session, "one", "a");
    let opening = session.ok("envelope_open", json!({"limits": {"max_mutations": 5}}));
    let release = async {
        let waits = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%tasks_workspaces%'";
        while place.sql(waits) != ["t"] {
            tokio::task::yield_now().await;
        }
        drop(held);
    };
    let ((), opened, ()) = tokio::join!(waiting, opening, release);
    let envelope = opened["envelope_id"].as_str().unwrap();
    let mut within = plan("one", "b");
    within["envelope_id"] = envelope.into();
    session.ok("tasks_create", within).await;
    let seen = session.ok("envelope_get", json!({"envelope_id": envelope})).await;
    assert_eq!(seen["counters"]["mutation_count"], 1, "{seen:#}");
    assert_eq!(titles(&place, "one"), ["before", "a", "b"]);
    session.close().await;
    verified(&place);
}
