//! Tasks that end before their calls are done: with the token of their owner, and with their envelope.

use serde_json::{Value, json};

use super::{Client, TOKENS, sleeping, slow};
use crate::gate::approvals::{POLICY, task};
use crate::harness::until;
use crate::transport::http_auth::{ADA, BOB, place_with_tokens};

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_of_a_removed_token_end_with_it() {
    let place = place_with_tokens(&[TOKENS, POLICY, &sleeping()].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let (ada, bob) = (Client::bearing(&server, ADA), Client::bearing(&server, BOB));
    ada.start("task_create", task("Waits")).await;
    ada.start("limit_sleep_run", slow(60_000)).await;
    let kept = bob.start("limit_sleep_run", slow(60_000)).await;
    let revoked = place.run(&["tokens", "revoke", "ada"]);
    assert!(revoked.status.success(), "{revoked:?}");
    let ended = "SELECT tool || ' ' || state || ' ' || error_code FROM core_tasks
                 WHERE owner = 'token:ada' AND error_code IS NOT NULL ORDER BY tool";
    let wanted = [
        "limit_sleep_run cancelled CANCELLED",
        "task_create cancelled CANCELLED",
    ];
    until(async || place.sql(ended) == wanted).await;
    let notes = place.sql("SELECT note FROM core_tasks WHERE owner = 'token:ada'");
    let why = "the token that made the call was removed or has expired";
    assert!(notes.iter().all(|note| note.starts_with(why)), "{notes:?}");
    // An approval that comes later lets nothing run.
    let approvals = place.sql("SELECT id FROM core_approvals WHERE status = 'pending'");
    place.run(&["approvals", "allow", &approvals[0], "--as", "grace"]);
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["0"]);
    assert_eq!(bob.get(&kept).await["status"], "working");
    bob.about("tasks/cancel", &kept).await;
    let seen = bob.once(&kept, "cancelled").await;
    let said = seen["statusMessage"].as_str().unwrap_or_default();
    assert!(said.starts_with("the task was cancelled; "), "{seen:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_ends_with_the_time_of_its_envelope() {
    let place = place_with_tokens(&[TOKENS, POLICY].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA);
    let limits = json!({"label": "short", "limits": {"max_duration_sec": 3}});
    let opened = ada.call("envelope_open", limits).await;
    let envelope = opened["structuredContent"]["id"].as_str().unwrap().to_owned();
    let mut arguments = task("Waits");
    arguments["envelope_id"] = Value::from(envelope.as_str());
    let id = ada.start("task_create", arguments).await;
    let ended = ada.once(&id, "cancelled").await;
    let why = format!(
        "the time limit of envelope `{envelope}` was reached (DURATION_EXCEEDED) while the task waited for an answer; \
         nothing was changed"
    );
    assert_eq!(ended["statusMessage"], why, "{ended:#}");
    let shown = place.run(&["--json", "tasks", "show", &id]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["error"]["context"]["cause"], "ENVELOPE_CLOSED", "{shown:#}");
}
