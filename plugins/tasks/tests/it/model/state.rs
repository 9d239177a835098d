//! The state as the model has it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// A step as the model has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) criteria: Vec<String>,
    pub(super) tests: Vec<String>,
    pub(super) confirmed: BTreeSet<&'static str>,
    pub(super) blocked: bool,
    pub(super) done: bool,
    pub(super) children: Vec<Step>,
    pub(super) nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) status: &'static str,
}

/// A task as the model has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub(super) status: &'static str,
    pub(super) steps: Vec<Step>,
}

impl Step {
    pub(super) fn missing(&self) -> bool {
        (!self.criteria.is_empty() && !self.confirmed.contains("criteria"))
            || (!self.tests.is_empty() && !self.confirmed.contains("tests"))
    }

    pub(super) fn confirm(&mut self) {
        if !self.criteria.is_empty() {
            self.confirmed.insert("criteria");
        }
        if !self.tests.is_empty() {
            self.confirmed.insert("tests");
        }
    }

    pub(super) fn has_open_parts(&self) -> bool {
        self.children.iter().any(|child| !child.done) || self.nodes.iter().any(|node| node.status != "DONE")
    }

    pub(super) fn status(&self) -> &'static str {
        match (self.done, self.blocked) {
            (true, _) if self.missing() => "forced",
            (true, _) => "done",
            (false, true) => "blocked",
            (false, false) => "open",
        }
    }
}

/// Every way from the top to a step, depth first.
pub(super) fn ways(steps: &[Step], above: &[usize], all: &mut Vec<Vec<usize>>) {
    for (place, step) in steps.iter().enumerate() {
        let mut way = above.to_vec();
        way.push(place);
        all.push(way.clone());
        ways(&step.children, &way, all);
    }
}

pub(super) fn at<'a>(steps: &'a mut [Step], way: &[usize]) -> &'a mut Step {
    let (first, rest) = way.split_first().unwrap();
    let step = &mut steps[*first];
    if rest.is_empty() {
        step
    } else {
        at(&mut step.children, rest)
    }
}

pub(super) fn path(way: &[usize]) -> String {
    way.iter()
        .map(|place| format!("s:{place}"))
        .collect::<Vec<_>>()
        .join(".")
}

/// The state as `tasks_mirror` shows it.
pub(super) fn shown(state: &State) -> Vec<Value> {
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
