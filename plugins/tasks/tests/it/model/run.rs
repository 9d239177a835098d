//! One run: the pack and the model side by side.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_sdk::native::Session;

use super::Op;
use super::state::{Node, State, Step, at, path, shown, ways};
use crate::harness::{THREE_STEPS, after};

pub(super) struct Run {
    pub(super) session: Session,
    state: State,
    pub(super) past: Vec<State>,
    future: Vec<State>,
    revision: i64,
    count: u32,
}

impl Run {
    pub(super) fn new() -> Run {
        let session = after(&[THREE_STEPS]);
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
    pub(super) fn step(&mut self, op: &Op) {
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
                Some(way) => self.define(&mut next, &way, *what, is_open),
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
                    if !is_open {
                        return self.verify(&outcome, false);
                    }
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
                Some(way) => match self.change_node(&mut next, &way, op, is_open) {
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

    fn define(
        &mut self,
        next: &mut State,
        way: &[usize],
        what: u8,
        is_open: bool,
    ) -> (Result<Value, String>, bool) {
        let text = format!("d{}", self.count);
        let step = at(&mut next.steps, way);
        let arguments = match what {
            0 => json!({"path": path(way), "title": text}),
            1 => json!({"path": path(way), "success_criteria": [text]}),
            _ => json!({"path": path(way), "tests": []}),
        };
        let allowed = match what {
            0 if is_open => {
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
                let step = at(&mut next.steps, &way[..length]);
                if std::mem::replace(&mut step.done, false) {
                    step.confirmed.clear();
                }
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
        is_open: bool,
    ) -> Option<(Result<Value, String>, bool)> {
        let step = at(&mut next.steps, way);
        let last = step.nodes.len().checked_sub(1)?;
        let node_path = format!("{}.t:{last}", path(way));
        if let Op::NodeStatus(_, done) = op {
            let status = if *done { "DONE" } else { "TODO" };
            let same = step.nodes[last].status == status;
            let allowed = same || (!step.done && (!*done || is_open));
            if allowed {
                step.nodes[last].status = status;
            }
            // Work on a node is progress of its task.
            if allowed && *done && !same {
                next.status = "ACTIVE";
            }
            return Some((
                self.call("tasks_task_define", json!({"path": node_path, "status": status})),
                allowed,
            ));
        }
        if is_open {
            step.nodes.remove(last);
        }
        Some((
            self.call("tasks_task_delete", json!({"path": node_path})),
            is_open,
        ))
    }

    pub(super) fn travel(&mut self, back: bool) {
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
    pub(super) fn paths_and_ids(&self) {
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
