//! A person at a terminal: the host recognises one, and never mistakes a client for one.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Place, Session, Wire};
use crate::transport::http::post;

/// Beginning of the sentence that shows the code of an answer.
const TYPE: &str = "Only a person may answer. Type ";

/// Runs `tollgate call` in a terminal, and types what is made of each code that is shown: exit code, and all that the
/// terminal showed.
pub(crate) fn at_terminal(
    place: &Place,
    tool: &str,
    arguments: &Value,
    typed: impl Fn(&str) -> String,
) -> (i32, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let other = || File::options().read(true).write(true).open(&name).unwrap();
    let mut command = place.command(&["--json", "call", tool, &arguments.to_string()]);
    command.stdin(other()).stdout(other()).stderr(other());
    let mut child = command.spawn().unwrap();
    // The command holds the other end as well until it goes.
    drop(command);
    let mut terminal = File::from(terminal);
    let (mut shown, mut answered) = (String::new(), 0);
    let mut part = [0; 4096];
    // Reading fails once nobody has the other end.
    while let Ok(length @ 1..) = terminal.read(&mut part) {
        shown.push_str(&String::from_utf8_lossy(&part[..length]));
        if let Some(code) = code_after(&shown[answered..]) {
            let line = format!("{}\n", typed(&code));
            answered = shown.len();
            terminal.write_all(line.as_bytes()).unwrap();
        }
    }
    (child.wait().unwrap().code().unwrap(), shown)
}

/// Code that is shown, once the whole question is.
fn code_after(shown: &str) -> Option<String> {
    let (_, question) = shown.split_once(TYPE)?;
    question
        .contains("to decline: ")
        .then(|| question[..4].to_owned())
}

/// A person who allows whatever is asked. The call has to succeed.
pub(crate) fn allows(place: &Place, tool: &str, arguments: &Value) {
    let (exit, shown) = at_terminal(place, tool, arguments, str::to_owned);
    assert_eq!(exit, 0, "{shown}");
}

/// A running job whose step waits for a person: arguments of the approval.
async fn waiting(place: &Place) -> Value {
    let session = place.serve(&[]).await;
    let approval = waiting_in(&session).await;
    session.close().await;
    approval
}

/// The same, of a session.
pub(crate) async fn waiting_in(session: &Session) -> Value {
    let begun = json!({"title": "t", "goal": "g"});
    let job = session.ok("conductor_init", begun).await["job_id"].clone();
    let answers = json!({"deliverables": ["d"], "definition_of_done": ["done"], "invariants": []});
    session
        .ok("conductor_answer", json!({"job_id": job, "answers": answers}))
        .await;
    let step = json!({"title": "s", "instruction_prompt": "do it", "acceptance_criteria": ["done"], "checkpoint": true,
        "required_evidence": ["changed_files"], "remediation_prompt": "undo it", "gates": [{"gate": "human_approval"}]});
    session
        .ok("plan_propose_steps", json!({"job_id": job, "steps": [step]}))
        .await;
    session.ok("job_set_ready", json!({"job_id": job})).await;
    session.ok("job_start", json!({"job_id": job})).await;
    json!({"job_id": job, "step_id": "S1", "approved_by": "Ada"})
}

async fn is_approved(place: &Place, approval: &Value) -> bool {
    let session = place.serve(&[]).await;
    let view = session.ok("job_get", json!({"job_id": approval["job_id"]})).await;
    session.close().await;
    view["steps"][0]["approved"] == true
}

/// Callers of `step_approve`, and the outcomes.
fn approvers(place: &Place) -> Vec<String> {
    place.sql(
        "SELECT coalesce(client, '-') || ' ' || coalesce(error_code, 'ok') FROM core_operations
         WHERE tool = 'step_approve' ORDER BY seq",
    )
}

/// A client over stdio that calls itself something.
fn disguised(place: &Place, name: &str) -> Wire {
    let mut wire = place.wire(&[]);
    wire.ask(
        &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}}),
    );
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    wire
}

fn tool_call(id: u32, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

#[tokio::test]
async fn no_client_is_a_person_whatever_it_calls_itself() {
    let place = Place::new();
    let approval = waiting(&place).await;
    for name in ["tollgate terminal", "tollgate call", "Tollgate  Terminal"] {
        let mut wire = disguised(&place, name);
        let reply = wire.ask(&tool_call(1, "step_approve", &approval));
        let error = &reply["result"]["structuredContent"]["error"];
        assert_eq!(error["code"], "PERSON_REQUIRED", "{name}: {reply:#}");
        // Neither is one that answers what it was not asked, or through another tool.
        let relayed = json!({"tool": "step_approve", "arguments": approval});
        let reply = wire.ask(&tool_call(2, "tool_call", &relayed));
        let error = &reply["result"]["structuredContent"]["error"];
        assert_eq!(error["code"], "PERSON_REQUIRED", "{name}: {reply:#}");
    }
    let server = place.serve_http(&[]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": {"name": "step_approve",
        "arguments": approval, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tollgate terminal", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}}}});
    let headers = [
        crate::transport::http::NEWEST,
        ("mcp-method", "tools/call"),
        ("mcp-name", "step_approve"),
    ];
    let (status, text) = post(&server, &headers, hello.to_string().into_bytes()).await;
    assert!(
        status == 200 && text.contains("PERSON_REQUIRED"),
        "{status} {text}"
    );
    drop(server);
    assert!(!is_approved(&place, &approval).await);
    let rows = approvers(&place);
    assert_eq!(rows.len(), 7, "{rows:?}");
    assert!(rows.iter().all(|row| row.starts_with("claimed:")), "{rows:?}");
}

#[tokio::test]
async fn the_command_line_is_a_person_in_a_terminal_only() {
    let place = Place::new();
    let approval = waiting(&place).await;
    // What an agent's shell has for a terminal: nothing, pipes, or a terminal for a part of them.
    let arguments = ["--json", "call", "step_approve", &approval.to_string()];
    let refused = place.command(&arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let error: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(error["error"]["code"], "PERSON_REQUIRED", "{error}");
    let remedy = error["error"]["remediation"].as_str().unwrap();
    assert!(
        remedy.contains("in a terminal") && remedy.contains("tollgate call step_approve"),
        "{remedy}"
    );
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("run the same command in a terminal"), "{said}");
    // Text that was typed ahead does not have the code, and neither has a yes.
    for typed in ["y", "yes", "allow", "", "12345"] {
        let (exit, shown) = at_terminal(&place, "step_approve", &approval, |_| typed.to_owned());
        assert_eq!(exit, 1, "{typed}: {shown}");
        assert!(shown.contains("PERSON_DECLINED"), "{typed}: {shown}");
    }
    assert!(!is_approved(&place, &approval).await);
    let (exit, shown) = at_terminal(&place, "step_approve", &approval, str::to_owned);
    assert_eq!(exit, 0, "{shown}");
    assert!(shown.contains("Ada approves step S1 \"s\" of JOB-"), "{shown}");
    assert!(is_approved(&place, &approval).await);
    let rows = approvers(&place);
    assert_eq!(rows.first().unwrap(), "tollgate call PERSON_REQUIRED", "{rows:?}");
    assert_eq!(rows.last().unwrap(), "tollgate terminal ok", "{rows:?}");
    let session = place.serve(&[]).await;
    let export = json!({"job_id": approval["job_id"], "format": "md"});
    let exported = session.ok("job_export_bundle", export).await.to_string();
    assert!(
        exported.contains("approved by Ada, a person at the terminal"),
        "{exported}"
    );
    session.close().await;
}

const RULES: &str = r#"
    [policies.ask]
    source = "builtin:cel"
    limits.time_ms = 10000
    tools = ["task_list"]
    config = { when = "true", then = "ask", message = "Really look?", code = "NOT_ALLOWED", remediation = "Get a yes." }

    [policies.terminal-only]
    source = "builtin:cel"
    limits.time_ms = 10000
    tools = ["tasks_workspaces"]
    config = { when = "client != 'tollgate terminal'", then = "deny", code = "TERMINAL_ONLY", message = "a person looks", remediation = "Ask one." }

    [packs.task-store.config.roles.human]
    clients = ["tollgate terminal"]
"#;

#[tokio::test]
async fn policies_and_other_packs_can_trust_the_terminal_too() {
    let place = Place::with(RULES);
    assert_eq!(
        place.call("task_list", &json!({})).1["error"]["code"],
        "NOT_ALLOWED"
    );
    let (exit, shown) = at_terminal(&place, "task_list", &json!({}), |_| "yes".to_owned());
    assert!(
        exit == 1 && shown.contains("Really look?") && shown.contains("NOT_ALLOWED"),
        "{shown}"
    );
    allows(&place, "task_list", &json!({}));

    let nothing = json!({});
    assert_eq!(
        place.call("tasks_workspaces", &nothing).1["error"]["code"],
        "TERMINAL_ONLY"
    );
    let (exit, shown) = at_terminal(&place, "tasks_workspaces", &nothing, str::to_owned);
    assert_eq!(exit, 0, "{shown}");

    let resolution = json!({"task_id": "t", "approval_id": "a", "resolution": "approved", "resolved_by": "Ada",
        "actor_role": "human"});
    let mut wire = disguised(&place, "tollgate terminal");
    for (id, tool, arguments, code) in [
        (1, "task_resolve_approval", &resolution, "ROLE_FORBIDDEN"),
        (2, "tasks_workspaces", &nothing, "TERMINAL_ONLY"),
    ] {
        let reply = wire.ask(&tool_call(id, tool, arguments));
        let error = &reply["result"]["structuredContent"]["error"];
        assert_eq!(error["code"], code, "{reply:#}");
    }
    // The person has the role; the task is another matter.
    let (_, shown) = at_terminal(&place, "task_resolve_approval", &resolution, str::to_owned);
    assert!(shown.contains("NOT_FOUND"), "{shown}");
}

/// Approves a step as the person whom a test needs beside its client.
pub(crate) async fn approve(place: &Place, session: &Session, approval: &Value) {
    let refused = session.refused("step_approve", approval.clone()).await;
    assert_eq!(refused["code"], "PERSON_REQUIRED");
    allows(place, "step_approve", approval);
}
