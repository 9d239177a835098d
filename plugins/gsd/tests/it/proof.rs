//! Proof of completed tasks: a test run of the ledger, where the workspace says so.

use serde_json::json;
use tollgate_sdk::native::Session;
use tollgate_sdk::{FoundOperation, Operation, TestOutcome, TestResult, TestedTree};

use crate::harness::{PLANNED, follow, refusal, reply, run, script};

/// A session whose ledger has a run with a result, on a work tree.
fn session(rule: &str, result: TestResult, tree: TestedTree) -> Session {
    let config = json!({"workspaces": {"app": {"evidence": rule}}});
    let session = Session::new(&gsd::PACK).config(&config);
    session.set_found(vec![FoundOperation {
        operation: Operation {
            op_id: "op_1".to_owned(),
            pack: "convergence".to_owned(),
            tool: "test_run".to_owned(),
            success: Some(true),
            ..Operation::default()
        },
        tests: Some(TestOutcome {
            total: Some(3),
            ..TestOutcome::new(result)
        }),
        ..FoundOperation::default()
    }]);
    session.set_tree("op_1", tree);
    run(&session, PLANNED);
    session
}

fn current() -> TestedTree {
    TestedTree {
        workspace: Some("app".to_owned()),
        unchanged: Some(true),
        looked: true,
        unseen: None,
    }
}

fn complete(task: &str, evidence: &str) -> String {
    format!(
        r#"gsd_task_complete {{"unit": "M01/S01/{task}", "one_liner": "did it", "narrative": "All.", "verification": "ran it",
            "verification_evidence": [{evidence}]}}"#
    )
    .replace('\n', " ")
}

const RUN: &str = r#"{"command": "make test", "exit_code": 0, "verdict": "pass", "operation_id": "op_1"}"#;
const TYPED: &str = r#"{"command": "make test", "exit_code": 0, "verdict": "pass"}"#;

fn messages(session: &Session, line: &str) -> Vec<String> {
    let err = refusal(session, line);
    assert_eq!(err.code, "EVIDENCE_REQUIRED", "{err:?}");
    follow(session, line, &Err(err.clone()));
    err.blockers.into_iter().map(|blocker| blocker.message).collect()
}

#[test]
fn where_evidence_is_required_only_a_run_on_the_work_tree_of_now_completes_a_task() {
    let strict = session("required", TestResult::Passed, current());
    let none = ["Task T01 has no test_run as evidence (M01/S01/T01)"];
    assert_eq!(messages(&strict, &complete("T01", "")), none);
    assert_eq!(messages(&strict, &complete("T01", TYPED)), none);
    let failed = TYPED.replace(r#""exit_code": 0"#, r#""exit_code": 2"#);
    assert_eq!(
        messages(&strict, &complete("T01", &format!("{RUN}, {failed}"))),
        ["Task T01 has `make test` as evidence, which exited with 2 (M01/S01/T01)"]
    );
    let invented = RUN.replace("op_1", "op_2");
    assert_eq!(
        messages(&strict, &complete("T01", &invented)),
        ["Task T01 has op_2 as evidence, which is not in the ledger (M01/S01/T01)"]
    );
    reply(&strict, &complete("T01", &format!("{RUN}, {TYPED}")));
    for (result, tree, why) in [
        (TestResult::Failed, current(), "did not pass"),
        (
            TestResult::Passed,
            TestedTree {
                unchanged: Some(false),
                ..current()
            },
            "ran before the work tree changed",
        ),
        (
            TestResult::Passed,
            TestedTree {
                workspace: Some("other".to_owned()),
                unchanged: Some(false),
                ..current()
            },
            "ran in workspace other",
        ),
        (
            TestResult::Passed,
            TestedTree::default(),
            "cannot be compared with the work tree: it was not read",
        ),
    ] {
        let strict = session("required", result, tree);
        let expected = format!("Task T01 has op_1 as evidence, which {why} (M01/S01/T01)");
        assert_eq!(messages(&strict, &complete("T01", RUN)), [expected]);
    }
}

#[test]
fn where_evidence_is_optional_a_run_that_is_none_is_a_warning() {
    for (operation, result, why) in [
        ("op_1", TestResult::Failed, Some("op_1 did not pass")),
        ("op_2", TestResult::Passed, Some("op_2 is not in the ledger")),
        ("op_1", TestResult::Passed, None),
    ] {
        let lax = session("optional", result, TestedTree::default());
        let done = reply(&lax, &complete("T01", &RUN.replace("op_1", operation)));
        let warned = why.map(|why| json!([format!("M01/S01/T01: {why}")]));
        assert_eq!(done.get("warnings"), warned.as_ref());
    }
}

#[test]
fn a_milestone_whose_slices_are_all_skipped_is_not_complete() {
    let strict = session("required", TestResult::Passed, current());
    run(&strict, "- skip M01/S01\n- skip M01/S02\n- validate M01 pass\n");
    assert_eq!(
        messages(
            &strict,
            r#"gsd_milestone_complete {"milestone_id": "M01", "one_liner": "x", "narrative": "y", "verification_passed": true}"#
        ),
        ["Milestone M01 has no complete slice, but this workspace requires evidence (M01)"]
    );
    let lax = session("optional", TestResult::Passed, current());
    run(
        &lax,
        "- skip M01/S01\n- skip M01/S02\n- validate M01 pass\n- finish M01\n",
    );
}

#[test]
fn a_slice_whose_tasks_are_all_skipped_is_not_complete() {
    let strict = session("required", TestResult::Passed, current());
    run(&strict, "- skip M01/S01\n");
    strict.sql("UPDATE gsd_slices SET status = 'in_progress', closed_hash = NULL WHERE id = 'S01'");
    let close = script(&strict).refusal("close M01/S01");
    assert_eq!(
        close.message,
        "Slice S01 has no complete task, but this workspace requires evidence (M01/S01)"
    );
}
