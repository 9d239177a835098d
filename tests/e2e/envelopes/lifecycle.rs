//! Ends of envelopes, and limits across envelopes: loops of envelopes, clients that leave, and edits of the database.

use serde_json::{Value, json};

use crate::harness::{Place, Session, until};
use crate::workspace_access::{Meddling, result};

fn task(more: Value) -> Value {
    let mut arguments = json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w",
        "initial_phase": "spec_draft", "actor": "ada", "actor_role": "orchestrator"});
    for (name, value) in more.as_object().unwrap() {
        arguments[name] = value.clone();
    }
    arguments
}

async fn open(session: &Session, arguments: Value) -> String {
    let opened = session.ok("envelope_open", arguments).await;
    assert_eq!(opened["envelope_id"], opened["id"]);
    opened["id"].as_str().unwrap().to_owned()
}

fn verified(place: &Place) -> (bool, String) {
    let output = place.run(&["ledger", "verify"]);
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[tokio::test]
async fn openings_and_ends_are_rows_of_their_envelope_with_limits_and_counters() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"label": "one", "limits": {"max_mutations": 2}})).await;
    session.ok("task_create", task(json!({}))).await;
    session
        .ok(
            "envelope_close",
            json!({"envelope_id": id, "outcome": "failed", "note": "gave up"}),
        )
        .await;
    let refusal = session
        .refused("task_create", task(json!({"envelope_id": id})))
        .await;
    assert_eq!(refusal["code"], "ENVELOPE_CLOSED");
    assert_eq!(refusal["context"]["note"], "gave up", "{refusal:#}");
    assert!(refusal["context"]["closed_at"].is_string());
    let left = open(&session, json!({})).await;
    session.close().await;
    let rows = place.sql(
        "SELECT tool || ' ' || coalesce(counters, '-') || ' ' || coalesce(events, '-') FROM core_operations
         WHERE envelope_id IS NOT NULL ORDER BY seq",
    );
    let rows = rows.join("\n").replace(&id, "env_1").replace(&left, "env_2");
    for part in [
        r#"envelope_open - [{"type":"envelope.opened","envelope_id":"env_1","limits":{"max_mutations":2},"opened_boot_ms":"#,
        r#","label":"one"}]"#,
        r#"task_create {"mutations":1,"test_runs":0}"#,
        r#""state":"CLOSED_FAILED","closed_at":"2"#,
        r#""counters":{"mutations":1,"test_runs":0},"actor":"client rmcp/"#,
        r#"","note":"gave up""#,
        r#""closed_by":"DISCONNECTED""#,
    ] {
        assert!(rows.contains(part), "{part} is not in\n{rows}");
    }
    assert!(verified(&place).0);
    for (change, shown) in [
        (
            "UPDATE core_envelopes SET state = 'OPEN' WHERE note = 'gave up'",
            "made it CLOSED_FAILED",
        ),
        (
            "UPDATE core_envelopes SET mutation_count = 0 WHERE note = 'gave up'",
            "the number of mutations of envelope",
        ),
        (
            "UPDATE core_envelopes SET max_mutations = 99 WHERE note = 'gave up'",
            "the limits of envelope",
        ),
        ("DELETE FROM core_envelopes WHERE note = 'gave up'", "was removed"),
    ] {
        place.sql(change);
        let (is_whole, text) = verified(&place);
        assert!(!is_whole && text.contains(shown), "{change}: {text}");
    }
}

#[tokio::test]
async fn a_window_holds_over_envelopes_hosts_and_names() {
    let place = Place::with(
        "[envelope]\nrequire = \"writes\"\n[[envelope.window]]\nby = \"everyone\"\nper = \"1h\"\nmax_mutations = 3\n\
         [[envelope.window]]\nby = \"actor\"\nper = \"1h\"\nmax_envelopes = 4\n",
    );
    let (one, other) = (
        place.serve(&["--tier", "full"]).await,
        place.serve(&["--tier", "full"]).await,
    );
    for session in [&one, &other, &one] {
        let id = open(session, json!({"limits": {"max_mutations": 1}})).await;
        session.ok("task_create", task(json!({"envelope_id": id}))).await;
    }
    let id = open(&other, json!({})).await;
    let refusal = other
        .refused(
            "task_create",
            task(json!({"envelope_id": id, "actor": "somebody else"})),
        )
        .await;
    assert_eq!(refusal["code"], "WINDOW_EXHAUSTED", "{refusal:#}");
    assert_eq!(refusal["context"]["what"], "mutations");
    assert!(refusal["context"]["retry_after_sec"].as_i64().unwrap() > 3_000);
    let refusal = one.refused("envelope_open", json!({})).await;
    assert_eq!(refusal["code"], "WINDOW_EXHAUSTED");
    assert_eq!(refusal["context"]["what"], "envelopes");
    // The envelope is not charged for what the window refused.
    let got = other.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(got["counters"]["mutation_count"], 0);
    other.ok("task_list", json!({"envelope_id": id})).await;
    one.close().await;
    other.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["3"]);
    let limits = place.sql("SELECT limit_triggered FROM core_operations WHERE limit_triggered IS NOT NULL");
    assert_eq!(limits, ["WINDOW_EXHAUSTED", "WINDOW_EXHAUSTED"]);
}

#[tokio::test]
async fn parts_of_an_envelope_use_it_up_together() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let around = open(&session, json!({"limits": {"max_mutations": 3}})).await;
    let mut parts = Vec::new();
    for _ in 0..2 {
        parts.push(
            open(
                &session,
                json!({"parent": around, "limits": {"max_mutations": 2}}),
            )
            .await,
        );
    }
    for id in [&parts[0], &parts[0], &parts[1]] {
        session.ok("task_create", task(json!({"envelope_id": id}))).await;
    }
    let refusal = session
        .refused("task_create", task(json!({"envelope_id": parts[1]})))
        .await;
    assert_eq!(refusal["code"], "MUTATION_BUDGET_EXHAUSTED", "{refusal:#}");
    assert_eq!(refusal["context"]["envelope_id"], around.as_str());
    let part = session.ok("envelope_get", json!({"envelope_id": parts[1]})).await;
    assert_eq!(
        (&part["state"], &part["closed_by"]),
        (&json!("CLOSED_INTERRUPTED"), &json!("PARENT_CLOSED"))
    );
    let refusal = session.refused("envelope_open", json!({"parent": around})).await;
    assert_eq!(refusal["code"], "ENVELOPE_CLOSED");
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["3"]);
    assert!(verified(&place).0, "{}", verified(&place).1);
}

#[tokio::test]
async fn an_agent_that_never_heard_of_envelopes_is_bounded_when_the_operator_says_so() {
    let place = Place::with(
        "[envelope]\nauto = true\nmax_mutations = 2\n[[envelope.window]]\nby = \"client\"\nper = \"1d\"\nmax_envelopes = 2\n",
    );
    for expected in ["ENVELOPE_CLOSED", "ENVELOPE_CLOSED", "WINDOW_EXHAUSTED"] {
        let session = place.serve(&["--tier", "full"]).await;
        session.ok("task_list", json!({})).await;
        let mut codes = Vec::new();
        for _ in 0..4 {
            let reply = session.call_raw("task_create", task(json!({}))).await;
            let structured = reply.structured_content.unwrap();
            codes.push(structured["error"]["code"].as_str().unwrap_or("ok").to_owned());
        }
        assert_eq!(codes[3], expected, "{codes:?}");
        session.close().await;
    }
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["4"]);
    let labels = place.sql("SELECT label FROM core_envelopes");
    assert_eq!(labels, ["opened automatically", "opened automatically"]);
}

#[tokio::test]
async fn a_detached_envelope_outlives_its_connection_and_a_shared_one_its_opener() {
    let place = Place::new();
    let refused = place.run(&["envelopes", "open", "--for", "soon"]);
    assert!(!refused.status.success());
    let opened = place.run(&["--json", "envelopes", "open", "--for", "2h", "--label", "ci"]);
    let opened: Value = serde_json::from_slice(&opened.stdout).unwrap();
    let id = opened["id"].as_str().unwrap();
    assert_eq!(
        (&opened["detached"], &opened["limits"]["max_duration_sec"]),
        (&json!(true), &json!(7_200))
    );
    for _ in 0..2 {
        let session = place.serve(&["--tier", "full"]).await;
        session.ok("task_create", task(json!({"envelope_id": id}))).await;
        session.close().await;
    }
    let closed = place.run(&["--json", "envelopes", "close", id, "--outcome", "failed"]);
    let closed: Value = serde_json::from_slice(&closed.stdout).unwrap();
    assert_eq!(closed["envelope"]["counters"]["mutation_count"], 2, "{closed:#}");

    let opener = place.serve(&["--tier", "full"]).await;
    let shared = open(&opener, json!({})).await;
    let user = place.serve(&["--tier", "full"]).await;
    user.ok("task_create", task(json!({"envelope_id": shared}))).await;
    opener.close().await;
    user.ok("task_create", task(json!({"envelope_id": shared}))).await;
    user.close().await;
    let state = place.sql(&format!(
        "SELECT state || ' ' || closed_by FROM core_envelopes WHERE id = '{shared}'"
    ));
    assert_eq!(state, ["CLOSED_INTERRUPTED DISCONNECTED"]);
    assert!(verified(&place).0, "{}", verified(&place).1);
}

#[tokio::test]
async fn a_connection_that_reads_in_an_envelope_keeps_it_open() {
    let place = Place::new();
    let opener = place.serve(&["--tier", "full"]).await;
    let reader = place.serve(&["--tier", "full"]).await;
    let shared = open(&opener, json!({})).await;
    let own = open(&opener, json!({})).await;
    reader.ok("task_list", json!({"envelope_id": shared})).await;
    opener.close().await;
    let state = async |id: &str| reader.ok("envelope_get", json!({"envelope_id": id})).await["state"].clone();
    until(async || state(&own).await == "CLOSED_INTERRUPTED").await;
    assert_eq!(state(&shared).await, "OPEN");
    reader.close().await;
    assert_eq!(
        place.sql("SELECT count(*) FROM core_envelopes WHERE state = 'OPEN'"),
        ["0"]
    );
}

#[tokio::test]
async fn a_call_that_names_no_envelope_is_told_that_its_connection_has_one() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"limits": {"max_mutations": 1}})).await;
    session.ok("task_create", task(json!({}))).await;
    session.refused("task_create", task(json!({}))).await;
    let refusal = session.refused("task_list", json!({})).await;
    assert_eq!(refusal["code"], "ENVELOPE_CLOSED", "{refusal:#}");
    assert_eq!(refusal["context"]["is_default"], true, "{refusal:#}");
    let message = refusal["message"].as_str().unwrap();
    assert!(
        message.ends_with("; the call named no envelope, so its connection's default applies"),
        "{message}"
    );
    let refusal = session.refused("task_list", json!({"envelope_id": id})).await;
    assert_eq!(refusal["context"].get("is_default"), None, "{refusal:#}");
    session.close().await;
}

#[tokio::test]
async fn an_expired_envelope_is_closed_for_everybody_and_never_a_success() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"limits": {"max_duration_sec": 1}})).await;
    let got = async || session.ok("envelope_get", json!({"envelope_id": id})).await;
    until(async || got().await["expired"] == true).await;
    let envelope = got().await;
    assert_eq!(
        (&envelope["state"], &envelope["closed_by"]),
        (&json!("CLOSED_FAILED"), &json!("DURATION_EXCEEDED"))
    );
    let listed = session.ok("envelope_list", json!({"state": "OPEN"})).await;
    assert_eq!(listed["envelopes"], json!([]));
    let lost = session.refused("envelope_list", json!({"cursor": "nope"})).await;
    assert_eq!(lost["code"], "INVALID_ARGUMENTS");
    assert_eq!(lost["next_call"]["tool"], "envelope_list", "{lost}");
    let closed = session
        .ok("envelope_close", json!({"envelope_id": id, "outcome": "success"}))
        .await;
    assert_eq!(closed["envelope"]["state"], "CLOSED_FAILED");
    assert_eq!(closed["envelope"]["closed_by"], "DURATION_EXCEEDED");
    session.close().await;
    assert!(verified(&place).0);
}

#[tokio::test]
async fn parts_are_over_for_everybody_with_the_time_of_the_envelope_around_them() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let around = open(&session, json!({"limits": {"max_duration_sec": 1}})).await;
    let part = open(
        &session,
        json!({"parent": around, "limits": {"max_duration_sec": 900}}),
    )
    .await;
    let inner = open(&session, json!({"parent": part})).await;
    let got = async |id: &str| session.ok("envelope_get", json!({"envelope_id": id})).await;
    until(async || got(&around).await["expired"] == true).await;
    for id in [&part, &inner] {
        let envelope = got(id).await;
        assert_eq!(
            (&envelope["state"], &envelope["closed_by"], &envelope["expired"]),
            (
                &json!("CLOSED_INTERRUPTED"),
                &json!("PARENT_CLOSED"),
                &json!(true)
            ),
            "{envelope:#}"
        );
        let told = place.run(&["ledger", "report", id]);
        let told = String::from_utf8(told.stdout).unwrap();
        let end = "closed as interrupted: the time of a parent envelope ran out.";
        assert!(told.lines().nth(1).unwrap().ends_with(end), "{told}");
    }
    let listed = session.ok("envelope_list", json!({"state": "OPEN"})).await;
    assert_eq!(listed["envelopes"], json!([]));
    let listed = session
        .ok("envelope_list", json!({"state": "CLOSED_INTERRUPTED"}))
        .await;
    assert_eq!(listed["envelopes"].as_array().unwrap().len(), 2);
    let listed = place.run(&["--json", "envelopes", "--open"]);
    assert_eq!(
        serde_json::from_slice::<Value>(&listed.stdout).unwrap(),
        json!([])
    );
    let report = session.ok("ledger_report", json!({"envelope_id": around})).await;
    assert_eq!(report["parts"][0]["state"], "CLOSED_INTERRUPTED", "{report:#}");
    let text = report["text"].as_str().unwrap();
    assert!(
        text.contains("closed as failed: its time ran out.") && text.contains(", at most 1 s."),
        "{text}"
    );
    let refusal = session
        .refused("task_create", task(json!({"envelope_id": inner})))
        .await;
    assert_eq!(refusal["code"], "DURATION_EXCEEDED", "{refusal:#}");
    assert_eq!(refusal["context"]["envelope_id"], json!(around), "{refusal:#}");
    session.close().await;
    assert!(verified(&place).0, "{}", verified(&place).1);
}

#[tokio::test]
async fn a_part_of_an_envelope_whose_time_is_over_is_no_success() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let around = open(&session, json!({"limits": {"max_duration_sec": 1}})).await;
    let part = open(&session, json!({"parent": around})).await;
    let refused = open(&session, json!({"parent": around})).await;
    let got = async |id: &str| session.ok("envelope_get", json!({"envelope_id": id})).await;
    until(async || got(&part).await["expired"] == true).await;
    let refusal = session.refused("envelope_open", json!({"parent": refused})).await;
    assert_eq!(refusal["code"], "DURATION_EXCEEDED", "{refusal:#}");
    let closed = session
        .ok(
            "envelope_close",
            json!({"envelope_id": part, "outcome": "success", "note": "done"}),
        )
        .await;
    let envelope = &closed["envelope"];
    assert_eq!(
        (&envelope["state"], &envelope["closed_by"], &envelope["note"]),
        (
            &json!("CLOSED_INTERRUPTED"),
            &json!("PARENT_CLOSED"),
            &json!("done")
        ),
        "{closed:#}"
    );
    session.close().await;
    let ends = place.sql("SELECT state || ' ' || closed_by FROM core_envelopes ORDER BY opened_at, id");
    assert_eq!(
        ends,
        [
            "CLOSED_FAILED DURATION_EXCEEDED",
            "CLOSED_INTERRUPTED PARENT_CLOSED",
            "CLOSED_INTERRUPTED PARENT_CLOSED"
        ]
    );
    assert!(verified(&place).0, "{}", verified(&place).1);
}

#[tokio::test]
async fn little_that_is_left_is_said_where_models_read_it() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let opened = session
        .ok("envelope_open", json!({"limits": {"max_mutations": 5}}))
        .await;
    assert_eq!(opened["left"], json!({"mutations": 5}));
    for expected in [None, None, None, Some(1), Some(0)] {
        let reply = session.call_raw("task_create", task(json!({}))).await;
        let structured = reply.structured_content.unwrap();
        let left = structured.pointer("/left/mutations").and_then(Value::as_i64);
        assert_eq!(left, expected, "{structured:#}");
    }
    session.close().await;
}

#[tokio::test]
async fn rows_that_are_taken_from_the_end_show_without_an_exported_head() {
    let place = Place::in_file("");
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", task(json!({}))).await;
    session.ok("task_create", task(json!({}))).await;
    session.close().await;
    assert!(verified(&place).0);
    place.sql("DROP TRIGGER core_operations_no_delete");
    place.sql("DELETE FROM core_operations WHERE seq = (SELECT max(seq) FROM core_operations)");
    let output = place.run(&["doctor", "--repair"]);
    drop(output);
    let (is_whole, text) = verified(&place);
    assert!(
        !is_whole && text.contains("rows were removed from the end"),
        "{text}"
    );
}

#[tokio::test]
async fn registered_tests_are_test_runs_whichever_tool_starts_them() {
    let meddling = Meddling::new();
    let session = meddling.serve().await;
    let id = open(&session, json!({"limits": {"max_test_runs": 2}})).await;
    let run = async |script: &str| {
        let arguments = json!({"program": "sh", "arguments": ["-c", script], "envelope_id": id});
        result(&session, "workspace_access_run", arguments).await
    };
    assert!(run("echo tested").await.contains("tested"));
    assert!(run("echo tested").await.contains("tested"));
    let refused = run("echo tested").await;
    assert!(
        refused.starts_with("not allowed: ") && refused.contains("has used up its limit of 2 test runs"),
        "{refused}"
    );
    assert!(run("echo other").await.contains("other"), "it is no test");
    let envelope = session.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(envelope["counters"]["test_run_count"], 2, "{envelope:#}");
    assert_eq!(envelope["counters"]["mutation_count"], 4);
    session.close().await;
    let rows = meddling.place.sql(
        "SELECT coalesce(json_extract(counters, '$.test_runs'), '-') || ' ' || coalesce(json_extract(outcome, '$.result'), '-')
            || ' ' || coalesce(limit_triggered, '-')
         FROM core_operations WHERE tool = 'workspace_access_run' ORDER BY seq",
    );
    assert_eq!(
        rows,
        ["1 passed -", "2 passed -", "2 - TEST_BUDGET_EXHAUSTED", "2 - -"]
    );
    assert!(verified(&meddling.place).0);
}

#[tokio::test]
async fn programs_take_from_the_budget_for_commands_and_from_that_of_the_envelope_around() {
    let meddling = Meddling::with("[envelope]\nbudgets = { commands = 3 }\n");
    let session = meddling.serve().await;
    let around = open(&session, json!({})).await;
    let mut parts = Vec::new();
    for _ in 0..2 {
        parts.push(open(&session, json!({"parent": around})).await);
    }
    let run = async |part: &str, script: &str| {
        let arguments = json!({"program": "sh", "arguments": ["-c", script], "envelope_id": part});
        result(&session, "workspace_access_run", arguments).await
    };
    // A registered test of a tool that is no test tool is a command as well.
    assert!(run(&parts[0], "echo tested").await.contains("tested"));
    assert!(run(&parts[0], "echo other").await.contains("other"));
    assert!(run(&parts[1], "echo other").await.contains("other"));
    let refused = run(&parts[1], "echo other").await;
    assert!(
        refused.contains(&format!(
            "envelope {around} has used up its budget `commands` of 3 units"
        )),
        "{refused}"
    );
    let used = async |id: &str| {
        session.ok("envelope_get", json!({"envelope_id": id})).await["budgets"]["commands"]["used"].clone()
    };
    assert_eq!(
        (used(&around).await, used(&parts[0]).await, used(&parts[1]).await),
        (json!(3), json!(2), json!(1))
    );
    session.close().await;
    let limits = meddling
        .place
        .sql("SELECT limit_triggered FROM core_operations WHERE limit_triggered IS NOT NULL");
    assert_eq!(limits, ["BUDGET_EXHAUSTED"]);
    assert!(verified(&meddling.place).0);
}
