//! The next call of every refusal: the one that its reason comes with, otherwise one that shows what to do.

use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Entry, NextCall, Reply, Tool, ToolError};

use crate::model::Workspace;
use crate::record::Step;
use crate::scope::{Scope, Selector};
use crate::store::workspace::similar;

/// The row of a tool whose refusals always have a next call.
pub(crate) const fn entry<T: Tool>() -> Entry {
    Entry {
        call: guided::<T>,
        input_schema: scoped::<T>,
        ..Entry::of::<T>()
    }
}

/// The tool's schema. Workspaces share no rows, so that calls about different ones need not wait for each other.
fn scoped<T: Tool>() -> Json {
    let mut schema = (Entry::of::<T>().input_schema)();
    let takes_workspace = schema["properties"].get("workspace").is_some();
    if T::EFFECT == Effect::Write
        && takes_workspace
        && let Some(schema) = schema.as_object_mut()
    {
        schema.insert("x-scope".to_owned(), json!(["workspace"]));
    }
    schema
}

fn guided<T: Tool>(cx: &Cx<'_>, arguments: &str) -> Result<Reply, ToolError> {
    (Entry::of::<T>().call)(cx, arguments).map_err(|err| guide(cx, T::NAME, arguments, err))
}

fn guide(cx: &Cx<'_>, tool: &str, arguments: &str, mut err: ToolError) -> ToolError {
    if is_failure(&err) {
        return err;
    }
    if err.blockers.is_empty() {
        err = err.with_blocker();
    }
    once(&mut err);
    if err.next_call.is_none() {
        let arguments: Map<String, Json> = serde_json::from_str(arguments).unwrap_or_default();
        // Without an answer from storage, the refusal stays as it is.
        err.next_call = look(cx, tool, &err, &arguments).unwrap_or_default();
    }
    err
}

/// Returns whether the call failed instead of being refused.
fn is_failure(err: &ToolError) -> bool {
    err.code.starts_with("STORAGE")
        || matches!(
            err.code.as_str(),
            "INTERNAL" | "DEADLINE_EXCEEDED" | "RESULT_TOO_LARGE" | "CONFIG_INVALID"
        )
}

/// Keeps the first of several equal calls.
fn once(err: &mut ToolError) {
    let mut known: Vec<NextCall> = Vec::new();
    for blocker in &mut err.blockers {
        match blocker.next_call.take() {
            Some(call) if !known.contains(&call) => {
                known.push(call.clone());
                blocker.next_call = Some(call);
            }
            _ => {}
        }
    }
}

/// The call that shows what the refused one was about: the step, the plan or task, the journal, the workspace, or
/// else which workspaces there are.
fn look(
    cx: &Cx<'_>,
    tool: &str,
    err: &ToolError,
    arguments: &Map<String, Json>,
) -> Result<Option<NextCall>, ToolError> {
    let text = |name: &str| arguments.get(name).and_then(Json::as_str);
    let named = text("workspace").unwrap_or_default();
    let workspace: Option<Workspace> = serde_json::from_value(json!(named)).ok();
    let scope = workspace
        .map(|workspace| Scope::known(cx, &workspace))
        .and_then(Result::ok);
    let Some(scope) = scope else {
        return elsewhere(cx, named).map(Some);
    };
    let call = |tool: &str, more: Json| {
        let mut arguments = json!({"workspace": scope.workspace});
        for (name, value) in more.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        Some(NextCall::new(tool, arguments))
    };
    if matches!(tool, "tasks_scaffold" | "tasks_template_save") {
        return Ok(call("tasks_templates_list", json!({})));
    }
    let root = [text("task"), text("plan"), text("parent")]
        .into_iter()
        .flatten()
        .find(|id| scope.head(id).is_ok());
    let is_journal = matches!(
        err.code.as_str(),
        "NOTHING_TO_UNDO" | "NOTHING_TO_REDO" | "UNDO_CONFLICT"
    );
    Ok(match root {
        _ if is_journal => call("tasks_history", json!({})),
        None => call("tasks_context", json!({})),
        Some(root) => match step(&scope, root, text("path"), text("step_id")) {
            Some(step) => call("tasks_show", json!({"task": root, "step_id": step.id})),
            None => call("tasks_show", json!({"task": root})),
        },
    })
}

fn step(scope: &Scope<'_>, root: &str, path: Option<&str>, id: Option<&str>) -> Option<Step> {
    let steps = path.and_then(|path| path.split(".t:").next());
    let by = |path, id| {
        let selector = Selector {
            path,
            id,
            expected: None,
        };
        scope.step(root, &selector).ok().map(|step| step.record)
    };
    id.and_then(|id| by(None, Some(id)))
        .or_else(|| steps.and_then(|path| by(Some(path), None)))
}

/// The workspace that was probably meant, if one has a similar name.
fn elsewhere(cx: &Cx<'_>, name: &str) -> Result<NextCall, ToolError> {
    Ok(match similar(&cx.db, name)? {
        Some(name) => NextCall::new("tasks_context", json!({"workspace": name})),
        None => NextCall::new("tasks_workspaces", json!({})),
    })
}

/// Addition to the SDK's errors.
trait Blockers {
    fn with_blocker(self) -> Self;
}

impl Blockers for ToolError {
    /// The error with itself as the only blocker, for refusals that list none.
    fn with_blocker(self) -> ToolError {
        let blocker = tollgate_sdk::Blocker::new(self.code.clone(), self.message.clone());
        self.blocker(blocker)
    }
}
