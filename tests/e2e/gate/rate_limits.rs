//! Rate limits and loop limits for all calls: simultaneous, on several hosts, over new connections, in batches.

use futures::future::join_all;
use serde_json::{Value, json};

use crate::harness::{Place, Session, until};
use crate::transport::http::{NEWEST, post, stateless};

/// A place with the guest `sql-access` and one policy, with a longer time limit for busy machines.
fn place(policy: &str, config: &str) -> Place {
    let place = Place::with_guests(&["sql-access"]);
    add(
        &place,
        &format!("\n[policies.{policy}]\nlimits.time_ms = 10000\nconfig = {{ {config} }}\n"),
    );
    place
}

#[allow(clippy::disallowed_methods, reason = "tests make files")]
fn add(place: &Place, more: &str) {
    let config = std::fs::read_to_string(place.config()).unwrap();
    std::fs::write(place.config(), config + more).unwrap();
}

/// Outcome of each call: `ok`, or its code. Checks that a rate-limited call is told when to call again.
async fn all(sessions: &[&Session], count: usize, tool: &str, arguments: &Value) -> Vec<String> {
    let calls = (0..count).map(|number| sessions[number % sessions.len()].call_raw(tool, arguments.clone()));
    let results = join_all(calls).await;
    let ends = results.iter().map(|result| {
        let body = result.structured_content.as_ref().unwrap();
        let error = &body["error"];
        if error["code"] == "RATE_LIMITED" {
            let told = error["remediation"].as_str().unwrap();
            assert!(
                told.starts_with("Call again in ") && told.ends_with(" s."),
                "{error:#}"
            );
            assert_eq!(error["context"]["policy"], "rate-limit", "{error:#}");
        }
        error["code"].as_str().unwrap_or("ok").to_owned()
    });
    ends.collect()
}

fn assert_ends(ends: &[String], ok: usize, code: &str) {
    let passed = ends.iter().filter(|end| *end == "ok").count();
    let refused = ends.iter().filter(|end| *end == code).count();
    assert_eq!((passed, refused), (ok, ends.len() - ok), "{ends:?}");
}

fn insert() -> Value {
    json!({"sql": ["INSERT INTO sql_access_log (line) VALUES ('x')"]})
}

#[tokio::test(flavor = "multi_thread")]
async fn no_burst_passes_more_calls_than_the_rate_on_all_hosts_together() {
    let place = place(
        "rate-limit",
        r#"calls = 5, seconds = 3600, each_tool = true, effects = ["read", "write", "run"]"#,
    );
    let one = place.serve(&[]).await;
    let other = place.serve(&[]).await;
    let server = place.serve_http(&[]);
    let third = Session::over_http(&server).await;
    let sessions = [&one, &other, &third];
    for (tool, arguments) in [
        ("sql_access_execute", insert()),
        ("sql_access_run", json!({})),
        ("sql_access_query", json!({"sql": "SELECT 1 FROM sql_access_log"})),
    ] {
        assert_ends(&all(&sessions, 90, tool, &arguments).await, 5, "RATE_LIMITED");
        assert_ends(&all(&sessions, 6, tool, &arguments).await, 0, "RATE_LIMITED");
    }
    for session in [one, other, third] {
        session.close().await;
    }
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_log"), ["5"]);
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_rows"), ["5"]);
    // Each refusal is the policy's in the ledger, whether it came before the commit or in it.
    let class =
        place.sql("SELECT DISTINCT failure_class FROM core_operations WHERE error_code = 'RATE_LIMITED'");
    assert_eq!(class, ["refused"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_requests_under_many_names_pass_no_more_calls_than_the_rate() {
    let place = Place::with(
        "[policies.rate-limit]\nlimits.time_ms = 10000\nconfig = { calls = 5, seconds = 3600, of = \"actor\" }\n",
    );
    let server = place.serve_http(&["--tier", "full"]);
    let request = async |number: usize| {
        let names = ["ada", "Ada", "claimed:ada", "token:ada", "grace"];
        let task = json!({"title": "T", "spec_markdown": "S", "workspace": "w", "initial_phase": "spec_draft",
            "actor": names[number % names.len()], "actor_role": "orchestrator"});
        let body = stateless("tools/call", json!({"name": "task_create", "arguments": task}));
        let headers = [NEWEST, ("mcp-method", "tools/call"), ("mcp-name", "task_create")];
        post(&server, &headers, body).await
    };
    let answers = join_all((0..200).map(request)).await;
    let count = |is_it: fn(&(u16, String)) -> bool| answers.iter().filter(|answer| is_it(answer)).count();
    let refused = count(|(_, text)| text.contains("RATE_LIMITED"));
    // A door that is full turns requests away before anything counts them.
    let turned_away = count(|(status, _)| *status == 429 || *status == 503);
    assert_eq!(
        place.sql("SELECT count(*) FROM core_operations WHERE success = 1"),
        ["5"]
    );
    assert_eq!(
        200 - refused - turned_away,
        5,
        "{refused} refused, {turned_away} turned away"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_denied_or_fails_uses_up_no_place() {
    let place = place(
        "rate-limit",
        r#"calls = 2, seconds = 3600, effects = ["read", "write", "run"]"#,
    );
    add(
        &place,
        "\n[policies.closed]\nsource = \"builtin:cel\"\nlimits.time_ms = 10000\n\
         config = { when = \"has(arguments.sql) && tool == 'sql_access_query' && arguments.sql == 'SELECT 2'\", code = \"CLOSED\", message = \"closed\" }\n",
    );
    let session = place.serve(&[]).await;
    let fails = json!({"sql": ["INSERT INTO sql_access_log (line) VALUES ('x')"], "fail": true});
    assert_ends(
        &all(&[&session], 12, "sql_access_query", &json!({"sql": "SELECT 2"})).await,
        0,
        "CLOSED",
    );
    for _ in 0..4 {
        let failed = session.refused("sql_access_execute", fails.clone()).await;
        assert_eq!(failed["code"], "ASKED_TO_FAIL");
        let failed = session.refused("task_get", json!({"task_id": "nothing"})).await;
        assert_eq!(failed["code"], "NOT_FOUND");
    }
    assert_eq!(place.sql("SELECT count(*) FROM core_permits"), ["0"]);
    assert_ends(
        &all(&[&session], 20, "sql_access_execute", &insert()).await,
        2,
        "RATE_LIMITED",
    );
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_free_again_after_their_time_and_never_more_than_the_rate() {
    let place = place("rate-limit", "calls = 3, seconds = 2");
    let session = place.serve(&[]).await;
    let passed = || {
        let times = place.sql("SELECT CAST(unixepoch(timestamp, 'subsec') * 1000 AS BIGINT) FROM core_operations WHERE success = 1 ORDER BY seq");
        times
            .iter()
            .map(|time| time.parse::<i64>().unwrap())
            .collect::<Vec<_>>()
    };
    until(async || {
        all(&[&session], 12, "sql_access_execute", &insert()).await;
        passed().len() >= 9
    })
    .await;
    session.close().await;
    let times = passed();
    // A call reaches the gate before it is admitted, by less than half a second here.
    assert!(
        times.windows(4).all(|four| four[3] - four[0] > 1_500),
        "{times:?}"
    );
}

fn bootstrap(title: &str) -> Value {
    json!({"tool": "tasks_bootstrap", "args": {"plan_title": title, "task_title": "T", "workspace": "w",
        "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["cargo test"]}]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_at_once_have_no_more_calls_inside_than_the_rate() {
    let place = Place::with(
        "[policies.rate-limit]\nlimits.time_ms = 10000\ntools = [\"tasks_bootstrap\"]\n\
         config = { calls = 5, seconds = 3600, each_tool = true }\n",
    );
    let session = place.serve(&["--tier", "full"]).await;
    let two = json!({"workspace": "w", "operations": [bootstrap("A"), bootstrap("B")]});
    let ends = all(&[&session], 20, "tasks_batch", &two).await;
    assert_ends(&ends, 2, "RATE_LIMITED");
    assert_ends(
        &all(&[&session], 8, "tasks_bootstrap", &bootstrap("C")["args"]).await,
        1,
        "RATE_LIMITED",
    );
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_at_once_are_a_loop() {
    let place = place("loop-breaker", "repeats = 3");
    let one = place.serve(&[]).await;
    let other = place.serve(&[]).await;
    let fails = json!({"sql": [], "fail": true});
    let (insert, read) = (insert(), json!({"sql": "SELECT 1 FROM sql_access_log"}));
    assert_ends(
        &all(&[&one, &other], 24, "sql_access_execute", &insert).await,
        3,
        "LOOP_DETECTED",
    );
    let failed = all(&[&one, &other], 24, "sql_access_execute", &fails).await;
    let ran = failed.iter().filter(|end| *end == "ASKED_TO_FAIL").count();
    assert_eq!(ran, 3, "{failed:?}");
    // Last, because rows of reads come late, and each that comes begins another count.
    assert_ends(
        &all(&[&one], 24, "sql_access_query", &read).await,
        3,
        "LOOP_DETECTED",
    );
    one.close().await;
    other.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_log"), ["3"]);
}

#[tokio::test]
async fn new_connections_and_flags_of_a_batch_hide_no_loop() {
    let place = Place::with("[policies.loop-breaker]\nlimits.time_ms = 10000\n");
    let code = |body: &Value| body["error"]["code"].as_str().unwrap_or("ok").to_owned();
    let ends: Vec<String> = (0..4)
        .map(|_| code(&place.call("task_list", &json!({})).1))
        .collect();
    assert_eq!(ends, ["ok", "ok", "ok", "LOOP_DETECTED"]);
    let session = place.serve(&["--tier", "full"]).await;
    session
        .ok("tasks_bootstrap", bootstrap("P")["args"].clone())
        .await;
    let look = json!({"tool": "tasks_radar", "args": {"workspace": "w", "task": "TASK-001"}});
    let mut ends = Vec::new();
    for number in 0..5 {
        let batch = json!({"workspace": "w", "operations": [look], "atomic": number % 2 == 0, "compact": number % 3 == 0});
        let result = session.call_raw("tasks_batch", batch).await;
        ends.push(code(&result.structured_content.unwrap()));
    }
    session.close().await;
    assert_eq!(ends, ["ok", "ok", "ok", "LOOP_DETECTED", "LOOP_DETECTED"]);
}
