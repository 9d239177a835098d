//! Envelopes that the host opens by itself, for connections whose agent never heard of envelopes.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tollgate_components::catalog::{Body, ToolEntry};
use tollgate_core::deadline::Cancel;
use tollgate_core::effect::Effect;
use tollgate_sandbox::progress::Progress;
use tollgate_sdk::ToolError;

use super::call::{Answers, Call, Caller};
use super::settled::answer;
use super::{Gate, Generation, Tasking, admission, workspace_name};
use crate::telemetry::Method;

/// The tool that opens them, so that they are judged, counted and recorded like any other.
const OPEN: &str = "envelope_open";
/// Label of an envelope that nobody asked for.
const LABEL: &str = "opened automatically";

impl Gate {
    /// Opens an envelope for a call that may change something and has none, if the operator wants that. The connection
    /// keeps it: once it is used up, calls are refused until its client opens one itself.
    pub(super) async fn open_automatically(
        &self,
        generation: &Arc<Generation>,
        tool: &ToolEntry,
        call: &Call,
    ) -> Result<(), ToolError> {
        if !generation.envelopes.auto || !wants_envelope(tool, call) {
            return Ok(());
        }
        let connection = &call.caller.connection;
        // One at a time, so that the first calls of a connection share one.
        let _opening = self.opening.lock().await;
        if self.connections.current(connection).is_some() {
            return Ok(());
        }
        let Some(open) = generation.catalog.find(OPEN) else {
            return Ok(());
        };
        let mut arguments = Map::from_iter([("label".to_owned(), json!(LABEL))]);
        if let Some(workspace) = workspace(generation, tool, call) {
            arguments.insert("workspace".to_owned(), json!(workspace));
        }
        let opening = Call {
            tool: OPEN.to_owned(),
            arguments,
            malformed: Vec::new(),
            envelope: None,
            caller: Caller {
                // The call's own; this one has none.
                request_id: None,
                span: None,
                is_repeated: false,
                ..call.caller.clone()
            },
            cancel: Cancel::default(),
            progress: Progress::default(),
            answers: Answers::default(),
            task: Tasking::default(),
        };
        let opened = Box::pin(self.pass(generation, open, opening, Method::Tool)).await;
        let reply = answer(opened.result)?;
        let structured = Value::Object(reply.structured());
        if let Some(id) = structured.get("id").and_then(Value::as_str) {
            self.connections.opened(connection, id);
        }
        Ok(())
    }
}

/// True if a call may change something, and names no envelope.
fn wants_envelope(tool: &ToolEntry, call: &Call) -> bool {
    !matches!(tool.body, Body::Core(_))
        && tool.spec.effect != Effect::Read
        && !admission::names_envelope(call)
}

/// The workspace that the call is about, or the only one there is.
fn workspace(generation: &Generation, tool: &ToolEntry, call: &Call) -> Option<String> {
    let workspaces = &generation.workspaces;
    let named = workspace_name::registered(workspaces, tool, &Value::Object(call.arguments.clone()));
    if named.is_some() {
        return named;
    }
    let mut names = workspaces.names();
    if names.len() == 1 { names.pop() } else { None }
}
