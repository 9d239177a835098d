//! Suggested calls after a change, and calls that explain a refusal.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::NextCall;

use crate::model::Unit;
use crate::standing::{self, Outlook, Step, Tree};

/// Step that needs arguments which only the caller has.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Suggestion {
    /// Description of the step.
    pub action: String,
    /// Name of the tool for the step.
    pub tool: String,
    /// Arguments of the tool that are known.
    pub arguments: Map<String, Json>,
    /// Names of the arguments to add.
    pub needs: Vec<String>,
}

/// Next step after a change.
#[derive(Debug)]
pub(crate) enum Next {
    /// A call that is ready to run.
    Call(NextCall),
    /// A step that needs arguments.
    Step(Suggestion),
}

/// Arguments of a call in a workspace, by an actor if there is a name.
pub(crate) fn arguments(workspace: &str, actor: Option<&str>, rest: Json) -> Map<String, Json> {
    let mut arguments = Map::from_iter([("workspace".to_owned(), json!(workspace))]);
    if let Json::Object(rest) = rest {
        arguments.extend(rest);
    }
    if let Some(actor) = actor {
        arguments.insert("actor".to_owned(), json!(actor));
    }
    arguments
}

/// First step near a changed unit that the actor may take.
pub(crate) fn after(
    workspace: &str,
    actor: Option<&str>,
    unit: &Unit,
    tree: &Tree,
    outlook: &Outlook,
) -> Option<Next> {
    if let Some(call) = resumed(workspace, actor, unit, tree, outlook) {
        return Some(Next::Call(call));
    }
    let mut open: Vec<&Step> = outlook
        .steps
        .iter()
        .filter(|step| step.unit.milestone == unit.milestone && is_free(step, actor, tree))
        .collect();
    // The unit itself, then its slice, then its milestone.
    open.sort_by_key(|step| {
        let is_in_slice = unit.slice.is_none() || step.unit.slice == unit.slice;
        (step.unit != *unit, !is_in_slice)
    });
    open.first().map(|step| of_step(workspace, actor, step))
}

/// The call that starts a task again, which the actor took over from the one who started it. Only a claim on the task
/// itself says so.
fn resumed(
    workspace: &str,
    actor: Option<&str>,
    unit: &Unit,
    tree: &Tree,
    outlook: &Outlook,
) -> Option<NextCall> {
    let claim = tree.claims.get(&unit.to_string())?;
    let is_own = Some(claim.owner.as_str()) == actor;
    let step = outlook.steps.iter().find(|step| step.unit == *unit)?;
    let is_taken_over = is_own && step.by.as_deref().is_some_and(|by| Some(by) != actor);
    let arguments = || Json::Object(arguments(workspace, actor, at(unit)));
    is_taken_over.then(|| NextCall::new("gsd_task_start", arguments()))
}

/// Returns whether nobody else holds the unit of a step or works on it.
pub(crate) fn is_free(step: &Step, actor: Option<&str>, tree: &Tree) -> bool {
    let holder = standing::holder(tree, &step.unit);
    let is_own = holder.is_some() && holder == actor;
    let by_other = step
        .by
        .as_deref()
        .is_some_and(|by| by != actor.unwrap_or(crate::act::DEFAULT_ACTOR));
    (is_own || holder.is_none()) && !by_other
}

/// A step as a call, if the call needs nothing else.
pub(crate) fn of_step(workspace: &str, actor: Option<&str>, step: &Step) -> Next {
    let needs: &[&str] = match step.tool {
        "gsd_task_complete" => &["one_liner", "narrative", "verification"],
        "gsd_slice_complete" => &["one_liner", "narrative", "verification", "uat_content"],
        "gsd_milestone_complete" => &["one_liner", "narrative", "verification_passed"],
        "gsd_validate_milestone" => &["verdict", "rationale"],
        "gsd_plan_slice" => &["tasks"],
        "gsd_plan_milestone" => &["slices"],
        _ => &[],
    };
    let arguments = arguments(workspace, actor, at(&step.unit));
    if needs.is_empty() {
        return Next::Call(NextCall::new(step.tool, Json::Object(arguments)));
    }
    Next::Step(Suggestion {
        action: step.what.clone(),
        tool: step.tool.to_owned(),
        arguments,
        needs: needs.iter().map(|name| (*name).to_owned()).collect(),
    })
}

/// The argument that names a unit.
fn at(unit: &Unit) -> Json {
    match unit.slice {
        Some(_) => json!({"unit": unit.to_string()}),
        None => json!({"milestone_id": unit.milestone}),
    }
}

/// The call that shows a unit in full.
pub(crate) fn show(workspace: &str, unit: &Unit) -> NextCall {
    NextCall::new(
        "gsd_show",
        json!({"workspace": workspace, "unit": unit.to_string()}),
    )
}

/// The call that shows every workspace, or one of them.
pub(crate) fn status(workspace: Option<&str>) -> NextCall {
    let arguments = workspace.map_or_else(|| json!({}), |workspace| json!({"workspace": workspace}));
    NextCall::new("gsd_status", arguments)
}
