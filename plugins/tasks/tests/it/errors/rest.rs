//! Errors in the call itself, and errors of leases, journal, bounds and batches.

use serde_json::{Value, json};

use super::state::T1;
use super::{Row, after_some, row};

pub(super) fn the_rest() -> Vec<Row> {
    const HELD: &[&str] = &[r#"step_claim {"task": "TASK-001", "path": "s:1", "owner": "ada"}"#];
    let bob = |more: Value| {
        let mut arguments = json!({"task": T1, "path": "s:1", "owner": "bob"});
        for (name, value) in more.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        arguments
    };
    let note = json!({"tool": "tasks_note", "args": {"task": T1, "note": "n"}});
    let open = json!({"tool": "tasks_done", "args": {"task": T1, "path": "s:1"}});
    let nested = json!({"tool": "tasks_batch", "args": {"operations": [note]}});
    let delete = json!({"tool": "tasks_delete", "args": {"task": "TASK-003"}});
    vec![
        after_some(HELD, "STEP_LEASE_HELD", "step_claim", bob(json!({}))),
        after_some(HELD, "STEP_LEASE_HELD", "step_renew", bob(json!({}))),
        after_some(HELD, "STEP_LEASE_HELD", "step_release", bob(json!({}))),
        after_some(
            HELD,
            "STEP_LEASE_HELD",
            "verify",
            bob(json!({"checkpoints": "gate"})),
        ),
        after_some(
            HELD,
            "STEP_LEASE_HELD",
            "close_step",
            bob(json!({"checkpoints": "gate"})),
        ),
        after_some(
            HELD,
            "STEP_LEASE_HELD",
            "progress",
            bob(json!({"completed": false})),
        ),
        row("STEP_LEASE_NOT_HELD", "step_renew", bob(json!({}))),
        row("STEP_LEASE_NOT_HELD", "step_release", bob(json!({}))),
        after_some(
            HELD,
            "INVALID_ARGUMENTS",
            "step_claim",
            bob(json!({"force": true})),
        ),
        row("NOTHING_TO_REDO", "redo", json!({})),
        row("NOTHING_TO_REDO", "redo", json!({"task": T1})),
        after_some(
            &[r#"delete {"task": "TASK-003"}"#],
            "NOTHING_TO_UNDO",
            "undo",
            json!({"task": "TASK-003"}),
        ),
        after_some(
            &[r#"undo {"task": "TASK-001"}"#],
            "UNDO_CONFLICT",
            "undo",
            json!({"task": T1}),
        ),
        row(
            "EVIDENCE_TOO_LARGE",
            "evidence_capture",
            json!({"task": T1, "checks": vec!["c"; 21]}),
        ),
        row(
            "EVIDENCE_TOO_LARGE",
            "evidence_capture",
            json!({"task": T1, "items": [{"kind": "diff", "body": "x".repeat(256_001)}]}),
        ),
        row("BUDGET_TOO_SMALL", "radar", json!({"task": T1, "max_chars": 1})),
        row("BUDGET_TOO_SMALL", "delta", json!({"max_chars": i64::MIN})),
        row(
            "BATCH_FAILED",
            "batch",
            json!({"operations": [note, open], "atomic": true}),
        ),
        row(
            "BATCH_FAILED",
            "batch",
            json!({"operations": [note, nested], "atomic": false}),
        ),
        row(
            "BATCH_FAILED",
            "batch",
            json!({"operations": [note, nested], "atomic": true}),
        ),
        row(
            "BATCH_FAILED",
            "batch",
            json!({"operations": [note, delete], "atomic": true}),
        ),
    ]
}

pub(super) fn bad_arguments() -> Vec<Row> {
    let many: Vec<Value> = (0..10_000).map(|n| json!({"title": format!("s{n}")})).collect();
    let gated: Vec<Value> = (0..10_000)
        .map(|n| json!({"title": format!("s{n}"), "success_criteria": ["c"], "tests": ["t"]}))
        .collect();
    let megabyte = "x".repeat(1_000_000);
    let invalid = |tool, arguments| row("INVALID_ARGUMENTS", tool, arguments);
    vec![
        invalid("decompose", json!({"task": T1, "steps": many})),
        invalid("create", json!({"title": "t", "plan": "PLAN-001", "steps": many})),
        invalid(
            "bootstrap",
            json!({"plan_title": "p", "task_title": "t", "steps": gated}),
        ),
        invalid("note", json!({"task": T1, "note": megabyte})),
        invalid("note", json!({"task": T1, "note": "a\u{0}b"})),
        invalid(
            "edit",
            json!({"task": T1, "title": "a\u{1b}[0m", "description": megabyte}),
        ),
        invalid(
            "define",
            json!({"task": T1, "path": "s:0", "success_criteria": ["\u{7f}"]}),
        ),
        invalid("block", json!({"task": T1, "path": "s:0", "reason": "\u{9b}"})),
        invalid(
            "verify",
            json!({"task": T1, "path": "s:0", "checkpoints": {"tests": {"confirmed": true, "note": "\u{0}"}}}),
        ),
        invalid(
            "step_claim",
            json!({"task": T1, "path": "s:0", "owner": "\n", "events": 0}),
        ),
        invalid("done", json!({"task": T1, "path": "s:4294967296"})),
        invalid("done", json!({"task": T1, "path": "s:0.s:99999999999999999999"})),
        invalid("done", json!({"task": T1, "path": "s:-1"})),
        invalid("done", json!({"task": T1, "path": "s:0.t:0"})),
        invalid("task_define", json!({"task": T1, "path": "s:0", "title": "x"})),
        invalid(
            "mirror",
            json!({"task": T1, "path": "s:0.s:0.s:0.s:0.s:0.s:0.s:0.s:0.s:0"}),
        ),
        invalid("radar", json!({"plan": T1})),
        invalid("next", json!({"plan": T1})),
        invalid("context", json!({"plan": T1})),
        invalid("plan", json!({"plan": T1, "steps": ["x"]})),
        invalid("done", json!({"task": "PLAN-001", "path": "s:0"})),
        invalid(
            "edit",
            json!({"task": T1, "depends_on": ["TASK-003", "TASK-003"]}),
        ),
        invalid("edit", json!({"task": T1, "depends_on": ["PLAN-002"]})),
        invalid("edit", json!({"task": T1, "contract": "x"})),
        invalid("plan", json!({"plan": "PLAN-001", "current": usize::MAX})),
        invalid(
            "progress",
            json!({"task": T1, "path": "s:0", "completed": true, "force": true}),
        ),
        invalid("delta", json!({"cursor": -1, "limit": 0})),
        invalid("batch", json!({"operations": []})),
        invalid("undo", json!({"expected_revision": 1})),
        invalid("note", json!({"note": "n"})),
        invalid(
            "template_save",
            json!({"name": "t", "kind": "task", "description": "d", "steps": []}),
        ),
    ]
}
