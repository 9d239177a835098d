//! Edits of a chain of steps: pure, all of them or none.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::text_enum;

use crate::arguments::MAX_STEPS;
use crate::error::{Reason, Refusals};
use crate::gate::GateSpec;
use crate::model::{EvidenceType, StepId, StepStatus};
use crate::step::{StepSpec, names, some_evidence_keys};
use crate::store::step::Step;

text_enum! {
    /// Kind of an edit.
    pub(crate) enum Op {
        Update = "update",
        Insert = "insert",
        Remove = "remove",
        Move = "move",
    }
}

/// One edit of the chain.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// update (step_id, set), insert (step, after), remove (step_id) or move (step_id, after).
    op: Op,
    /// Step to update, remove or move, for example S2.
    step_id: Option<StepId>,
    /// Step after which to place it. Default: the first position.
    after: Option<StepId>,
    /// Fields to change; omitted ones keep their values.
    set: Option<StepChanges>,
    /// Step to insert, as in plan_propose_steps.
    step: Option<StepSpec>,
}

/// Changes of a step.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StepChanges {
    /// Short title of the step. Default: unchanged.
    title: Option<String>,
    /// Work to do, for a reader who sees only the prompt. Default: unchanged.
    instruction_prompt: Option<String>,
    /// Conditions that must hold afterwards, one per entry. Default: unchanged.
    acceptance_criteria: Option<Vec<String>>,
    /// Expected files, commands, documents or tests. Default: unchanged.
    expected_outputs: Option<Vec<String>>,
    /// Keys of the evidence with their types. Default: unchanged.
    #[serde(deserialize_with = "some_evidence_keys")]
    #[schemars(extend("x-accepts" = names()))]
    required_evidence: Option<BTreeMap<String, EvidenceType>>,
    /// Instructions for unmet criteria. Default: unchanged.
    remediation_prompt: Option<String>,
    /// Ids of context blocks that the prompt includes. Default: unchanged.
    context_refs: Option<Vec<String>>,
    /// Conditions that Tollgate checks itself, as in plan_propose_steps. Default: unchanged.
    gates: Option<Vec<GateSpec>>,
    /// True for a review step. Default: unchanged.
    checkpoint: Option<bool>,
    /// True if the step needs a commit of its own. Default: unchanged.
    strict_git: Option<bool>,
    /// Maximum number of submissions, 1 to 100. Default: unchanged.
    #[schemars(range(min = 1, max = 100))]
    max_attempts: Option<u32>,
    /// Tags of the step, as in plan_propose_steps. Default: unchanged.
    tags: Option<Vec<String>>,
}

impl Edit {
    /// Step whose outputs the edit gives.
    pub(crate) fn gives_outputs(&self) -> Option<&StepId> {
        let set = self.set.as_ref()?;
        set.expected_outputs.as_ref().and(self.step_id.as_ref())
    }
}

impl StepChanges {
    fn over(self, spec: StepSpec) -> StepSpec {
        StepSpec {
            title: self.title.unwrap_or(spec.title),
            instruction_prompt: self.instruction_prompt.unwrap_or(spec.instruction_prompt),
            acceptance_criteria: self.acceptance_criteria.unwrap_or(spec.acceptance_criteria),
            expected_outputs: self.expected_outputs.unwrap_or(spec.expected_outputs),
            required_evidence: self.required_evidence.unwrap_or(spec.required_evidence),
            remediation_prompt: self.remediation_prompt.unwrap_or(spec.remediation_prompt),
            context_refs: self.context_refs.unwrap_or(spec.context_refs),
            gates: self.gates.unwrap_or(spec.gates),
            checkpoint: self.checkpoint.unwrap_or(spec.checkpoint),
            strict_git: self.strict_git.unwrap_or(spec.strict_git),
            max_attempts: self.max_attempts.or(spec.max_attempts),
            tags: self.tags.unwrap_or(spec.tags),
        }
    }
}

/// Returns the chain after the edits, or all errors in them. `last` is the highest number that a step ever had.
pub(crate) fn apply(mut steps: Vec<Step>, last: usize, edits: Vec<Edit>) -> Result<Vec<Step>, Refusals> {
    let mut refusals = Refusals::default();
    let highest = steps.iter().filter_map(|step| step.step_id.number()).max();
    let mut highest = highest.unwrap_or(0).max(last);
    if edits.is_empty() {
        refusals.add(Reason::argument("edits", "is empty"));
    }
    for (place, edit) in edits.into_iter().enumerate() {
        let field = format!("edits[{place}]");
        match edit.op {
            Op::Update => update(&mut steps, &field, edit, &mut refusals),
            Op::Insert => insert(&mut steps, &mut highest, &field, edit, &mut refusals),
            Op::Remove => {
                if let Some(at) = open_step(&steps, &field, edit.step_id.as_ref(), &mut refusals) {
                    steps.remove(at);
                }
            }
            Op::Move => shift(&mut steps, &field, &edit, &mut refusals),
        }
    }
    refusals.at_most("edits", steps.len(), MAX_STEPS, "steps as a result");
    match refusals.is_empty() {
        true => Ok(steps),
        false => Err(refusals),
    }
}

fn update(steps: &mut [Step], field: &str, edit: Edit, refusals: &mut Refusals) {
    let at = open_step(steps, field, edit.step_id.as_ref(), refusals);
    let Some(set) = edit.set else {
        refusals.add(Reason::argument(format!("{field}.set"), "is missing"));
        return;
    };
    let Some(step) = at.and_then(|at| steps.get_mut(at)) else {
        return;
    };
    let spec = set.over(step.spec.clone()).tidied();
    spec.check(&format!("{field}.set"), refusals);
    // The text changed: the step needs its prompt again, and its approval no longer applies.
    step.status = StepStatus::Pending;
    step.approval = None;
    step.spec = spec;
}

fn insert(steps: &mut Vec<Step>, highest: &mut usize, field: &str, edit: Edit, refusals: &mut Refusals) {
    let at = place_after(steps, field, edit.after.as_ref(), refusals);
    let Some(spec) = edit.step else {
        refusals.add(Reason::argument(format!("{field}.step"), "is missing"));
        return;
    };
    let spec = spec.tidied();
    spec.check(&format!("{field}.step"), refusals);
    if let Some(at) = at.filter(|at| *at <= steps.len()) {
        // A number that no step had, so that old submissions and notes keep their step.
        *highest = highest.saturating_add(1);
        calm(steps, at);
        steps.insert(at, Step::new(StepId::nth(*highest), spec));
    }
}

fn shift(steps: &mut Vec<Step>, field: &str, edit: &Edit, refusals: &mut Refusals) {
    let from = open_step(steps, field, edit.step_id.as_ref(), refusals);
    if edit.after.is_some() && edit.after == edit.step_id {
        refusals.add(Reason::argument(format!("{field}.after"), "is the step itself"));
        return;
    }
    let to = place_after(steps, field, edit.after.as_ref(), refusals);
    if let (Some(from), Some(to)) = (from, to) {
        let step = steps.remove(from);
        let to = if to > from { to - 1 } else { to };
        calm(steps, to);
        steps.insert(to.min(steps.len()), step);
        calm(steps, 0);
    }
}

/// Resets the steps from an index on to PENDING, because another step comes first now.
fn calm(steps: &mut [Step], from: usize) {
    for step in steps.iter_mut().skip(from) {
        if step.status == StepStatus::Active {
            step.status = StepStatus::Pending;
        }
    }
}

/// Index of a step that may still change.
fn open_step(steps: &[Step], field: &str, id: Option<&StepId>, refusals: &mut Refusals) -> Option<usize> {
    let Some(id) = id else {
        refusals.add(Reason::argument(format!("{field}.step_id"), "is missing"));
        return None;
    };
    match steps.iter().position(|step| step.step_id == *id) {
        None => {
            refusals.add(Reason::not_found("step", id.as_str()));
            None
        }
        Some(at) if steps.get(at).is_some_and(|step| step.status == StepStatus::Done) => {
            refusals.add(Reason::StepDone(id.to_string()));
            None
        }
        at => at,
    }
}

/// Index after a step, which is not before a step that is done.
fn place_after(
    steps: &[Step],
    field: &str,
    after: Option<&StepId>,
    refusals: &mut Refusals,
) -> Option<usize> {
    let done = steps
        .iter()
        .filter(|step| step.status == StepStatus::Done)
        .count();
    let at = match after {
        None => 0,
        Some(id) => match steps.iter().position(|step| step.step_id == *id) {
            Some(at) => at + 1,
            None => {
                refusals.add(Reason::not_found("step", id.as_str()));
                return None;
            }
        },
    };
    if at < done {
        refusals.add(Reason::argument(
            format!("{field}.after"),
            format!("puts the step before one that is done; the first {done} are done"),
        ));
        return None;
    }
    Some(at)
}
