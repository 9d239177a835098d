//! Bounded views never have more bytes than they may, and say what became of the limit.

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_sdk::native::Session;

use crate::harness::{THREE_STEPS, after, call_tool, ok, refused};

const VIEWS: [&str; 8] = [
    "tasks_radar",
    "tasks_handoff",
    "tasks_delta",
    "tasks_context",
    "tasks_context_pack",
    "tasks_resume_pack",
    "tasks_next",
    "tasks_radar",
];

/// Text that is long in bytes: letters, quotes, backslashes and characters of two to four bytes.
fn text(most: usize) -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-z \"\\\\äß漢字🦀\u{301}\u{200d}]{1,40}")
        .unwrap()
        .prop_flat_map(move |seed| (Just(seed), 1..most))
        .prop_map(|(seed, times)| format!("x{}", seed.repeat(times)).chars().take(480).collect())
}

fn plan(texts: &[String]) -> Session {
    let session = after(&[]);
    let text = |place: usize| texts[place % texts.len()].clone();
    let steps: Vec<Value> = (0..texts.len())
        .map(|place| json!({"title": text(place), "success_criteria": [text(place + 1)], "tests": [text(place + 2)]}))
        .collect();
    let bootstrap =
        json!({"plan_title": text(0), "task_title": text(1), "description": text(2), "steps": steps});
    call_tool(&session, "tasks_bootstrap", bootstrap).unwrap();
    for place in 0..texts.len() {
        let note = json!({"task": "TASK-001", "note": text(place), "decision": place % 2 == 0});
        call_tool(&session, "tasks_note", note).unwrap();
        let path = format!("s:{place}");
        if place % 3 == 0 {
            let block = json!({"task": "TASK-001", "path": path, "reason": text(place)});
            call_tool(&session, "tasks_block", block).unwrap();
        } else {
            let item = json!({"kind": "cmd_output", "title": text(place), "body": text(place + 1)});
            let evidence = json!({"task": "TASK-001", "path": path, "items": [item]});
            call_tool(&session, "tasks_evidence_capture", evidence).unwrap();
        }
    }
    session
}

/// The bytes of a reply without its budget, and the budget.
fn measured(session: &Session, view: &str, arguments: &Value) -> (usize, Value) {
    let reply = session.call(view, &arguments.to_string()).unwrap();
    let mut reply: Value = serde_json::from_str(&reply.structured).unwrap();
    let budget = reply
        .as_object_mut()
        .unwrap()
        .remove("budget")
        .unwrap_or_default();
    (reply.to_string().len(), budget)
}

fn holds(session: &Session, view: &str, max: i64) {
    let target = if max % 2 == 0 { "TASK-001" } else { "PLAN-001" };
    let mut arguments = json!({"workspace": "w", "max_chars": max});
    if view == "tasks_next" || view == "tasks_context" {
    } else {
        arguments["task"] = json!(target);
    }
    let (bytes, budget) = measured(session, view, &arguments);
    assert!(
        i64::try_from(bytes).unwrap() <= max,
        "{view} at {max} has {bytes} bytes"
    );
    assert_eq!(budget["used_chars"], bytes, "{view} at {max}");
    assert_eq!(budget["max_chars"], max);
    let told = budget
        .get("warnings")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    assert_eq!(budget["truncated"], told > 0, "{view} at {max}: {budget}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: tollgate_kit_test::cases(40), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_view_passes_its_budget(
        texts in proptest::collection::vec(text(30), 3..10),
        some in proptest::collection::vec(prop_oneof![2..1_500_i64, 2..20_000_i64], 12),
    ) {
        let session = plan(&texts);
        for view in VIEWS {
            for max in (2..20).chain(some.iter().copied()) {
                holds(&session, view, max);
            }
        }
    }
}

#[test]
fn small_budgets_are_minimal_and_say_so() {
    let session = plan(&["text".to_owned(), "more".to_owned(), "words".to_owned()]);
    let at = |max: i64| {
        ok(
            &session,
            &format!(r#"radar {{"task": "TASK-001", "max_chars": {max}}}"#),
        )
    };
    assert_eq!(
        at(2),
        json!({"budget": {"max_chars": 2, "used_chars": 2, "truncated": true,
        "warnings": ["BUDGET_TRUNCATED", "BUDGET_MINIMAL", "BUDGET_MIN_CLAMPED"]}})
    );
    assert_eq!(at(20)["signal"], "minimal");
    assert_eq!(
        at(20)["budget"]["warnings"],
        json!(["BUDGET_TRUNCATED", "BUDGET_MINIMAL"])
    );
    let shorter = at(300);
    assert_eq!(shorter["budget"]["warnings"], json!(["BUDGET_TRUNCATED"]));
    assert!(
        shorter.get("now").is_some() && shorter.get("next_calls").is_none(),
        "{shorter}"
    );
    assert_eq!(at(20_000)["budget"]["truncated"], false);
    assert_eq!(ok(&session, r#"radar {"task": "TASK-001"}"#).get("budget"), None);
    for max in [1, 0, -5] {
        let err = refused(
            &session,
            &format!(r#"radar {{"task": "TASK-001", "max_chars": {max}}}"#),
        );
        assert_eq!(err.code, "BUDGET_TOO_SMALL");
    }
}

#[test]
fn focus_fills_a_missing_task_for_reads_and_for_writes_if_configured() {
    let session = plan(&["text".to_owned()]);
    assert_eq!(refused(&session, "radar {}").code, "INVALID_ARGUMENTS");
    ok(&session, r#"focus_set {"task": "TASK-001"}"#);
    assert_eq!(ok(&session, "focus_get {}")["focus"], "TASK-001");
    assert_eq!(ok(&session, "radar {}")["task"], "TASK-001");
    assert_eq!(
        refused(&session, r#"note {"note": "n"}"#).code,
        "INVALID_ARGUMENTS"
    );
    let session = session.config(&json!({"focus_writes": true}));
    assert_eq!(ok(&session, r#"note {"note": "n"}"#)["task"], "TASK-001");
    ok(&session, "focus_clear {}");
    assert_eq!(
        refused(&session, r#"note {"note": "n"}"#).code,
        "INVALID_ARGUMENTS"
    );
}

#[test]
fn a_plan_radar_counts_its_tasks() {
    let session = after(&[r#"create {"title": "P"}"#]);
    for title in ["a", "b", "c", "d"] {
        ok(
            &session,
            &format!(r#"create {{"title": "{title}", "plan": "PLAN-001"}}"#),
        );
    }
    session.advance_ms(15 * 24 * 60 * 60 * 1000);
    for (task, status) in [
        ("TASK-001", "ACTIVE"),
        ("TASK-002", "PARKED"),
        ("TASK-003", "CANCELED"),
    ] {
        ok(
            &session,
            &format!(r#"complete {{"task": "{task}", "status": "{status}"}}"#),
        );
    }
    let radar = ok(&session, r#"radar {"plan": "PLAN-001"}"#);
    assert_eq!(
        radar["horizon"],
        json!({"active": 1, "backlog": 1, "parked": 1, "stale": 1, "done": 0, "canceled": 1, "total": 4})
    );
}

#[test]
fn a_radar_tells_ten_blockers_and_no_more() {
    let session = after(&[r#"create {"title": "P"}"#]);
    let steps: Vec<Value> = (0..15)
        .map(|n| json!({"title": format!("s{n}"), "blockers": ["a", "b"]}))
        .collect();
    let made = json!({"title": "t", "plan": "PLAN-001", "steps": steps});
    call_tool(&session, "tasks_create", made).unwrap();
    for n in 0..15 {
        ok(
            &session,
            &format!(r#"block {{"task": "TASK-001", "path": "s:{n}"}}"#),
        );
    }
    for target in ["TASK-001", "PLAN-001"] {
        let radar = ok(&session, &format!(r#"radar {{"task": "{target}"}}"#));
        assert_eq!(radar["blockers"].as_array().unwrap().len(), 10, "{target}");
    }
}

#[test]
fn next_is_in_order_and_says_why_things_wait() {
    let session = after(&[r#"create {"title": "P"}"#]);
    let step = r#""steps": [{"title": "s", "tests": ["t"]}]"#;
    ok(
        &session,
        &format!(r#"create {{"title": "low", "plan": "PLAN-001", "priority": "LOW", {step}}}"#),
    );
    ok(
        &session,
        &format!(r#"create {{"title": "high", "plan": "PLAN-001", "priority": "HIGH", {step}}}"#),
    );
    ok(
        &session,
        &format!(r#"create {{"title": "waits", "plan": "PLAN-001", "depends_on": ["TASK-001"], {step}}}"#),
    );
    ok(&session, r#"create {"title": "empty", "plan": "PLAN-001"}"#);
    let queue = ok(&session, "next {}");
    let tasks = |list: &Value| -> Vec<Value> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["task"].clone())
            .collect()
    };
    assert_eq!(tasks(&queue["ready"]), ["TASK-002", "TASK-001"]);
    assert_eq!(tasks(&queue["blocked"]), ["TASK-003", "TASK-004"]);
    assert_eq!(
        queue["blocked"][0]["waits_for"],
        json!(["TASK-001, which is TODO"])
    );
    ok(
        &session,
        r#"step_claim {"task": "TASK-002", "path": "s:0", "owner": "ada"}"#,
    );
    ok(&session, r#"complete {"task": "TASK-001", "status": "ACTIVE"}"#);
    let queue = ok(&session, "next {}");
    assert_eq!(tasks(&queue["ready"]), ["TASK-001"]);
    assert_eq!(
        queue["blocked"][0]["waits_for"],
        json!(["step s:0, which is leased to ada"])
    );
    assert_eq!(
        tasks(&ok(&session, r#"next {"owner": "ada"}"#)["ready"]),
        ["TASK-001", "TASK-002"]
    );
}

#[test]
fn the_reason_of_a_reopening_is_where_one_looks_first() {
    let session = after(&[
        THREE_STEPS,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
        r#"progress {"task": "TASK-001", "path": "s:0", "completed": false, "reason": "it leaks"}"#,
    ]);
    for line in [
        r#"radar {"task": "TASK-001"}"#,
        "next {}",
        r#"handoff {"task": "TASK-001"}"#,
        r#"handoff {"plan": "PLAN-001"}"#,
        r#"show {"task": "TASK-001"}"#,
        r#"take {"actor": "ann"}"#,
    ] {
        let told = ok(&session, line).to_string();
        assert!(told.contains("it leaks"), "{line}: {told}");
    }
    let risks = ok(&session, r#"handoff {"task": "TASK-001"}"#)["risks"].clone();
    assert_eq!(risks, json!(["s:0 one: reopened: it leaks"]));
    ok(
        &session,
        r#"complete {"task": "TASK-001", "status": "PARKED", "reason": "the vendor is slow"}"#,
    );
    for line in [
        r#"radar {"task": "TASK-001"}"#,
        r#"handoff {"task": "TASK-001"}"#,
        r#"handoff {"plan": "PLAN-001"}"#,
    ] {
        let told = ok(&session, line).to_string();
        assert!(told.contains("the vendor is slow"), "{line}: {told}");
    }
}

#[test]
fn a_focus_that_is_gone_is_said_to_be_the_focus() {
    let session = after(&[
        THREE_STEPS,
        r#"create {"title": "U", "plan": "PLAN-001"}"#,
        r#"focus_set {"task": "TASK-002"}"#,
        "undo {}",
    ]);
    let err = refused(&session, "radar {}");
    assert_eq!(
        err.message,
        "task is missing, and the focus is on TASK-002, which does not exist"
    );
}
