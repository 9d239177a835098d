//! Errors that depend on stored state: targets, revisions, gates.

use serde_json::json;

use super::{Row, after_some, row};

pub(super) const T1: &str = "TASK-001";

pub(super) fn targets() -> Vec<Row> {
    vec![
        row(
            "NOT_FOUND",
            "radar",
            json!({"workspace": "elsewhere", "task": T1}),
        ),
        row(
            "NOT_FOUND",
            "note",
            json!({"workspace": "elsewhere", "task": T1, "note": "n"}),
        ),
        row("NOT_FOUND", "undo", json!({"workspace": "elsewhere"})),
        row("NOT_FOUND", "radar", json!({"task": "TASK-099"})),
        row("NOT_FOUND", "delta", json!({"task": "TASK-099"})),
        row("NOT_FOUND", "history", json!({"task": "TASK-099"})),
        row("NOT_FOUND", "undo", json!({"task": "TASK-099"})),
        row("NOT_FOUND", "redo", json!({"task": "TASK-099"})),
        row("NOT_FOUND", "context", json!({"plan": "PLAN-099"})),
        row("NOT_FOUND", "next", json!({"plan": "PLAN-099"})),
        row("NOT_FOUND", "focus_set", json!({"task": "TASK-099"})),
        row("NOT_FOUND", "create", json!({"title": "x", "plan": "PLAN-099"})),
        row("NOT_FOUND", "done", json!({"task": T1, "path": "s:3"})),
        row("NOT_FOUND", "done", json!({"task": T1, "path": "s:4294967295"})),
        row(
            "NOT_FOUND",
            "done",
            json!({"task": "TASK-002", "step_id": "STEP-00000001"}),
        ),
        row("NOT_FOUND", "task_delete", json!({"task": T1, "path": "s:0.t:1"})),
        row(
            "NOT_FOUND",
            "task_delete",
            json!({"task": T1, "path": "s:0.t:4294967295"}),
        ),
        row("NOT_FOUND", "mirror", json!({"task": T1, "path": "s:9"})),
        row("NOT_FOUND", "scaffold", json!({"template": "none", "title": "x"})),
        row(
            "NOT_FOUND",
            "edit",
            json!({"task": T1, "depends_on": ["TASK-099"]}),
        ),
        row(
            "TARGET_MISMATCH",
            "radar",
            json!({"task": T1, "plan": "PLAN-002"}),
        ),
        row(
            "TARGET_MISMATCH",
            "done",
            json!({"task": T1, "path": "s:1", "step_id": "STEP-00000001"}),
        ),
        row(
            "TARGET_MISMATCH",
            "verify",
            json!({"task": T1, "path": "s:0", "expected_target_id": "STEP-00000002", "checkpoints": "gate"}),
        ),
        row(
            "TARGET_MISMATCH",
            "complete",
            json!({"task": T1, "expected_target_id": "TASK-002"}),
        ),
        row(
            "TARGET_MISMATCH",
            "close_task",
            json!({"task": T1, "expected_target_id": "TASK-002"}),
        ),
        row(
            "TARGET_MISMATCH",
            "plan",
            json!({"plan": "PLAN-001", "steps": ["x"], "expected_target_id": "PLAN-002"}),
        ),
        row(
            "TARGET_MISMATCH",
            "contract",
            json!({"plan": "PLAN-001", "current": "x", "expected_target_id": "PLAN-002"}),
        ),
        row(
            "TARGET_MISMATCH",
            "step_claim",
            json!({"task": T1, "path": "s:0", "owner": "a", "expected_target_id": "STEP-00000002"}),
        ),
        row(
            "TARGET_MISMATCH",
            "note",
            json!({"task": T1, "note": "n", "expected_target_id": "TASK-002"}),
        ),
        row(
            "TARGET_MISMATCH",
            "evidence_capture",
            json!({"task": T1, "checks": ["c"], "expected_target_id": "STEP-00000001"}),
        ),
        row(
            "TARGET_MISMATCH",
            "task_add",
            json!({"task": T1, "parent_step": "s:0", "title": "n", "expected_target_id": "STEP-00000002"}),
        ),
        row(
            "TARGET_MISMATCH",
            "patch",
            json!({"task": T1, "kind": "step", "path": "s:0", "expected_target_id": "STEP-00000002", "ops": [{"op": "set", "field": "title", "value": "x"}]}),
        ),
        row(
            "TARGET_MISMATCH",
            "task_define",
            json!({"task": T1, "path": "s:0.t:0", "expected_target_id": "NODE-00000001", "title": "x"}),
        ),
        after_some(
            &[
                r#"decompose {"task": "TASK-001", "path": "s:1", "steps": [{"title": "below"}]}"#,
                r#"block {"task": "TASK-001", "path": "s:1.s:0"}"#,
            ],
            "CHILDREN_OPEN",
            "close_step",
            json!({"task": T1, "path": "s:1", "checkpoints": "gate"}),
        ),
        row(
            "REVISION_MISMATCH",
            "note",
            json!({"task": T1, "note": "n", "expected_revision": 1}),
        ),
        row(
            "REVISION_MISMATCH",
            "create",
            json!({"title": "x", "plan": "PLAN-001", "expected_revision": 1}),
        ),
        row(
            "REVISION_MISMATCH",
            "undo",
            json!({"task": T1, "expected_revision": 1}),
        ),
    ]
}

pub(super) fn gates() -> Vec<Row> {
    let gate = json!({"task": T1, "path": "s:1", "checkpoints": "gate"});
    let denied = json!({"criteria": {"confirmed": false}, "tests": {"confirmed": true}});
    vec![
        row(
            "CHECKPOINTS_NOT_CONFIRMED",
            "done",
            json!({"task": T1, "path": "s:1"}),
        ),
        row(
            "CHECKPOINTS_NOT_CONFIRMED",
            "progress",
            json!({"task": T1, "path": "s:1", "completed": true}),
        ),
        row(
            "CHECKPOINTS_NOT_CONFIRMED",
            "close_step",
            json!({"task": T1, "path": "s:1", "checkpoints": denied}),
        ),
        after_some(
            &[r#"verify {"task": "TASK-001", "path": "s:1", "checkpoints": "gate"}"#],
            "CHECKPOINTS_NOT_CONFIRMED",
            "close_step",
            json!({"task": T1, "path": "s:1", "checkpoints": {"criteria": {"confirmed": false}}}),
        ),
        row(
            "CHILDREN_OPEN",
            "close_step",
            json!({"task": T1, "path": "s:0", "checkpoints": "gate"}),
        ),
        row(
            "CHILDREN_OPEN",
            "progress",
            json!({"task": T1, "path": "s:0", "completed": true, "force": true, "reason": "r"}),
        ),
        row("CHILDREN_OPEN", "complete", json!({"task": T1})),
        row("CHILDREN_OPEN", "close_task", json!({"task": T1, "apply": true})),
        row("CHILDREN_OPEN", "complete", json!({"task": "PLAN-001"})),
        after_some(
            &[r#"block {"task": "TASK-001", "path": "s:1"}"#],
            "STEP_BLOCKED",
            "close_step",
            gate.clone(),
        ),
        after_some(
            &[r#"block {"task": "TASK-001", "path": "s:1"}"#],
            "STEP_BLOCKED",
            "progress",
            json!({"task": T1, "path": "s:1", "completed": true, "force": true, "reason": "r"}),
        ),
        after_some(
            &[r#"close_step {"task": "TASK-001", "path": "s:1", "checkpoints": "gate"}"#],
            "STEP_CLOSED",
            "block",
            json!({"task": T1, "path": "s:1"}),
        ),
        after_some(
            &[r#"close_step {"task": "TASK-001", "path": "s:1", "checkpoints": "gate"}"#],
            "STEP_CLOSED",
            "verify",
            json!({"task": T1, "path": "s:1", "checkpoints": {"tests": {"confirmed": false}}}),
        ),
        after_some(
            &[r#"complete {"task": "TASK-001", "status": "CANCELED"}"#],
            "NOT_OPEN",
            "decompose",
            json!({"task": T1, "steps": [{"title": "s"}]}),
        ),
        after_some(
            &[r#"complete {"task": "TASK-001", "status": "PARKED"}"#],
            "NOT_OPEN",
            "verify",
            gate,
        ),
        row(
            "DEPENDENCY_OPEN",
            "complete",
            json!({"task": "TASK-003", "allow_empty": true}),
        ),
        row(
            "DEPENDENCY_OPEN",
            "complete",
            json!({"task": "TASK-002", "status": "ACTIVE"}),
        ),
        row(
            "DEPENDENCY_OPEN",
            "close_step",
            json!({"task": "TASK-002", "path": "s:0", "checkpoints": "gate"}),
        ),
        row(
            "DEPENDENCY_OPEN",
            "complete",
            json!({"task": "PLAN-002", "status": "ACTIVE"}),
        ),
        after_some(
            &[r#"edit {"task": "TASK-003", "depends_on": []}"#],
            "NO_STEPS",
            "complete",
            json!({"task": "TASK-003"}),
        ),
        row(
            "DEPENDENCY_CYCLE",
            "edit",
            json!({"task": T1, "depends_on": [T1]}),
        ),
        row(
            "DEPENDENCY_CYCLE",
            "edit",
            json!({"task": T1, "depends_on": ["TASK-003"]}),
        ),
        row(
            "DEPENDENCY_CYCLE",
            "edit",
            json!({"task": "PLAN-001", "depends_on": ["PLAN-002"]}),
        ),
        row(
            "DEPENDENCY_CYCLE",
            "patch",
            json!({"task": T1, "kind": "task_detail", "ops": [{"op": "append", "field": "depends_on", "value": "TASK-002"}]}),
        ),
        row(
            "CHILDREN_OPEN",
            "close_task",
            json!({"task": T1, "patches": [{"kind": "task_detail", "ops": [{"op": "set", "field": "depends_on", "value": ["TASK-003"]}]}]}),
        ),
    ]
}
