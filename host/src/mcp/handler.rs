//! MCP requests, turned into calls of the gate and back.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, MetaObject, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use tollgate_sdk::ToolError;

use super::listing::Listing;
use super::wire;
use crate::deadline::Cancel;
use crate::gate::{Call, Caller, Gate, Outcome, Reply};
use crate::progress::Progress;

/// Longest text of a result, in bytes. The structured result beside it is whole.
const MAX_TEXT: usize = 40 << 10;

/// One connection's view of the gate.
#[derive(Clone)]
pub struct Handler {
    gate: Arc<Gate>,
    listing: Arc<Listing>,
    connection: String,
}

impl Handler {
    /// A handler for a new connection.
    pub fn new(gate: Arc<Gate>, listing: Arc<Listing>) -> Handler {
        Handler {
            connection: gate.new_connection(),
            gate,
            listing,
        }
    }

    /// The connection's id.
    pub fn connection(&self) -> &str {
        &self.connection
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        Caller {
            identity: None,
            client: context
                .client_info()
                .map(|info| crate::text::clean(crate::text::cut(&info.name, 100))),
            connection: self.connection.clone(),
            stateful: context
                .protocol_version()
                .is_some_and(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str()),
            request_id: Some(crate::text::cut(&context.id.to_string(), 100).to_owned()),
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_instructions(self.listing.instructions());
        config.server_info = Implementation::new("tollgate", env!("CARGO_PKG_VERSION"));
        config.server_info.title = Some("Tollgate".to_owned());
        config
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let (tools, next_cursor) = self
            .listing
            .page(cursor.as_deref())
            .map_err(|_| ErrorData::invalid_params("the cursor is not one of this list", None))?;
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next_cursor;
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let cancel = Cancel::default();
        let call = Call {
            tool: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            malformed: malformed(&context),
            envelope: context.meta.get("tollgate/envelope_id").cloned(),
            caller: self.caller(&context),
            cancel: cancel.clone(),
            progress: Progress::default(),
        };
        let running = self.gate.call(call);
        tokio::pin!(running);
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            () = context.ct.cancelled() => {
                cancel.cancel();
                running.await
            }
        };
        match outcome {
            Ok(outcome) => Ok(result(outcome).into()),
            Err(unknown) => Err(ErrorData::invalid_params(unknown.to_string(), None)),
        }
    }
}

/// What [`wire::repair`] found wrong with this call's message.
fn malformed(context: &RequestContext<RoleServer>) -> Vec<String> {
    let Some(Value::Array(problems)) = context.meta.get(wire::MALFORMED) else {
        return Vec::new();
    };
    problems
        .iter()
        .map(|problem| crate::text::clean(crate::text::cut(problem.as_str().unwrap_or("malformed"), 200)))
        .collect()
}

fn result(outcome: Outcome) -> CallToolResult {
    let meta = meta(&outcome);
    let mut result = match outcome.result {
        Ok(reply) => success(reply),
        Err(err) => failure(&err),
    };
    result.meta = Some(meta);
    result
}

/// What every reply says beside its result: which operation it was, what is left, what it repeated.
fn meta(outcome: &Outcome) -> MetaObject {
    let mut meta = MetaObject::new();
    let mut add = |key: &str, value: Value| meta.0.insert(format!("tollgate/{key}"), value);
    add("op_id", outcome.op_id.as_str().into());
    add(
        "duration_ms",
        u64::try_from(outcome.duration.as_millis())
            .unwrap_or(u64::MAX)
            .into(),
    );
    if let Some(envelope) = &outcome.envelope_id {
        add("envelope_id", envelope.as_str().into());
    }
    if let Some(standing) = &outcome.standing {
        let counter = |used: i64, limit: Option<i64>| match limit {
            Some(limit) => json!({"used": used, "limit": limit, "left": (limit - used).max(0)}),
            None => json!({"used": used}),
        };
        add(
            "budget",
            json!({
                "mutations": counter(standing.mutations, standing.limits.max_mutations),
                "test_runs": counter(standing.test_runs, standing.limits.max_test_runs),
            }),
        );
    }
    if let Some(mutation) = &outcome.mutation {
        let mut note = json!({"fingerprint": mutation.fingerprint, "changed": mutation.changed});
        match mutation.repeated {
            Some(1) => note["no_op"] = true.into(),
            Some(period) => note["oscillation"] = json!({"period": period}),
            None => {}
        }
        add("mutation", note);
    }
    meta
}

fn success(reply: Reply) -> CallToolResult {
    let text = reply.text.unwrap_or(reply.json);
    let mut result = CallToolResult::success(vec![ContentBlock::text(shortened(text))]);
    result.structured_content = Some(Value::Object(reply.structured));
    result
}

fn failure(err: &ToolError) -> CallToolResult {
    let body = json!({ "error": err });
    let mut result = CallToolResult::error(vec![ContentBlock::text(shortened(body.to_string()))]);
    result.structured_content = Some(body);
    result
}

fn shortened(text: String) -> String {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let mark = format!(
        "\n[cut: {} of {} bytes; the structured result is whole]",
        MAX_TEXT,
        text.len()
    );
    format!("{}{mark}", crate::text::cut(&text, MAX_TEXT - mark.len()))
}
