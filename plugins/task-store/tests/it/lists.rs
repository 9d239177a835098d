//! Lists: filters, pages, and what is ready.

use std::collections::BTreeSet;

use expect_test::expect;
use serde_json::{Value, json};
use tollgate_sdk::native::Session;

use crate::harness::{READY, check_after, line_of, reply, run};

fn create(session: &Session, title: &str, workspace: &str, labels: &[&str]) {
    let arguments = json!({"title": title, "spec_markdown": "Do it.", "workspace": workspace, "labels": labels,
        "initial_phase": "spec_draft", "actor": "boss", "actor_role": "orchestrator"});
    reply(session, &format!("task_create {arguments}"));
}

/// The titles of all pages of a list.
fn titles(session: &Session, tool: &str, list: &str, arguments: &Value) -> Vec<String> {
    let mut arguments = arguments.clone();
    let mut titles = Vec::new();
    loop {
        let page = reply(session, &format!("{tool} {arguments}"));
        for task in page[list].as_array().unwrap() {
            let task = task.get("task").unwrap_or(task);
            titles.push(task["title"].as_str().unwrap().to_owned());
        }
        assert!(titles.len() < 1_000, "the pages never end");
        assert_eq!(
            page["has_more"],
            json!(page.get("next_cursor").is_some()),
            "{page}"
        );
        match page.get("next_cursor") {
            Some(cursor) => arguments["cursor"] = cursor.clone(),
            None => return titles,
        }
    }
}

#[test]
fn filters_narrow_alone_and_together() {
    let session = Session::new(&task_store::PACK);
    create(&session, "a", "one", &["red", "big"]);
    create(&session, "b", "one", &["red"]);
    create(&session, "c", "two", &["red"]);
    create(&session, "d", "two", &[]);
    run(&session, "- move tsk_2 spec_draft spec_review");
    let list = |arguments| titles(&session, "task_list", "tasks", &arguments).join(" ");
    assert_eq!(list(json!({})), "d c b a");
    assert_eq!(list(json!({"label": "red"})), "c b a");
    assert_eq!(list(json!({"workspace": "two"})), "d c");
    assert_eq!(list(json!({"phase": "spec_review"})), "b");
    assert_eq!(
        list(json!({"label": "red", "workspace": "one", "phase": "spec_draft"})),
        "a"
    );
    assert_eq!(list(json!({"label": "no such"})), "");
    assert_eq!(list(json!({"label": "' OR 1=1 --"})), "");
}

#[test]
fn pages_neither_skip_nor_repeat() {
    let session = Session::new(&task_store::PACK);
    let names: Vec<String> = (0..23).map(|n| format!("t{n}")).collect();
    for name in &names {
        create(&session, name, "main", &["x"]);
    }
    let wanted: BTreeSet<_> = names.iter().cloned().collect();
    for limit in [1, 2, 7, 22, 23, 24, 100] {
        for filter in [json!({}), json!({"label": "x"}), json!({"phase": "spec_draft"})] {
            let mut arguments = filter;
            arguments["limit"] = json!(limit);
            let seen = titles(&session, "task_list", "tasks", &arguments);
            assert_eq!(seen.len(), 23, "limit {limit}");
            assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), wanted, "limit {limit}");
        }
    }
    let usual = reply(&session, "task_list");
    assert_eq!(usual["tasks"].as_array().unwrap().len(), 20);
}

#[test]
fn a_task_created_between_pages_moves_nothing() {
    let session = Session::new(&task_store::PACK);
    for name in ["a", "b", "c", "d"] {
        create(&session, name, "main", &[]);
    }
    let first = reply(&session, r#"task_list {"limit": 2}"#);
    create(&session, "e", "main", &[]);
    let second = reply(
        &session,
        &format!(
            "task_list {}",
            json!({"limit": 2, "cursor": first["next_cursor"]})
        ),
    );
    assert_eq!(second["tasks"][0]["title"], "b");
    assert_eq!(second["tasks"][1]["title"], "a");
    assert_eq!(second.get("next_cursor"), None);
    // The earlier name is still accepted.
    let earlier = json!({"limit": 2, "after": first["next_cursor"]});
    assert_eq!(reply(&session, &format!("task_list {earlier}")), second);
}

#[test]
fn a_cursor_that_was_never_given_is_refused() {
    check_after(
        READY,
        r#"
        task_list {"label": "x", "cursor": "tsk_9"}
        task_list {"after": "nonsense"}
        task_list_ready {"cursor": "att_1", "workspace": "main"}
        task_list_approvals {"cursor": "tsk_1"}
        task_events {"cursor": -1}
        task_events {"after": -1}
        task_events {"after_id": -1}
        "#,
        expect![[r#"
            err INVALID_ARGUMENTS: cursor tsk_9 is not a next_cursor of task_list
              - INVALID_ARGUMENTS (cursor): cursor tsk_9 is not a next_cursor of task_list -> task_list {"label":"x"}
            err INVALID_ARGUMENTS: after nonsense is not a next_cursor of task_list
              - INVALID_ARGUMENTS (after): after nonsense is not a next_cursor of task_list -> task_list {}
            err INVALID_ARGUMENTS: cursor att_1 is not a next_cursor of task_list_ready
              - INVALID_ARGUMENTS (cursor): cursor att_1 is not a next_cursor of task_list_ready -> task_list_ready {"workspace":"main"}
            err INVALID_ARGUMENTS: cursor tsk_1 is not a next_cursor of task_list_approvals
              - INVALID_ARGUMENTS (cursor): cursor tsk_1 is not a next_cursor of task_list_approvals -> task_list_approvals {"status":"pending"}
            err INVALID_ARGUMENTS: cursor is -1, not within 0 to 9223372036854775807
              - INVALID_ARGUMENTS (cursor): cursor is -1, not within 0 to 9223372036854775807
            err INVALID_ARGUMENTS: after is -1, not within 0 to 9223372036854775807
              - INVALID_ARGUMENTS (after): after is -1, not within 0 to 9223372036854775807
            err INVALID_ARGUMENTS: after_id is -1, not within 0 to 9223372036854775807
              - INVALID_ARGUMENTS (after_id): after_id is -1, not within 0 to 9223372036854775807
        "#]],
    );
}

#[test]
fn answered_tasks_are_listed_until_they_go_on() {
    check_after(
        "reach 10
        - move tsk_1 quality_gate awaiting_approval
        - ask tsk_1 att_1 v1
        - ask tsk_1 att_1 v2",
        "
        task_list_ready
        - answer tsk_1 apr_1 approved
        # One answer is missing.
        task_list_ready
        - answer tsk_1 apr_2 approved
        task_list_ready ? answered.0.task.task_id answered.0.approval_id answered.0.status answered.0.next_call
        - move tsk_1 awaiting_approval ready_to_resume
        task_list_ready ? answered.0.task.phase answered.0.next_call
        ",
        expect![[r#"
            ok {"ready":[],"has_more":false}
            # One answer is missing.
            ok {"ready":[],"has_more":false}
            ok answered.0.task.task_id="tsk_1" answered.0.approval_id="apr_2" answered.0.status="approved" answered.0.next_call={"tool":"task_transition","arguments":{"task_id":"tsk_1","from_phase":"awaiting_approval","to_phase":"ready_to_resume","reason":"the approval was granted","actor":"orchestrator","actor_role":"orchestrator"}}
            ok answered.0.task.phase="ready_to_resume" answered.0.next_call={"tool":"task_recover","arguments":{"task_id":"tsk_1"}}
        "#]],
    );
    check_after(
        "reach 10
        - move tsk_1 quality_gate awaiting_approval
        - ask tsk_1 att_1 v1
        - answer tsk_1 apr_1 request_changes",
        "task_list_ready ? answered.0.status answered.0.next_call",
        expect![[r#"
            ok answered.0.status="request_changes" answered.0.next_call={"tool":"task_transition","arguments":{"task_id":"tsk_1","from_phase":"awaiting_approval","to_phase":"execution_ready","reason":"the approval was not granted","actor":"orchestrator","actor_role":"orchestrator"}}
        "#]],
    );
}

#[test]
fn ready_and_waiting_tasks() {
    check_after(
        READY,
        r#"
        task_list_ready
        - start tsk_1
        task_list_ready
        - finish att_1 failed
        task_list_ready
        +28000
        # The very moment it was to wait for.
        task_list_ready {"workspace": "main", "actor": "cron", "actor_role": "orchestrator"}
        task_list_ready {"workspace": "other"}
        - start tsk_1
        - finish att_2 failed
        +120000
        # The next attempt is the last.
        task_list_ready
        - start tsk_1
        - finish att_3 failed
        task_list_ready
        "#,
        expect![[r#"
            ok {"ready":[{"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"execution_ready","updated_at":"2026-01-01T00:00:04.000Z"},"escalate":false,"next_call":{"tool":"task_start_attempt","arguments":{"task_id":"tsk_1","phase":"executing","runtime":"local","executor_kind":"builder","actor":"orchestrator","actor_role":"orchestrator"}}}],"has_more":false}
            ok {"ready":[],"has_more":false,"waiting":[{"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"execution_ready","updated_at":"2026-01-01T00:00:06.000Z"},"waiting_for":[{"code":"ATTEMPT_RUNNING","message":"attempt att_1 is still running"}]}]}
            ok {"ready":[],"has_more":false,"waiting":[{"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"execution_ready","updated_at":"2026-01-01T00:00:08.000Z"},"waiting_for":[{"code":"RETRY_TOO_EARLY","message":"the next attempt may not start before 2026-01-01T00:00:38.000Z"}]}]}
            # The very moment it was to wait for.
            ok {"ready":[{"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"execution_ready","updated_at":"2026-01-01T00:00:08.000Z"},"escalate":false,"next_call":{"tool":"task_start_attempt","arguments":{"task_id":"tsk_1","phase":"executing","runtime":"local","executor_kind":"builder","actor":"cron","actor_role":"orchestrator"}}}],"has_more":false}
            ok {"ready":[],"has_more":false}
            # The next attempt is the last.
            ok {"ready":[{"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"execution_ready","updated_at":"2026-01-01T00:00:41.000Z"},"escalate":true,"next_call":{"tool":"task_start_attempt","arguments":{"task_id":"tsk_1","phase":"executing","runtime":"local","executor_kind":"builder","actor":"orchestrator","actor_role":"orchestrator"}}}],"has_more":false}
            ok {"ready":[],"has_more":false,"waiting":[{"task":{"id":"tsk_1","task_id":"tsk_1","title":"one","workspace":"main","phase":"execution_ready","updated_at":"2026-01-01T00:02:44.000Z"},"waiting_for":[{"code":"RETRIES_EXHAUSTED","message":"all attempts are used up (limit: 3)","next_call":{"tool":"task_open_circuit","arguments":{"task_id":"tsk_1","reason":"all attempts are used up","actor":"orchestrator","actor_role":"orchestrator"}}}]}]}
        "#]],
    );
}

#[test]
fn what_is_ready_can_be_started() {
    let session = Session::new(&task_store::PACK);
    for n in 1..=5 {
        create(&session, &format!("t{n}"), "main", &[]);
    }
    for n in [1, 2, 4, 5] {
        run(
            &session,
            &format!(
                "- move tsk_{n} spec_draft spec_review
                 - move tsk_{n} spec_review spec_draft
                 - task_update_spec {{\"task_id\": \"tsk_{n}\", \"spec_markdown\": \"# Acceptance\\n- it works\", \"actor\": \"boss\", \"actor_role\": \"orchestrator\"}}
                 - move tsk_{n} spec_draft spec_review
                 - review tsk_{n} none spec approved
                 - move tsk_{n} spec_review execution_ready"
            ),
        );
    }
    run(&session, "- start tsk_2");
    assert_eq!(
        titles(&session, "task_list_ready", "ready", &json!({"limit": 1})),
        ["t1", "t4", "t5"]
    );
    // The waiting tasks come with the first page only.
    let first = reply(&session, r#"task_list_ready {"limit": 1}"#);
    assert_eq!(first["waiting"][0]["task"]["id"], "tsk_2");
    let next = json!({"limit": 1, "cursor": first["next_cursor"]});
    let second = reply(&session, &format!("task_list_ready {next}"));
    assert_eq!(second.get("waiting"), None);
    let list = reply(&session, "task_list_ready");
    for task in list["ready"].as_array().unwrap() {
        let call = serde_json::from_value(task["next_call"].clone()).unwrap();
        reply(&session, &line_of(&call));
    }
    assert_eq!(reply(&session, "task_list_ready")["ready"], json!([]));
}
