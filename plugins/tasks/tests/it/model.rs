//! Random operations against a model in memory: state, revisions, undo and redo, and paths that name the same
//! step as identifiers do.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_sdk::native::Session;

use crate::harness::{THREE, after};

/// A step as the model has it.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    id: String,
    title: String,
    criteria: Vec<String>,
    tests: Vec<String>,
    confirmed: BTreeSet<&'static str>,
    blocked: bool,
    done: bool,
    children: Vec<Step>,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
struct Node {
    id: String,
    title: String,
    status: &'static str,
}

/// A task as the model has it.
#[derive(Debug, Clone, PartialEq)]
struct State {
    status: &'static str,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Op {
    Add(usize, u8),
    Define(usize, u8),
    Verify(usize),
    Done(usize),
    Close(usize),
    Force(usize),
    Reopen(usize),
    Block(usize, bool),
    Delete(usize),
    NodeAdd(usize),
    NodeStatus(usize, bool),
    NodeDelete(usize),
    Note,
    Complete,
    Undo,
    Redo,
}

fn op() -> impl Strategy<Value = Op> {
    let place = 0..12_usize;
    prop_oneof![
        3 => (0..14_usize, 1..3_u8).prop_map(|(at, count)| Op::Add(at, count)),
        2 => (place.clone(), 0..3_u8).prop_map(|(at, what)| Op::Define(at, what)),
        2 => place.clone().prop_map(Op::Verify),
        2 => place.clone().prop_map(Op::Done),
        4 => place.clone().prop_map(Op::Close),
        1 => place.clone().prop_map(Op::Force),
        2 => place.clone().prop_map(Op::Reopen),
        2 => (place.clone(), any::<bool>()).prop_map(|(at, on)| Op::Block(at, on)),
        2 => place.clone().prop_map(Op::Delete),
        2 => place.clone().prop_map(Op::NodeAdd),
        2 => (place.clone(), any::<bool>()).prop_map(|(at, done)| Op::NodeStatus(at, done)),
        1 => place.prop_map(Op::NodeDelete),
        1 => Just(Op::Note),
        1 => Just(Op::Complete),
        5 => Just(Op::Undo),
        4 => Just(Op::Redo),
    ]
}

impl Step {
    fn missing(&self) -> bool {
        (!self.criteria.is_empty() && !self.confirmed.contains("criteria"))
            || (!self.tests.is_empty() && !self.confirmed.contains("tests"))
    }

    fn confirm(&mut self) {
        if !self.criteria.is_empty() {
            self.confirmed.insert("criteria");
        }
        if !self.tests.is_empty() {
            self.confirmed.insert("tests");
        }
    }

    fn has_open_parts(&self) -> bool {
        self.children.iter().any(|child| !child.done) || self.nodes.iter().any(|node| node.status != "DONE")
    }

    fn status(&self) -> &'static str {
        match (self.done, self.blocked) {
            (true, _) if self.missing() => "forced",
            (true, _) => "done",
            (false, true) => "blocked",
            (false, false) => "open",
        }
    }
}

/// Every way from the top to a step, depth first.
fn ways(steps: &[Step], above: &[usize], all: &mut Vec<Vec<usize>>) {
    for (place, step) in steps.iter().enumerate() {
        let mut way = above.to_vec();
        way.push(place);
        all.push(way.clone());
        ways(&step.children, &way, all);
    }
}

fn at<'a>(steps: &'a mut [Step], way: &[usize]) -> &'a mut Step {
    let (first, rest) = way.split_first().unwrap();
    let step = &mut steps[*first];
    if rest.is_empty() {
        step
    } else {
        at(&mut step.children, rest)
    }
}

fn path(way: &[usize]) -> String {
    way.iter()
        .map(|place| format!("s:{place}"))
        .collect::<Vec<_>>()
        .join(".")
}

/// The state as `tasks_mirror` shows it.
fn shown(state: &State) -> Vec<Value> {
    fn walk(steps: &[Step], above: &[usize], out: &mut Vec<Value>) {
        for (place, step) in steps.iter().enumerate() {
            let mut way = above.to_vec();
            way.push(place);
            out.push(json!([
                path(&way),
                step.id,
                step.title,
                step.status(),
                step.criteria,
                step.tests,
                step.confirmed
            ]));
            walk(&step.children, &way, out);
            for (place, node) in step.nodes.iter().enumerate() {
                let path = format!("{}.t:{place}", path(&way));
                out.push(json!([path, node.id, node.title, node.status, [], [], []]));
            }
        }
    }
    let mut out = Vec::new();
    walk(&state.steps, &[], &mut out);
    out
}

struct Run {
    session: Session,
    state: State,
    past: Vec<State>,
    future: Vec<State>,
    revision: i64,
    count: u32,
}

impl Run {
    fn new() -> Run {
        let session = after(&[THREE]);
        let step = |number: usize, name: &str| Step {
            id: format!("STEP-{number:08}"),
            title: name.to_owned(),
            criteria: vec![format!("c{number}")],
            tests: vec![format!("t{number}")],
            confirmed: BTreeSet::new(),
            blocked: false,
            done: false,
            children: Vec::new(),
            nodes: Vec::new(),
        };
        Run {
            session,
            state: State {
                status: "TODO",
                steps: vec![step(1, "one"), step(2, "two"), step(3, "three")],
            },
            past: Vec::new(),
            future: Vec::new(),
            revision: 1,
            count: 0,
        }
    }

    fn call(&self, tool: &str, mut arguments: Value) -> Result<Value, String> {
        arguments["workspace"] = json!("w");
        if arguments.get("task").is_none() {
            arguments["task"] = json!("TASK-001");
        }
        match self.session.call(tool, &arguments.to_string()) {
            Ok(reply) => Ok(serde_json::from_str(&reply.structured).unwrap()),
            Err(err) => Err(err.code),
        }
    }

    /// The calls of an operation, what the model says, and whether it counts though it changes nothing.
    fn step(&mut self, op: &Op) {
        let mut all = Vec::new();
        ways(&self.state.steps, &[], &mut all);
        let way = |place: &usize| {
            if all.is_empty() {
                None
            } else {
                all.get(place % all.len()).cloned()
            }
        };
        self.count += 1;
        let mut next = self.state.clone();
        let is_open = next.status == "TODO" || next.status == "ACTIVE";
        let (outcome, expected) = match op {
            Op::Undo | Op::Redo => return self.travel(matches!(op, Op::Undo)),
            Op::Note => {
                let outcome = self.call("tasks_note", json!({"note": "n"}));
                self.past.push(self.state.clone());
                self.future.clear();
                self.revision += 1;
                return self.verify(&outcome, true);
            }
            Op::Complete => {
                let finished = !next.steps.is_empty()
                    && all.iter().all(|way| at(&mut next.steps, way).status() == "done");
                if finished {
                    next.status = "DONE";
                }
                (self.call("tasks_complete", json!({})), finished)
            }
            Op::Add(place, count) => self.add(&mut next, all.get(*place).cloned(), *count, is_open),
            Op::Define(place, what) => match way(place) {
                None => return,
                Some(way) => self.define(&mut next, &way, *what),
            },
            Op::Verify(place) | Op::Done(place) | Op::Close(place) | Op::Force(place) => match way(place) {
                None => return,
                Some(way) => self.progress(&mut next, &way, op, is_open),
            },
            Op::Reopen(place) => match way(place) {
                None => return,
                Some(way) => self.reopen(&mut next, &way),
            },
            Op::Block(place, on) => match way(place) {
                None => return,
                Some(way) => {
                    let step = at(&mut next.steps, &way);
                    let allowed = !step.done;
                    if allowed {
                        step.blocked = *on;
                    }
                    (
                        self.call("tasks_block", json!({"path": path(&way), "blocked": on})),
                        allowed,
                    )
                }
            },
            Op::Delete(place) => match way(place) {
                None => return,
                Some(way) => {
                    let outcome = self.call("tasks_delete", json!({"path": path(&way)}));
                    let (last, above) = way.split_last().unwrap();
                    if above.is_empty() {
                        next.steps.remove(*last);
                    } else {
                        at(&mut next.steps, above).children.remove(*last);
                    }
                    (outcome, true)
                }
            },
            Op::NodeAdd(place) => match way(place) {
                None => return,
                Some(way) => self.add_node(&mut next, &way, is_open),
            },
            Op::NodeStatus(place, _) | Op::NodeDelete(place) => match way(place) {
                None => return,
                Some(way) => match self.change_node(&mut next, &way, op) {
                    Some(both) => both,
                    None => return,
                },
            },
        };
        if expected && next != self.state {
            self.past.push(std::mem::replace(&mut self.state, next));
            self.future.clear();
            self.revision += 1;
        }
        self.verify(&outcome, expected);
    }

    fn add(
        &mut self,
        next: &mut State,
        way: Option<Vec<usize>>,
        count: u8,
        is_open: bool,
    ) -> (Result<Value, String>, bool) {
        let titles: Vec<String> = (0..count).map(|n| format!("a{}-{n}", self.count)).collect();
        let steps: Vec<Value> = titles
            .iter()
            .map(|title| json!({"title": title, "tests": ["t"]}))
            .collect();
        let mut arguments = json!({"steps": steps});
        if let Some(way) = &way {
            arguments["path"] = json!(path(way));
        }
        let outcome = self.call("tasks_decompose", arguments);
        let allowed = is_open
            && way
                .as_ref()
                .is_none_or(|way| way.len() < 8 && !at(&mut next.steps, way).done);
        if let (true, Ok(reply)) = (allowed, &outcome) {
            let made = titles
                .into_iter()
                .zip(reply["steps"].as_array().unwrap())
                .map(|(title, made)| Step {
                    id: made["step_id"].as_str().unwrap().to_owned(),
                    title,
                    criteria: Vec::new(),
                    tests: vec!["t".to_owned()],
                    confirmed: BTreeSet::new(),
                    blocked: false,
                    done: false,
                    children: Vec::new(),
                    nodes: Vec::new(),
                });
            match &way {
                None => next.steps.extend(made),
                Some(way) => at(&mut next.steps, way).children.extend(made),
            }
        }
        (outcome, allowed)
    }

    fn define(&mut self, next: &mut State, way: &[usize], what: u8) -> (Result<Value, String>, bool) {
        let text = format!("d{}", self.count);
        let step = at(&mut next.steps, way);
        let arguments = match what {
            0 => json!({"path": path(way), "title": text}),
            1 => json!({"path": path(way), "success_criteria": [text]}),
            _ => json!({"path": path(way), "tests": []}),
        };
        let allowed = match what {
            0 => {
                step.title = text;
                true
            }
            1 if !step.done => {
                step.criteria = vec![text];
                step.confirmed.remove("criteria");
                true
            }
            2 if !step.done && !step.tests.is_empty() => {
                step.tests = Vec::new();
                step.confirmed.remove("tests");
                true
            }
            2 => step.tests.is_empty(),
            _ => false,
        };
        (self.call("tasks_define", arguments), allowed)
    }

    fn progress(
        &mut self,
        next: &mut State,
        way: &[usize],
        op: &Op,
        is_open: bool,
    ) -> (Result<Value, String>, bool) {
        let step = at(&mut next.steps, way);
        let (tool, arguments) = match op {
            Op::Verify(_) => ("tasks_verify", json!({"path": path(way), "checkpoints": "gate"})),
            Op::Done(_) => ("tasks_done", json!({"path": path(way)})),
            Op::Close(_) => (
                "tasks_close_step",
                json!({"path": path(way), "checkpoints": "gate"}),
            ),
            _ => (
                "tasks_progress",
                json!({"path": path(way), "completed": true, "force": true, "reason": "r"}),
            ),
        };
        let outcome = self.call(tool, arguments);
        if step.done {
            if matches!(op, Op::Verify(_)) {
                step.confirm();
            }
            return (outcome, true);
        }
        let closes = !matches!(op, Op::Verify(_));
        if matches!(op, Op::Verify(_) | Op::Close(_)) {
            step.confirm();
        }
        let passes = matches!(op, Op::Force(_)) || !step.missing();
        let allowed = is_open && (!closes || (passes && !step.blocked && !step.has_open_parts()));
        if allowed {
            step.done = closes;
            next.status = "ACTIVE";
        }
        (outcome, allowed)
    }

    fn reopen(&mut self, next: &mut State, way: &[usize]) -> (Result<Value, String>, bool) {
        let outcome = self.call("tasks_progress", json!({"path": path(way), "completed": false}));
        if at(&mut next.steps, way).done {
            for length in 1..=way.len() {
                at(&mut next.steps, &way[..length]).done = false;
            }
            if next.status == "DONE" {
                next.status = "ACTIVE";
            }
        }
        (outcome, true)
    }

    fn add_node(&mut self, next: &mut State, way: &[usize], is_open: bool) -> (Result<Value, String>, bool) {
        let title = format!("n{}", self.count);
        let step = at(&mut next.steps, way);
        let outcome = self.call(
            "tasks_task_add",
            json!({"parent_step": path(way), "title": title}),
        );
        let allowed = is_open && !step.done;
        if let (true, Ok(reply)) = (allowed, &outcome) {
            let id = reply["node"]["task_node_id"].as_str().unwrap().to_owned();
            step.nodes.push(Node {
                id,
                title,
                status: "TODO",
            });
        }
        (outcome, allowed)
    }

    fn change_node(
        &mut self,
        next: &mut State,
        way: &[usize],
        op: &Op,
    ) -> Option<(Result<Value, String>, bool)> {
        let step = at(&mut next.steps, way);
        let last = step.nodes.len().checked_sub(1)?;
        let node_path = format!("{}.t:{last}", path(way));
        if let Op::NodeStatus(_, done) = op {
            let status = if *done { "DONE" } else { "TODO" };
            let allowed = !step.done || step.nodes[last].status == status;
            if allowed {
                step.nodes[last].status = status;
            }
            return Some((
                self.call("tasks_task_define", json!({"path": node_path, "status": status})),
                allowed,
            ));
        }
        step.nodes.remove(last);
        Some((self.call("tasks_task_delete", json!({"path": node_path})), true))
    }

    fn travel(&mut self, back: bool) {
        let (from, to) = if back {
            (&mut self.past, &mut self.future)
        } else {
            (&mut self.future, &mut self.past)
        };
        let Some(state) = from.pop() else {
            // Behind the first write there is only the task's own creation.
            if !back {
                let outcome = self.call("tasks_redo", json!({}));
                assert_eq!(outcome.unwrap_err(), "NOTHING_TO_REDO");
            }
            return;
        };
        to.push(std::mem::replace(&mut self.state, state));
        self.revision += 1;
        let outcome = self.call(if back { "tasks_undo" } else { "tasks_redo" }, json!({}));
        self.verify(&outcome, true);
    }

    fn verify(&self, outcome: &Result<Value, String>, expected: bool) {
        assert_eq!(outcome.is_ok(), expected, "{outcome:?}\n{:#?}", self.state);
        if let Ok(reply) = outcome {
            assert_eq!(reply["revision"], self.revision, "{reply}");
        }
        let mirror = self.call("tasks_mirror", json!({"limit": 500})).unwrap();
        assert_eq!(mirror["revision"], self.revision);
        assert_eq!(mirror["status"], self.state.status);
        let seen: Vec<Value> = mirror["steps"]
            .as_array()
            .into_iter()
            .flatten()
            .map(row)
            .collect();
        let said = json!(shown(&self.state));
        assert_eq!(json!(seen), said, "seen and said");
    }

    /// Each path leads to the step whose identifier it stands beside, and to no other.
    fn paths_and_ids(&self) {
        let said = shown(&self.state);
        let steps: Vec<&Value> = said
            .iter()
            .filter(|row| row[1].as_str().unwrap().starts_with("STEP"))
            .collect();
        for (place, row) in steps.iter().enumerate() {
            let found = self
                .call("tasks_mirror", json!({"path": row[0], "limit": 1}))
                .unwrap();
            assert_eq!(found["steps"][0]["id"], row[1]);
            let both = self.call("tasks_progress", json!({"path": row[0], "step_id": row[1], "completed": row[3] == "done" || row[3] == "forced"}));
            assert!(both.is_ok() || row[3] != "open", "{both:?}");
            if let Some(other) = steps.get(place + 1) {
                let outcome = self.call("tasks_done", json!({"path": row[0], "step_id": other[1]}));
                assert_eq!(outcome.unwrap_err(), "TARGET_MISMATCH");
            }
        }
    }
}

fn row(entry: &Value) -> Value {
    let list = |name: &str| entry.get(name).cloned().unwrap_or_else(|| json!([]));
    json!([
        entry["path"],
        entry["id"],
        entry["title"],
        entry["status"],
        list("success_criteria"),
        list("tests"),
        list("confirmed")
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_pack_does_what_the_model_does(ops in proptest::collection::vec(op(), 1..30)) {
        let mut run = Run::new();
        for op in &ops {
            run.step(op);
        }
        run.paths_and_ids();
    }

    /// Undoing everything and redoing it leaves each record as it was, to the byte.
    #[test]
    fn undo_then_redo_gives_the_same_bytes(ops in proptest::collection::vec(op(), 1..15)) {
        let mut run = Run::new();
        for op in ops.iter().filter(|op| !matches!(op, Op::Undo | Op::Redo)) {
            run.step(op);
        }
        let bytes = |run: &Run| run.session.sql("SELECT kind, id, root, parent, ordinal, position, status, body FROM tasks_records ORDER BY kind, id");
        let before = bytes(&run);
        let count = run.past.len();
        for _ in 0..count {
            run.travel(true);
        }
        for _ in 0..count {
            run.travel(false);
        }
        prop_assert_eq!(before, bytes(&run));
    }
}
