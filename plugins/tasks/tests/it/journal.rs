//! Random writes, undoing and redoing over several plans and tasks at once: what hangs together stays together.

use expect_test::expect;
use proptest::prelude::*;
use tollgate_kit_test::changes;
use tollgate_sdk::Row;
use tollgate_sdk::native::Session;

use crate::harness::{after, call, ok, refused, session};

/// Writes over plans and tasks that may or may not be there.
const WRITES: [&str; 12] = [
    r#"create {"title": "plan"}"#,
    r#"create {"title": "task", "plan": "PLAN-001"}"#,
    r#"create {"title": "task", "plan": "PLAN-002", "steps": [{"title": "s", "tests": ["t"]}]}"#,
    r#"bootstrap {"plan_title": "P", "task_title": "T", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]}"#,
    r#"decompose {"task": "TASK-001", "steps": [{"title": "a"}, {"title": "b"}]}"#,
    r#"decompose {"task": "TASK-002", "path": "s:0", "steps": [{"title": "below"}]}"#,
    r#"delete {"task": "TASK-001", "path": "s:0"}"#,
    r#"edit {"task": "PLAN-001", "title": "renamed"}"#,
    r#"note {"task": "TASK-002", "path": "s:0", "note": "n"}"#,
    r#"step_claim {"task": "TASK-001", "path": "s:0", "owner": "ada"}"#,
    r#"evidence_capture {"task": "TASK-001", "checks": ["c"]}"#,
    r#"template_save {"name": "ours", "kind": "task", "description": "d", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]}"#,
];

const ROOTS: [&str; 6] = ["", "PLAN-001", "PLAN-002", "TASK-001", "TASK-002", "TASK-003"];

#[derive(Debug, Clone)]
enum Op {
    Write(usize),
    Travel { back: bool, root: usize },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (0..WRITES.len()).prop_map(Op::Write),
        4 => (any::<bool>(), 0..ROOTS.len()).prop_map(|(back, root)| Op::Travel { back, root }),
    ]
}

fn travel(back: bool, root: usize) -> String {
    let tool = if back { "undo" } else { "redo" };
    match ROOTS[root] {
        "" => format!("{tool} {{}}"),
        root => format!(r#"{tool} {{"task": "{root}"}}"#),
    }
}

fn records(session: &Session) -> Vec<Row> {
    session.sql(
        "SELECT kind, id, root, parent, ordinal, position, status, body FROM tasks_records ORDER BY kind, id",
    )
}

/// Nothing hangs in the air, siblings are counted without gaps, and lists know what is there.
fn hangs_together(session: &Session) {
    for (fault, sql) in [
        (
            "a task without its plan",
            "SELECT id FROM tasks_records AS t WHERE kind = 'task' AND NOT EXISTS \
             (SELECT 1 FROM tasks_records AS p WHERE p.kind = 'plan' AND p.id = t.parent)",
        ),
        (
            "a part without its plan or task",
            "SELECT id FROM tasks_records AS r WHERE kind NOT IN ('plan', 'task', 'template') AND NOT EXISTS \
             (SELECT 1 FROM tasks_records AS o WHERE o.kind IN ('plan', 'task') AND o.id = r.root)",
        ),
        (
            "a part without what it hangs under",
            "SELECT id FROM tasks_records AS r WHERE kind NOT IN ('plan', 'task', 'template') AND NOT EXISTS \
             (SELECT 1 FROM tasks_records AS o WHERE o.id = r.parent)",
        ),
        (
            "a gap among siblings",
            "SELECT parent FROM tasks_records GROUP BY kind, parent \
             HAVING max(ordinal) + 1 <> count(*) OR count(DISTINCT ordinal) <> count(*)",
        ),
        (
            "a list that knows better",
            "SELECT id FROM tasks_roots AS r WHERE (status <> 'ABSENT') <> EXISTS \
             (SELECT 1 FROM tasks_records AS o WHERE o.kind = r.kind AND o.id = r.id)",
        ),
    ] {
        let found = session.sql(sql);
        assert!(found.is_empty(), "{fault}: {found:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: tollgate_kit_test::cases(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_hangs_together_stays_together(ops in proptest::collection::vec(op(), 1..40)) {
        let session = after(&[WRITES[3]]);
        for op in &ops {
            let line = match op {
                Op::Write(which) => WRITES[*which].to_owned(),
                Op::Travel { back, root } => travel(*back, *root),
            };
            let before = records(&session);
            if call(&session, &line).is_err() {
                prop_assert_eq!(before, records(&session), "{}", line);
            }
            hangs_together(&session);
        }
        // All the way back there is nothing; and all the way forth again it is as it was.
        let (end, mut steps) = (records(&session), 0);
        // Against the leases of ada, too.
        let undo = r#"undo {"force": true, "reason": "all of it"}"#;
        while call(&session, undo).is_ok() {
            steps += 1;
            prop_assert!(steps <= ops.len() + 1, "undo has no end");
        }
        prop_assert_eq!(refused(&session, undo).code, "NOTHING_TO_UNDO");
        prop_assert_eq!(records(&session), Vec::<Row>::new());
        for _ in 0..steps {
            let redone = call(&session, &undo.replace("undo", "redo")).is_ok();
            prop_assert!(redone, "redo stops early");
            hangs_together(&session);
        }
        prop_assert_eq!(records(&session), end);
    }
}

/// The ledger names plans, tasks and their parts instead of tables.
#[test]
fn changes_are_named_in_the_ledger() {
    let session = session();
    session.set_envelope(Some("env_1"));
    for line in [
        r#"bootstrap {"plan_title": "P", "task_title": "T", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]}"#,
        r#"step_claim {"task": "TASK-001", "path": "s:0", "owner": "ada"}"#,
        r#"step_release {"task": "TASK-001", "path": "s:0", "owner": "ada"}"#,
        r#"note {"task": "TASK-001", "path": "s:0", "note": "n"}"#,
        r#"evidence_capture {"task": "TASK-001", "path": "s:0", "checks": ["c"]}"#,
        r#"edit {"task": "PLAN-001", "title": "renamed"}"#,
        r#"edit {"task": "PLAN-001", "title": "renamed"}"#,
        r#"undo {}"#,
        r#"focus_set {"task": "TASK-001"}"#,
        r#"template_save {"name": "ours", "kind": "task", "description": "d", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]}"#,
        r#"batch {"operations": [{"tool": "tasks_verify", "args": {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}}, {"tool": "tasks_create", "args": {"title": "Q"}}]}"#,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate"}"#,
        r#"delete {"task": "PLAN-001"}"#,
        r#"radar {"task": "PLAN-002"}"#,
    ] {
        ok(&session, line);
    }
    expect![[r#"
        tasks.bootstrap tasks/PLAN-001 tasks/PLAN-001/TASK-001 tasks/PLAN-001/TASK-001/STEP-00000001
        tasks.step_claim tasks/PLAN-001/TASK-001 tasks/PLAN-001/TASK-001/STEP-00000001
        tasks.step_release tasks/PLAN-001/TASK-001 tasks/PLAN-001/TASK-001/STEP-00000001
        tasks.note tasks/PLAN-001/TASK-001 tasks/PLAN-001/TASK-001/NOTE-00000002
        tasks.evidence_capture tasks/PLAN-001/TASK-001 tasks/PLAN-001/TASK-001/EVD-00000003
        tasks.edit tasks/PLAN-001
        tasks.edit tasks/envelopes/env_1
        tasks.undo tasks/PLAN-001
        tasks.focus_set tasks/focus
        tasks.template_save tasks/templates/ours
        tasks.verify tasks/PLAN-001/TASK-001 tasks/PLAN-001/TASK-001/STEP-00000001
        tasks.create tasks/PLAN-002
        tasks.close_step tasks/PLAN-001/TASK-001 tasks/PLAN-001/TASK-001/STEP-00000001
        tasks.delete tasks/PLAN-001 tasks/PLAN-001/TASK-001
    "#]]
    .assert_eq(&changes(&session));
}

/// A row of the ledger takes a number of names, and no write fails for them.
#[test]
fn many_changes_are_named_in_part() {
    let session = after(&[
        r#"bootstrap {"plan_title": "P", "task_title": "T", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]}"#,
    ]);
    let step = r#"{"title": "s", "success_criteria": ["c"], "tests": ["t"]}"#;
    for _ in 0..6 {
        let steps = vec![step; 100].join(", ");
        ok(
            &session,
            &format!(r#"decompose {{"task": "TASK-001", "steps": [{steps}]}}"#),
        );
    }
    ok(&session, r#"delete {"task": "TASK-001"}"#);
    let most = session.events().iter().map(|event| event.changed.len()).max();
    assert!(most <= Some(500), "{most:?}");
}
