//! A plan's checklist and contract.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use crate::error::{Reason, Refusals};
use crate::limits::{MAX_CHECKLIST, MAX_TEXT_CHARS};
use crate::model::EventType;
use crate::record::{Plan, Root};
use crate::reply::Written;
use crate::target::PlanTarget;
use crate::write::Write;

/// Update a plan's checklist: `steps` replaces the entries, `current` sets the current entry, `advance` moves
/// to the next one, `doc` replaces the accompanying document.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PlanTool {
    #[serde(flatten)]
    target: PlanTarget,
    /// Entries that replace the checklist.
    #[schemars(length(max = MAX_CHECKLIST))]
    steps: Option<Vec<String>>,
    /// Index of the current entry, from 0. The number of entries means that all are done.
    current: Option<usize>,
    /// Document that accompanies the checklist.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    doc: Option<String>,
    /// Move to the next entry (default false). Not together with `current`.
    #[serde(default)]
    advance: bool,
}

impl Tool for PlanTool {
    const NAME: &'static str = "tasks_plan";
    const TITLE: &'static str = "Update a plan's checklist";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let (write, old) = self.target.begin(cx, Self::NAME)?;
        let mut plan = old.clone();
        self.update(&mut plan)?;
        let data = json!({"current": plan.current, "entries": plan.steps.len()});
        replace(write, &old, plan, EventType::ChecklistUpdated, data)
    }
}

impl PlanTool {
    fn update(self, plan: &mut Plan) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        plan.doc = self.doc.or(plan.doc.take());
        if let Some(steps) = self.steps {
            plan.current = plan.current.min(steps.len());
            plan.steps = steps;
        }
        let entries = plan.steps.len();
        match (self.current, self.advance) {
            (Some(_), true) => refusals.add(Reason::input("advance", "cannot be combined with current")),
            (Some(current), false) if current > entries => {
                refusals.add(Reason::input(
                    "current",
                    format!("is {current}, but the checklist has {entries} entries"),
                ));
            }
            (Some(current), false) => plan.current = current,
            (None, true) if plan.current >= entries => {
                refusals.add(Reason::input(
                    "advance",
                    "is not possible at the end of the checklist",
                ));
            }
            (None, true) => plan.current += 1,
            (None, false) => {}
        }
        refusals.root(&Root::Plan(plan.clone()));
        refusals.finish()
    }
}

/// Set a plan's contract as text (`current`) or as data, or remove both with `clear=true`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Contract {
    #[serde(flatten)]
    target: PlanTarget,
    /// Contract of the plan, as text.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    current: Option<String>,
    /// Contract of a plan as a JSON object.
    contract_data: Option<Map<String, Json>>,
    /// Remove text and data of the contract (default false).
    #[serde(default)]
    clear: bool,
}

impl Tool for Contract {
    const NAME: &'static str = "tasks_contract";
    const TITLE: &'static str = "Set or clear a contract";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::REPLACING;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let (write, old) = self.target.begin(cx, Self::NAME)?;
        let mut plan = old.clone();
        self.update(&mut plan)?;
        let cleared = plan.contract.is_none() && plan.contract_data.is_none();
        let event = if cleared {
            EventType::ContractCleared
        } else {
            EventType::ContractSet
        };
        replace(write, &old, plan, event, json!({}))
    }
}

impl Contract {
    fn update(self, plan: &mut Plan) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        let given = self.current.is_some() || self.contract_data.is_some();
        match (self.clear, given) {
            (true, true) => refusals.add(Reason::input("clear", "cannot be combined with a contract")),
            (false, false) => refusals.add(Reason::input("current", "or contract_data or clear is required")),
            (true, false) => (plan.contract, plan.contract_data) = (None, None),
            (false, true) => {
                plan.contract = self.current.or(plan.contract.take());
                plan.contract_data = self.contract_data.or(plan.contract_data.take());
            }
        }
        refusals.root(&Root::Plan(plan.clone()));
        refusals.finish()
    }
}

/// Stores a plan and the event of its change, if it changed.
fn replace(
    mut write: Write<'_>,
    old: &Plan,
    new: Plan,
    event: EventType,
    data: Json,
) -> Result<Written, ToolError> {
    if new != *old {
        write.event(event, &new.meta.id, None, data);
        write.put_root(&Root::Plan(new))?;
    }
    write.reply(&old.meta.id, |written| written)
}
