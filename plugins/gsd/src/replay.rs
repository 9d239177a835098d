//! Applying an event of another data directory as if its call were made now, at the event's own time.

use serde_json::{Map, Value as Json, json};
use tollgate_kit::INVALID_ARGUMENTS;
use tollgate_sdk::{Cx, Db, ToolError};

use crate::act::{Act, Change};
use crate::store::log::{self, Event};
use crate::tools::{claim, complete, milestone, plan, reopen, revise, roadmap, skip, start};
use crate::violation::Refusals;

/// Reasons that depend on who may act, on settings, or on rules that earlier versions lacked, which may have differed
/// where the event happened.
const EXCUSED_CODES: [&str; 9] = [
    "ACTOR_REQUIRED",
    "ALREADY_STARTED",
    "DEPENDENCY_INCOMPLETE",
    "DEPENDENT_COMPLETE",
    "EVIDENCE_REQUIRED",
    "NOT_CLAIM_OWNER",
    "SLICE_DEPENDENCY_OPEN",
    "VALIDATION_MISSING",
    "VERIFICATION_NOT_PASSED",
];

/// Outcome of an event.
#[derive(Debug)]
pub(crate) enum Replayed {
    Applied,
    /// The event contradicts what is stored. Nothing was written.
    Refused(Box<ToolError>),
}

/// Applies an event and stores it.
pub(crate) fn replay(cx: &Cx<'_>, db: &Db<'_>, event: &Event) -> Result<Replayed, ToolError> {
    match event.cmd.as_str() {
        "plan-milestone" => of::<roadmap::PlanMilestone>(cx, db, event),
        "plan-slice" => of::<plan::PlanSlice>(cx, db, event),
        "plan-task" => of::<plan::PlanTask>(cx, db, event),
        "start-task" => of::<start::StartTask>(cx, db, event),
        "complete-task" => of::<complete::CompleteTask>(cx, db, event),
        "complete-slice" => of::<complete::CompleteSlice>(cx, db, event),
        "skip-slice" => of::<skip::SkipSlice>(cx, db, event),
        "validate-milestone" => of::<milestone::ValidateMilestone>(cx, db, event),
        "complete-milestone" => of::<milestone::CompleteMilestone>(cx, db, event),
        "reassess-roadmap" => of::<revise::ReassessRoadmap>(cx, db, event),
        "replan-slice" => of::<revise::ReplanSlice>(cx, db, event),
        "reopen-task" => of::<reopen::ReopenTask>(cx, db, event),
        "reopen-slice" => of::<reopen::ReopenSlice>(cx, db, event),
        "reopen-milestone" => of::<reopen::ReopenMilestone>(cx, db, event),
        "claim-unit" => of::<claim::ClaimUnit>(cx, db, event),
        "release-unit" => of::<claim::ReleaseUnit>(cx, db, event),
        other => {
            let other: String = other.chars().take(40).collect();
            let message = format!("`{}` is not a command of gsd", other.escape_debug());
            Ok(refused(ToolError::new(INVALID_ARGUMENTS, message)))
        }
    }
}

fn of<C: Change>(cx: &Cx<'_>, db: &Db<'_>, event: &Event) -> Result<Replayed, ToolError> {
    let call: C = match serde_json::from_value(Json::Object(arguments(event))) {
        Ok(call) => call,
        Err(err) => {
            let message = format!(
                "the arguments of {} do not match the tool's input schema: {err}",
                C::NAME
            );
            return Ok(refused(ToolError::new(INVALID_ARGUMENTS, message)));
        }
    };
    let act = Act::new(cx, db, &call, event.ts)?;
    let mut refusals = Refusals::default();
    let facts = call.check(&act, &mut refusals)?;
    if let Err(mut refusal) = refusals.finish() {
        refusal
            .blockers
            .retain(|blocker| !EXCUSED_CODES.contains(&blocker.code.as_str()));
        if let Some(blocker) = refusal.blockers.first() {
            refusal.code.clone_from(&blocker.code);
            refusal.message.clone_from(&blocker.message);
            return Ok(refused(refusal));
        }
    }
    let Some(facts) = facts else {
        let message = format!("{} cannot be applied", event.cmd);
        return Ok(refused(ToolError::new("NOT_APPLICABLE", message)));
    };
    let stored = log::append_event(db, event.clone())?;
    call.apply(&act, facts, &stored)?;
    Ok(Replayed::Applied)
}

fn refused(why: ToolError) -> Replayed {
    Replayed::Refused(Box::new(why))
}

/// Arguments of an event's call.
fn arguments(event: &Event) -> Map<String, Json> {
    let mut arguments = event.params.clone();
    if event.version < 2 {
        clear_absent(&event.cmd, &mut arguments);
    }
    arguments.insert("workspace".to_owned(), json!(event.workspace));
    arguments.insert("actor".to_owned(), json!(event.actor_name));
    if let Some(reason) = &event.trigger_reason {
        arguments.insert("trigger_reason".to_owned(), json!(reason));
    }
    arguments
}

const MILESTONE_FIELDS: &[&str] = &[
    "vision",
    "depends_on",
    "success_criteria",
    "key_risks",
    "definition_of_done",
];
const SLICE_FIELDS: &[&str] = &["depends", "demo", "goal"];
const TASK_FIELDS: &[&str] = &[
    "description",
    "estimate",
    "files",
    "verify",
    "inputs",
    "expected_output",
];

/// Names in `clear` what events of version 1 emptied by leaving it out.
fn clear_absent(cmd: &str, params: &mut Map<String, Json>) {
    match cmd {
        "plan-milestone" => {
            clear(MILESTONE_FIELDS, params);
            each(params.get_mut("slices"), SLICE_FIELDS);
        }
        "plan-slice" => {
            if params.get("goal").is_some_and(is_empty) {
                clear(&["goal"], params);
            }
            each(params.get_mut("tasks"), TASK_FIELDS);
        }
        "plan-task" => clear(TASK_FIELDS, params),
        "replan-slice" => each(params.get_mut("updated_tasks"), TASK_FIELDS),
        _ => {}
    }
}

fn each(list: Option<&mut Json>, fields: &[&str]) {
    for entry in list.and_then(Json::as_array_mut).into_iter().flatten() {
        if let Json::Object(entry) = entry {
            clear(fields, entry);
        }
    }
}

fn clear(fields: &[&str], params: &mut Map<String, Json>) {
    let empty: Vec<&str> = fields
        .iter()
        .copied()
        .filter(|field| params.get(*field).is_none_or(is_empty))
        .collect();
    params.insert("clear".to_owned(), json!(empty));
}

fn is_empty(value: &Json) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
        || value.as_array().is_some_and(Vec::is_empty)
        || value.is_null()
}
