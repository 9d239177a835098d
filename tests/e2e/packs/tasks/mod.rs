//! The pack `tasks`, driven by real clients.

mod host_facts;
mod stories;
mod tools;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Place, Session, field_of_each};

/// Tools of the contract, and those that were added to it. No version may lose one of them.
pub(super) fn contract() -> BTreeSet<String> {
    let names = "bootstrap batch block close_step close_task complete context context_pack contract create \
        decompose define delete delta done edit evidence_capture focus_clear focus_get focus_set handoff history lint \
        mirror move note patch plan progress radar redo resume resume_pack scaffold storage task_add task_define task_delete \
        templates_list undo verify next step_claim step_renew step_release template_save take show search workspaces";
    names
        .split_whitespace()
        .map(|name| format!("tasks_{name}"))
        .collect()
}

async fn bootstrap(session: &Session) -> Value {
    let step =
        |title: &str| json!({"title": title, "success_criteria": ["it holds"], "tests": ["cargo test"]});
    let arguments = json!({"workspace": "acme/repo", "plan_title": "Ship", "task_title": "Build",
        "steps": [step("one"), step("two"), step("three")]});
    session.ok("tasks_bootstrap", arguments).await
}

fn task(mut arguments: Value) -> Value {
    arguments["workspace"] = json!("acme/repo");
    if arguments.get("task").is_none() {
        arguments["task"] = json!("TASK-001");
    }
    arguments
}

#[tokio::test]
async fn every_tool_of_the_contract_is_listed_in_full_and_few_by_default() {
    let place = Place::new();
    let listed = async |flags: &[&str]| -> BTreeSet<String> {
        let session = place.serve(flags).await;
        let tools = session.client().list_all_tools().await.unwrap();
        session.close().await;
        tools
            .into_iter()
            .map(|tool| tool.name.to_string())
            .filter(|name| name.starts_with("tasks_"))
            .collect()
    };
    let (full, contract) = (listed(&["--tier", "full"]).await, contract());
    let lost: Vec<&String> = contract.difference(&full).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let core = listed(&[]).await;
    assert!(core.len() <= 8 && core.contains("tasks_radar"), "{core:?}");
}

#[tokio::test]
async fn an_agent_walks_the_loop_and_the_next_host_hands_over() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let made = bootstrap(&session).await;
    let step = &made["steps"][0]["step_id"];
    let refused = session
        .refused("tasks_done", task(json!({"step_id": step})))
        .await;
    assert_eq!(refused["code"], "CHECKPOINTS_NOT_CONFIRMED");
    let evidence = json!({"step_id": step, "checkpoint": "tests", "items": [{"kind": "cmd_output", "title": "cargo test", "body": "ok", "exit_code": 0}]});
    session.ok("tasks_evidence_capture", task(evidence)).await;
    let named = json!({"step_id": step, "expected_revision": 2,
        "checkpoints": {"criteria": {"confirmed": true}, "tests": {"confirmed": true}}});
    let closed = session.ok("tasks_close_step", task(named)).await;
    assert_eq!(closed["step"], json!({"step_id": step, "path": "s:0"}));
    // The word that stands for the object passes the host's own check as well, another does not.
    session
        .ok(
            "tasks_close_step",
            task(json!({"path": "s:1", "checkpoints": "gate"})),
        )
        .await;
    let other = session
        .refused(
            "tasks_close_step",
            task(json!({"path": "s:2", "checkpoints": "none"})),
        )
        .await;
    assert_eq!(other["code"], "INVALID_ARGUMENTS");
    let patch =
        json!({"kind": "step", "path": "s:2", "ops": [{"op": "set", "field": "tests", "value": ["a", "b"]}]});
    session.ok("tasks_patch", task(patch)).await;
    session.ok("tasks_undo", task(json!({}))).await;
    let undone = session.ok("tasks_undo", task(json!({}))).await;
    assert_eq!(undone["revision"], 7, "{undone}");
    session.close().await;

    let session = place.serve(&["--tier", "full"]).await;
    let handoff = session
        .ok("tasks_handoff", task(json!({"max_chars": 4000})))
        .await;
    assert_eq!(handoff["done"], json!(["s:0 one"]));
    assert_eq!(handoff["remaining"], json!(["s:1 two", "s:2 three"]));
    assert_eq!(handoff["revision"], 7);
    session
        .ok("tasks_redo", task(json!({"expected_revision": 7})))
        .await;
    session.close().await;
}

/// Two clients, each with its own host on the same data, write until each is done. A client that comes second gets the
/// changes and retries, and no write is lost.
#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_race_on_one_task_and_lose_nothing() {
    const WRITES: usize = 15;
    let place = Place::new();
    let one = place.serve(&["--tier", "full"]).await;
    bootstrap(&one).await;
    let other = place.serve(&["--tier", "full"]).await;
    let work = async |session: &Session, name: &str| -> usize {
        let (mut revision, mut lost, mut done) = (json!(1), 0, 0);
        while done < WRITES {
            let add = json!({"steps": [{"title": format!("{name} {done}")}], "expected_revision": revision});
            let result = session.call_raw("tasks_decompose", task(add)).await;
            let body = result.structured_content.unwrap();
            if result.is_error == Some(true) {
                let error = &body["error"];
                assert_eq!(error["code"], "REVISION_MISMATCH", "{error}");
                let changed = error["context"]["changed"].as_array().unwrap();
                assert!(changed.iter().any(|change| change == "steps_added"), "{error}");
                assert_eq!(error["next_call"]["tool"], "tasks_resume", "{error}");
                revision = error["context"]["actual"].clone();
                lost += 1;
            } else {
                revision = body["revision"].clone();
                done += 1;
            }
        }
        lost
    };
    let (lost_by_one, lost_by_other) = tokio::join!(work(&one, "one"), work(&other, "other"));
    assert!(lost_by_one + lost_by_other > 0, "they never met");
    let mirror = one.ok("tasks_mirror", task(json!({}))).await;
    assert_eq!(mirror["revision"], 1 + 2 * WRITES);
    let titles: BTreeSet<&str> = mirror["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles.len(), 3 + 2 * WRITES);
    one.close().await;
    other.close().await;
}

#[tokio::test]
async fn each_member_of_a_batch_counts_and_all_have_to_fit() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    bootstrap(&session).await;
    let envelope = session
        .ok("envelope_open", json!({"limits": {"max_mutations": 4}}))
        .await["id"]
        .clone();
    let note = json!({"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}});
    let radar = json!({"tool": "tasks_radar", "args": {"task": "TASK-001"}});
    let batch = |operations: Vec<Value>| json!({"workspace": "acme/repo", "operations": operations, "envelope_id": envelope});
    let refused = session.refused("tasks_batch", batch(vec![note.clone(); 5])).await;
    assert_eq!(refused["code"], "MUTATION_BUDGET_EXHAUSTED");
    // Not one of them ran, and what is left can still be used: reads cost nothing.
    let three = vec![note.clone(), radar.clone(), note.clone(), note.clone(), radar];
    assert_eq!(session.ok("tasks_batch", batch(three)).await["succeeded"], 5);
    session.refused("tasks_batch", batch(vec![note.clone(); 2])).await;
    session.ok("tasks_batch", batch(vec![note.clone()])).await;
    session.refused("tasks_batch", batch(vec![note])).await;
    assert_eq!(place.sql("SELECT count(*) FROM tasks_operations"), ["5"]);
    assert_eq!(
        place.sql("SELECT state || ' ' || mutation_count FROM core_envelopes"),
        ["CLOSED_FAILED 4"]
    );
    session.close().await;
}

#[tokio::test]
async fn a_batch_reaches_nothing_that_a_call_could_not() {
    let place = Place::new();
    let session = place
        .serve(&["--tier", "full", "--exclude-tools", "tasks_delete"])
        .await;
    bootstrap(&session).await;
    let operations = json!([
        {"tool": "tasks_delete", "args": {"task": "TASK-001"}},
        {"tool": "tasks_batch", "args": {"operations": []}},
        {"tool": "task_create", "args": {}},
        {"tool": "tasks_note", "args": {"task": "TASK-001", "note": "n"}},
    ]);
    let arguments = json!({"workspace": "acme/repo", "operations": operations});
    let refused = session.refused("tasks_batch", arguments).await;
    assert_eq!(refused["code"], "MEMBERS_REFUSED");
    let codes = field_of_each(&refused["blockers"], "code");
    assert_eq!(codes, ["UNKNOWN_TOOL", "MEMBERS_NESTED", "MEMBER_OF_OTHER_PACK"]);
    assert_eq!(session.ok("tasks_radar", task(json!({}))).await["revision"], 1);
    session.close().await;
}

#[tokio::test]
async fn an_atomic_batch_that_fails_leaves_no_rows() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    bootstrap(&session).await;
    let rows = || {
        place.sql("SELECT (SELECT count(*) FROM tasks_events) || ' ' || (SELECT count(*) FROM tasks_changes) || ' ' || (SELECT sum(revision) FROM tasks_roots)")
    };
    let before = rows();
    let operations = json!([
        {"tool": "tasks_block", "args": {"task": "TASK-001", "path": "s:0"}},
        {"tool": "tasks_done", "args": {"task": "TASK-001", "path": "s:1"}},
    ]);
    let arguments = json!({"workspace": "acme/repo", "operations": operations, "atomic": true});
    assert_eq!(
        session.refused("tasks_batch", arguments).await["code"],
        "BATCH_FAILED"
    );
    assert_eq!(rows(), before);
    session.close().await;
}

/// Rows of the ledger name plans, tasks and their parts instead of tables.
#[tokio::test]
async fn rows_name_what_was_changed() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let made = bootstrap(&session).await;
    let step = made["steps"][0]["step_id"].as_str().unwrap();
    session.ok("envelope_open", json!({})).await;
    for (tool, arguments) in [
        ("tasks_note", json!({"step_id": step, "note": "n"})),
        (
            "tasks_close_step",
            json!({"step_id": step, "checkpoints": "gate"}),
        ),
        ("tasks_edit", json!({"title": "Build"})),
        ("tasks_focus_set", json!({})),
        ("tasks_undo", json!({})),
    ] {
        session.ok(tool, task(arguments)).await;
    }
    session.close().await;
    let rows = place.sql(
        "SELECT tool || ' ' || changed_paths FROM core_operations WHERE pack = 'tasks' AND effect = 'write' ORDER BY seq",
    );
    assert_eq!(rows.len(), 6, "{rows:#?}");
    for row in &rows {
        assert!(
            row.contains("\"tasks/") && !row.contains("tasks_records"),
            "{rows:#?}"
        );
    }
    assert!(rows[0].contains("tasks/PLAN-001/TASK-001\""), "{rows:#?}");
    assert!(
        rows[2].contains(&format!("tasks/PLAN-001/TASK-001/{step}\"")),
        "{rows:#?}"
    );
}
