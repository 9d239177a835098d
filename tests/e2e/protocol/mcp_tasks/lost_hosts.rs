//! Tasks whose hosts are gone: their outcomes, and those that another host resumes.
#![allow(clippy::disallowed_methods, reason = "tests change configurations")]

use serde_json::json;

use super::{Client, TOKENS, sleeping, slow};
use crate::gate::approvals::{POLICY, task};
use crate::harness::Place;
use crate::transport::http_auth::{ADA, BOB, place_with_tokens};

/// Ends a process at once.
fn kill(pid: u32) {
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_killed_host_says_what_the_ledger_knows() {
    let place = Place::with(&sleeping());
    let mut server = place.serve_http(&["--tier", "full"]);
    let client = Client::of(&server);
    let done = client.start("limit_sleep_run", slow(2_000)).await;
    client.once(&done, "completed").await;
    let lost = client.start("limit_sleep_run", slow(60_000)).await;
    // Another host that works already, and one that is started later.
    let other = place.serve_http(&["--tier", "full"]);
    assert_eq!(Client::of(&other).get(&lost).await["status"], "working");
    kill(server.pid());
    server.wait();
    let seen = Client::of(&other).get(&lost).await;
    assert_eq!(seen["status"], "failed", "{seen:#}");
    assert_eq!(
        seen["error"]["data"]["error"]["code"], "OUTCOME_UNKNOWN",
        "{seen:#}"
    );
    drop(other);
    let next = place.serve_http(&["--tier", "full"]);
    let client = Client::of(&next);
    assert_eq!(client.get(&lost).await["error"], seen["error"]);
    let kept = client.get(&done).await;
    assert_eq!(kept["result"]["structuredContent"]["result"], "awake", "{kept:#}");
    let rows = "SELECT coalesce(CAST(success AS TEXT), 'unknown') FROM core_operations ORDER BY seq";
    assert_eq!(place.sql(rows), ["1", "unknown"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_stops_ends_its_tasks() {
    let place = place_with_tokens(&[TOKENS, POLICY, &sleeping()].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA);
    ada.start("task_create", task("Waits")).await;
    server.stop();
    let ended = place.sql("SELECT state || ' ' || error_code FROM core_tasks");
    assert_eq!(ended, ["failed HOST_STOPPED"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_runs_when_its_host_stops_says_so() {
    let place = Place::with(&format!("[server.limits]\ndrain_sec = 1\n{}", sleeping()));
    let server = place.serve_http(&["--tier", "full"]);
    let running = Client::of(&server).start("limit_sleep_run", slow(60_000)).await;
    server.stop();
    let next = place.serve_http(&["--tier", "full"]);
    let seen = Client::of(&next).get(&running).await;
    assert_eq!(seen["status"], "cancelled", "{seen:#}");
    let why = seen["statusMessage"].as_str().unwrap();
    assert!(why.starts_with("the host was stopped"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_are_killed_lose_no_task_and_complete_none_twice() {
    let place = Place::with(&sleeping());
    let mut started: Vec<String> = Vec::new();
    for round in 0..4_u64 {
        let mut server = place.serve_http(&["--tier", "full"]);
        let client = Client::of(&server);
        let calls =
            (0..6_u64).map(|number| client.start("limit_sleep_run", slow(1_500 + 250 * (number + round))));
        let new = futures::future::join_all(calls).await;
        // Killed when some of them are over, at another moment in each round.
        client
            .once(&new[usize::try_from(round).unwrap()], "completed")
            .await;
        started.extend(new);
        kill(server.pid());
        server.wait();
    }
    let server = place.serve_http(&["--tier", "full"]);
    let client = Client::of(&server);
    let mut ends = std::collections::BTreeMap::new();
    for id in &started {
        let seen = client.get(id).await;
        *ends.entry(seen["status"].to_string()).or_insert(0) += 1;
        if seen["status"] == "completed" {
            assert_eq!(seen["result"]["structuredContent"]["result"], "awake", "{seen:#}");
        } else {
            assert_eq!(
                seen["error"]["data"]["error"]["code"], "OUTCOME_UNKNOWN",
                "{seen:#}"
            );
        }
    }
    assert_eq!(ends.values().sum::<usize>(), started.len());
    assert!(
        ends.keys()
            .all(|status| status == "\"completed\"" || status == "\"failed\""),
        "{ends:?}"
    );
    let apart = "SELECT count(*) FROM core_tasks LEFT JOIN core_operations USING (op_id)
                 WHERE (state = 'completed') <> (coalesce(success, 0) = 1)";
    assert_eq!(place.sql(apart), ["0"]);
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_an_idempotent_tool_is_made_again_by_one_host() {
    let config = [TOKENS, &sleeping(), "resume = true\n"].concat();
    let place = place_with_tokens(&config);
    let hosts = [&["--tier", "full"]; 3].map(|flags| place.serve_http(flags));
    let mut server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA);
    // An envelope of a host that is gone is closed, and its tasks end.
    let opened = Client::bearing(&hosts[0], ADA)
        .call("envelope_open", json!({"label": "night"}))
        .await;
    let envelope = &opened["structuredContent"]["id"];
    let mut arguments = slow(3_000);
    arguments["envelope_id"] = envelope.clone();
    let id = ada.start("limit_sleep_idempotent", arguments).await;
    let plain = ada.start("limit_sleep_run", slow(60_000)).await;
    kill(server.pid());
    server.wait();

    // Nobody but the owner has it made again.
    let foreign = Client::bearing(&hosts[0], BOB).about("tasks/get", &id).await;
    assert_eq!(foreign["error"]["code"], -32602, "{foreign:#}");
    assert_eq!(place.sql("SELECT max(resumed) FROM core_tasks"), ["0"]);
    let owners = [0, 1, 2].map(|host: usize| Client::bearing(&hosts[host], ADA));
    for seen in futures::future::join_all(owners.iter().map(|ada| ada.get(&id))).await {
        assert_eq!(seen["status"], "working", "{seen:#}");
    }
    let lost = owners[0].get(&plain).await;
    assert_eq!(
        lost["error"]["data"]["error"]["code"], "OUTCOME_UNKNOWN",
        "{lost:#}"
    );
    let done = owners[1].once(&id, "completed").await;
    assert_eq!(done["result"]["structuredContent"]["result"], "awake", "{done:#}");
    // Both calls are in the ledger and in the envelope's account, and one of them completed the task.
    let rows = "SELECT coalesce(CAST(success AS TEXT), 'unknown') || ' ' || coalesce(actor, '-') FROM core_operations
                WHERE tool = 'limit_sleep_idempotent' ORDER BY seq";
    assert_eq!(place.sql(rows), ["unknown token:ada", "1 token:ada"]);
    let task = "SELECT resumed || ' ' || state || ' ' || CAST(arguments IS NULL AS INTEGER) || ' ' || CAST(op_id =
                    (SELECT op_id FROM core_operations WHERE success = 1 AND tool = 'limit_sleep_idempotent') AS INTEGER)
                FROM core_tasks WHERE tool = 'limit_sleep_idempotent'";
    assert_eq!(place.sql(task), ["1 completed 1 1"]);
    let counted = "SELECT mutation_count + test_run_count FROM core_envelopes WHERE label = 'night'";
    assert_eq!(place.sql(counted), ["2"]);
    assert!(place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_made_again_only_where_the_operator_wants_it() {
    let place = Place::with(&sleeping());
    let mut server = place.serve_http(&["--tier", "full"]);
    let id = Client::of(&server)
        .start("limit_sleep_idempotent", slow(60_000))
        .await;
    assert_eq!(
        place.sql("SELECT coalesce(arguments, 'none') FROM core_tasks"),
        ["none"]
    );
    kill(server.pid());
    server.wait();

    // What the operator wants later holds for later tasks.
    std::fs::write(place.config(), [&sleeping(), "resume = true\n"].concat()).unwrap();
    let mut server = place.serve_http(&["--tier", "full"]);
    let lost = Client::of(&server).get(&id).await;
    assert_eq!(
        lost["error"]["data"]["error"]["code"], "OUTCOME_UNKNOWN",
        "{lost:#}"
    );
    let kept = Client::of(&server)
        .start("limit_sleep_idempotent", slow(60_000))
        .await;
    kill(server.pid());
    server.wait();

    // A host without the setting ends it.
    std::fs::write(place.config(), sleeping()).unwrap();
    let server = place.serve_http(&["--tier", "full"]);
    let lost = Client::of(&server).get(&kept).await;
    assert_eq!(
        lost["error"]["data"]["error"]["code"], "OUTCOME_UNKNOWN",
        "{lost:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_ends_a_task_that_no_host_took_up() {
    let place = Place::with(&[&sleeping(), "resume = true\n"].concat());
    let mut server = place.serve_http(&["--tier", "full"]);
    let id = Client::of(&server)
        .start("limit_sleep_idempotent", slow(60_000))
        .await;
    kill(server.pid());
    server.wait();
    assert!(place.run(&["tasks", "list"]).status.success());
    assert_eq!(place.sql("SELECT state FROM core_tasks"), ["working"]);
    let cancelled = place.run(&["tasks", "cancel", &id]);
    assert!(cancelled.status.success(), "{cancelled:?}");
    assert_eq!(place.sql("SELECT state FROM core_tasks"), ["failed"]);
}
