//! Named budgets: limits hold, and units that a call or a host did not use are returned.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, Session, guest, params, until};

fn place(approvals: u32) -> Place {
    Place::with(&format!(
        "[envelope]\nbudgets = {{ approvals = {approvals} }}\n[packs.reserve]\nsource = {:?}\n\
         grants = {{ ledger = true, budgets = [\"*\"] }}\n",
        guest("reserve")
    ))
}

async fn open(session: &Session) -> String {
    let opened = session.ok("envelope_open", json!({})).await;
    opened["id"].as_str().unwrap().to_owned()
}

/// Outcome of a call in one line, with the rest of the budget as its reply says.
async fn line(session: &Session, tool: &str, arguments: Value) -> String {
    let result = session.call_raw(tool, arguments).await;
    let meta = serde_json::to_value(result.meta.unwrap()).unwrap();
    let body = result.structured_content.unwrap();
    let said = match body.get("error") {
        Some(err) => format!("{} {}", err["code"], err["context"]),
        None => body["result"].to_string(),
    };
    format!("{tool} {said} left {}\n", meta["tollgate/budget"]["approvals"])
}

#[tokio::test]
async fn units_are_booked_given_back_and_refused() {
    let place = place(5);
    let session = place.serve(&["--tier", "full"]).await;
    let call = async |tool: &str, arguments: Value| line(&session, tool, arguments).await;
    let write = |reserve: u64, commit: Option<u64>, fail: bool| json!({"budget": "approvals", "reserve": reserve, "commit": commit, "fail": fail});
    let run = |reserve: u64, commit: Option<u64>, ending: &str| json!({"budget": "approvals", "reserve": reserve, "commit": commit, "ending": ending});
    let mut log = call("reserve_write", write(1, Some(1), false)).await;
    let id = open(&session).await;
    log += &call("reserve_read", json!({})).await;
    log += &call("reserve_write", write(3, Some(1), false)).await;
    log += &call("reserve_write", write(4, None, false)).await;
    log += &call("reserve_write", write(2, Some(2), true)).await;
    log += &call("reserve_write", write(1, Some(9), false)).await;
    log += &call("reserve_run", run(3, None, "return")).await;
    log += &call("reserve_run", run(3, Some(1), "return")).await;
    log += &call("reserve_run", run(2, Some(1), "trap")).await;
    log += &call("reserve_run", run(2, Some(1), "roll_back")).await;
    log += &call("reserve_run", run(1, None, "nested")).await;
    log += &call("reserve_run", run(1, Some(1), "together")).await;
    log += &call("reserve_run", run(1, Some(2), "return")).await;
    log += &call("reserve_run", run(1, Some(1), "return")).await;
    log += &call("reserve_write", write(u64::MAX, Some(1), false)).await;
    let missing = json!({"budget": "missing", "reserve": 1});
    log += &call("reserve_write", missing).await;
    let ungranted = json!({"budget": "other", "reserve": 1});
    log += &call("reserve_write", ungranted).await;
    expect![[r#"
        reserve_write "ENVELOPE_REQUIRED" {} left null
        reserve_read "Some(ReadOnly) mutations 0/None, test_runs 0/None, approvals 0/Some(5)" left {"used":0,"limit":5,"left":5}
        reserve_write "mutations 1/None, test_runs 0/None, approvals 1/Some(5)" left {"used":1,"limit":5,"left":4}
        reserve_write "mutations 2/None, test_runs 0/None, approvals 1/Some(5)" left {"used":1,"limit":5,"left":4}
        reserve_write "ASKED_TO_FAIL" {} left {"used":1,"limit":5,"left":4}
        reserve_write "BUDGET_EXHAUSTED" {"budget":"approvals","used":2,"limit":5,"envelope_id":"env_1"} left {"used":1,"limit":5,"left":4}
        reserve_run "mutations 5/None, test_runs 0/None, approvals 1/Some(5)" left {"used":1,"limit":5,"left":4}
        reserve_run "mutations 6/None, test_runs 0/None, approvals 2/Some(5)" left {"used":2,"limit":5,"left":3}
        reserve_run "GUEST_TRAPPED" {"pack":"reserve"} left {"used":2,"limit":5,"left":3}
        reserve_run "true mutations 8/None, test_runs 0/None, approvals 4/Some(5)" left {"used":2,"limit":5,"left":3}
        reserve_run "Some(TransactionOpen)" left {"used":2,"limit":5,"left":3}
        reserve_run "mutations 10/None, test_runs 0/None, approvals 3/Some(5)" left {"used":3,"limit":5,"left":2}
        reserve_run "BUDGET_EXHAUSTED" {"budget":"approvals","used":4,"limit":5,"envelope_id":"env_1"} left {"used":4,"limit":5,"left":1}
        reserve_run "mutations 12/None, test_runs 0/None, approvals 5/Some(5)" left {"used":5,"limit":5,"left":0}
        reserve_write "BUDGET_EXHAUSTED" {"budget":"approvals","used":5,"limit":5,"envelope_id":"env_1"} left {"used":5,"limit":5,"left":0}
        reserve_write "BUDGET_UNKNOWN" {"budget":"missing"} left {"used":5,"limit":5,"left":0}
        reserve_write "BUDGET_UNKNOWN" {"budget":"other"} left {"used":5,"limit":5,"left":0}
    "#]].assert_eq(&log.replace(&id, "env_1"));
    session.close().await;
    assert_eq!(place.sql("SELECT used FROM core_budgets"), ["5"]);
    assert_eq!(place.sql("SELECT count(*) FROM core_reservations"), ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_race_never_overspend() {
    let place = place(17);
    let servers: Vec<HttpServer> = (0..3).map(|_| place.serve_http(&["--tier", "full"])).collect();
    let mut sessions = Vec::new();
    for number in 0..9 {
        sessions.push(Session::over_http(&servers[number % 3]).await);
    }
    let id = open(&sessions[0]).await;
    let racing = sessions.iter().enumerate().map(|(number, session)| {
        let id = &id;
        async move {
            let mut booked = 0;
            for round in 0..6 {
                let arguments = match (number + round) % 3 {
                    0 => json!({"budget": "approvals", "reserve": 2, "commit": 1, "envelope_id": id}),
                    1 => {
                        json!({"budget": "approvals", "reserve": 1, "commit": 1, "ending": "return", "envelope_id": id})
                    }
                    _ => {
                        json!({"budget": "approvals", "reserve": 1, "commit": 1, "ending": "together", "envelope_id": id})
                    }
                };
                let tool = if (number + round) % 3 == 0 { "reserve_write" } else { "reserve_run" };
                let result = session.call_raw(tool, arguments).await;
                let body = result.structured_content.unwrap();
                match body["error"]["code"].as_str() {
                    None => booked += 1,
                    Some(code) => assert_eq!(code, "BUDGET_EXHAUSTED", "{body:#}"),
                }
            }
            booked
        }
    });
    let booked: i32 = futures::future::join_all(racing).await.iter().sum();
    assert_eq!(place.sql("SELECT used FROM core_budgets"), [booked.to_string()]);
    assert!((16..=17).contains(&booked), "{booked}");
    assert_eq!(place.sql("SELECT count(*) FROM core_reservations"), ["0"]);
}

#[tokio::test]
async fn what_a_dead_host_had_set_aside_comes_back() {
    let place = place(3);
    let alive = place.serve(&["--tier", "full"]).await;
    let dying = place.serve(&["--tier", "full"]).await;
    let id = open(&alive).await;
    let hang = json!({"budget": "approvals", "reserve": 3, "ending": "hang", "envelope_id": id});
    let hanging = dying.client().call_tool(params("reserve_run", hang));
    let taken = json!({"budget": "approvals", "reserve": 1, "commit": 1, "envelope_id": id});
    let rival = async {
        until(async || place.sql("SELECT count(*) FROM core_reservations") == ["1"]).await;
        let shown = alive.ok("envelope_get", json!({"envelope_id": id})).await;
        assert_eq!(
            shown["budgets"]["approvals"],
            json!({"limit": 3, "used": 0, "reserved": 3, "left": 0, "used_percent": 0})
        );
        let refusal = alive.refused("reserve_write", taken.clone()).await;
        assert_eq!(refusal["code"], "BUDGET_EXHAUSTED");
        dying.kill();
    };
    let (hung, ()) = tokio::join!(hanging, rival);
    assert!(hung.is_err());
    // The host that is left finds out by itself.
    alive.ok("reserve_write", taken).await;
    let shown = alive.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(shown["budgets"]["approvals"]["left"], 2);
    alive.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM core_reservations"), ["0"]);
}

#[tokio::test]
async fn a_starting_host_gives_back_what_the_dead_held() {
    let place = place(3);
    let dying = place.serve(&["--tier", "full"]).await;
    let id = open(&dying).await;
    let hang = json!({"budget": "approvals", "reserve": 3, "ending": "hang", "envelope_id": id});
    let hanging = dying.client().call_tool(params("reserve_run", hang));
    let killer = async {
        until(async || place.sql("SELECT count(*) FROM core_reservations") == ["1"]).await;
        dying.kill();
    };
    let (hung, ()) = tokio::join!(hanging, killer);
    assert!(hung.is_err());
    let next = place.serve(&[]).await;
    let shown = next.ok("envelope_get", json!({"envelope_id": id})).await;
    assert_eq!(shown["state"], "CLOSED_INTERRUPTED");
    assert_eq!(shown["budgets"]["approvals"]["reserved"], 0);
    next.close().await;
}

#[tokio::test]
async fn a_pack_that_was_not_granted_is_not_loaded() {
    let place = Place::with(&format!("[packs.reserve]\nsource = {:?}\n", guest("reserve")));
    let output = place.run(&["--json", "packs", "list"]);
    let said = String::from_utf8(output.stdout).unwrap();
    let listed: Value = serde_json::from_str(&said).unwrap();
    let told = listed.to_string();
    for line in [
        "grants.ledger = true",
        r#"grants.budgets = [\"approvals\", \"missing\"]"#,
    ] {
        assert!(told.contains(line), "{line}: {listed:#}");
    }
}

/// Units that a policy takes belong to the call: taken in its commit, returned if it fails, never beyond the budget.
#[tokio::test]
async fn policies_take_units_for_the_calls_that_they_let_through() {
    let place = Place::with(&format!(
        "[envelope]\nbudgets = {{ approvals = 5 }}\n[policies.units]\nsource = {:?}\ntools = [\"task_*\"]\n\
         grants.budgets = [\"approvals\"]\nlimits.time_ms = 10000\n",
        guest("policy_budget")
    ));
    let session = place.serve(&["--tier", "full"]).await;
    let create = || {
        json!({"title": "a", "spec_markdown": "# Goal\na", "workspace": "w", "initial_phase": "spec_draft",
            "actor": "ada", "actor_role": "orchestrator"})
    };
    let left = async |id: &str| {
        let envelope = session.ok("envelope_get", json!({"envelope_id": id})).await;
        envelope["budgets"]["approvals"]["left"].clone()
    };
    session.ok("task_create", create()).await;
    let id = open(&session).await;
    assert_eq!(left(&id).await, 5);
    session.ok("task_create", create()).await;
    session.refused("task_get", json!({"task_id": "tsk_none"})).await;
    assert_eq!(left(&id).await, 4, "a call that fails gives its unit back");
    session.ok("task_list", json!({})).await;
    assert_eq!(left(&id).await, 3, "a call that reads takes one, too");
    let calls = (0..8).map(|_| session.call_raw("task_create", create()));
    let results = futures::future::join_all(calls).await;
    let refusals: Vec<Value> = results
        .into_iter()
        .filter_map(|result| result.structured_content.unwrap().get("error").cloned())
        .collect();
    assert_eq!(refusals.len(), 5, "{refusals:#?}");
    for refusal in &refusals {
        let code = refusal["code"].as_str().unwrap();
        assert!(
            ["BUDGET_EXHAUSTED", "NO_UNITS_LEFT"].contains(&code),
            "{refusal:#}"
        );
    }
    assert_eq!(left(&id).await, 0);
    assert_eq!(place.sql("SELECT count(*) FROM core_reservations"), ["0"]);
    session.close().await;
}
