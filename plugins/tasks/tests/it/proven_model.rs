//! Required evidence in random work: whatever is called, in any order, nothing is confirmed or closed unless a test run
//! that passed on the work tree of now hangs on the step. The model knows runs and edits, and nothing of the pack's rules.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_sdk::native::{EPOCH_MS, Session};
use tollgate_sdk::{FoundOperation, TestResult, TestedTree};

use crate::harness::after;
use crate::offers::{Choice, PATHS, SETUP, TASKS, choice, made, tried};
use crate::runs::{current, run};

/// Work of the host between calls.
#[derive(Debug, Clone)]
enum Op {
    Call(Choice),
    /// Tests run, and the run is attached to a step.
    Test {
        result: TestResult,
        task: usize,
        path: usize,
        workspace: &'static str,
    },
    /// Somebody edits a file.
    Edit,
}

fn op() -> impl Strategy<Value = Op> {
    let result = prop_oneof![3 => Just(TestResult::Passed), 1 => Just(TestResult::Failed), 1 => Just(TestResult::NoTests)];
    let workspace = prop_oneof![4 => Just("w"), 1 => Just("other")];
    let test = (result, 0..4_usize, 0..4_usize, workspace);
    prop_oneof![
        8 => choice().prop_map(Op::Call),
        4 => test.prop_map(|(result, task, path, workspace)| Op::Test { result, task, path, workspace }),
        1 => Just(Op::Edit),
    ]
}

/// The host: runs so far, and whether each still speaks for the work tree.
struct Host {
    session: Session,
    found: Vec<FoundOperation>,
    speaks: BTreeMap<String, bool>,
    /// Deleted steps by id, as far as they were confirmed and closed.
    deleted: BTreeMap<String, Value>,
    now_ms: i64,
}

/// The part of a step that has to be proven.
fn gate(step: &Value) -> Value {
    json!([step["confirmed"], step["completed_at"]])
}

impl Host {
    fn new() -> Host {
        let config = json!({"workspaces": {"w": {"evidence": "required"}}});
        Host {
            session: after(&SETUP).config(&config),
            found: Vec::new(),
            speaks: BTreeMap::new(),
            deleted: BTreeMap::new(),
            now_ms: EPOCH_MS,
        }
    }

    fn step(&mut self, op: &Op) -> Vec<String> {
        self.session.advance_ms(1_000);
        self.now_ms += 1_000;
        match *op {
            Op::Call(choice) => {
                let (tool, arguments) = made(choice);
                tried(&self.session, tool, arguments)
            }
            Op::Edit => {
                for (op_id, speaks) in &mut self.speaks {
                    *speaks = false;
                    let unchanged = Some(false);
                    self.session.set_tree(
                        op_id,
                        TestedTree {
                            unchanged,
                            ..current()
                        },
                    );
                }
                Vec::new()
            }
            Op::Test {
                result,
                task,
                path,
                workspace,
            } => {
                let op_id = format!("op_{}", self.found.len());
                let mut ran = run(&op_id, result, None);
                ran.operation.at_ms = self.now_ms;
                let elsewhere = workspace != "w";
                let tree = TestedTree {
                    workspace: Some(workspace.to_owned()),
                    unchanged: Some(!elsewhere),
                    ..current()
                };
                self.session.set_tree(&op_id, tree);
                self.found.push(ran);
                self.session.set_found(self.found.clone());
                self.speaks
                    .insert(op_id.clone(), result == TestResult::Passed && !elsewhere);
                let item =
                    json!({"task": TASKS[task], "path": PATHS[path], "items": [{"operation_id": op_id}]});
                tried(&self.session, "evidence_capture", item)
            }
        }
    }

    /// Records of a kind by their id.
    fn records(&self, kind: &str) -> BTreeMap<String, Value> {
        let sql = format!("SELECT id, body FROM tasks_records WHERE workspace = 'w' AND kind = '{kind}'");
        let rows = self.session.sql(&sql).into_iter();
        rows.map(|row| {
            let body: String = row.get(1).unwrap();
            (row.get(0).unwrap(), serde_json::from_str(&body).unwrap())
        })
        .collect()
    }

    /// Steps that an operation confirmed or closed without a run that speaks for the work tree. A step that was deleted
    /// may come back as it was.
    fn unproven(&mut self, before: &BTreeMap<String, Value>) -> Vec<String> {
        let (steps, evidence) = (self.records("step"), self.records("evidence"));
        let gone = before.iter().filter(|(id, _)| !steps.contains_key(*id));
        self.deleted
            .extend(gone.map(|(id, step)| (id.clone(), gate(step))));
        let has_run = |step: &str| {
            evidence.values().any(|item| {
                let op_id = item["operation"].as_str().unwrap_or_default();
                item["step"] == step && self.speaks.get(op_id).copied().unwrap_or_default()
            })
        };
        let confirmed = |step: Option<&Value>| {
            let confirmed = step.and_then(|step| step["confirmed"].as_object());
            confirmed
                .into_iter()
                .flat_map(|of| of.keys().cloned())
                .collect::<Vec<_>>()
        };
        let is_done = |step: &Value| step.get("completed_at").is_some();
        let changed = steps.iter().filter(|&(id, step)| {
            let was = before.get(id);
            if was.is_none() && self.deleted.get(id) == Some(&gate(step)) {
                return false;
            }
            let known = confirmed(was);
            let confirms = confirmed(Some(step)).iter().any(|now| !known.contains(now));
            let is_bare = ["success_criteria", "tests", "required"]
                .iter()
                .all(|part| step.get(part).is_none());
            let has_parts = steps.values().any(|part| part["parent"] == id.as_str());
            let closes = is_done(step) && !was.is_some_and(is_done);
            confirms || (closes && !(is_bare && has_parts))
        });
        changed
            .filter(|(id, _)| !has_run(id))
            .map(|(id, _)| id.clone())
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: tollgate_kit_test::cases(60), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_confirmed_or_closed_without_a_run_on_the_work_tree_of_now(
        ops in proptest::collection::vec(op(), 1..60),
    ) {
        let mut host = Host::new();
        for op in ops {
            let before = host.records("step");
            prop_assert_eq!(host.step(&op), Vec::<String>::new());
            prop_assert_eq!(host.unproven(&before), Vec::<String>::new(), "{:?}", op);
        }
    }
}
