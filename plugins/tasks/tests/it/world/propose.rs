//! Random direct calls, each with the world that the model says it leads to.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rules::{Node, Root, Step, World, finished};
use super::run::Run;

const STATUSES: [&str; 5] = ["TODO", "ACTIVE", "DONE", "PARKED", "CANCELED"];

/// A direct call: its tool, its arguments, and the world that it leads to, `None` if it is refused. New
/// identifiers are the pack's to choose, so they come from its reply.
pub(super) struct Call {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) leads_to: Option<World>,
    pub(super) makes: Vec<(Made, &'static str)>,
}

/// A new record, and below where the reply has its identifier.
pub(super) enum Made {
    Root(Root),
    Step(Step),
    Node(Node),
    Note(String),
}

impl Run {
    /// A random direct call with what the model says of it.
    pub(super) fn propose(&mut self, world: &World) -> Option<Call> {
        if world.roots.len() < 4 {
            return self.create(world);
        }
        match self.below(15) {
            0 => self.create(world),
            1 | 2 => self.add_step(world),
            3 => self.edit(world),
            4..=6 => self.complete(world),
            7 => self.close(world),
            8 => self.reopen(world),
            9 => self.node(world),
            10 => self.note(world),
            11 => self.move_step(world),
            12 => self.delete(world),
            13 => self.template(world),
            _ => self.close(world),
        }
    }

    fn needs(&mut self, world: &World, kind: &str) -> Vec<String> {
        let of_kind: Vec<String> = world
            .roots
            .keys()
            .filter(|id| id.starts_with(kind))
            .cloned()
            .collect();
        let mut needs = BTreeSet::new();
        // Most need nothing, so that there is work to do.
        for _ in 0..self.below(6).saturating_sub(3) {
            needs.extend(self.pick(of_kind.clone()));
        }
        needs.into_iter().collect()
    }

    fn create(&mut self, world: &World) -> Option<Call> {
        let plans: Vec<String> = world
            .roots
            .keys()
            .filter(|id| id.starts_with("PLAN"))
            .cloned()
            .collect();
        let plan = match plans.len() {
            0 => None,
            1 | 2 if self.below(4) == 0 => None,
            _ => self.pick(plans),
        };
        if world.roots.len() > 12 {
            return None;
        }
        let needs = self.needs(world, if plan.is_some() { "TASK" } else { "PLAN" });
        let open = plan
            .as_ref()
            .is_none_or(|plan| !finished(&world.roots[plan].status));
        let mut arguments = json!({"title": "t", "depends_on": needs});
        if let Some(plan) = &plan {
            arguments["plan"] = json!(plan);
        }
        let at = if plan.is_some() { "/task" } else { "/plan" };
        let root = Root {
            plan,
            status: "TODO".to_owned(),
            needs,
        };
        Some(Call {
            tool: "tasks_create",
            arguments,
            leads_to: open.then(|| world.clone()),
            makes: vec![(Made::Root(root), at)],
        })
    }

    fn add_step(&mut self, world: &World) -> Option<Call> {
        let task = self.pick(world.roots.keys().filter(|id| id.starts_with("TASK")).cloned())?;
        let parent = match self.below(2) {
            0 => None,
            _ => self.pick(
                world
                    .steps
                    .iter()
                    .filter(|(_, step)| step.task == task)
                    .map(|(id, _)| id.clone()),
            ),
        };
        let siblings = world
            .steps
            .values()
            .filter(|step| step.task == task && step.parent == parent)
            .count();
        let allowed = !finished(&world.roots[&task].status)
            && parent
                .as_ref()
                .is_none_or(|parent| !world.steps[parent].done && world.depth(parent) < 8);
        let mut arguments = json!({"task": task, "steps": [{"title": "s"}]});
        if let Some(parent) = &parent {
            arguments["parent_step"] = json!(parent);
        }
        if self.below(2) == 0 {
            arguments["position"] = json!(self.below(siblings + 1));
        }
        let step = Step {
            task,
            parent,
            done: false,
        };
        Some(Call {
            tool: "tasks_decompose",
            arguments,
            leads_to: allowed.then(|| world.clone()),
            makes: vec![(Made::Step(step), "/steps/0/step_id")],
        })
    }

    fn edit(&mut self, world: &World) -> Option<Call> {
        let id = self.pick(world.roots.keys().cloned())?;
        let needs = self.needs(world, &id[..4]);
        let mut next = world.clone();
        next.roots.get_mut(&id)?.needs.clone_from(&needs);
        Some(Call::of(
            "tasks_edit",
            json!({"task": id, "depends_on": needs}),
            next,
        ))
    }

    fn complete(&mut self, world: &World) -> Option<Call> {
        let id = self.pick(world.roots.keys().cloned())?;
        let to = STATUSES[[0, 1, 1, 2, 2, 2, 3, 4][self.below(8)]];
        let mut next = world.clone();
        next.roots.get_mut(&id)?.status = to.to_owned();
        let mut has_content = world.steps.values().any(|step| step.task == id);
        for task in next
            .roots
            .values_mut()
            .filter(|task| task.plan.as_ref() == Some(&id))
        {
            has_content = true;
            if to == "CANCELED" && !finished(&task.status) {
                to.clone_into(&mut task.status);
            }
        }
        let mut call = Call::of("tasks_complete", json!({"task": id, "status": to}), next);
        let early = call
            .leads_to
            .as_ref()
            .is_some_and(|next| next.begins_too_early(world));
        if early || (to == "DONE" && !has_content) {
            call.leads_to = None;
        }
        Some(call)
    }

    fn close(&mut self, world: &World) -> Option<Call> {
        let id = self.pick(world.steps.keys().cloned())?;
        let mut next = world.clone();
        let step = next.steps.get_mut(&id)?;
        let (was_done, task) = (std::mem::replace(&mut step.done, true), step.task.clone());
        let allowed = was_done || begin(&mut next, &task);
        let mut call = Call::of("tasks_done", json!({"task": task, "step_id": id}), next);
        call.leads_to = call.leads_to.filter(|_| allowed);
        Some(call)
    }

    fn reopen(&mut self, world: &World) -> Option<Call> {
        let id = self.pick(world.steps.keys().cloned())?;
        let mut next = world.clone();
        let task = next.steps[&id].task.clone();
        if next.steps[&id].done {
            let mut here = Some(id.clone());
            while let Some(id) = here {
                let step = next.steps.get_mut(&id)?;
                step.done = false;
                here = step.parent.clone();
            }
            if next.roots[&task].status == "DONE" {
                let to = if next.waits(&task) { "TODO" } else { "ACTIVE" };
                next.roots.get_mut(&task)?.status = to.to_owned();
            }
        }
        let arguments = json!({"task": task, "step_id": id, "completed": false, "reason": "r"});
        Some(Call::of("tasks_progress", arguments, next))
    }

    fn node(&mut self, world: &World) -> Option<Call> {
        if let (Some((id, node)), true) = (self.pick(world.nodes.clone()), self.below(3) > 0) {
            let to = ["TODO", "DONE", "DONE", "CANCELED"][self.below(4)];
            let mut next = world.clone();
            let mut allowed = true;
            if node.status != to {
                next.nodes.get_mut(&id)?.status = to.to_owned();
                allowed = !world.steps[&node.step].done
                    && !finished(&world.roots[&node.task].status)
                    && (to != "DONE" || begin(&mut next, &node.task));
            }
            let arguments = json!({"task": node.task, "task_node_id": id, "status": to});
            let mut call = Call::of("tasks_task_define", arguments, next);
            call.leads_to = call.leads_to.filter(|_| allowed);
            return Some(call);
        }
        let (id, step) = self.pick(world.steps.clone())?;
        let allowed = !step.done && !finished(&world.roots[&step.task].status);
        let node = Node {
            step: id.clone(),
            task: step.task.clone(),
            status: "TODO".to_owned(),
        };
        Some(Call {
            tool: "tasks_task_add",
            arguments: json!({"task": step.task, "parent_step": id, "title": "n"}),
            leads_to: allowed.then(|| world.clone()),
            makes: vec![(Made::Node(node), "/node/task_node_id")],
        })
    }

    fn note(&mut self, world: &World) -> Option<Call> {
        let (task, step) = match self.pick(world.steps.clone()) {
            Some((id, step)) if self.below(2) == 0 => (step.task, Some(id)),
            _ => (self.pick(world.roots.keys().cloned())?, None),
        };
        let on = step.clone().unwrap_or_else(|| task.clone());
        // Evidence that is linked to no checkpoint hangs on something as a note does.
        let (tool, mut arguments) = match self.below(2) {
            0 => ("tasks_note", json!({"task": task, "note": "n"})),
            _ => (
                "tasks_evidence_capture",
                json!({"task": task, "items": [{"title": "t", "body": "b", "exit_code": self.below(2)}]}),
            ),
        };
        if let Some(step) = step {
            arguments["step_id"] = json!(step);
        }
        Some(Call {
            tool,
            arguments,
            leads_to: Some(world.clone()),
            makes: vec![(Made::Note(on), "/ids/0")],
        })
    }

    /// A template is saved anew or in place of the one of its name.
    fn template(&mut self, world: &World) -> Option<Call> {
        let name = self.pick(["x", "y"])?;
        let description = self.pick(["one", "two"])?;
        let steps = json!([{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]);
        let mut next = world.clone();
        next.templates.insert(name.to_owned(), description.to_owned());
        Some(Call {
            tool: "tasks_template_save",
            arguments: json!({"name": name, "kind": "task", "description": description, "steps": steps}),
            leads_to: Some(next),
            makes: Vec::new(),
        })
    }

    fn move_step(&mut self, world: &World) -> Option<Call> {
        let (id, step) = self.pick(world.steps.clone())?;
        let of_task = world.steps.iter().filter(|(_, other)| other.task == step.task);
        let others: Vec<String> = of_task.map(|(id, _)| id.clone()).collect();
        let parent = match self.below(2) {
            0 => None,
            _ => self.pick(others),
        };
        let below = world.subtree(&id);
        let height = below.iter().map(|id| world.depth(id)).max()? + 1 - world.depth(&id);
        let fits = parent
            .as_ref()
            .is_none_or(|parent| !below.contains(parent) && world.depth(parent) + height <= 8);
        let mut next = world.clone();
        next.steps.get_mut(&id)?.parent.clone_from(&parent);
        let mut arguments = json!({"task": step.task, "step_id": id});
        match &parent {
            Some(parent) => arguments["parent_step"] = json!(parent),
            None => arguments["top"] = json!(true),
        }
        if self.below(2) == 0 {
            arguments["position"] = json!(0);
        }
        let open = !finished(&world.roots[&step.task].status);
        let mut call = if fits {
            Call::of("tasks_move", arguments, next)
        } else {
            Call {
                tool: "tasks_move",
                arguments,
                leads_to: None,
                makes: Vec::new(),
            }
        };
        call.leads_to = call.leads_to.filter(|_| open);
        Some(call)
    }

    fn delete(&mut self, world: &World) -> Option<Call> {
        let mut next = world.clone();
        if let (Some((id, step)), true) = (self.pick(world.steps.clone()), self.below(3) > 0) {
            next.remove(&world.subtree(&id));
            let open = !finished(&world.roots[&step.task].status);
            let arguments = json!({"task": step.task, "step_id": id});
            let mut call = Call::of("tasks_delete", arguments, next);
            call.leads_to = call.leads_to.filter(|_| open);
            return Some(call);
        }
        let id = self.pick(world.roots.keys().cloned())?;
        next.roots
            .retain(|other, root| *other != id && root.plan.as_ref() != Some(&id));
        let steps = world
            .steps
            .iter()
            .filter(|(_, step)| !next.roots.contains_key(&step.task));
        let steps: BTreeSet<String> = steps.map(|(id, _)| id.clone()).collect();
        next.remove(&steps);
        let roots = next.roots.clone();
        let known = |on: &String| !world.roots.contains_key(on) || roots.contains_key(on);
        next.notes.retain(|_, on| known(on));
        Some(Call::of("tasks_delete", json!({"task": id}), next))
    }
}

/// Makes a task ACTIVE through work on it. Returns whether work is allowed.
fn begin(world: &mut World, task: &str) -> bool {
    let waits = world.waits(task);
    let root = world.roots.get_mut(task).unwrap();
    let allowed = root.status == "ACTIVE" || (root.status == "TODO" && !waits);
    if allowed {
        root.status = "ACTIVE".to_owned();
    }
    allowed
}

impl World {
    fn remove(&mut self, steps: &BTreeSet<String>) {
        self.steps.retain(|id, _| !steps.contains(id));
        self.nodes.retain(|_, node| !steps.contains(&node.step));
        self.notes.retain(|_, on| !steps.contains(on));
    }
}

impl Call {
    /// A call that is accepted if the world it leads to keeps the rules.
    fn of(tool: &'static str, arguments: Value, next: World) -> Call {
        Call {
            tool,
            arguments,
            leads_to: next.faults().is_empty().then_some(next),
            makes: Vec::new(),
        }
    }

    /// The world after the call, with the identifiers of its reply.
    pub(super) fn expected(&self, reply: &Value) -> Option<World> {
        let mut world = self.leads_to.clone()?;
        for (made, at) in &self.makes {
            let id = reply.pointer(at).and_then(Value::as_str)?.to_owned();
            match made {
                Made::Root(root) => drop(world.roots.insert(id, root.clone())),
                Made::Step(step) => drop(world.steps.insert(id, step.clone())),
                Made::Node(node) => drop(world.nodes.insert(id, node.clone())),
                Made::Note(on) => drop(world.notes.insert(id, on.clone())),
            }
        }
        Some(world)
    }
}
