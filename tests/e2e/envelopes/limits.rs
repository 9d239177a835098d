//! Envelopes: limits on calls, and the state after a restart.

use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, Session, params, until};

async fn open(session: &Session, limits: Value) -> String {
    let opened = session
        .ok("envelope_open", json!({"label": "test", "limits": limits}))
        .await;
    opened["id"].as_str().unwrap().to_owned()
}

fn task(envelope: Option<&str>) -> Value {
    let mut arguments = json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w",
        "initial_phase": "spec_draft", "actor": "ada", "actor_role": "orchestrator"});
    if let Some(envelope) = envelope {
        arguments["envelope_id"] = envelope.into();
    }
    arguments
}

#[tokio::test]
async fn the_call_past_a_limit_is_refused_and_closes_the_envelope() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"max_mutations": 2})).await;
    let first = session.call_raw("task_create", task(Some(&id))).await;
    let meta = serde_json::to_value(first.meta.unwrap()).unwrap();
    assert_eq!(meta["tollgate/envelope_id"], id.as_str());
    assert_eq!(
        meta["tollgate/budget"]["mutations"],
        json!({"used": 1, "limit": 2, "left": 1})
    );
    // A refused call that reached its guest counts as well, or failing loops would never end.
    session
        .refused("task_get", json!({"task_id": "tsk_none", "envelope_id": id}))
        .await;
    let mut wrong_role = task(Some(&id));
    wrong_role["actor_role"] = "human".into();
    session.refused("task_create", wrong_role).await;

    let refusal = session.refused("task_create", task(Some(&id))).await;
    assert_eq!(refusal["code"], "MUTATION_BUDGET_EXHAUSTED", "{refusal:#}");
    assert_eq!(
        (&refusal["context"]["limit"], &refusal["context"]["used"]),
        (&json!(2), &json!(2))
    );
    let refusal = session.refused("task_create", task(Some(&id))).await;
    assert_eq!(refusal["code"], "ENVELOPE_CLOSED");
    let envelope = session.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(envelope["state"], "CLOSED_FAILED");
    assert_eq!(envelope["closed_by"], "MUTATION_BUDGET_EXHAUSTED");
    assert_eq!(envelope["counters"]["mutation_count"], 2);
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["1"]);
    assert_eq!(
        place
            .sql("SELECT limit_triggered FROM core_operations WHERE limit_triggered IS NOT NULL")
            .len(),
        1
    );
}

#[tokio::test]
async fn a_call_after_the_last_second_is_refused() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"max_duration_sec": 1})).await;
    // The envelope says itself when its time is over.
    until(async || session.ok("envelope_get", json!({"envelope_id": id})).await["expired"] == true).await;
    let refusal = session.refused("task_list", json!({"envelope_id": id})).await;
    assert_eq!(refusal["code"], "DURATION_EXCEEDED");
    // The write commits after the row that closed the envelope.
    let refusal = session.refused("task_create", task(Some(&id))).await;
    assert_eq!(refusal["code"], "ENVELOPE_CLOSED");
    session.close().await;
}

#[tokio::test]
async fn a_connection_stands_for_the_envelope_it_opened() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", task(None)).await;
    let id = open(&session, json!({})).await;
    session.ok("task_create", task(None)).await;
    session.ok("task_create", task(None)).await;
    let closed = session
        .ok(
            "envelope_close",
            json!({"envelope_id": id, "outcome": "success", "report": true}),
        )
        .await;
    assert_eq!(closed["envelope"]["counters"]["mutation_count"], 2);
    assert_eq!(closed["report"]["operations"], 3);
    assert!(
        closed["report"]["text"]
            .as_str()
            .unwrap()
            .contains("task_create by claimed:ada"),
        "{closed:#}"
    );
    session.ok("task_create", task(None)).await;
    let refusal = session
        .refused("envelope_close", json!({"envelope_id": id, "outcome": "failed"}))
        .await;
    assert_eq!(refusal["code"], "ENVELOPE_CLOSED");
    session.close().await;
    let rows = place.sql(
        "SELECT CAST(envelope_id IS NULL AS INTEGER) FROM core_operations WHERE tool = 'task_create' ORDER BY seq",
    );
    assert_eq!(rows, ["1", "0", "0", "1"]);
}

#[tokio::test]
async fn an_envelope_is_named_once_or_the_same_twice() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let (one, other) = (open(&session, json!({})).await, open(&session, json!({})).await);
    let with_meta = |argument: &str, meta: &str| {
        let mut call = params("task_list", json!({"envelope_id": argument}));
        let mut object = rmcp::model::RequestMetaObject::new();
        object.insert("tollgate/envelope_id".to_owned(), meta.into());
        call.meta = Some(object);
        call
    };
    let same = session.client().call_tool(with_meta(&one, &one)).await.unwrap();
    assert_ne!(same.is_error, Some(true));
    let different = session.client().call_tool(with_meta(&one, &other)).await.unwrap();
    assert_eq!(
        different.structured_content.unwrap()["error"]["code"],
        "ENVELOPE_CONFLICT"
    );
    let refusal = session
        .refused("task_list", json!({"envelope_id": "env_none"}))
        .await;
    assert_eq!(refusal["code"], "UNKNOWN_ENVELOPE");
    let refusal = session.refused("task_list", json!({"envelope_id": 3})).await;
    assert_eq!(refusal["code"], "INVALID_ARGUMENTS");
    session.close().await;
}

#[tokio::test]
async fn the_operator_can_require_envelopes_and_cap_them() {
    let place = Place::with(
        "[envelope]\nrequire = \"writes\"\nmax_mutations = 5\nceiling = { max_mutations = 10 }\n",
    );
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_list", json!({})).await;
    let refusal = session.refused("task_create", task(None)).await;
    assert_eq!(refusal["code"], "ENVELOPE_REQUIRED");
    assert_eq!(refusal["next_call"]["tool"], "envelope_open");
    for limits in [
        json!({"max_mutations": 11}),
        json!({"max_mutations": 0}),
        json!({"max_test_runs": -1}),
    ] {
        let refusal = session.refused("envelope_open", json!({"limits": limits})).await;
        assert_eq!(refusal["code"], "LIMIT_INVALID", "{refusal:#}");
    }
    let opened = session.ok("envelope_open", json!({})).await;
    assert_eq!(opened["limits"]["max_mutations"], 5);
    session.close().await;
}

#[tokio::test]
async fn repeated_and_alternating_changes_are_noticed() {
    let place = Place::with_guests(&["sql-access"]);
    let session = place.serve(&["--tier", "full"]).await;
    open(&session, json!({})).await;
    let change = async |sql: &str| {
        let result = session
            .call_raw("sql_access_execute", json!({"sql": [sql]}))
            .await;
        serde_json::to_value(result.meta.unwrap()).unwrap()["tollgate/mutation"].clone()
    };
    let (a, b) = (
        "UPDATE sql_access_rows SET body = x'01'",
        "UPDATE sql_access_rows SET body = x'02'",
    );
    assert_eq!(change(a).await["no_op"], Value::Null);
    assert_eq!(change(a).await["no_op"], true);
    assert_eq!(change(b).await["oscillation"], Value::Null);
    assert_eq!(change(a).await["oscillation"], json!({"period": 2}));
    assert_eq!(change(b).await["oscillation"], json!({"period": 2}));
    session.close().await;
}

#[tokio::test]
async fn only_what_is_dead_is_interrupted() {
    let place = Place::new();
    let dead = place.serve(&[]).await;
    let alive = place.serve(&[]).await;
    let left = open(&dead, json!({})).await;
    let kept = open(&alive, json!({})).await;
    dead.kill();
    let newcomer = place.serve(&[]).await;
    let state =
        async |id: &str| newcomer.ok("envelope_get", json!({"envelope_id": id})).await["state"].clone();
    assert_eq!(state(&left).await, "CLOSED_INTERRUPTED");
    assert_eq!(state(&kept).await, "OPEN");
    // A client that leaves interrupts only what it opened.
    alive.close().await;
    let mine = open(&newcomer, json!({})).await;
    until(async || state(&kept).await == "CLOSED_INTERRUPTED").await;
    assert_eq!(state(&mine).await, "OPEN");
    newcomer.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_clients_on_three_hosts_never_pass_a_limit() {
    let place = Place::new();
    let servers: Vec<HttpServer> = (0..3).map(|_| place.serve_http(&["--tier", "full"])).collect();
    let mut sessions = Vec::new();
    for number in 0..10 {
        sessions.push(Session::over_http(&servers[number % 3]).await);
    }
    let id = open(&sessions[0], json!({"max_mutations": 37})).await;
    let racing = sessions.iter().map(|session| {
        let id = &id;
        async move {
            let mut through = 0;
            while session.call_raw("task_create", task(Some(id))).await.is_error != Some(true) {
                through += 1;
            }
            through
        }
    });
    let through: Vec<i32> = futures::future::join_all(racing).await;
    assert_eq!(through.iter().sum::<i32>(), 37, "{through:?}");
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["37"]);
    assert_eq!(place.sql("SELECT mutation_count FROM core_envelopes"), ["37"]);
    assert_eq!(
        place.sql("SELECT max(seq) - count(*) FROM core_operations"),
        ["0"]
    );
}

#[tokio::test]
async fn a_run_call_that_died_leaves_one_operation_of_unknown_outcome() {
    let place = Place::with_guests(&["call-limits"]);
    let session = place.serve(&["--tier", "full"]).await;
    let id = open(&session, json!({"max_mutations": 5})).await;
    let call = params("call_limits_spin_running", json!({"envelope_id": id}));
    let spinning = session.client().call_tool(call);
    let killer = async {
        until(async || place.sql("SELECT count(*) FROM core_intents") == ["1"]).await;
        session.kill();
    };
    let (spun, ()) = tokio::join!(spinning, killer);
    assert!(spun.is_err());
    let next = place.serve(&["--tier", "full"]).await;
    let envelope = next.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(
        (&envelope["state"], &envelope["counters"]["mutation_count"]),
        (&json!("CLOSED_INTERRUPTED"), &json!(1))
    );
    let found = next
        .ok(
            "ledger_query",
            json!({"tool": "call_limits_spin_running", "fields": ["failure_class"]}),
        )
        .await;
    let operations = found["operations"].as_array().unwrap();
    assert_eq!(operations.len(), 1);
    assert_eq!(operations[0].get("success"), None);
    assert_eq!(operations[0]["failure_class"], "interrupted");
    assert_eq!(operations[0].get("hash"), None, "rows are compact");
    let unknown = next.refused("ledger_query", json!({"fields": ["hush"]})).await;
    assert_eq!(unknown["code"], "INVALID_ARGUMENTS", "{unknown:#}");
    assert!(unknown["remediation"].as_str().unwrap().contains("hash"));
    next.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM core_intents"), ["0"]);
}
