//! Approvals in one list: who asks, who answers, and what an answer lets through.
#![allow(clippy::disallowed_methods, reason = "tests look at files")]

use serde_json::{Value, json};

use crate::harness::{Place, Session, until};
use crate::transport::http_auth::{ADA, BOB, place_with_tokens};

pub(crate) const POLICY: &str = r#"
[policies.side-effect-approval]
limits.time_ms = 10000
tools = ["task_create"]
config = { ask = false }
"#;

/// A call that the policy denies without an approval.
pub(crate) fn task(title: &str) -> Value {
    json!({"title": title, "spec_markdown": "# Goal\nNone.", "workspace": "w", "initial_phase": "spec_draft",
        "actor": "ada", "actor_role": "orchestrator"})
}

/// Id of the request of a call that is denied until somebody approves it.
pub(crate) async fn denied(session: &Session, title: &str) -> String {
    let refused = session.refused("task_create", task(title)).await;
    assert_eq!(refused["code"], "APPROVAL_REQUIRED", "{refused:#}");
    let id = refused["context"]["approval_id"].as_str().unwrap().to_owned();
    let told = refused["remediation"].as_str().unwrap();
    assert!(
        told.contains(&format!("`tollgate approvals allow {id}`")),
        "{told}"
    );
    id
}

fn resolve(id: &str, decision: &str) -> Value {
    json!({"approval_id": id, "decision": decision, "actor": "grace"})
}

/// Exit code and output of `tollgate approvals`.
fn said(place: &Place, arguments: &[&str]) -> (i32, String) {
    let output = place.run(&[&["approvals"], arguments].concat());
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_call_is_approved_at_the_command_line_and_passes_once() {
    let place = Place::with(POLICY);
    let session = place.serve(&[]).await;
    let title = "<img src=x onerror=alert(1)>";
    let id = denied(&session, title).await;
    assert_eq!(denied(&session, title).await, id, "the same call asks once");
    // The agent that asks approves nothing for itself, nor by the name of somebody else.
    for decision in ["approve", "reject"] {
        let refused = session.refused("approval_resolve", resolve(&id, decision)).await;
        assert_eq!(refused["code"], "APPROVER_ASKED", "{refused:#}");
    }
    let waiting = session.ok("approval_list", json!({})).await;
    let [listed] = waiting["approvals"].as_array().unwrap().as_slice() else {
        panic!("{waiting:#}");
    };
    assert_eq!(listed["component"], "policy-side-effect-approval");
    assert_eq!(listed["detail"]["tool"], "task_create");
    assert!(listed["not_by_you"].is_string(), "{listed:#}");
    assert_eq!(listed["detail"]["arguments"]["title"], title);

    let (code, list) = said(&place, &["list"]);
    assert!(
        code == 0 && list.contains(&id) && list.contains("Run task_create"),
        "{list}"
    );
    let (_, whole) = said(&place, &["show", &id]);
    assert!(
        whole.contains("onerror") && !whole.contains('\u{202e}') && !whole.contains('\u{1b}'),
        "{whole}"
    );
    let allowed = said(&place, &["allow", &id, "--note", "go on", "--as", "grace"]);
    assert_eq!(
        allowed,
        (0, "approved: Run task_create of task-store\n".to_owned())
    );
    let (code, again) = said(&place, &["deny", &id]);
    assert!(code == 1 && again.contains("APPROVAL_ANSWERED"), "{again}");

    session.ok("task_create", task(title)).await;
    let next = denied(&session, title).await;
    assert_ne!(next, id, "an approval counts once");
    let done = session.ok("approval_list", json!({"approval_id": id})).await;
    let done = &done["approvals"][0];
    assert_eq!(
        (&done["status"], &done["answered_by"], &done["note"]),
        (&json!("approved"), &json!("grace"), &json!("go on"))
    );
    session.close().await;
    let ledger = place.ledger();
    assert!(
        ledger.contains(&"approval_resolve write ok".to_owned()),
        "{ledger:?}"
    );
    assert!(
        ledger.contains(&"approval_resolve write APPROVER_ASKED".to_owned()),
        "{ledger:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_hides_something_is_written_out() {
    let place = Place::with(POLICY);
    let session = place.serve(&[]).await;
    let id = denied(&session, "\u{202e}safe\u{1b}[31m").await;
    let listed = session.ok("approval_list", json!({"approval_id": id})).await;
    assert_eq!(
        listed["approvals"][0]["detail"]["arguments"]["title"],
        "\\u202esafe\\u001b[31m"
    );
    for arguments in [&["show", &id][..], &["list"]] {
        let (_, printed) = said(&place, arguments);
        assert!(
            !printed.contains('\u{202e}') && !printed.contains('\u{1b}'),
            "{printed}"
        );
    }
    // What is written out by the caller is not mistaken for what is hidden.
    let other = denied(&session, "\\u202esafe\\u001b[31m").await;
    assert_ne!(other, id);
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_is_a_no_and_what_waits_outlives_its_host() {
    let place = Place::with(POLICY);
    let session = place.serve(&[]).await;
    let (yes, no) = (denied(&session, "yes").await, denied(&session, "no").await);
    session.kill();
    let (_, list) = said(&place, &["list"]);
    assert!(list.contains(&yes) && list.contains(&no), "{list}");
    assert_eq!(said(&place, &["allow", &yes]).0, 0);
    assert_eq!(
        said(&place, &["deny", &no, "--note", "too late", "--as", "grace"]).0,
        0
    );
    let session = place.serve(&[]).await;
    session.ok("task_create", task("yes")).await;
    let refused = session.refused("task_create", task("no")).await;
    assert_eq!(refused["code"], "APPROVAL_REJECTED", "{refused:#}");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("grace said no (too late)"),
        "{refused:#}"
    );
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_answers_at_once_on_several_hosts_one_counts() {
    let place = Place::with(POLICY);
    let asking = place.serve(&[]).await;
    let (one, other) = (place.serve(&[]).await, place.serve(&[]).await);
    let id = denied(&asking, "raced").await;
    let answers = (0..8).map(|number| {
        let session = if number % 2 == 0 { &one } else { &other };
        let decision = if number % 3 == 0 { "approve" } else { "reject" };
        let actor = format!("person {number}");
        let answer = json!({"approval_id": id, "decision": decision, "actor": actor});
        session.call_raw("approval_resolve", answer)
    });
    let results = futures::future::join_all(answers).await;
    let codes: Vec<Value> = results
        .iter()
        .map(|result| result.structured_content.as_ref().unwrap()["error"]["code"].clone())
        .collect();
    assert_eq!(codes.iter().filter(|code| code.is_null()).count(), 1, "{codes:?}");
    assert_eq!(
        codes.iter().filter(|code| *code == "APPROVAL_ANSWERED").count(),
        7,
        "{codes:?}"
    );
    for session in [asking, one, other] {
        session.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tool_of_the_pack_answers_what_the_pack_asked() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let (task, attempt) = crate::packs::task_store::executing(&session).await;
    let request = |key: &str| crate::packs::task_store::request(&task, &attempt, key);
    for key in ["v1", "v2", "v3"] {
        session.ok("task_request_approval", request(key)).await;
    }
    // A request that is rolled back asks nobody.
    let mut wrong = request("v4");
    wrong["attempt_id"] = json!("att_lost");
    session.refused("task_request_approval", wrong).await;
    let waiting = session
        .ok("approval_list", json!({"component": "task-store"}))
        .await;
    let ids: Vec<&str> = waiting["approvals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["approval_id"].as_str().unwrap())
        .collect();
    let [first, second, third] = ids[..] else {
        panic!("{waiting:#}")
    };
    assert_eq!(
        said(&place, &["allow", first, "--as", "grace", "--note", "fine"]).0,
        0
    );
    assert_eq!(said(&place, &["deny", second, "--as", "grace"]).0, 0);
    let status = |status: &str| {
        place.sql(&format!(
            "SELECT idempotency_key || ' ' || resolved_by || ' ' || coalesce(note, '-') FROM task_store_approvals
             WHERE status = '{status}'"
        ))
    };
    assert_eq!(status("approved"), ["v1 grace fine"]);
    assert_eq!(status("rejected"), ["v2 grace -"]);
    let ledger = place.ledger();
    assert_eq!(
        ledger
            .iter()
            .filter(|row| *row == "task_resolve_approval write ok")
            .count(),
        2,
        "{ledger:?}"
    );
    // The pack's own tool takes the request out of the list, and so does the end of the task.
    let listed = |status: &str| {
        place.sql(&format!(
            "SELECT count(*) FROM core_approvals WHERE status = '{status}'"
        ))
    };
    assert_eq!(
        (listed("approved"), listed("rejected"), listed("pending")),
        (vec!["1".into()], vec!["1".into()], vec!["1".into()])
    );
    let end = json!({"task_id": task, "from_phase": "executing", "to_phase": "failed", "reason": "given up",
        "actor_role": "orchestrator"});
    session.ok("task_transition", end).await;
    let over = session.ok("approval_list", json!({"approval_id": third})).await;
    assert_eq!(over["approvals"][0]["status"], "withdrawn", "{over:#}");
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_another_identity_answers() {
    let config = format!("{POLICY}[server.auth]\ntoken_file = \"tokens\"\n");
    let place = place_with_tokens(&config);
    let server = place.serve_http(&[]);
    let ada = Session::over_http_as(&server, ADA).await;
    let bob = Session::over_http_as(&server, BOB).await;
    let id = denied(&ada, "deploy").await;
    let own = Session::over_http_as(&server, ADA).await;
    let refused = own.refused("approval_resolve", resolve(&id, "approve")).await;
    assert_eq!(refused["code"], "APPROVER_ASKED", "{refused:#}");
    let answered = bob.ok("approval_resolve", resolve(&id, "approve")).await;
    assert_eq!(answered["approval"]["answered_by"], "token:bob", "{answered:#}");
    ada.ok("task_create", task("deploy")).await;
    for session in [ada, bob, own] {
        session.close().await;
    }
    drop(server);

    std::fs::write(
        place.config(),
        config + "[approvals]\napprovers = [\"token:grace\"]\n",
    )
    .unwrap();
    let server = place.serve_http(&[]);
    let ada = Session::over_http_as(&server, ADA).await;
    let bob = Session::over_http_as(&server, BOB).await;
    let id = denied(&ada, "deploy again").await;
    let unseen = bob.refused("approval_resolve", resolve(&id, "approve")).await;
    assert_eq!(unseen["code"], "APPROVAL_NOT_FOUND", "{unseen:#}");
    assert_eq!(bob.ok("approval_list", json!({})).await["approvals"], json!([]));
    let own = ada.ok("approval_list", json!({})).await;
    assert_eq!(
        own["approvals"][0]["not_by_you"],
        "token:ada is not an approver; approvals.approvers and server.console.approvers list the approvers",
        "{own:#}"
    );
    let (code, local) = said(&place, &["allow", &id]);
    assert!(code == 1 && local.contains("APPROVER_UNKNOWN"), "{local}");
    for session in [ada, bob] {
        session.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_the_operator_is_told_once_and_no_call_waits() {
    let place = Place::with(POLICY);
    let heard = place.path().join("heard");
    let program = format!("cat >> {}; sleep 2; exit 3", heard.display());
    let config = format!("{POLICY}[approvals]\nnotify = [\"sh\", \"-c\", {program:?}]\n");
    std::fs::write(place.config(), config).unwrap();
    let session = place.serve(&[]).await;
    let (one, other) = (denied(&session, "one").await, denied(&session, "other").await);
    let lines = || std::fs::read_to_string(&heard).unwrap_or_default();
    until(async || lines().lines().count() == 2).await;
    let told: Vec<Value> = lines()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<&str> = told
        .iter()
        .map(|told| told["approval_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [one.as_str(), other.as_str()]);
    assert_eq!(told[0]["detail"]["arguments"]["title"], "one");
    assert_eq!(
        place.sql("SELECT count(*) FROM core_approvals WHERE notified = 0"),
        ["0"]
    );
    session.close().await;
}

#[test]
fn an_answer_of_the_clients_user_takes_the_request_out_of_the_list() {
    let place = Place::with(&POLICY.replace("ask = false", "ask = true"));
    let mut wire = place.wire(&[]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}}, "clientInfo": {"name": "wire", "version": "1"}}});
    wire.ask(&hello);
    wire.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for (id, allow) in [(1, true), (2, false)] {
        let title = format!("allowed: {allow}");
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "task_create", "arguments": task(&title)}});
        let question = wire.ask(&call);
        assert_eq!(question["method"], "elicitation/create", "{question:#}");
        let pending = || place.sql("SELECT count(*) FROM core_approvals WHERE status = 'pending'");
        assert_eq!(pending(), ["1"], "somebody else may answer meanwhile");
        let answer = json!({"action": "accept", "content": {"allow": allow}});
        let reply = wire.ask(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        assert_eq!(reply["result"]["isError"] == true, !allow, "{reply:#}");
        assert_eq!(pending(), ["0"]);
    }
    let notes = place.sql("SELECT status || ': ' || note FROM core_approvals ORDER BY asked_at");
    assert_eq!(
        notes,
        [
            "withdrawn: the client's user said yes",
            "withdrawn: the client's user said no"
        ]
    );
    wire.close_stdin();
    wire.wait();
}
