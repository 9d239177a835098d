//! Approvals and slots that count once, with simultaneous calls and with calls inside batches.

use serde_json::{Value, json};

use crate::harness::{Place, Session, guest, until};

fn place(tools: &str, guests: &[&str]) -> Place {
    let place = Place::with_guests(guests);
    configure(
        &place,
        &format!(
            r#"
        [policies.side-effect-approval]
        limits.time_ms = 10000
        tools = {tools}
        config = {{ ask = false }}
        "#
        ),
    );
    place
}

#[allow(clippy::disallowed_methods, reason = "tests make files")]
fn configure(place: &Place, more: &str) {
    let config = std::fs::read_to_string(place.config()).unwrap();
    std::fs::write(place.config(), config + more).unwrap();
}

/// A place in which the guest `side-effects` needs approvals, with a workspace that is a repository.
#[allow(clippy::disallowed_methods, reason = "tests make files")]
fn acting() -> Place {
    let place = place(r#"["side_effects_*"]"#, &["side-effects"]);
    configure(
        &place,
        r#"
        [packs.side-effects.grants]
        workspaces = ["*"]
        process = ["*"]
        [workspaces.main]
        path = "main"
        write = ["out/"]
        git = "write"
        "#,
    );
    let main = place.path().join("main");
    std::fs::create_dir(&main).unwrap();
    std::fs::write(main.join("a"), "one\n").unwrap();
    let made = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(&main)
        .status();
    assert!(made.unwrap().success());
    place
}

/// True if an approved call that fails with its `code` gives the approval back.
async fn gives_back(place: &Place, session: &Session, tool: &str, arguments: &Value) -> bool {
    approve(place, session, tool, arguments).await;
    let failed = session.refused(tool, arguments.clone()).await;
    assert_eq!(failed["code"], arguments["code"], "{failed:#}");
    let again = session.refused(tool, arguments.clone()).await;
    let is_back = again["code"] == arguments["code"];
    assert!(is_back || again["code"] == "APPROVAL_REQUIRED", "{again:#}");
    is_back
}

/// Approves a refused call.
async fn approve(place: &Place, session: &Session, tool: &str, arguments: &Value) {
    let refused = session.refused(tool, arguments.clone()).await;
    approve_refused(place, &refused);
}

fn approve_refused(place: &Place, refused: &Value) {
    let code = &refused["code"];
    assert_eq!(code, "APPROVAL_REQUIRED", "{refused:#}");
    let told = refused["remediation"].as_str().unwrap();
    let words: Vec<&str> = told.split('`').collect();
    // The first is the command that approves in the list.
    let (kind, key) = (words[3], words[5]);
    let (hash, round) = key.split_once('-').unwrap();
    place.sql(&format!(
        "INSERT INTO policy_side_effect_approval_answers (kind, args_hash, round, status, resolved_by, answered_at)
         VALUES ('{kind}', '{hash}', {round}, 'approved', 'grace', CAST(unixepoch('subsec') * 1000 AS BIGINT)) RETURNING kind"
    ));
}

/// Number of simultaneous calls that ran, and the codes of the others.
async fn race(sessions: &[&Session], tool: &str, arguments: &Value) -> (usize, Vec<String>) {
    let calls = (0..8).map(|number| sessions[number % sessions.len()].call_raw(tool, arguments.clone()));
    let results = futures::future::join_all(calls).await;
    let mut codes = Vec::new();
    for result in &results {
        let structured = result.structured_content.as_ref().unwrap();
        if let Some(code) = structured["error"]["code"].as_str() {
            codes.push(code.to_owned());
        }
    }
    (results.len() - codes.len(), codes)
}

fn assert_one(ran: &(usize, Vec<String>)) {
    assert_eq!(ran.0, 1, "{ran:?}");
    let known = ["APPROVAL_REQUIRED", "PERMIT_USED"];
    assert!(ran.1.iter().all(|code| known.contains(&code.as_str())), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_approval_runs_one_of_many_calls_at_once() {
    let place = place(r#"["sql_access_*"]"#, &["sql-access"]);
    let session = place.serve(&[]).await;
    let insert = json!({"sql": ["INSERT INTO sql_access_log (line) VALUES ('once')"]});
    for (tool, arguments) in [
        ("sql_access_execute", &insert),
        ("sql_access_run", &json!({})),
        (
            "sql_access_query",
            &json!({"sql": "SELECT 1 FROM sql_access_log"}),
        ),
    ] {
        approve(&place, &session, tool, arguments).await;
        assert_one(&race(&[&session], tool, arguments).await);
        let again = session.refused(tool, arguments.clone()).await;
        assert_eq!(again["code"], "APPROVAL_REQUIRED", "{tool}");
    }
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_log"), ["1"]);
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_rows"), ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_approval_runs_one_call_on_all_hosts_of_a_data_directory() {
    let place = place(r#"["sql_access_*"]"#, &["sql-access"]);
    let one = place.serve(&[]).await;
    let other = place.serve(&[]).await;
    let insert = json!({"sql": ["INSERT INTO sql_access_log (line) VALUES ('once')"]});
    for (tool, arguments) in [("sql_access_execute", &insert), ("sql_access_run", &json!({}))] {
        approve(&place, &one, tool, arguments).await;
        assert_one(&race(&[&one, &other], tool, arguments).await);
        for session in [&one, &other] {
            let again = session.refused(tool, arguments.clone()).await;
            assert_eq!(again["code"], "APPROVAL_REQUIRED", "{tool}");
        }
    }
    one.close().await;
    other.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_log"), ["1"]);
    assert_eq!(place.sql("SELECT count(*) FROM sql_access_rows"), ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_fails_or_is_not_admitted_gives_its_approval_back() {
    let place = place(r#"["sql_access_*"]"#, &["sql-access"]);
    let session = place.serve(&[]).await;
    let fails = json!({"sql": [], "fail": true});
    approve(&place, &session, "sql_access_execute", &fails).await;
    for _ in 0..2 {
        let refused = session.refused("sql_access_execute", fails.clone()).await;
        assert_eq!(refused["code"], "ASKED_TO_FAIL");
    }
    assert_eq!(place.sql("SELECT count(*) FROM core_permits"), ["0"]);
    let envelope = session.ok("envelope_open", json!({})).await["id"].clone();
    session
        .ok(
            "envelope_close",
            json!({"envelope_id": envelope, "outcome": "success"}),
        )
        .await;
    for (tool, arguments) in [
        ("sql_access_execute", json!({"sql": []})),
        ("sql_access_run", json!({})),
    ] {
        approve(&place, &session, tool, &arguments).await;
        let mut closed = arguments.clone();
        closed["envelope_id"] = envelope.clone();
        let refused = session.refused(tool, closed).await;
        assert_eq!(refused["code"], "ENVELOPE_CLOSED");
        session.ok(tool, arguments.clone()).await;
        let again = session.refused(tool, arguments).await;
        assert_eq!(again["code"], "APPROVAL_REQUIRED");
    }
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_uses_up_its_approval_unless_its_tool_fails_or_does_not_run() {
    let place = place(r#"["call_limits_*", "task_get", "task_list"]"#, &["call-limits"]);
    configure(
        &place,
        r#"
        [packs.call-limits.limits]
        read_ms = 1000
        [policies.secret-scan]
        limits.time_ms = 10000
        tools = ["call_limits_answer"]
        config = { patterns = ["here"] }
        "#,
    );
    let session = place.serve(&["--tier", "full"]).await;
    let nothing = json!({});
    for (tool, arguments, code, is_back) in [
        ("call_limits_answer", &nothing, "SECRET_IN_RESULT", false),
        ("call_limits_spin", &nothing, "DEADLINE_EXCEEDED", false),
        ("call_limits_spin_in_sql", &nothing, "DEADLINE_EXCEEDED", false),
        ("call_limits_recurse", &nothing, "STACK_OVERFLOW", false),
        ("task_get", &json!({"task_id": "tsk_none"}), "NOT_FOUND", true),
    ] {
        approve(&place, &session, tool, arguments).await;
        let failed = session.refused(tool, arguments.clone()).await;
        assert_eq!(failed["code"], code, "{failed:#}");
        let again = session.refused(tool, arguments.clone()).await;
        let expected = if is_back { code } else { "APPROVAL_REQUIRED" };
        assert_eq!(again["code"], expected, "{tool}: {again:#}");
    }
    approve(&place, &session, "task_list", &nothing).await;
    let elsewhere = json!({"envelope_id": "env_none"});
    let refused = session.refused("task_list", elsewhere).await;
    assert_eq!(refused["code"], "UNKNOWN_ENVELOPE", "{refused:#}");
    session.ok("task_list", nothing).await;
    session.close().await;
}

/// Handshake of a client whose user can be asked.
fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "wire", "version": "1"}}})
}

#[test]
fn a_yes_of_the_user_counts_after_an_approval_was_used_up() {
    let place = Place::with(
        r#"
        [policies.side-effect-approval]
        limits.time_ms = 10000
        tools = ["task_create"]
        "#,
    );
    let mut wire = place.wire(&[]);
    wire.ask(&hello());
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let arguments = json!({"title": "T", "spec_markdown": "# T", "workspace": "w", "initial_phase": "spec_draft",
        "actor": "a", "actor_role": "orchestrator"});
    let mut id = 0;
    let mut call = |answer: Option<Value>| {
        id += 1;
        let reply = wire.ask(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "task_create", "arguments": arguments}}));
        let is_question = reply["method"] == "elicitation/create";
        assert_eq!(is_question, answer.is_some(), "{reply:#}");
        match answer {
            Some(answer) => wire.ask(&json!({"jsonrpc": "2.0", "id": reply["id"], "result": answer})),
            None => reply,
        }
    };
    let refused = call(Some(json!({"action": "decline"})));
    approve_refused(&place, &refused["result"]["structuredContent"]["error"]);
    let passed = call(None);
    assert_ne!(passed["result"]["isError"], true, "{passed:#}");
    // The approval is used up, and the user is asked for each further call.
    for _ in 0..2 {
        let passed = call(Some(json!({"action": "accept", "content": {"allow": true}})));
        assert_ne!(passed["result"]["isError"], true, "{passed:#}");
    }
}

#[tokio::test]
async fn a_request_is_withdrawn_before_the_run_that_the_user_allowed() {
    let place = Place::with(&format!(
        r#"
        [envelope]
        budgets = {{ approvals = 3 }}
        [packs.reserve]
        source = {:?}
        grants = {{ ledger = true, budgets = ["*"] }}
        [policies.side-effect-approval]
        limits.time_ms = 10000
        tools = ["reserve_run"]
        "#,
        guest("reserve")
    ));
    let mut wire = place.wire(&["--tier", "full"]);
    wire.ask(&hello());
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    wire.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "envelope_open", "arguments": {}}}));
    let question = wire.ask(
        &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "reserve_run", "arguments": {"budget": "approvals", "reserve": 3, "ending": "hang"}}}),
    );
    assert_eq!(question["method"], "elicitation/create", "{question:#}");
    let requests = || place.sql("SELECT status FROM core_approvals");
    assert_eq!(requests(), ["pending"]);
    let yes = json!({"action": "accept", "content": {"allow": true}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": yes});
    wire.send(answer.to_string().as_bytes());
    until(async || place.sql("SELECT count(*) FROM core_reservations") == ["1"]).await;
    assert_eq!(requests(), ["withdrawn"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_uses_up_its_approval_once_it_began_something() {
    let place = acting();
    let session = place.serve(&["--tier", "full"]).await;
    let cases: [(&[&str], &str, bool); 13] = [
        // The tool chooses the code, so the code proves nothing.
        (&[], "INVALID_ARGUMENTS", true),
        (&["look", "unchanged", "rolled_back"], "STORAGE_BUSY", true),
        (&["refs", "missing", "refused_file"], "OUTCOME_UNKNOWN", true),
        (&["withdraw"], "NEVER_ASKED", true),
        (&["event", "ask"], "BUDGET_EXHAUSTED", true),
        (&["row"], "NOT_FOUND", false),
        (&["returned"], "NOT_FOUND", false),
        (&["cleared"], "NOT_FOUND", false),
        (&["file"], "INVALID_ARGUMENTS", false),
        (&["program"], "PROCESS_NOT_STARTED", false),
        (&["add"], "NOTHING_TO_COMMIT", false),
        (&["withdraw"], "NOT_FOUND", false),
        (&["withdraw"], "SETTLED_ALREADY", true),
    ];
    for (actions, code, is_back) in cases {
        let arguments = json!({"actions": actions, "code": code});
        let was_back = gives_back(&place, &session, "side_effects_run", &arguments).await;
        assert_eq!(was_back, is_back, "{actions:?}");
    }
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn git_that_may_start_filters_uses_up_an_approval() {
    let place = acting();
    configure(&place, "git_config = [\"filter.f.*\"]\n");
    let set = std::process::Command::new("git")
        .args(["config", "filter.f.clean", "cat"])
        .current_dir(place.path().join("main"))
        .status();
    assert!(set.unwrap().success());
    let session = place.serve(&["--tier", "full"]).await;
    for (action, is_back) in [("refs", true), ("status", false)] {
        let arguments = json!({"actions": [action], "code": "NOT_FOUND"});
        let was_back = gives_back(&place, &session, "side_effects_run", &arguments).await;
        assert_eq!(was_back, is_back, "{action}");
    }
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_fails_uses_up_its_approval_if_it_keeps_what_it_wrote() {
    let place = acting();
    let session = place.serve(&["--tier", "full"]).await;
    let cases: [(&[&str], bool, bool); 6] = [
        (&["row", "file"], false, true),
        (&["look", "unchanged", "event", "ask"], true, true),
        (&["row"], true, false),
        (&["cleared"], true, false),
        (&["file"], true, false),
        (&["withdraw"], true, false),
    ];
    for (actions, keep, is_back) in cases {
        let arguments = json!({"actions": actions, "code": "NOT_FOUND", "keep": keep});
        let was_back = gives_back(&place, &session, "side_effects_write", &arguments).await;
        assert_eq!(was_back, is_back, "{actions:?} {keep}");
    }
    session.close().await;
}

fn bootstrap(title: &str) -> Value {
    json!({"tool": "tasks_bootstrap", "args": {"plan_title": title, "task_title": "T", "workspace": "w",
        "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["cargo test"]}]}})
}

fn batch(operations: &[&Value]) -> Value {
    json!({"workspace": "w", "operations": operations})
}

#[tokio::test(flavor = "multi_thread")]
async fn one_approval_is_of_one_call_in_a_batch() {
    let place = place(r#"["tasks_bootstrap"]"#, &[]);
    let session = place.serve(&["--tier", "full"]).await;
    let plan = bootstrap("P");
    approve(&place, &session, "tasks_batch", &batch(&[&plan])).await;
    let refused = session
        .refused("tasks_batch", batch(&[&plan, &plan, &plan]))
        .await;
    assert_eq!(refused["code"], "APPROVAL_REQUIRED", "{refused:#}");
    assert_eq!(place.sql("SELECT count(*) FROM tasks_workspaces"), ["0"]);
    let ran = session.ok("tasks_batch", batch(&[&plan])).await;
    assert_eq!(ran["succeeded"], 1, "{ran:#}");
    let refused = session.refused("tasks_batch", batch(&[&plan])).await;
    assert_eq!(refused["code"], "APPROVAL_REQUIRED");
    // The second time it has a key of its own, and one of many at once runs.
    approve_refused(&place, &refused);
    assert_one(&race(&[&session], "tasks_batch", &batch(&[&plan])).await);
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_in_which_nothing_succeeds_gives_its_approval_back() {
    let place = place(r#"["tasks_note"]"#, &[]);
    let session = place.serve(&["--tier", "full"]).await;
    let note = json!({"tool": "tasks_note", "args": {"task": "TASK-009", "note": "n", "workspace": "w"}});
    approve(&place, &session, "tasks_batch", &batch(&[&note])).await;
    for _ in 0..2 {
        let failed = session.refused("tasks_batch", batch(&[&note])).await;
        assert_eq!(failed["code"], "BATCH_FAILED", "{failed:#}");
        assert_eq!(failed["blockers"][1]["code"], "NOT_FOUND", "{failed:#}");
    }
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM core_permits"), ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_batches_count_for_rate_limits() {
    let place = Place::with(
        r#"
        [policies.rate-limit]
        limits.time_ms = 10000
        tools = ["tasks_bootstrap"]
        config = { calls = 3, seconds = 600, each_tool = true }
        "#,
    );
    let session = place.serve(&["--tier", "full"]).await;
    let [a, b, c, d] = ["A", "B", "C", "D"].map(bootstrap);
    let four = session.refused("tasks_batch", batch(&[&a, &b, &c, &d])).await;
    assert_eq!(four["code"], "RATE_LIMITED", "{four:#}");
    assert_eq!(four["blockers"][0]["field"], "operations[3]");
    session.ok("tasks_batch", batch(&[&a, &b])).await;
    let two = session.refused("tasks_batch", batch(&[&c, &d])).await;
    assert_eq!(two["blockers"][0]["field"], "operations[1]", "{two:#}");
    session.ok("tasks_bootstrap", c["args"].clone()).await;
    let one = session.refused("tasks_bootstrap", d["args"].clone()).await;
    assert_eq!(one["code"], "RATE_LIMITED");
    session.close().await;
    let members = place.sql(
        "SELECT json_array_length(members) FROM core_operations WHERE success = 1 AND members IS NOT NULL",
    );
    assert_eq!(members, ["2"]);
    let verified = place.run(&["ledger", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_circle_is_seen_in_a_batch_and_across_batches() {
    let place = Place::with(
        r#"
        [policies.loop-breaker]
        limits.time_ms = 10000
        tools = ["tasks_*"]
        config = { repeats = 3, turns = 0 }
        "#,
    );
    let session = place.serve(&["--tier", "full"]).await;
    session
        .ok("tasks_bootstrap", bootstrap("P")["args"].clone())
        .await;
    let look = json!({"tool": "tasks_radar", "args": {"workspace": "w"}});
    let refused = session
        .refused("tasks_batch", batch(&[&look, &look, &look, &look]))
        .await;
    assert_eq!(refused["code"], "LOOP_DETECTED", "{refused:#}");
    assert_eq!(refused["blockers"][0]["field"], "operations[3]");
    session.close().await;
}
