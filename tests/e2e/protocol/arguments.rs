//! Invalid arguments: each is a typed tool error with one ledger row, and changes nothing else.

use serde_json::{Value, json};

use crate::harness::{Place, Wire};

fn call(wire: &mut Wire, id: usize, arguments: &str) -> Value {
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"task_create","arguments":{arguments}}}}}"#
    );
    wire.send(message.as_bytes());
    let reply = wire.receive();
    assert_eq!(reply["id"], id);
    reply
}

fn error(reply: &Value) -> &Value {
    assert_eq!(reply["result"]["isError"], true, "{reply:#}");
    assert!(
        reply["result"]["_meta"]["tollgate/op_id"].is_string(),
        "{reply:#}"
    );
    &reply["result"]["structuredContent"]["error"]
}

#[test]
fn refused_arguments_come_with_the_call_that_describes_the_tool() {
    let place = Place::new();
    let mut wire = place.wire(&[]);
    wire.initialize("2025-11-25");
    let reply = call(&mut wire, 10, "{}");
    assert_eq!(
        error(&reply)["next_call"],
        json!({"tool": "tool_describe", "arguments": {"tools": ["task_create"]}})
    );
}

#[test]
fn each_mistake_is_a_typed_refusal_with_one_row() {
    let place = Place::new();
    let mut wire = place.wire(&["--tier", "full"]);
    wire.initialize("2025-11-25");
    let long = "x".repeat(10 << 20);
    let deep = format!("{}1{}", r#"{"a":"#.repeat(90), "}".repeat(90));
    let deeper = format!("{}1{}", r#"{"a":"#.repeat(20_000), "}".repeat(20_000));
    let cases: Vec<(String, &str)> = vec![
        ("{}".to_owned(), "INVALID_ARGUMENTS"),
        (r#"{"title":3,"colour":"red"}"#.to_owned(), "INVALID_ARGUMENTS"),
        (
            r##"{"title":"a\u0000b","spec_markdown":"# G","workspace":"w","initial_phase":"spec_draft","actor":"a"}"##.to_owned(),
            "INVALID_ARGUMENTS",
        ),
        ("[]".to_owned(), "MALFORMED_ARGUMENTS"),
        (r#""text""#.to_owned(), "MALFORMED_ARGUMENTS"),
        (r#"{"title":"\ud800"}"#.to_owned(), "MALFORMED_ARGUMENTS"),
        (format!(r#"{{"title":"{long}"}}"#), "ARGUMENTS_TOO_LARGE"),
        (deep, "ARGUMENTS_TOO_DEEP"),
        (deeper, "MALFORMED_ARGUMENTS"),
    ];
    for (id, (arguments, code)) in cases.iter().enumerate() {
        let reply = call(&mut wire, id + 10, arguments);
        assert_eq!(
            error(&reply)["code"],
            *code,
            "{}",
            &arguments[..arguments.len().min(80)]
        );
        // With all tools listed, there is no tool_describe to call.
        assert_eq!(error(&reply)["next_call"], Value::Null);
    }
    let mut ill_formed = br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"task_create","arguments":{"title":"?"}}}"#.to_vec();
    let at = ill_formed.iter().position(|byte| *byte == b'?').unwrap();
    ill_formed[at] = 0xc3;
    wire.send(&ill_formed);
    let reply = wire.receive();
    assert_eq!(error(&reply)["code"], "MALFORMED_ARGUMENTS");

    wire.close_stdin();
    assert!(wire.wait().success());
    let mut wanted: Vec<String> = cases
        .iter()
        .map(|(_, code)| format!("task_create write {code}"))
        .collect();
    wanted.push("task_create write MALFORMED_ARGUMENTS".to_owned());
    assert_eq!(place.ledger(), wanted);
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["0"]);
    assert_eq!(place.sql("SELECT count(*) FROM task_store_events"), ["0"]);
}

#[test]
fn every_wrong_field_is_named_at_once() {
    let place = Place::new();
    let (code, printed) = place.call(
        "task_create",
        &json!({"title": 3, "colour": "red", "initial_phase": "done"}),
    );
    assert_eq!(code, 1);
    let blockers = printed["error"]["blockers"].as_array().unwrap();
    let fields: Vec<&str> = blockers
        .iter()
        .map(|blocker| blocker["field"].as_str().unwrap())
        .collect();
    for named in [
        "title",
        "colour",
        "initial_phase",
        "workspace",
        "spec_markdown",
        "actor_role",
    ] {
        assert!(fields.contains(&named), "{named}: {fields:?}");
    }
}

#[test]
fn an_optional_field_given_as_null_counts_as_absent() {
    let place = Place::new();
    let (code, printed) = place.call("task_list", &json!({"phase": null, "label": null}));
    assert_eq!(code, 0, "{printed:#}");
}

#[tokio::test]
async fn an_unknown_tool_is_a_protocol_error_without_a_row() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let err = session
        .client()
        .call_tool(crate::harness::params("task_gett", json!({})))
        .await
        .unwrap_err();
    assert!(err.to_string().contains("did you mean `task_get`?"), "{err}");
    session.close().await;
    assert!(place.ledger().is_empty());
}

#[tokio::test]
async fn unknown_ids_wrong_roles_and_stale_phases_change_nothing() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let created = session
        .ok(
            "task_create",
            json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
                   "actor": "a", "actor_role": "orchestrator"}),
        )
        .await;
    let id = &created["task"]["id"];
    let transition = |from: &str, to: &str, role: &str| json!({"task_id": id, "from_phase": from, "to_phase": to, "actor": "a", "actor_role": role, "reason": "r"});
    for (tool, arguments, code) in [
        ("task_get", json!({"task_id": "tsk_none"}), "NOT_FOUND"),
        (
            "task_transition",
            transition("spec_draft", "completed", "orchestrator"),
            "ILLEGAL_TRANSITION",
        ),
        (
            "task_transition",
            transition("spec_review", "execution_ready", "orchestrator"),
            "PHASE_CONFLICT",
        ),
        (
            "task_transition",
            transition("spec_draft", "spec_review", "executor"),
            "ROLE_FORBIDDEN",
        ),
    ] {
        let refusal = session.refused(tool, arguments).await;
        assert_eq!(refusal["code"], code, "{refusal:#}");
        assert_ne!(refusal["remediation"], "", "{refusal:#}");
    }
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM task_store_events"), ["1"]);
    assert_eq!(place.ledger().len(), 5);
}
