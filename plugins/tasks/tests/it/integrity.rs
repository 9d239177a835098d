//! States that no operation leads to: undo, redo and direct calls keep the same rules.

use serde_json::{Value, json};
use tollgate_sdk::native::Session;
use tollgate_sdk::{NextCall, ToolError};

use crate::harness::{after, follow, ok, refused};

/// A plan with two tasks of one step each.
const TWO_TASKS: [&str; 3] = [
    r#"create {"title": "P"}"#,
    r#"create {"title": "a", "plan": "PLAN-001", "steps": [{"title": "s", "tests": ["t"]}]}"#,
    r#"create {"title": "b", "plan": "PLAN-001", "steps": [{"title": "s", "tests": ["t"]}]}"#,
];

fn finish(session: &Session, task: &str) {
    ok(
        session,
        &format!(r#"close_step {{"task": "{task}", "path": "s:0", "checkpoints": "gate"}}"#),
    );
    ok(session, &format!(r#"complete {{"task": "{task}"}}"#));
}

/// Makes a task depend on others only.
fn depend(session: &Session, task: &str, on: &[&str]) {
    ok(
        session,
        &format!(r#"edit {{"task": "{task}", "depends_on": {}}}"#, json!(on)),
    );
}

fn status(session: &Session, id: &str) -> Value {
    ok(session, &format!(r#"mirror {{"task": "{id}"}}"#))["status"].clone()
}

/// The codes and messages of a refusal. Its first call has to be accepted.
fn reasons(err: &ToolError) -> Vec<(String, String)> {
    assert!(err.next_call.is_some(), "{err:?}");
    err.blockers
        .iter()
        .map(|blocker| (blocker.code.clone(), blocker.message.clone()))
        .collect()
}

fn reason(code: &str, message: &str) -> (String, String) {
    (code.to_owned(), message.to_owned())
}

/// A plan that was completed, undone, and whose task was reopened then.
#[test]
fn redo_does_not_finish_a_plan_over_an_open_task() {
    let session = after(&TWO_TASKS);
    finish(&session, "TASK-001");
    finish(&session, "TASK-002");
    ok(&session, r#"complete {"task": "PLAN-001"}"#);
    ok(&session, r#"undo {"task": "PLAN-001"}"#);
    for task in ["TASK-001", "TASK-002"] {
        ok(
            &session,
            &format!(r#"progress {{"task": "{task}", "path": "s:0", "completed": false}}"#),
        );
    }
    let err = refused(&session, r#"redo {"task": "PLAN-001"}"#);
    assert_eq!(
        reasons(&err),
        [
            reason("CHILDREN_OPEN", "PLAN-001 has an open child: TASK-001 is ACTIVE"),
            reason("CHILDREN_OPEN", "PLAN-001 has an open child: TASK-002 is ACTIVE"),
        ]
    );
    follow(&session, &err.next_call.unwrap());
    assert_eq!(status(&session, "PLAN-001"), "TODO");
    finish(&session, "TASK-001");
    finish(&session, "TASK-002");
    ok(&session, r#"redo {"task": "PLAN-001"}"#);
    assert_eq!(status(&session, "PLAN-001"), "DONE");
}

#[test]
fn undo_does_not_finish_a_plan_over_an_open_task() {
    let session = after(&TWO_TASKS);
    finish(&session, "TASK-001");
    finish(&session, "TASK-002");
    ok(&session, r#"complete {"task": "PLAN-001"}"#);
    ok(&session, r#"complete {"task": "PLAN-001", "status": "ACTIVE"}"#);
    ok(&session, r#"complete {"task": "TASK-001", "status": "ACTIVE"}"#);
    let err = refused(&session, r#"undo {"task": "PLAN-001"}"#);
    assert_eq!(err.code, "CHILDREN_OPEN");
    follow(&session, &err.next_call.unwrap());
    assert_eq!(status(&session, "PLAN-001"), "ACTIVE");
}

/// The plan or task that the suggested call of a refusal shows.
fn shown(session: &Session, err: &ToolError) -> String {
    let call = err.next_call.as_ref().unwrap();
    assert_eq!(call.tool, "tasks_show", "{err:?}");
    follow(session, call)["task"].as_str().unwrap().to_owned()
}

#[test]
fn redo_and_undo_make_no_circle() {
    let session = after(&TWO_TASKS);
    depend(&session, "TASK-001", &["TASK-002"]);
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    depend(&session, "TASK-002", &["TASK-001"]);
    let err = refused(&session, r#"redo {"task": "TASK-001"}"#);
    assert_eq!(err.code, "DEPENDENCY_CYCLE");
    assert_eq!(err.context["cycle"], json!(["TASK-001", "TASK-002", "TASK-001"]));
    // The call shows the task whose dependency is there, and takes nothing back.
    assert_eq!(shown(&session, &err), "TASK-002");
    depend(&session, "TASK-002", &[]);
    ok(&session, r#"redo {"task": "TASK-001"}"#);

    let session = after(&TWO_TASKS);
    depend(&session, "TASK-001", &["TASK-002"]);
    depend(&session, "TASK-001", &[]);
    depend(&session, "TASK-002", &["TASK-001"]);
    let err = refused(&session, r#"undo {"task": "TASK-001"}"#);
    assert_eq!(err.code, "DEPENDENCY_CYCLE");
    assert_eq!(shown(&session, &err), "TASK-002");
    depend(&session, "TASK-002", &[]);
    ok(&session, r#"undo {"task": "TASK-001"}"#);
}

#[test]
fn redo_makes_nothing_depend_on_what_is_gone() {
    let session = after(&TWO_TASKS);
    depend(&session, "TASK-001", &["TASK-002"]);
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    ok(&session, r#"delete {"task": "TASK-002"}"#);
    let err = refused(&session, r#"redo {"task": "TASK-001"}"#);
    assert_eq!(
        reasons(&err),
        [reason(
            "DEPENDENCY_MISSING",
            "TASK-001 depends on TASK-002, which would no longer exist"
        )]
    );
    follow(&session, &err.next_call.unwrap());
}

#[test]
fn undo_and_delete_leave_nothing_that_depends_on_what_is_gone() {
    let session = after(&TWO_TASKS);
    depend(&session, "TASK-001", &["TASK-002"]);
    for call in [r#"undo {"task": "TASK-002"}"#, r#"delete {"task": "TASK-002"}"#] {
        let err = refused(&session, call);
        assert_eq!(err.code, "DEPENDENCY_MISSING", "{call}");
        assert_eq!(shown(&session, &err), "TASK-001");
    }
    depend(&session, "TASK-001", &[]);
    ok(&session, r#"delete {"task": "TASK-002"}"#);
    // A plan with both goes as a whole.
    ok(
        &session,
        r#"create {"title": "c", "plan": "PLAN-001", "depends_on": ["TASK-001"]}"#,
    );
    ok(&session, r#"delete {"task": "PLAN-001"}"#);
}

#[test]
fn redo_makes_no_task_done_or_active_over_an_open_dependency() {
    let session = after(&TWO_TASKS);
    depend(&session, "TASK-002", &["TASK-001"]);
    finish(&session, "TASK-001");
    finish(&session, "TASK-002");
    ok(&session, r#"undo {"task": "TASK-002"}"#);
    let reopen = r#"progress {"task": "TASK-001", "path": "s:0", "completed": false}"#;
    ok(&session, reopen);
    let open = [reason(
        "DEPENDENCY_OPEN",
        "TASK-002 depends on TASK-001, which is ACTIVE",
    )];
    let err = refused(&session, r#"redo {"task": "TASK-002"}"#);
    assert_eq!(reasons(&err), open);
    follow(&session, &err.next_call.unwrap());
    ok(&session, r#"undo {"task": "TASK-002"}"#);
    assert_eq!(status(&session, "TASK-002"), "TODO");
    assert_eq!(reasons(&refused(&session, r#"redo {"task": "TASK-002"}"#)), open);
}

/// A dependency is reopened only after what is DONE because of it, in the order in which that is possible.
#[test]
fn what_finished_work_depends_on_is_reopened_after_it() {
    let session = after(&TWO_TASKS);
    ok(
        &session,
        r#"create {"title": "c", "plan": "PLAN-001", "depends_on": ["TASK-002"], "steps": [{"title": "s", "tests": ["t"]}]}"#,
    );
    depend(&session, "TASK-002", &["TASK-001"]);
    for task in ["TASK-001", "TASK-002", "TASK-003"] {
        finish(&session, task);
    }
    ok(&session, r#"complete {"task": "PLAN-001"}"#);
    let reopen = r#"progress {"task": "TASK-001", "path": "s:0", "completed": false, "reason": "review"}"#;
    let err = refused(&session, reopen);
    assert_eq!(
        reasons(&err),
        [
            reason("NOT_OPEN", "PLAN-001 is DONE"),
            reason(
                "DEPENDENT_DONE",
                "TASK-002 would become open, but TASK-003, which is DONE, depends on it"
            ),
            reason(
                "DEPENDENT_DONE",
                "TASK-001 would become open, but TASK-002, which is DONE, depends on it"
            ),
        ]
    );
    // Each call shows what others have finished, and none reopens it.
    let calls = err
        .blockers
        .iter()
        .filter_map(|blocker| blocker.next_call.as_ref());
    let calls: Vec<&NextCall> = calls.collect();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.tool == "tasks_show"), "{calls:?}");
    for (id, to) in [("PLAN-001", "ACTIVE"), ("TASK-003", "TODO"), ("TASK-002", "TODO")] {
        assert_eq!(shown(&session, &refused(&session, reopen)), id);
        ok(
            &session,
            &format!(r#"complete {{"task": "{id}", "status": "{to}"}}"#),
        );
    }
    ok(&session, reopen);
    assert_eq!(
        [status(&session, "TASK-001"), status(&session, "TASK-002")],
        ["ACTIVE", "TODO"]
    );
    // A finished task takes no open dependency.
    let session = after(&TWO_TASKS);
    finish(&session, "TASK-001");
    let err = refused(
        &session,
        r#"edit {"task": "TASK-001", "depends_on": ["TASK-002"]}"#,
    );
    assert_eq!(err.code, "DEPENDENCY_OPEN");
}

#[test]
fn canceling_a_plan_cancels_its_tasks_and_is_one_undo() {
    let session = after(&TWO_TASKS);
    finish(&session, "TASK-001");
    let canceled = ok(
        &session,
        r#"complete {"task": "PLAN-001", "status": "CANCELED", "reason": "no budget"}"#,
    );
    assert_eq!(canceled["tasks"], json!(["TASK-002"]));
    let all = || ["PLAN-001", "TASK-001", "TASK-002"].map(|id| status(&session, id));
    assert_eq!(all(), ["CANCELED", "DONE", "CANCELED"]);
    let detail = ok(&session, r#"resume {"task": "TASK-002", "events_limit": 5}"#);
    assert_eq!(detail["detail"]["status_reason"], "no budget");
    let events = detail["events"].as_array().unwrap();
    assert_eq!(events.last().unwrap()["data"]["reason"], "no budget");
    let err = refused(
        &session,
        r#"close_step {"task": "TASK-002", "path": "s:0", "checkpoints": "gate"}"#,
    );
    assert_eq!(err.code, "NOT_OPEN");
    ok(&session, "undo {}");
    assert_eq!(all(), ["TODO", "DONE", "TODO"]);
    ok(&session, "redo {}");
    assert_eq!(all(), ["CANCELED", "DONE", "CANCELED"]);
}

#[test]
fn work_on_a_node_is_progress_of_its_task() {
    let session = after(&TWO_TASKS);
    for task in ["TASK-001", "TASK-002"] {
        ok(
            &session,
            &format!(r#"task_add {{"task": "{task}", "parent_step": "s:0", "title": "n"}}"#),
        );
    }
    depend(&session, "TASK-002", &["TASK-001"]);
    let done =
        |task: &str| format!(r#"task_define {{"task": "{task}", "path": "s:0.t:0", "status": "DONE"}}"#);
    assert_eq!(refused(&session, &done("TASK-002")).code, "DEPENDENCY_OPEN");
    let patch = r#"patch {"task": "TASK-002", "kind": "task", "path": "s:0.t:0", "ops": [{"op": "set", "field": "status", "value": "DONE"}]}"#;
    assert_eq!(refused(&session, patch).code, "DEPENDENCY_OPEN");
    ok(&session, &done("TASK-001"));
    assert_eq!(status(&session, "TASK-001"), "ACTIVE");
    ok(&session, r#"complete {"task": "TASK-001", "status": "PARKED"}"#);
    let again = r#"task_define {"task": "TASK-001", "path": "s:0.t:0", "status": "TODO"}"#;
    ok(&session, again);
    assert_eq!(refused(&session, &done("TASK-001")).code, "NOT_OPEN");
}

#[test]
fn evidence_after_closing_is_confirmed_before_the_task_completes() {
    let session = after(&TWO_TASKS);
    ok(
        &session,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
    );
    let capture =
        r#"evidence_capture {"task": "TASK-001", "path": "s:0", "checkpoint": "perf", "checks": ["slow"]}"#;
    let kept = ok(&session, capture);
    assert_eq!(kept["warnings"][0]["code"], "CHECKPOINT_REQUIRED");
    let err = refused(&session, r#"complete {"task": "TASK-001"}"#);
    assert_eq!(
        reasons(&err),
        [reason(
            "CHECKPOINTS_NOT_CONFIRMED",
            "checkpoint `perf` of step s:0 is not confirmed"
        )]
    );
    follow(&session, &err.next_call.unwrap());
    ok(&session, r#"complete {"task": "TASK-001"}"#);
    // What is finished is reopened first, except for what is confirmed already.
    ok(&session, capture);
    let docs =
        r#"evidence_capture {"task": "TASK-001", "path": "s:0", "checkpoint": "docs", "checks": ["none"]}"#;
    assert_eq!(refused(&session, docs).code, "NOT_OPEN");
}

/// Undo by actor leaves what others did, unless it hangs on what would go.
#[test]
fn my_own_change_is_undone_although_others_wrote_after_it() {
    let session = after(&TWO_TASKS);
    let by = |actor: &str, call: &str| call.replacen('{', &format!(r#"{{"actor": "{actor}", "#), 1);
    ok(
        &session,
        &by("ann", r#"edit {"task": "TASK-001", "priority": "HIGH"}"#),
    );
    ok(
        &session,
        &by("bob", r#"note {"task": "TASK-001", "note": "seen"}"#),
    );
    let entries = ok(&session, r#"history {"task": "TASK-001", "limit": 2}"#)["operations"].clone();
    assert_eq!(
        [
            &entries[0]["operation"]["summary"],
            &entries[1]["operation"]["summary"]
        ],
        ["added a note to TASK-001", "set priority of TASK-001 to HIGH"]
    );
    assert_eq!(entries[1]["operation"]["actor"], "ann");
    let undone = ok(
        &session,
        &by("ann", r#"undo {"task": "TASK-001", "events": true}"#),
    );
    assert_eq!(undone["events"][0]["actor"], "ann");
    assert_eq!(
        undone["events"][0]["data"]["summary"],
        "set priority of TASK-001 to HIGH"
    );
    let loaded = ok(&session, r#"resume {"task": "TASK-001", "events_limit": 9}"#);
    assert_eq!(loaded["detail"]["priority"], "MEDIUM");
    ok(&session, &by("ann", "redo {\"task\": \"TASK-001\"}"));
    // The same record was changed since: the refusal names the operation, which is bob's to undo.
    ok(
        &session,
        &by("bob", r#"edit {"task": "TASK-001", "title": "better"}"#),
    );
    let err = refused(&session, &by("ann", "undo {\"task\": \"TASK-001\"}"));
    assert_eq!(
        (err.code.as_str(), err.message.as_str()),
        (
            "UNDO_CONFLICT",
            "task TASK-001 was changed after operation 4, by operation 6 of bob"
        )
    );
    follow(&session, &err.next_call.unwrap());
    ok(&session, &by("bob", "undo {\"task\": \"TASK-001\"}"));
    ok(&session, &by("ann", "undo {\"task\": \"TASK-001\"}"));
    // What others hung below stays where it is.
    ok(
        &session,
        &by(
            "ann",
            r#"decompose {"task": "TASK-001", "steps": [{"title": "new"}]}"#,
        ),
    );
    ok(
        &session,
        &by(
            "bob",
            r#"note {"task": "TASK-001", "path": "s:1", "note": "on it"}"#,
        ),
    );
    let err = refused(&session, &by("ann", "undo {\"task\": \"TASK-001\"}"));
    assert!(err.message.contains("would no longer exist"), "{}", err.message);
    assert!(err.message.ends_with("of bob created it"), "{}", err.message);
    follow(&session, &err.next_call.unwrap());
    ok(&session, &by("bob", "undo {\"task\": \"TASK-001\"}"));
    ok(&session, &by("ann", "undo {\"task\": \"TASK-001\"}"));
}

/// After an undo by actor, the plain order is kept.
#[test]
fn redo_after_undo_by_actor_goes_in_order() {
    let session = after(&TWO_TASKS);
    ok(
        &session,
        r#"edit {"task": "TASK-001", "priority": "HIGH", "actor": "ann"}"#,
    );
    ok(
        &session,
        r#"note {"task": "TASK-001", "note": "n", "actor": "bob"}"#,
    );
    ok(&session, r#"undo {"task": "TASK-001", "actor": "ann"}"#);
    ok(&session, r#"undo {"task": "TASK-001"}"#);
    let err = refused(&session, r#"redo {"task": "TASK-001"}"#);
    assert_eq!(err.code, "UNDO_CONFLICT");
    // The other operation is ann's to redo.
    assert_eq!(err.next_call.unwrap().tool, "tasks_history");
    ok(&session, r#"redo {"task": "TASK-001", "actor": "ann"}"#);
    ok(&session, r#"redo {"task": "TASK-001"}"#);
    let err = refused(&session, r#"undo {"operation": 99}"#);
    assert_eq!(err.code, "NOT_FOUND");
    let err = refused(&session, r#"redo {"operation": 4}"#);
    assert_eq!(err.message, "operation 4 is done and cannot be redone");
}

/// Faults of earlier versions do not keep a write from mending a part of them.
#[test]
fn old_faults_can_be_mended_one_by_one() {
    let session = after(&TWO_TASKS);
    finish(&session, "TASK-001");
    let broken = r#""depends_on":["TASK-002","TASK-404"]"#;
    session.sql(&format!(
        "UPDATE tasks_records SET body = replace(body, '\"created_at\"', '{broken},\"created_at\"') WHERE id = 'TASK-001'"
    ));
    ok(&session, r#"edit {"task": "TASK-001", "title": "renamed"}"#);
    depend(&session, "TASK-001", &["TASK-404"]);
    depend(&session, "TASK-001", &[]);
}

/// The finding: a task stayed DONE although all of its proven steps were deleted.
#[test]
fn the_parts_of_a_finished_task_stay_until_it_is_reopened() {
    for status in ["DONE", "CANCELED"] {
        let session = after(&TWO_TASKS);
        ok(
            &session,
            r#"task_add {"task": "TASK-001", "parent_step": "s:0", "title": "n"}"#,
        );
        ok(
            &session,
            r#"task_define {"task": "TASK-001", "path": "s:0.t:0", "status": "DONE"}"#,
        );
        ok(
            &session,
            r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
        );
        ok(
            &session,
            &format!(r#"complete {{"task": "TASK-001", "status": "{status}"}}"#),
        );
        for line in [
            r#"delete {"task": "TASK-001", "path": "s:0"}"#,
            r#"define {"task": "TASK-001", "path": "s:0", "title": "other"}"#,
            r#"patch {"task": "TASK-001", "kind": "step", "path": "s:0", "ops": [{"op": "set", "field": "title", "value": "x"}]}"#,
            r#"task_define {"task": "TASK-001", "path": "s:0.t:0", "title": "other"}"#,
            r#"task_delete {"task": "TASK-001", "path": "s:0.t:0"}"#,
        ] {
            let err = refused(&session, line);
            assert_eq!(
                (err.code.as_str(), err.message),
                ("NOT_OPEN", format!("TASK-001 is {status}")),
                "{line}"
            );
            follow(&session, &err.next_call.unwrap());
        }
        // Nothing changes, so nothing is refused.
        ok(
            &session,
            r#"define {"task": "TASK-001", "path": "s:0", "title": "s"}"#,
        );
        ok(&session, r#"complete {"task": "TASK-001", "status": "ACTIVE"}"#);
        ok(&session, r#"delete {"task": "TASK-001", "path": "s:0"}"#);
    }
}
