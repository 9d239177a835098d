//! Classes of failed calls in the ledger: a class tells who ended the call, whatever the error's code.

use serde_json::{Value, json};
use tollgate_gate::REFUSED_BEFORE_POLICIES;

use crate::harness::{Place, Session, Wire, guest};

/// Tool, arguments, and the code and the class of the row.
type Case = (&'static str, Value, &'static str, &'static str);

fn place() -> Place {
    let pack = |name: &str, more: &str| format!("[packs.{name}]\nsource = {:?}\n{more}\n", guest(name));
    let packs = [
        pack("call-limits", "limits = { read_ms = 1000, write_ms = 1000 }"),
        pack("limit-sql", "limits = { write_ms = 500, run_ms = 60000 }"),
        pack("limit-handles", ""),
        pack("limit-sleep", ""),
        pack("tables", ""),
        pack("reserve", "grants = { ledger = true, budgets = [\"*\"] }"),
    ];
    Place::with(&format!(
        r#"
        [server.auth]
        token_file = "tokens"
        [envelope]
        budgets = {{ approvals = 5 }}
        [[envelope.window]]
        by = "everyone"
        per = "1h"
        max_envelopes = 1
        [policies.passing]
        source = "builtin:cel"
        limits.time_ms = 10000
        config = {{ when = "false", code = "NEVER", message = "never" }}
        [policies.closed]
        source = "builtin:cel"
        limits.time_ms = 10000
        tools = ["task_get"]
        config = {{ when = "true", code = "CLOSED", message = "it is closed" }}
        [policies.secret-scan]
        limits.time_ms = 10000
        tools = ["call_limits_answer"]
        config = {{ patterns = ["here"] }}
        {}
        "#,
        packs.concat()
    ))
}

fn task(more: &Value) -> Value {
    let mut task = json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w",
        "initial_phase": "spec_draft", "actor": "ada", "actor_role": "orchestrator"});
    for (name, value) in more.as_object().unwrap() {
        task[name] = value.clone();
    }
    task
}

fn batch() -> Value {
    json!({"workspace": "w", "operations": [{"tool": "no_such", "args": {}}]})
}

/// Calls outside of envelopes.
fn outside() -> Vec<Case> {
    let deep = (0..90).fold(json!(1), |inner, _| json!({"a": inner}));
    let unit = json!({"budget": "approvals", "reserve": 1});
    vec![
        ("task_create", json!({}), "INVALID_ARGUMENTS", "refused"),
        ("task_create", json!([]), "MALFORMED_ARGUMENTS", "refused"),
        ("task_create", deep, "ARGUMENTS_TOO_DEEP", "refused"),
        (
            "task_create",
            task(&json!({"title": "x".repeat(2 << 20)})),
            "ARGUMENTS_TOO_LARGE",
            "refused",
        ),
        ("tasks_batch", batch(), "MEMBERS_REFUSED", "refused"),
        (
            "task_create",
            task(&json!({"envelope_id": "env_none"})),
            "UNKNOWN_ENVELOPE",
            "refused",
        ),
        (
            "task_create",
            task(&json!({"envelope_id": "no id"})),
            "UNKNOWN_ENVELOPE",
            "refused",
        ),
        (
            "limit_sleep_required",
            json!({"how": "thread", "ms": 1}),
            "TASKS_REQUIRED",
            "refused",
        ),
        ("task_get", json!({"task_id": "tsk_none"}), "CLOSED", "refused"),
        ("call_limits_answer", json!({}), "SECRET_IN_RESULT", "refused"),
        ("call_limits_grow", json!({}), "MEMORY_LIMIT", "trap"),
        ("call_limits_recurse", json!({}), "STACK_OVERFLOW", "trap"),
        ("call_limits_panic", json!({}), "GUEST_TRAPPED", "trap"),
        ("call_limits_babble", json!({}), "BAD_REPLY", "trap"),
        ("limit_handles_take", json!({}), "HANDLE_LIMIT", "trap"),
        ("tables_grow", json!({}), "TABLE_LIMIT", "trap"),
        (
            "limit_sql_hold",
            json!({"how": "spin"}),
            "TRANSACTION_LIMIT",
            "trap",
        ),
        ("call_limits_spin", json!({}), "DEADLINE_EXCEEDED", "timeout"),
        // The tools' own errors, with codes that the host uses as well.
        ("reserve_write", unit, "ENVELOPE_REQUIRED", "tool_error"),
        (
            "envelope_get",
            json!({"envelope_id": "env_none"}),
            "UNKNOWN_ENVELOPE",
            "tool_error",
        ),
        (
            "ledger_query",
            json!({"since": "no time"}),
            "INVALID_ARGUMENTS",
            "tool_error",
        ),
    ]
}

/// Calls in an envelope with two mutations, which the third call that is counted closes.
fn inside() -> Vec<Case> {
    let failing = json!({"budget": "approvals", "reserve": 1, "commit": 1, "fail": true});
    vec![
        ("envelope_open", json!({}), "WINDOW_EXHAUSTED", "refused"),
        ("tasks_batch", batch(), "MEMBERS_REFUSED", "refused"),
        ("reserve_write", failing, "ASKED_TO_FAIL", "tool_error"),
        ("call_limits_panic", json!({}), "GUEST_TRAPPED", "trap"),
        (
            "task_create",
            task(&json!({})),
            "MUTATION_BUDGET_EXHAUSTED",
            "refused",
        ),
        ("task_create", task(&json!({})), "ENVELOPE_CLOSED", "refused"),
    ]
}

/// Sends a request, and waits for its reply.
fn ask(wire: &mut Wire, id: usize, params: &Value) {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    wire.send(message.to_string().as_bytes());
    while wire.receive()["id"] != id {}
}

fn call(wire: &mut Wire, id: usize, (tool, arguments, ..): &Case) {
    ask(wire, id, &json!({"name": tool, "arguments": arguments}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_tells_who_ended_the_call() {
    let place = place();
    let added = place.run(&["tokens", "add", "reader", "--scope", "read"]);
    let token = String::from_utf8(added.stdout).unwrap().trim().to_owned();
    let (outside, inside) = (outside(), inside());
    let mut wire = place.wire(&["--tier", "full"]);
    wire.initialize("2025-11-25");
    for (number, case) in outside.iter().enumerate() {
        call(&mut wire, 100 + number, case);
    }
    let repeated = ("task_create", task(&json!({})), "REQUEST_ID_REPEATED", "refused");
    call(&mut wire, 100, &repeated);
    let conflict = json!({"name": "task_create", "arguments": task(&json!({"envelope_id": "env_none"})),
        "_meta": {"tollgate/envelope_id": "env_other"}});
    ask(&mut wire, 200, &conflict);
    let opening = json!({"name": "envelope_open", "arguments": {"limits": {"max_mutations": 2}}});
    ask(&mut wire, 201, &opening);
    for (number, case) in inside.iter().enumerate() {
        call(&mut wire, 300 + number, case);
    }
    wire.close_stdin();
    assert!(wire.wait().success());
    let server = place.serve_http(&["--tier", "full"]);
    let session = Session::over_http_as(&server, &token).await;
    session.refused("task_create", task(&json!({}))).await;
    session.close().await;
    server.stop();

    let mut expected: Vec<String> = outside
        .iter()
        .chain(&inside)
        .chain([&repeated])
        .map(|(tool, _, code, class)| format!("{tool} {code} {class}"))
        .collect();
    expected.extend(["ENVELOPE_CONFLICT", "SCOPE_MISSING"].map(|code| format!("task_create {code} refused")));
    expected.sort();
    let mut rows = place.sql(
        "SELECT tool || ' ' || error_code || ' ' || failure_class FROM core_operations WHERE error_code IS NOT NULL",
    );
    rows.sort();
    assert_eq!(rows, expected);
    // The policy `passing` judges every call, so a refusal without verdicts came before the policies.
    let refused = |verdicts: &str| {
        place.sql(&format!(
            "SELECT DISTINCT error_code FROM core_operations WHERE failure_class = 'refused' AND verdicts IS {verdicts}"
        ))
    };
    let is_listed = |code: &String| REFUSED_BEFORE_POLICIES.contains(&code.as_str());
    let before = refused("NULL");
    // A text that is not an id is refused before, and an id without an envelope after.
    assert!(
        before
            .iter()
            .all(|code| is_listed(code) || code == "UNKNOWN_ENVELOPE"),
        "{before:?}"
    );
    let after = refused("NOT NULL");
    assert!(after.len() > 3 && !after.iter().any(is_listed), "{after:?}");
    // An envelope counts exactly the calls that were admitted.
    let admitted = place.sql(
        "SELECT count(*) FROM core_operations WHERE op_type = 'mutation' AND envelope_id IS NOT NULL
           AND coalesce(failure_class, '') <> 'refused'",
    );
    assert_eq!(place.sql("SELECT mutation_count FROM core_envelopes"), admitted);
    assert_eq!(admitted, ["2"]);
}

#[test]
fn a_call_without_the_envelope_that_it_needs_is_refused() {
    let place = Place::with("[envelope]\nrequire = \"writes\"\n");
    assert_eq!(place.call("task_create", &task(&json!({}))).0, 1);
    let rows = place.sql("SELECT error_code || ' ' || failure_class FROM core_operations");
    assert_eq!(rows, ["ENVELOPE_REQUIRED refused"]);
}
