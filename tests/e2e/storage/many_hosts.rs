//! Hosts on several machines with one database. Skipped unless the tests have a PostgreSQL server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::envelopes::observed_edits::write;
use crate::harness::{Place, Session};

/// The shortest possible lease.
const LEASE: &str = "[cluster]\nlease_sec = 5\nurl = \"https://one.example/mcp\"\n";

fn task(title: &str, envelope: Option<&str>) -> Value {
    let mut arguments = json!({"title": title, "spec_markdown": "# Goal\ng", "workspace": "w",
        "initial_phase": "spec_draft", "actor_role": "orchestrator"});
    if let Some(envelope) = envelope {
        arguments["envelope_id"] = envelope.into();
    }
    arguments
}

async fn code(session: &Session, tool: &str, arguments: Value) -> Option<String> {
    let reply = session.call_raw(tool, arguments).await;
    let structured = reply.structured_content.unwrap();
    structured["error"]["code"].as_str().map(str::to_owned)
}

/// Checks that the ledger is consistent.
pub(crate) fn verified(place: &Place) {
    let output = place.run(&["ledger", "verify"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_machines_work_in_one_envelope_up_to_its_limit() {
    let place = Place::with(LEASE);
    let Some(other) = place.on_another_machine("") else {
        return;
    };
    let (one, two) = (
        place.serve(&["--tier", "full"]).await,
        other.serve(&["--tier", "full"]).await,
    );
    let opened = one
        .ok(
            "envelope_open",
            json!({"detached": true, "limits": {"max_mutations": 25, "max_duration_sec": 600}}),
        )
        .await;
    let envelope = opened["envelope_id"].as_str().unwrap();
    let made = async |session: &Session| {
        let mut made = 0;
        while code(session, "task_create", task("t", Some(envelope)))
            .await
            .is_none()
        {
            made += 1;
        }
        made
    };
    let (by_one, by_two) = tokio::join!(made(&one), made(&two));
    assert_eq!(by_one + by_two, 25, "{by_one} and {by_two}");
    let tasks = place.sql("SELECT count(*) FROM task_store_tasks");
    assert_eq!(tasks, ["25"]);
    one.close().await;
    two.close().await;
    verified(&place);
    verified(&other);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_host_left_open_is_ended_by_the_other() {
    let place = Place::with(LEASE);
    let Some(other) = place.on_another_machine(LEASE) else {
        return;
    };
    let (one, two) = (
        place.serve(&["--tier", "full"]).await,
        other.serve(&["--tier", "full"]).await,
    );
    let opened = one
        .ok("envelope_open", json!({"limits": {"max_mutations": 5}}))
        .await;
    let envelope = opened["envelope_id"].as_str().unwrap();
    one.ok("task_create", task("before", Some(envelope))).await;
    let seen = two.ok("envelope_get", json!({"envelope_id": envelope})).await;
    assert_eq!(seen["state"], "OPEN", "{seen:#}");
    one.kill();
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let seen = two.ok("envelope_get", json!({"envelope_id": envelope})).await;
        if seen["state"] == "CLOSED_INTERRUPTED" {
            break;
        }
        assert!(Instant::now() < until, "{seen:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    two.ok("task_create", task("after", None)).await;
    two.close().await;
    verified(&other);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_is_closed_as_a_success_where_its_work_tree_is() {
    let place = crate::envelopes::closing::place();
    let Some(other) = place.on_another_machine("") else {
        return;
    };
    let one = place.serve(&["--tier", "full"]).await;
    let asked =
        json!({"workspace": "shop", "detached": true, "limits": {"max_edits": 1, "max_duration_sec": 600}});
    let id = crate::envelopes::closing::open(&one, asked.clone()).await;
    write(&place, "value", "good 1");
    crate::envelopes::closing::run(&one, "default", &id).await;
    write(&place, "value", "good 2");
    let two = other.serve(&["--tier", "full"]).await;
    let until = Instant::now() + Duration::from_secs(20);
    while code(&two, "envelope_open", asked.clone()).await.as_deref() != Some("WRONG_HOST") {
        assert!(
            Instant::now() < until,
            "the other host does not hear of the workspace"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let success = json!({"envelope_id": id, "outcome": "success"});
    let refusal = two.refused("envelope_close", success.clone()).await;
    assert_eq!(refusal["code"], "WRONG_HOST", "{refusal:#}");
    // There the last edit is seen.
    let closed = one.ok("envelope_close", success).await;
    assert_eq!(
        closed["envelope"]["closed_by"], "EDIT_BUDGET_EXHAUSTED",
        "{closed:#}"
    );
    one.close().await;
    two.close().await;
    verified(&other);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_about_a_workspace_elsewhere_is_told_where() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("{LEASE}[workspaces.far]\npath = {:?}\n", folder.path());
    let place = Place::with(&config);
    let Some(other) = place.on_another_machine("") else {
        return;
    };
    let one = place.serve(&["--tier", "full"]).await;
    let two = other.serve(&["--tier", "full"]).await;
    one.ok("task_create", task("here", None)).await;
    let far = || {
        let mut far = task("there", None);
        far["workspace"] = "far".into();
        far
    };
    one.ok("task_create", far()).await;
    // The other host hears of the workspace with its next sign of life.
    let until = Instant::now() + Duration::from_secs(20);
    let refusal = loop {
        let reply = two
            .call_raw("task_create", far())
            .await
            .structured_content
            .unwrap();
        if reply["error"]["code"] == "WRONG_HOST" {
            break reply["error"].clone();
        }
        assert!(Instant::now() < until, "{reply:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(
        refusal["context"]["hosts"][0]["url"], "https://one.example/mcp",
        "{refusal:#}"
    );
    assert_eq!(refusal["next_call"]["tool"], "workspace_list", "{refusal:#}");
    let classes =
        place.sql("SELECT DISTINCT failure_class FROM core_operations WHERE error_code = 'WRONG_HOST'");
    assert_eq!(classes, ["refused"], "it was not counted");
    one.close().await;
    two.ok("task_create", task("w", None)).await;
    two.close().await;
}
