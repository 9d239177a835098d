//! Every lint code, and that its patch mends it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_sdk::NextCall;
use tollgate_sdk::native::Session;

use crate::harness::{after, follow, ok};
use crate::offers::probe;

fn codes(session: &Session, target: &str) -> BTreeSet<String> {
    let lint = ok(session, &format!(r#"lint {{"task": "{target}"}}"#));
    lint["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| issue["code"].as_str().unwrap().to_owned())
        .collect()
}

/// Makes the patch of an issue, after which it is gone.
fn mend(session: &Session, target: &str, code: &str) {
    let lint = ok(session, &format!(r#"lint {{"task": "{target}"}}"#));
    let issue = lint["issues"]
        .as_array()
        .unwrap()
        .iter()
        .find(|issue| issue["code"] == code);
    let issue: &Value = issue.unwrap_or_else(|| panic!("no {code} in {lint:#}"));
    for part in ["severity", "target", "message", "recovery"] {
        assert!(!issue[part].as_str().unwrap().is_empty(), "{issue}");
    }
    follow(session, &serde_json::from_value(issue["patch"].clone()).unwrap());
    assert!(!codes(session, target).contains(code), "{code} stays");
}

/// The call of an issue, which shows what to write or to decide, and changes nothing.
fn looked_at(session: &Session, target: &str, code: &str) {
    let lint = ok(session, &format!(r#"lint {{"task": "{target}"}}"#));
    let issues = lint["issues"].as_array().unwrap().iter();
    let issue = issues.into_iter().find(|issue| issue["code"] == code);
    let call: NextCall = serde_json::from_value(issue.unwrap()["patch"].clone()).unwrap();
    assert_eq!(call.tool, "tasks_show", "{code}");
    follow(session, &call);
}

/// The calls of all issues of all plans and tasks: each is accepted.
fn refused_patches(session: &Session) -> Vec<String> {
    let mut faults = Vec::new();
    for row in session.sql("SELECT id FROM tasks_roots WHERE status IS NOT NULL") {
        let target: String = row.get(0).unwrap();
        let lint = ok(session, &format!(r#"lint {{"task": "{target}"}}"#));
        let patches = lint["issues"].as_array().unwrap().iter();
        let calls: Vec<Value> = patches.map(|issue| issue["patch"].clone()).collect();
        faults.extend(probe(session, &json!({"next_calls": calls})));
    }
    faults
}

/// The findings: calls that were refused, unsafe, or wrote placeholders.
#[test]
fn the_calls_of_lint_are_accepted_and_take_nothing_from_others() {
    let session = after(&[
        r#"create {"title": "P"}"#,
        r#"create {"title": "a", "plan": "PLAN-001", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]}"#,
        r#"create {"title": "b", "plan": "PLAN-001", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]}"#,
        r#"create {"title": "Q"}"#,
        r#"complete {"task": "PLAN-002", "status": "CANCELED"}"#,
    ]);
    assert!(
        codes(&session, "PLAN-002").is_empty(),
        "a canceled plan needs no task"
    );
    // ACTIVE without an open step, but not confirmed.
    ok(
        &session,
        r#"progress {"task": "TASK-001", "path": "s:0", "completed": true, "force": true, "reason": "r"}"#,
    );
    assert!(codes(&session, "TASK-001").contains("ACTIVE_NO_OPEN_STEPS"));
    assert_eq!(refused_patches(&session), Vec::<String>::new());
    // A forced step that somebody holds again, with evidence.
    ok(
        &session,
        r#"evidence_capture {"task": "TASK-001", "path": "s:0", "checks": ["cargo test"], "checkpoint": "perf"}"#,
    );
    session.sql(
        "INSERT INTO tasks_records (workspace, kind, id, root, parent, position, ordinal, status, body) \
         SELECT workspace, 'lease', id, root, id, 0, 0, '', '{\"step\":\"' || id || '\",\"task\":\"' || root || \
             '\",\"owner\":\"ann\",\"expires_after\":1000,\"claimed_at\":\"' || json_extract(body, '$.created_at') || '\"}' \
         FROM tasks_records WHERE kind = 'step' AND root = 'TASK-001'",
    );
    assert_eq!(refused_patches(&session), Vec::<String>::new());
    // Where evidence is required, nothing typed confirms.
    let session = session.config(&json!({"evidence": "required"}));
    assert_eq!(refused_patches(&session), Vec::<String>::new());
    // A dependency that was added later.
    let session = session.config(&json!({}));
    depend(&session, "TASK-001", "TASK-002");
    assert_eq!(refused_patches(&session), Vec::<String>::new());
}

#[test]
fn lint_parks_no_work_of_others() {
    let session = after(&[r#"create {"title": "P"}"#]);
    for task in 1..=4 {
        let create = r#"{"title": "t", "plan": "PLAN-001", "steps": [{"title": "s"}, {"title": "r"}]}"#;
        ok(&session, &format!("create {create}"));
        ok(
            &session,
            &format!(r#"complete {{"task": "TASK-00{task}", "status": "ACTIVE"}}"#),
        );
    }
    let parks = |target: &str| {
        let lint = ok(&session, &format!(r#"lint {{"task": "{target}"}}"#));
        let issues = lint["issues"].as_array().unwrap().iter();
        let issue = issues
            .into_iter()
            .find(|issue| issue["code"] == "ACTIVE_LIMIT_EXCEEDED");
        issue.unwrap()["patch"]["arguments"]["task"].clone()
    };
    assert_eq!(parks("PLAN-001"), "TASK-001");
    assert_eq!(parks("TASK-004"), "TASK-004", "others are not its business");
    for task in [1, 4] {
        ok(
            &session,
            &format!(r#"step_claim {{"task": "TASK-00{task}", "path": "s:0", "actor": "ann"}}"#),
        );
    }
    assert_eq!(parks("PLAN-001"), "TASK-002", "ann works on the first");
    assert_eq!(parks("TASK-004"), json!(null), "ann works on it");
    assert_eq!(refused_patches(&session), Vec::<String>::new());
}

#[test]
fn what_a_task_lacks() {
    let session = after(&[r#"create {"title": "P"}"#]);
    looked_at(&session, "PLAN-001", "EMPTY_PLAN");
    ok(&session, r#"create {"title": "T", "plan": "PLAN-001"}"#);
    looked_at(&session, "TASK-001", "NO_STEPS");
    ok(
        &session,
        r#"decompose {"task": "TASK-001", "steps": [{"title": "one", "success_criteria": ["c"], "tests": ["t"]}, {"title": "bare"}]}"#,
    );
    ok(&session, r#"block {"task": "TASK-001", "path": "s:1"}"#);
    let found: Vec<String> = codes(&session, "PLAN-001").into_iter().collect();
    assert_eq!(found, ["BLOCKED_STEPS", "MISSING_CRITERIA", "MISSING_TESTS"]);
    for code in found {
        looked_at(&session, "TASK-001", &code);
    }
    ok(
        &session,
        r#"define {"task": "TASK-001", "path": "s:1", "success_criteria": ["c"], "tests": ["t"]}"#,
    );
    ok(
        &session,
        r#"block {"task": "TASK-001", "path": "s:1", "blocked": false}"#,
    );
    ok(
        &session,
        r#"progress {"task": "TASK-001", "path": "s:1", "completed": true, "force": true, "reason": "r"}"#,
    );
    assert_eq!(ok(&session, r#"lint {"task": "TASK-001"}"#)["ok"], false);
    // Nobody showed anything, so there is something to look at and nothing to confirm.
    looked_at(&session, "TASK-001", "UNCONFIRMED_DONE");
    ok(
        &session,
        r#"evidence_capture {"task": "TASK-001", "path": "s:1", "checks": ["cargo test"], "checkpoint": "tests"}"#,
    );
    mend(&session, "TASK-001", "UNCONFIRMED_DONE");
    ok(
        &session,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
    );
    mend(&session, "TASK-001", "ACTIVE_NO_OPEN_STEPS");
    assert!(codes(&session, "PLAN-001").is_empty());
}

/// Makes a task depend on another one, past all rules.
fn depend(session: &Session, task: &str, on: &str) {
    session.sql(&format!(
        "UPDATE tasks_records SET body = replace(body, '\"created_at\"', '\"depends_on\":[\"{on}\"],\"created_at\"') \
         WHERE id = '{task}'"
    ));
}

/// Sets the status of a plan or task, past all rules.
fn set_status(session: &Session, id: &str, from: &str, to: &str) {
    session.sql(&format!(
        "UPDATE tasks_records SET status = '{to}', \
         body = replace(body, '\"status\":\"{from}\"', '\"status\":\"{to}\"') WHERE id = '{id}'"
    ));
    session.sql(&format!(
        "UPDATE tasks_roots SET status = '{to}' WHERE id = '{id}'"
    ));
}

/// A plan with two tasks of one step each.
fn two() -> Session {
    after(&[
        r#"create {"title": "P"}"#,
        r#"create {"title": "a", "plan": "PLAN-001", "steps": [{"title": "s", "tests": ["t"]}]}"#,
        r#"create {"title": "b", "plan": "PLAN-001", "steps": [{"title": "s", "tests": ["t"]}]}"#,
    ])
}

#[test]
fn what_earlier_versions_left_between_plans_and_tasks() {
    for target in ["PLAN-001", "TASK-001"] {
        let session = two();
        set_status(&session, "PLAN-001", "TODO", "DONE");
        assert_eq!(
            ok(&session, &format!(r#"lint {{"task": "{target}"}}"#))["ok"],
            false
        );
        mend(&session, target, "FINISHED_PLAN_OPEN_TASKS");
    }
    let session = two();
    depend(&session, "TASK-002", "TASK-001");
    set_status(&session, "TASK-002", "TODO", "ACTIVE");
    mend(&session, "TASK-002", "ACTIVE_OVER_OPEN_DEPENDENCY");
    set_status(&session, "TASK-002", "TODO", "DONE");
    mend(&session, "TASK-002", "DONE_OVER_OPEN_DEPENDENCY");
    // Work that is DONE in a finished plan is reopened after the plan, and both calls are accepted.
    set_status(&session, "TASK-002", "TODO", "DONE");
    set_status(&session, "PLAN-001", "TODO", "CANCELED");
    mend(&session, "PLAN-001", "FINISHED_PLAN_OPEN_TASKS");
    mend(&session, "PLAN-001", "DONE_OVER_OPEN_DEPENDENCY");
    // In a circle nothing can be reopened first.
    depend(&session, "TASK-001", "TASK-002");
    for task in ["TASK-001", "TASK-002"] {
        set_status(&session, task, "TODO", "DONE");
    }
    mend(&session, "PLAN-001", "DEPENDENCY_CYCLE");
}

#[test]
fn what_earlier_versions_left_inside_tasks() {
    let session = two();
    set_status(&session, "TASK-001", "TODO", "DONE");
    mend(&session, "TASK-001", "DONE_WITH_OPEN_STEPS");
    ok(
        &session,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
    );
    let kept = ok(
        &session,
        r#"evidence_capture {"task": "TASK-001", "path": "s:0", "checkpoint": "perf", "checks": ["c"]}"#,
    );
    assert_eq!(kept["warnings"][0]["code"], "CHECKPOINT_REQUIRED");
    session.sql("UPDATE tasks_records SET status = 'done', body = replace(body, '\"required\":[\"perf\"],', '') WHERE kind = 'step'");
    mend(&session, "TASK-001", "UNCONFIRMED_EVIDENCE");
    ok(
        &session,
        r#"task_add {"task": "TASK-002", "parent_step": "s:0", "title": "n"}"#,
    );
    session.sql(
        "UPDATE tasks_records SET status = 'done', \
         body = replace(body, '\"created_at\"', '\"completed_at\":\"2026-01-01T00:00:00.000Z\",\"created_at\"') \
         WHERE kind = 'step' AND root = 'TASK-002'",
    );
    mend(&session, "TASK-002", "CLOSED_OVER_OPEN");
}

#[test]
fn what_goes_wrong_between_tasks() {
    let session = after(&[r#"create {"title": "P"}"#]);
    for title in ["a", "b", "c", "d"] {
        let steps = r#""steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]"#;
        ok(
            &session,
            &format!(r#"create {{"title": "{title}", "plan": "PLAN-001", {steps}}}"#),
        );
    }
    // Data of earlier versions can have a circle.
    ok(
        &session,
        r#"edit {"task": "TASK-002", "depends_on": ["TASK-001"]}"#,
    );
    depend(&session, "TASK-001", "TASK-002");
    mend(&session, "TASK-001", "DEPENDENCY_CYCLE");
    ok(&session, r#"delete {"task": "TASK-003"}"#);
    depend(&session, "TASK-001", "TASK-003");
    mend(&session, "TASK-001", "ORPHAN_DEPENDENCY");
    ok(&session, r#"edit {"task": "TASK-002", "depends_on": []}"#);
    ok(&session, r#"create {"title": "e", "plan": "PLAN-001"}"#);
    for task in ["TASK-002", "TASK-001", "TASK-004", "TASK-005"] {
        assert!(!codes(&session, "PLAN-001").contains("ACTIVE_LIMIT_EXCEEDED"));
        ok(
            &session,
            &format!(r#"complete {{"task": "{task}", "status": "ACTIVE"}}"#),
        );
    }
    let lint = ok(&session, r#"lint {"task": "PLAN-001"}"#);
    let issues = lint["issues"].as_array().unwrap();
    let park = issues
        .iter()
        .find(|issue| issue["code"] == "ACTIVE_LIMIT_EXCEEDED");
    assert_eq!(
        park.unwrap()["target"],
        "TASK-002",
        "nobody touched it for longest"
    );
    mend(&session, "PLAN-001", "ACTIVE_LIMIT_EXCEEDED");
    session.advance_ms(15 * 24 * 60 * 60 * 1000);
    mend(&session, "TASK-001", "STALE_TASK");
    ok(&session, r#"complete {"task": "TASK-004", "status": "CANCELED"}"#);
    session.advance_ms(15 * 24 * 60 * 60 * 1000);
    assert!(!codes(&session, "TASK-004").contains("STALE_TASK"));
    ok(
        &session,
        r#"plan {"plan": "PLAN-001", "steps": ["x", "y"], "current": 2}"#,
    );
    ok(
        &session,
        r#"patch {"task": "PLAN-001", "kind": "task_detail", "ops": [{"op": "remove", "field": "steps", "value": "y"}]}"#,
    );
    mend(&session, "PLAN-001", "CHECKLIST_INDEX_OUT_OF_RANGE");
}
