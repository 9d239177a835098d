//! Every lint code, and that its patch mends it.

use std::collections::BTreeSet;

use serde_json::Value;
use tollgate_sdk::native::Session;

use crate::harness::{after, follow, ok};

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

#[test]
fn what_a_task_lacks() {
    let session = after(&[r#"create {"title": "P"}"#]);
    mend(&session, "PLAN-001", "EMPTY_PLAN");
    mend(&session, "TASK-001", "NO_STEPS");
    ok(
        &session,
        r#"decompose {"task": "TASK-001", "steps": [{"title": "bare"}]}"#,
    );
    ok(&session, r#"block {"task": "TASK-001", "path": "s:1"}"#);
    let found: Vec<String> = codes(&session, "PLAN-001").into_iter().collect();
    assert_eq!(found, ["BLOCKED_STEPS", "MISSING_CRITERIA", "MISSING_TESTS"]);
    for code in found {
        mend(&session, "TASK-001", &code);
    }
    ok(
        &session,
        r#"progress {"task": "TASK-001", "path": "s:1", "completed": true, "force": true, "reason": "r"}"#,
    );
    assert_eq!(ok(&session, r#"lint {"task": "TASK-001"}"#)["ok"], false);
    mend(&session, "TASK-001", "UNCONFIRMED_DONE");
    ok(
        &session,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
    );
    mend(&session, "TASK-001", "ACTIVE_NO_OPEN_STEPS");
    assert!(codes(&session, "PLAN-001").is_empty());
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
    // A circle cannot be written, but redo can bring one about.
    ok(
        &session,
        r#"edit {"task": "TASK-001", "depends_on": ["TASK-002"]}"#,
    );
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    ok(
        &session,
        r#"edit {"task": "TASK-002", "depends_on": ["TASK-001"]}"#,
    );
    ok(&session, r#"redo {"task": "TASK-001"}"#);
    mend(&session, "TASK-001", "DEPENDENCY_CYCLE");
    ok(
        &session,
        r#"edit {"task": "TASK-001", "depends_on": ["TASK-003"]}"#,
    );
    ok(&session, r#"delete {"task": "TASK-003"}"#);
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
