//! The rules, written anew: what a set of records must not be.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Records by kind and identifier, as JSON.
pub(super) type Raw = BTreeMap<(String, String), String>;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Root {
    pub(super) plan: Option<String>,
    pub(super) status: String,
    pub(super) needs: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) task: String,
    pub(super) parent: Option<String>,
    pub(super) done: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) step: String,
    pub(super) task: String,
    pub(super) status: String,
}

/// The model's knowledge of a workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct World {
    pub(super) roots: BTreeMap<String, Root>,
    pub(super) steps: BTreeMap<String, Step>,
    pub(super) nodes: BTreeMap<String, Node>,
    /// Descriptions of templates by name.
    pub(super) templates: BTreeMap<String, String>,
    /// Notes and evidence, each with what it hangs on.
    pub(super) notes: BTreeMap<String, String>,
}

pub(super) fn finished(status: &str) -> bool {
    status == "DONE" || status == "CANCELED"
}

impl World {
    pub(super) fn read(raw: &Raw) -> World {
        let mut world = World::default();
        for ((kind, id), body) in raw {
            let body: Value = serde_json::from_str(body).unwrap();
            let text = |name: &str| body[name].as_str().map(str::to_owned);
            match kind.as_str() {
                "plan" | "task" => {
                    let needs = body["depends_on"].as_array().into_iter().flatten();
                    let root = Root {
                        plan: text("plan"),
                        status: text("status").unwrap(),
                        needs: needs.map(|id| id.as_str().unwrap().to_owned()).collect(),
                    };
                    world.roots.insert(id.clone(), root);
                }
                "step" => {
                    let step = Step {
                        task: text("task").unwrap(),
                        parent: text("parent"),
                        done: body.get("completed_at").is_some(),
                    };
                    world.steps.insert(id.clone(), step);
                }
                "node" => {
                    let node = Node {
                        step: text("step").unwrap(),
                        task: text("task").unwrap(),
                        status: text("status").unwrap(),
                    };
                    world.nodes.insert(id.clone(), node);
                }
                "template" => {
                    world.templates.insert(id.clone(), text("description").unwrap());
                }
                _ => {
                    let on = text("step").or(text("task")).unwrap();
                    world.notes.insert(id.clone(), on);
                }
            }
        }
        world
    }

    fn is_finished(&self, id: &str) -> bool {
        self.roots.get(id).is_some_and(|root| finished(&root.status))
    }

    /// Returns whether something that a plan or task needs is not finished.
    pub(super) fn waits(&self, id: &str) -> bool {
        self.roots[id].needs.iter().any(|need| !self.is_finished(need))
    }

    /// Everything that must not be.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (id, root) in &self.roots {
            if let Some(plan) = &root.plan {
                match self.roots.get(plan) {
                    None => faults.push(format!("{id} has no plan")),
                    Some(plan) if finished(&plan.status) && !finished(&root.status) => {
                        faults.push(format!("{id} is open in a finished plan"));
                    }
                    Some(_) => {}
                }
            }
            for need in root.needs.iter().filter(|need| !self.roots.contains_key(*need)) {
                faults.push(format!("{id} needs {need}, which is gone"));
            }
            if root.status == "DONE" && self.waits(id) {
                faults.push(format!("{id} is done before what it needs"));
            }
            if self.needs_itself(id) {
                faults.push(format!("{id} is in a circle"));
            }
        }
        self.part_faults(&mut faults);
        faults
    }

    fn needs_itself(&self, id: &str) -> bool {
        let (mut open, mut seen) = (self.roots[id].needs.clone(), BTreeSet::new());
        while let Some(next) = open.pop() {
            if next == id {
                return true;
            }
            if seen.insert(next.clone()) {
                open.extend(
                    self.roots
                        .get(&next)
                        .into_iter()
                        .flat_map(|root| root.needs.clone()),
                );
            }
        }
        false
    }

    fn part_faults(&self, faults: &mut Vec<String>) {
        for (id, step) in &self.steps {
            match self.roots.get(&step.task) {
                None => faults.push(format!("{id} has no task")),
                Some(task) if task.status == "DONE" && !step.done => {
                    faults.push(format!("{id} is open in a done task"));
                }
                Some(_) => {}
            }
            if let Some(parent) = &step.parent {
                match self.steps.get(parent) {
                    None => faults.push(format!("{id} has no parent")),
                    Some(parent) if parent.done && !step.done => {
                        faults.push(format!("{id} is open below a closed step"));
                    }
                    Some(_) => {}
                }
            }
        }
        for (id, node) in &self.nodes {
            match self.steps.get(&node.step) {
                None => faults.push(format!("{id} has no step")),
                Some(step) if step.done && !finished(&node.status) => {
                    faults.push(format!("{id} is open below a closed step"));
                }
                Some(_) => {}
            }
        }
        for (id, on) in &self.notes {
            if !self.roots.contains_key(on) && !self.steps.contains_key(on) {
                faults.push(format!("{id} hangs on nothing"));
            }
        }
    }

    /// Returns whether a plan or task becomes ACTIVE before what it needs.
    pub(super) fn begins_too_early(&self, before: &World) -> bool {
        self.roots.iter().any(|(id, root)| {
            let was = before.roots.get(id).map(|root| root.status.as_str());
            root.status == "ACTIVE" && was != Some("ACTIVE") && self.waits(id)
        })
    }

    /// A step with everything below it.
    pub(super) fn subtree(&self, step: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::from([step.to_owned()]);
        loop {
            let more: Vec<String> = self
                .steps
                .iter()
                .filter(|(id, step)| {
                    !all.contains(*id) && step.parent.as_ref().is_some_and(|id| all.contains(id))
                })
                .map(|(id, _)| id.clone())
                .collect();
            if more.is_empty() {
                return all;
            }
            all.extend(more);
        }
    }

    pub(super) fn depth(&self, step: &str) -> usize {
        let mut depth = 1;
        let mut here = &self.steps[step];
        while let Some(parent) = &here.parent {
            depth += 1;
            here = &self.steps[parent];
        }
        depth
    }
}
