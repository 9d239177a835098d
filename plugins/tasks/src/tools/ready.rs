//! Tasks of tasks_bootstrap, read field by field, so that a refusal names every faulty field with its place.

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::create::ReadyTask;
use crate::error::{Reason, Refusals, clip};
use crate::limits::{MAX_ENTRIES, MAX_STEPS};
use crate::model::Priority;

/// Most faults that a refusal lists.
const MAX_FAULTS: usize = 50;

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Text,
    Texts,
    Priority,
    Steps,
}

/// Name and type of a field, and whether it is required.
type Fields = [(&'static str, Field, bool)];

const TASK_FIELDS: &Fields = &[
    ("title", Field::Text, true),
    ("steps", Field::Steps, true),
    ("description", Field::Text, false),
    ("priority", Field::Priority, false),
    ("depends_on", Field::Texts, false),
];
const STEP_FIELDS: &Fields = &[
    ("title", Field::Text, true),
    ("success_criteria", Field::Texts, true),
    ("tests", Field::Texts, true),
    ("blockers", Field::Texts, false),
];

/// A task as the call has it.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Unread(Map<String, Json>);

/// The tasks of a call. None if one has a faulty field.
pub(super) fn read(tasks: &[Unread], refusals: &mut Refusals) -> Vec<ReadyTask> {
    let mut faults = Vec::new();
    for (place, Unread(task)) in tasks.iter().enumerate().take(MAX_ENTRIES) {
        fields(&format!("tasks[{place}]"), task, TASK_FIELDS, &mut faults);
    }
    let mut read = Vec::new();
    for (place, Unread(task)) in tasks.iter().enumerate().filter(|_| faults.is_empty()) {
        let fields = task.iter().filter(|(_, value)| !value.is_null());
        let fields: Map<String, Json> = fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        match serde_json::from_value(Json::Object(fields)) {
            Ok(task) => read.push(task),
            Err(err) => refusals.add(Reason::input(
                format!("tasks[{place}]"),
                format!("is not a task: {err}"),
            )),
        }
    }
    for (field, fault) in faults.into_iter().take(MAX_FAULTS) {
        refusals.add(Reason::input(field, fault));
    }
    read
}

/// Adds the faults of an object's fields, each with its place.
fn fields(at: &str, object: &Map<String, Json>, known: &Fields, faults: &mut Vec<(String, String)>) {
    for name in object.keys() {
        if !known.iter().any(|(field, ..)| field == name) {
            let names: Vec<&str> = known.iter().map(|(field, ..)| *field).collect();
            let fault = format!("is unknown; the fields are {}", names.join(", "));
            faults.push((format!("{at}.{}", clip(name)), fault));
        }
    }
    for &(name, field, required) in known {
        let place = format!("{at}.{name}");
        match object.get(name).filter(|value| !value.is_null()) {
            None if required => faults.push((place, "is missing".to_owned())),
            None => {}
            Some(Json::Array(steps)) if field == Field::Steps => {
                for (index, step) in steps.iter().enumerate().take(MAX_STEPS) {
                    let place = format!("{place}[{index}]");
                    match step {
                        Json::Object(step) => fields(&place, step, STEP_FIELDS, faults),
                        _ => faults.push((place, "must be an object".to_owned())),
                    }
                }
            }
            Some(value) => faults.extend(fault_of(value, field).map(|fault| (place, fault))),
        }
    }
}

/// Fault of a value, if the field does not take it.
fn fault_of(value: &Json, field: Field) -> Option<String> {
    let is_texts = |value: &Json| {
        let entries = value.as_array();
        entries.is_some_and(|entries| entries.iter().all(Json::is_string))
    };
    match field {
        Field::Text if !value.is_string() => Some("must be a string".to_owned()),
        Field::Texts if !is_texts(value) => Some("must be a list of strings".to_owned()),
        Field::Steps => Some("must be a list of steps".to_owned()),
        Field::Priority if serde_json::from_value::<Priority>(value.clone()).is_err() => {
            let names: Vec<&str> = Priority::ALL.iter().map(|priority| priority.as_str()).collect();
            Some(format!("must be one of {}", names.join(", ")))
        }
        _ => None,
    }
}
