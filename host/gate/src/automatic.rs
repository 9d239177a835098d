//! Envelopes that the host opens automatically, for connections whose agent does not know about envelopes.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tollgate_components::catalog::{Body, ToolEntry};
use tollgate_core::effect::Effect;
use tollgate_core::failure_class::FailureClass;

use super::call::{Call, Caller};
use super::failure::Failure;
use super::{Gate, Generation, admission, workspace_name};
use crate::telemetry::Method;

/// Tool that opens them, so that they are judged, counted and recorded like any other envelope.
const OPEN_TOOL: &str = "envelope_open";
/// Label of an automatically opened envelope.
const LABEL: &str = "opened automatically";

impl Gate {
    /// Opens an envelope for a call that may change something and has none, if the operator enabled it. The
    /// connection keeps the envelope. When it is exhausted, calls are refused until the client opens one itself.
    pub(super) async fn open_automatically(
        &self,
        generation: &Arc<Generation>,
        tool: &ToolEntry,
        call: &Call,
    ) -> Result<(), Failure> {
        if !generation.envelopes.auto || !wants_envelope(tool, call) {
            return Ok(());
        }
        let connection = &call.caller.connection;
        // One at a time, so that concurrent first calls of a connection share one envelope.
        let _opening = self.opening.lock().await;
        if self.connections.current(connection).is_some() {
            return Ok(());
        }
        let Some(open) = generation.catalog.find(OPEN_TOOL) else {
            return Ok(());
        };
        let mut arguments = Map::from_iter([("label".to_owned(), json!(LABEL))]);
        if let Some(workspace) = workspace(generation, tool, call) {
            arguments.insert("workspace".to_owned(), json!(workspace));
        }
        let caller = Caller {
            // The call's own request id; the opening has none.
            request_id: None,
            span: None,
            is_repeated: false,
            ..call.caller.clone()
        };
        let opening = Call::new(OPEN_TOOL, arguments, caller);
        let opened = Box::pin(self.pass(generation, open, opening, Method::Tool)).await;
        let reply = opened.result.map_err(|error| match opened.cause {
            // The tool's own error is the reason for which the host refuses this call.
            None | Some(FailureClass::ToolError) => Failure::refused(error),
            Some(class) => Failure { class, error },
        })?;
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

/// Workspace that the call is about, or the only registered one.
fn workspace(generation: &Generation, tool: &ToolEntry, call: &Call) -> Option<String> {
    let workspaces = &generation.workspaces;
    let named = workspace_name::registered(workspaces, tool, &Value::Object(call.arguments.clone()));
    if named.is_some() {
        return named;
    }
    let mut names = workspaces.names();
    if names.len() == 1 { names.pop() } else { None }
}
