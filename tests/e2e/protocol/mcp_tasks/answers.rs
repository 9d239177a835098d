//! Answers to waiting tasks: from their clients, on the console and on the command line.
#![allow(clippy::disallowed_methods, reason = "tests make folders")]

use serde_json::json;

use super::{Client, TOKENS};
use crate::gate::approvals::{POLICY, task};
use crate::operator::console::{answered, log_in};

use crate::harness::{conformance_pack, until};
use crate::protocol::tool_elicitation::{ACTS, acting, acts};
use crate::transport::http_auth::{ADA, BOB, place_with_tokens};

/// The console, where Bob answers.
const CONSOLE: &str = "[server.console]\nenabled = true\napprovers = [\"token:bob\"]\n";
/// A policy that asks the client's user, and has no request of its own in the list of approvals.
const ASKS: &str = r#"
[policies.ask]
source = "builtin:cel"
limits.time_ms = 10000
tools = ["task_create"]
config = { when = "true", then = "ask", message = "Really?", code = "NOT_ALLOWED", remediation = "Get a yes." }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_at_the_command_line_lets_a_waiting_task_finish() {
    let place = place_with_tokens(&[TOKENS, POLICY].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA);
    let id = ada.start("task_create", task("Approved")).await;
    let waiting = ada.get(&id).await;
    let approvals = place.sql("SELECT id FROM core_approvals WHERE status = 'pending'");
    let [approval] = approvals.as_slice() else {
        panic!("{approvals:?}");
    };
    // What others answer is no request to this client.
    assert_eq!(waiting["status"], "working", "{waiting:#}");
    assert_eq!(
        waiting["statusMessage"],
        format!("waits for a person to answer {approval}")
    );
    let listed = place.run(&["tasks", "list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(
        listed.contains(&format!("waits for a person to answer {approval}")),
        "{listed}"
    );
    let allowed = place.run(&["approvals", "allow", approval, "--as", "grace"]);
    assert!(allowed.status.success(), "{allowed:?}");
    let done = ada.once(&id, "completed").await;
    let made = &done["result"]["structuredContent"]["task"];
    assert_eq!(made["title"], "Approved", "{done:#}");

    let denied = ada.start("task_create", task("Rejected")).await;
    let approvals = place.sql("SELECT id FROM core_approvals WHERE status = 'pending'");
    let rejected = place.run(&["approvals", "deny", &approvals[0], "--as", "grace"]);
    assert!(rejected.status.success(), "{rejected:?}");
    let done = ada.once(&denied, "completed").await;
    assert_eq!(done["result"]["isError"], true, "{done:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_task_is_answered_once() {
    let policy = POLICY.replace("ask = false", "ask = true");
    let place = place_with_tokens(&[TOKENS, &policy].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA).with_user();
    let id = ada.start("task_create", task("Allowed")).await;
    let asked = ada.get(&id).await;
    assert_eq!(asked["status"], "input_required", "{asked:#}");
    let requests = asked["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create", "{asked:#}");
    let answer = |allow: bool| {
        json!({"taskId": id, "inputResponses": {
            key: {"action": "accept", "content": {"allow": allow}},
            "9_other": {"action": "accept", "content": {"allow": true}},
        }})
    };
    let unfit = json!({"taskId": id, "inputResponses": {
        key: {"action": "accept", "content": {"allow": "perhaps"}}}});
    let refused = ada.request("tasks/update", unfit).await;
    assert_eq!(
        (
            &refused["error"]["code"],
            &refused["error"]["data"]["error"]["code"]
        ),
        (&json!(-32602), &json!("ANSWER_INVALID")),
        "{refused:#}"
    );
    assert_eq!(ada.get(&id).await["status"], "input_required");
    let taken = ada.request("tasks/update", answer(true)).await;
    assert_eq!(taken["result"]["resultType"], "complete", "{taken:#}");
    let late = ada.request("tasks/update", answer(false)).await;
    assert_eq!(late["result"]["resultType"], "complete", "{late:#}");
    let done = ada.once(&id, "completed").await;
    assert_eq!(
        done["result"]["structuredContent"]["task"]["title"], "Allowed",
        "{done:#}"
    );
    // The list of approvals had the same question, which nobody can answer any more.
    let listed = place.sql("SELECT status || ': ' || note FROM core_approvals");
    assert_eq!(listed, ["withdrawn: the client's user answered it"]);

    // An answer that came first at the command line is the one that counts.
    let id = ada.start("task_create", task("Denied")).await;
    let approvals = place.sql("SELECT id FROM core_approvals WHERE status = 'pending'");
    let rejected = place.run(&["approvals", "deny", &approvals[0], "--as", "grace"]);
    assert!(rejected.status.success(), "{rejected:?}");
    let late =
        json!({"taskId": id, "inputResponses": {key: {"action": "accept", "content": {"allow": true}}}});
    ada.request("tasks/update", late).await;
    let done = ada.once(&id, "completed").await;
    assert_eq!(done["result"]["isError"], true, "{done:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_on_the_console_lets_the_task_of_another_client_finish() {
    let place = place_with_tokens(&[TOKENS, CONSOLE, POLICY].concat());
    let server = place.serve_http(&["--tier", "full"]);
    // The task is on another host than the console.
    let other = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&other, ADA);
    let bob = log_in(&server, BOB).await.cookie;
    for (title, decision, is_error) in [("Yes", "approve", false), ("No", "reject", true)] {
        let id = ada.start("task_create", task(title)).await;
        let pending = place.sql("SELECT id FROM core_approvals WHERE status = 'pending'");
        let (status, page) = answered(&server, &bob, &pending[0], decision).await;
        assert_eq!(status, 303, "{page}");
        let done = ada.once(&id, "completed").await;
        assert_eq!(done["result"]["isError"], is_error, "{done:#}");
    }
    let by = "SELECT status || ' ' || answered_by FROM core_approvals ORDER BY asked_at";
    assert_eq!(place.sql(by), ["approved token:bob", "rejected token:bob"]);
    assert_eq!(place.sql("SELECT title FROM task_store_tasks"), ["Yes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_task_is_settled_once_wherever_it_is_answered() {
    let place = place_with_tokens(&[TOKENS, CONSOLE, ASKS].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA).with_user();
    let bob = log_in(&server, BOB).await.cookie;
    for round in 0..6 {
        let id = ada.start("task_create", task("Raced")).await;
        let asked = ada.get(&id).await;
        assert_eq!(asked["status"], "input_required", "{asked:#}");
        let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let listed = place.sql("SELECT id FROM core_approvals WHERE status = 'pending'");
        let [approval] = listed.as_slice() else {
            panic!("{listed:?}");
        };
        // Each way answers what another does not, at the same time.
        let (allow, decision, command) = match round % 2 {
            0 => (true, "reject", "deny"),
            _ => (false, "approve", "allow"),
        };
        let update = json!({"taskId": id, "inputResponses": {
            key: {"action": "accept", "content": {"allow": allow}}}});
        let mut terminal = place.command(&["approvals", command, approval, "--as", "grace"]);
        let at_terminal = async {
            match round / 2 {
                // The other ways have time to be first.
                0 => None,
                _ => tokio::task::spawn_blocking(move || terminal.output().unwrap())
                    .await
                    .ok(),
            }
        };
        let on_console = async {
            match round / 2 {
                1 => None,
                _ => Some(answered(&server, &bob, approval, decision).await.0),
            }
        };
        let (taken, terminal, console) =
            tokio::join!(ada.request("tasks/update", update), at_terminal, on_console);
        assert_eq!(taken["result"]["resultType"], "complete", "{taken:#}");
        let done = ada.once(&id, "completed").await;
        let status = place.sql(&format!(
            "SELECT status FROM core_approvals WHERE id = '{approval}'"
        ));
        let is_made = match status[0].as_str() {
            "approved" => true,
            "rejected" => false,
            "withdrawn" => allow,
            other => panic!("{other}"),
        };
        assert_eq!(done["result"]["isError"], !is_made, "{status:?} {done:#}");
        let first = [
            terminal.is_some_and(|terminal| terminal.status.success()),
            console == Some(303),
            status[0] == "withdrawn",
        ];
        assert_eq!(
            first.iter().filter(|is_first| **is_first).count(),
            1,
            "{first:?} {status:?}"
        );
    }
    let rows = "SELECT count(*) FROM core_operations WHERE tool = 'task_create'";
    assert_eq!(place.sql(rows), ["12"], "each call is refused once and made once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_without_room_enters_the_list_when_there_is_room() {
    let place = place_with_tokens(&[TOKENS, ASKS].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA).with_user();
    let mut started = Vec::new();
    for number in 0..103 {
        started.push(ada.start("task_create", task(&format!("Number {number}"))).await);
    }
    let pending = "SELECT key FROM core_approvals WHERE status = 'pending' ORDER BY asked_at";
    assert_eq!(place.sql(pending), started[..100]);
    // An answer of the client needs no room.
    let last = &started[102];
    let asked = ada.get(last).await;
    assert_eq!(asked["status"], "input_required", "{asked:#}");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let answer = json!({"taskId": last, "inputResponses": {
        key: {"action": "accept", "content": {"allow": true}}}});
    ada.request("tasks/update", answer).await;
    ada.once(last, "completed").await;
    // One place for two that wait.
    ada.about("tasks/cancel", &started[0]).await;
    until(async || place.sql(pending).last() == Some(&started[100])).await;
    assert_eq!(place.sql(pending), started[1..101]);
    let listed = "SELECT id FROM core_approvals WHERE status = 'pending' ORDER BY asked_at DESC LIMIT 1";
    let seen = ada.get(&started[100]).await;
    let approval = &place.sql(listed)[0];
    assert!(
        seen["statusMessage"]
            .as_str()
            .unwrap()
            .contains(approval.as_str()),
        "{seen:#}"
    );
    let allowed = place.run(&["approvals", "allow", approval, "--as", "grace"]);
    assert!(allowed.status.success(), "{allowed:?}");
    ada.once(&started[100], "completed").await;
    until(async || place.sql(pending).last() == Some(&started[101])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_tasks_behind_one_approval_run_once_and_wait_again() {
    let place = place_with_tokens(&[TOKENS, POLICY].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA);
    let calls = (0..4).map(|_| ada.start("task_create", task("Once")));
    let started = futures::future::join_all(calls).await;
    let pending = "SELECT id FROM core_approvals WHERE status = 'pending'";
    let [approval] = &place.sql(pending)[..] else {
        panic!("equal calls have one request");
    };
    let allowed = place.run(&["approvals", "allow", approval, "--as", "grace"]);
    assert!(allowed.status.success(), "{allowed:?}");
    let states = "SELECT state FROM core_tasks ORDER BY state";
    let wanted = ["completed", "input_required", "input_required", "input_required"];
    until(async || place.sql(states) == wanted && place.sql(pending).len() == 1).await;
    // The next answer is for those that wait.
    let rejected = place.run(&["approvals", "deny", &place.sql(pending)[0], "--as", "grace"]);
    assert!(rejected.status.success(), "{rejected:?}");
    for id in &started {
        ada.once(id, "completed").await;
    }
    assert_eq!(place.sql("SELECT title FROM task_store_tasks"), ["Once"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_task_leaves_the_list_with_the_task() {
    let place = place_with_tokens(&[TOKENS, ASKS].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA).with_user();
    let id = ada.start("task_create", task("Cancelled")).await;
    let listed = "SELECT component || ' ' || status FROM core_approvals";
    assert_eq!(place.sql(listed), ["mcp/tasks pending"]);
    ada.about("tasks/cancel", &id).await;
    ada.once(&id, "cancelled").await;
    assert_eq!(place.sql(listed), ["mcp/tasks withdrawn"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_or_no_that_a_tool_asks_is_answered_at_the_command_line() {
    let place = place_with_tokens(&[TOKENS, &conformance_pack()].concat());
    std::fs::create_dir(place.path().join("work")).unwrap();
    let server = place.serve_http(&[]);
    let ada = Client::bearing(&server, ADA).with_user();
    for (command, said) in [("allow", "deleted"), ("deny", "kept")] {
        let id = ada
            .start("confirm_delete", json!({"filename": "notes.txt"}))
            .await;
        ada.once(&id, "input_required").await;
        let listed = place.sql("SELECT id FROM core_approvals WHERE status = 'pending'");
        let [approval] = listed.as_slice() else {
            panic!("{listed:?}");
        };
        let shown = place.run(&["approvals", "show", approval]);
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(
            shown.contains("Delete notes.txt?") && shown.contains(&id),
            "{shown}"
        );
        let answered = place.run(&["approvals", command, approval, "--as", "grace"]);
        assert!(answered.status.success(), "{answered:?}");
        let done = ada.once(&id, "completed").await;
        assert_eq!(done["result"]["structuredContent"]["said"], said, "{done:#}");
    }
    // A name is no yes or no, so two questions are for the client alone.
    let id = ada.start("multi_input", json!({})).await;
    ada.once(&id, "input_required").await;
    assert_eq!(
        place.sql("SELECT count(*) FROM core_approvals WHERE status = 'pending'"),
        ["0"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_a_policy_covers_one_call_of_a_task_that_has_effects() {
    let place = place_with_tokens(&[TOKENS, &acting()].concat());
    let server = place.serve_http(&["--tier", "full"]);
    let ada = Client::bearing(&server, ADA).with_user();
    for (actions, expected) in ACTS {
        let id = ada.start("side_effects_run", acts(actions)).await;
        for (number, question) in expected.iter().enumerate() {
            let key = format!("{}_{question}", number + 1);
            until(async || {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                ada.get(&id).await["inputRequests"].get(&key).is_some()
            })
            .await;
            let yes = json!({"action": "accept", "content": { (*question): true }});
            let answer = json!({"taskId": id, "inputResponses": { key: yes }});
            ada.request("tasks/update", answer).await;
        }
        let done = ada.once(&id, "completed").await;
        assert_eq!(done["result"]["structuredContent"]["result"], "done", "{done:#}");
    }
    assert_eq!(place.sql("SELECT count(*) FROM side_effects_rows"), ["2"]);
}
