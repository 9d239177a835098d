//! Several operations in one call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Blocker, Cx, Effect, Entry, Hints, NextCall, Tool, ToolError};

use crate::error::{Reason, Refusals, clip};
use crate::evidence;
use crate::limits::{MAX_NAME_CHARS, MAX_OPERATIONS};
use crate::model::Workspace;
use crate::mutation;
use crate::store;
use crate::store::operation;
use crate::tools::history::{Redo, Undo};
use crate::tools::steps::Delete;

/// Size of results in bytes after which further results are compact.
const DETAILED_REPLY_LIMIT: usize = 256 << 10;

/// Run several tasks_* operations in order. With `atomic=true` all operations are applied or none; otherwise
/// each successful one is kept. Policies and budgets apply to every operation separately. tasks_undo undoes
/// the batch as a whole. Fails if no operation succeeds, or if one is a batch itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-looks" = evidence::looks()))]
pub(crate) struct Batch {
    /// Namespace for plans and tasks. Operations inherit it and must not name another one.
    #[schemars(extend("x-inherited" = true))]
    workspace: Workspace,
    /// Operations to run, in order: tool name and arguments.
    #[schemars(length(min = 1, max = MAX_OPERATIONS))]
    operations: Vec<Operation>,
    /// Your name, for operations that name no `actor` themselves.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    actor: Option<String>,
    /// Roll back everything if one operation fails (default false).
    #[serde(default)]
    atomic: bool,
    /// Leave out the operations' replies and error details (default false).
    #[serde(default)]
    compact: bool,
}

/// Call of a tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operation {
    /// Name of a tasks_* tool, for example tasks_note.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    tool: String,
    /// Arguments of the tool. `workspace` may be left out.
    #[serde(default)]
    args: Map<String, Json>,
}

/// Result of a batch.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ran {
    /// True if the batch was atomic.
    atomic: bool,
    /// Number of operations that succeeded.
    succeeded: usize,
    /// Number of operations that failed and changed nothing.
    failed: usize,
    /// Outcome of each operation, in order.
    results: Vec<Outcome>,
}

/// Outcome of one operation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Outcome {
    /// Name of the tool.
    tool: String,
    /// True if the operation succeeded.
    ok: bool,
    /// Revision after the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
    /// Reply of the tool, unless results are compact.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Map<String, Json>>,
    /// Code of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    /// The error, unless results are compact.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Map<String, Json>>,
}

impl Tool for Batch {
    const NAME: &'static str = "tasks_batch";
    const TITLE: &'static str = "Run several operations";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints {
        members: Some("operations"),
        ..Hints::DESTRUCTIVE
    };
    type Output = Ran;

    fn run(self, cx: &Cx<'_>) -> Result<Ran, ToolError> {
        let tools = self.check()?;
        let mut ran = Ran {
            atomic: self.atomic,
            succeeded: 0,
            failed: 0,
            results: Vec::new(),
        };
        let (db, workspace, actor) = (cx.db, self.workspace, self.actor);
        let before = store::workspace::counters(&db, &workspace)?.unwrap_or_default();
        let is_there = |id: &&String| {
            let head = store::root::head(&db, &workspace, id);
            head.is_ok_and(|head| head.is_some_and(|head| head.status.is_some()))
        };
        let abouts: Vec<Option<String>> = self.operations.iter().map(Operation::about).collect();
        let known: Vec<Option<String>> = abouts
            .iter()
            .map(|id| id.as_ref().filter(is_there).cloned())
            .collect();
        let mut bytes = 0;
        let mut wrote = false;
        let mut refused = Vec::new();
        let mut ahead = tools.iter().filter(|tool| writes(tool)).count() as u64;
        for (place, (operation, tool)) in self.operations.into_iter().zip(tools).enumerate() {
            ahead -= u64::from(writes(tool));
            let cx = &cx.member(ahead);
            let mut arguments = operation.args;
            // The gate adds the workspace before policies see the operation. Without a gate it is added here.
            match takes(tool, "workspace") {
                true => drop(arguments.entry("workspace").or_insert_with(|| json!(workspace))),
                false => drop(arguments.shift_remove("workspace")),
            }
            if let Some(actor) = actor.as_ref().filter(|_| takes_actor(tool)) {
                arguments.entry("actor").or_insert_with(|| json!(actor));
            }
            let outcome = (tool.call)(cx, &Json::Object(arguments).to_string());
            match outcome {
                Ok(reply) => {
                    if writes(tool) {
                        wrote = true;
                        outdate(&mut ran.results);
                    }
                    ran.succeeded += 1;
                    bytes += reply.structured.len();
                    ran.results.push(succeeded(
                        tool.name,
                        &reply.structured,
                        self.compact || bytes > DETAILED_REPLY_LIMIT,
                    ));
                }
                // A storage error in the middle of a write may leave a part of it.
                Err(err) if self.atomic || is_fatal(&err) => {
                    let about = known.get(place).and_then(Option::as_ref);
                    let look = about.map(|id| show(&workspace, id));
                    return Err(failure(place, tool.name, err, wrote.then_some(look)));
                }
                Err(err) => {
                    if writes(tool) {
                        mutation::pass(cx)?;
                    }
                    ran.failed += 1;
                    refused.push(blocker(place, &err));
                    ran.results.push(failed(tool.name, err, self.compact));
                }
            }
        }
        if ran.succeeded == 0 {
            return Err(nothing_succeeded(refused, &ran.results));
        }
        for (outcome, about) in ran.results.iter_mut().zip(&abouts) {
            if let Some(error) = &mut outcome.error
                && !error.contains_key("next_call")
                && let Some(id) = about.as_ref().filter(is_there)
            {
                error.insert("next_call".to_owned(), json!(show(&workspace, id)));
            }
        }
        if ran.succeeded > 1 {
            operation::join(&db, &workspace, before.operations)?;
        }
        Ok(ran)
    }
}

impl Batch {
    /// The tools of all operations. Fails before running any if one cannot be part of a batch.
    fn check(&self) -> Result<Vec<&'static Entry>, ToolError> {
        let mut refusals = Refusals::default();
        refusals.workspace(&self.workspace);
        if self.operations.is_empty() {
            refusals.add(Reason::input("operations", "is empty"));
        }
        refusals.at_most("operations", self.operations.len(), MAX_OPERATIONS, "entries");
        let mut tools = Vec::new();
        for (place, operation) in self.operations.iter().take(MAX_OPERATIONS).enumerate() {
            let tool = crate::PACK.tool(&operation.tool);
            let barred = |tool: &Entry| {
                tool.hints.members.is_some()
                    || tool.effect == Effect::Run
                    || (self.atomic && tool.name == Delete::NAME)
            };
            match tool {
                None => refusals.add(Reason::unknown(
                    format!("tool for operations[{place}],"),
                    &operation.tool,
                )),
                Some(tool) if barred(tool) => {
                    refusals.add(Reason::NotInBatch {
                        place,
                        tool: clip(&operation.tool),
                    });
                }
                Some(tool) => tools.push(tool),
            }
            match operation.args.get("workspace") {
                Some(workspace) if *workspace != json!(self.workspace) => {
                    refusals.add(Reason::input(
                        format!("operations[{place}].args.workspace"),
                        "is another workspace",
                    ));
                }
                _ => {}
            }
        }
        refusals.finish()?;
        Ok(tools)
    }
}

impl Operation {
    /// The plan or task that the operation names.
    fn about(&self) -> Option<String> {
        let id = self.args.get("task").or_else(|| self.args.get("plan"));
        id.and_then(Json::as_str).map(str::to_owned)
    }
}

/// The call that shows a plan or task.
fn show(workspace: &Workspace, id: &str) -> NextCall {
    NextCall::new("tasks_show", json!({"workspace": workspace, "task": id}))
}

fn writes(tool: &Entry) -> bool {
    tool.effect != Effect::Read
}

/// Returns whether a tool has the argument `actor`. For undo and redo it also chooses the operation, so these
/// are left out.
fn takes_actor(tool: &Entry) -> bool {
    let chooses = [Undo::NAME, Redo::NAME].contains(&tool.name);
    !chooses && takes(tool, "actor")
}

/// Returns whether a tool has an argument.
fn takes(tool: &Entry, argument: &str) -> bool {
    (tool.input_schema)()["properties"].get(argument).is_some()
}

/// Returns whether storage itself failed, so that a write may be incomplete.
fn is_fatal(err: &ToolError) -> bool {
    err.code.starts_with("STORAGE")
        || matches!(
            err.code.as_str(),
            "INTERNAL" | "DEADLINE_EXCEEDED" | "RESULT_TOO_LARGE"
        )
}

fn succeeded(tool: &str, structured: &str, compact: bool) -> Outcome {
    let result: Map<String, Json> = serde_json::from_str(structured).unwrap_or_default();
    Outcome {
        tool: tool.to_owned(),
        ok: true,
        revision: result.get("revision").and_then(Json::as_i64),
        result: (!compact).then_some(result),
        code: None,
        error: None,
    }
}

fn failed(tool: &str, err: ToolError, compact: bool) -> Outcome {
    let error = match serde_json::to_value(&err) {
        Ok(Json::Object(error)) => error,
        _ => Map::new(),
    };
    Outcome {
        tool: tool.to_owned(),
        ok: false,
        revision: None,
        result: None,
        code: Some(err.code),
        error: (!compact).then_some(error),
    }
}

/// A failed operation, as a reason to refuse the whole batch.
fn blocker(place: usize, err: &ToolError) -> Blocker {
    Blocker {
        code: err.code.clone(),
        message: err.message.clone(),
        field: Some(format!("operations[{place}]")),
        next_call: err.next_call.clone(),
    }
}

/// Refusal of a batch in which every operation failed, with the results that a reply would have. Only the blockers
/// suggest calls, because the host removes from them the calls that the caller cannot make.
fn nothing_succeeded(refused: Vec<Blocker>, results: &[Outcome]) -> ToolError {
    let mut err = crate::error::refusal(Reason::NothingSucceeded, None);
    err.next_call = refused.iter().find_map(|blocker| blocker.next_call.clone());
    let mut results = json!(results);
    without_calls(&mut results);
    err.blockers(refused).context("results", results)
}

/// Takes the suggested calls out of results that a later write follows, because that write may have made them wrong.
fn outdate(results: &mut [Outcome]) {
    for outcome in results {
        if let Some(result) = &mut outcome.result {
            result.shift_remove("next");
            result.values_mut().for_each(without_calls);
            result.shift_remove("next_calls");
        }
        if let Some(error) = &mut outcome.error {
            error.shift_remove("next_call");
            let blockers = error.get_mut("blockers").and_then(Json::as_array_mut);
            for blocker in blockers.into_iter().flatten().filter_map(Json::as_object_mut) {
                blocker.shift_remove("next_call");
            }
        }
    }
}

/// Takes suggested calls out of every entry of a reply.
fn without_calls(value: &mut Json) {
    match value {
        Json::Object(members) => {
            for name in ["next_call", "next_calls"] {
                members.shift_remove(name);
            }
            members.values_mut().for_each(without_calls);
        }
        Json::Array(entries) => entries.iter_mut().for_each(without_calls),
        _ => {}
    }
}

/// Refusal of the whole batch because of one operation, with all of its reasons. Calls that build on operations that
/// are taken back are replaced by a look.
fn failure(place: usize, tool: &str, mut err: ToolError, look: Option<Option<NextCall>>) -> ToolError {
    if let Some(look) = look {
        err.next_call = look;
        for blocker in &mut err.blockers {
            blocker.next_call = None;
        }
    }
    let reason = Reason::BatchFailed {
        place,
        tool: tool.to_owned(),
        code: err.code.clone(),
        message: err.message.clone(),
    };
    let next_call: Option<NextCall> = err.next_call.clone();
    crate::error::refusal(reason, next_call)
        .blockers(err.blockers)
        .context("operation", place)
        .context("tool", tool)
        .context("code", err.code)
}
