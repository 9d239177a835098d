//! The stream of events: oldest first, nothing skipped, nothing twice.

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_sdk::Host as _;

use crate::harness::{THREE_STEPS, after, ok, refused, run, texts};

#[derive(Debug, Clone)]
enum Op {
    Write(usize),
    Read { limit: i64, max_chars: i64 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..WRITES.len()).prop_map(Op::Write),
        (1..6_i64, prop_oneof![Just(20_000), 150..900_i64])
            .prop_map(|(limit, max_chars)| Op::Read { limit, max_chars }),
    ]
}

const WRITES: [&str; 6] = [
    r#"note {"task": "TASK-001", "note": "a note with some words in it"}"#,
    r#"note {"task": "PLAN-001", "note": "of the plan"}"#,
    r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate", "events": true}"#,
    r#"progress {"task": "TASK-001", "path": "s:0", "completed": false}"#,
    r#"undo {"task": "TASK-001"}"#,
    r#"batch {"operations": [{"tool": "tasks_note", "args": {"task": "TASK-001", "note": "x"}}, {"tool": "tasks_note", "args": {"task": "TASK-009", "note": "x"}}], "atomic": true}"#,
];

fn seqs(reply: &Value) -> Vec<i64> {
    reply["events"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|event| event["seq"].as_i64().unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: tollgate_kit_test::cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cursor_never_skips_or_repeats(ops in proptest::collection::vec(op(), 1..40), task in any::<bool>()) {
        let session = after(&[THREE_STEPS]);
        let only = if task { r#""task": "TASK-001", "# } else { "" };
        let (mut since, mut seen) = (0, Vec::new());
        let mut read = |limit: i64, max_chars: i64| {
            let line = format!(r#"delta {{{only}"cursor": {since}, "limit": {limit}, "max_chars": {max_chars}}}"#);
            let reply = ok(&session, &line);
            seen.extend(seqs(&reply));
            if let Some(next) = reply["next_cursor"].as_i64() {
                since = next;
            }
            reply["has_more"] != json!(false)
        };
        for op in &ops {
            match op {
                Op::Write(which) => drop(run(&session, WRITES[*which])),
                Op::Read { limit, max_chars } => drop(read(*limit, *max_chars)),
            }
        }
        let mut reads = 0;
        while read(200, 20_000) {
            reads += 1;
            prop_assert!(reads <= ops.len(), "the cursor stands still");
        }
        let wanted = if task { "root = 'TASK-001'" } else { "1 = 1" };
        let all: Vec<i64> = session
            .sql(&format!("SELECT seq FROM tasks_events WHERE {wanted} ORDER BY seq"))
            .iter()
            .map(|row| row.get(0).unwrap())
            .collect();
        prop_assert_eq!(seen, all);
    }
}

#[test]
fn events_of_one_close_come_in_order() {
    let session = after(&[THREE_STEPS]);
    let closed = ok(
        &session,
        r#"close_step {"task": "TASK-001", "path": "s:0", "checkpoints": "gate", "events": true}"#,
    );
    let types = texts(&closed["events"], "type");
    assert_eq!(types, ["status_changed", "step_verified", "step_done"]);
    let delta = ok(&session, r#"delta {"cursor": 3}"#);
    assert_eq!(delta["events"], closed["events"]);
    assert_eq!(delta["cursor"], 3);
    assert_eq!(delta["next_since"], delta["next_cursor"]);
    // The earlier names are still accepted.
    for name in ["cursor", "after", "since"] {
        assert_eq!(ok(&session, &format!(r#"delta {{"{name}": 3}}"#)), delta);
        let refused = refused(&session, &format!(r#"delta {{"{name}": -1}}"#));
        assert_eq!(refused.code, "INVALID_ARGUMENTS");
        assert_eq!(refused.blockers[0].field.as_deref(), Some(name));
    }
}

#[test]
fn events_cannot_be_changed() {
    let session = after(&[THREE_STEPS]);
    for sql in ["UPDATE tasks_events SET data = '{}'", "DELETE FROM tasks_events"] {
        let refused = session.backend().execute(sql, &[]).expect_err(sql).to_string();
        assert!(refused.contains("append-only"), "{sql}: {refused}");
    }
}
