//! MCP requests, turned into calls of the gate and back.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, PromptMessage, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, Role, ServerCapabilities, ServerConfig,
    SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;
use tollgate_sdk::ToolError;

use super::listings::Listings;
use super::{resources, wire};
use crate::deadline::Cancel;
use crate::gate::{Call, Caller, Gate, Outcome, Reply};
use crate::progress::{Note, Progress};

/// Longest text of a result, in bytes. The structured result beside it is whole.
const MAX_TEXT: usize = 40 << 10;

/// One connection's view of the gate.
#[derive(Clone)]
pub struct Handler {
    pub(super) gate: Arc<Gate>,
    listings: Arc<Listings>,
    connection: String,
    structured: Structured,
    /// While the connection lasts, its client hears of changes.
    hearing: Arc<Mutex<Option<DropGuard>>>,
}

/// How structured results are handed to the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structured {
    /// As JSON. Any transport takes that.
    Json,
    /// As text that holds the JSON. The transport must know; see `lines.rs`.
    Text,
}

impl Handler {
    /// A handler for a new connection.
    pub fn new(gate: Arc<Gate>, listings: Arc<Listings>) -> Handler {
        Handler {
            connection: gate.new_connection(),
            gate,
            listings,
            structured: Structured::Json,
            hearing: Arc::default(),
        }
    }

    /// The same for a transport that takes structured results in this way.
    #[must_use]
    pub fn replying_with(self, structured: Structured) -> Handler {
        Handler { structured, ..self }
    }

    /// The connection's id.
    pub fn connection(&self) -> &str {
        &self.connection
    }

    /// Calls a tool for something that is no tool call itself. `None` if it does not exist here.
    pub(super) async fn ask(
        &self,
        context: &RequestContext<RoleServer>,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Option<Result<Reply, ToolError>> {
        let cancel = CancelOnDrop(Cancel::default());
        let call = Call {
            tool: tool.to_owned(),
            arguments,
            malformed: Vec::new(),
            envelope: context.meta.get("tollgate/envelope_id").cloned(),
            caller: self.caller(context),
            cancel: cancel.0.clone(),
            progress: Progress::default(),
        };
        let asked = tokio::select! {
            asked = self.gate.call(call) => asked,
            () = context.ct.cancelled() => return Some(Err(ToolError::new("CANCELLED", "the request was cancelled"))),
        };
        Some(asked.ok()?.result)
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
        let mut config = ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_tool_list_changed()
                .enable_prompts()
                .enable_prompts_list_changed()
                .enable_resources()
                .enable_completions()
                .build(),
        )
        .with_instructions(self.listings.current().instructions());
        config.server_info = Implementation::new("tollgate", env!("CARGO_PKG_VERSION"));
        config.server_info.title = Some("Tollgate".to_owned());
        config
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let hearing = self.listings.tell(context.peer);
        *self.hearing.lock().unwrap_or_else(PoisonError::into_inner) = Some(hearing);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // What of it is offered is decided by the capabilities.
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        self.listings.tell_subscriber(subscription).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let (tools, next_cursor) = self
            .listings
            .current()
            .page(cursor.as_deref())
            .map_err(|_| ErrorData::invalid_params("the cursor is not one of this list", None))?;
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next_cursor;
        Ok(result)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(
            self.resources(&context).await,
        ))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = resources::templates(&self.gate.catalog());
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(self.resource(&request.uri, &context).await?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::new(self.completion(&request, &context).await?))
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let listing = self.listings.current();
        Ok(ListPromptsResult::with_all_items(listing.prompts().to_vec()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let cancel = CancelOnDrop(Cancel::default());
        let call = Call {
            tool: request.name,
            arguments: request.arguments.unwrap_or_default(),
            malformed: malformed(&context),
            envelope: context.meta.get("tollgate/envelope_id").cloned(),
            caller: self.caller(&context),
            cancel: cancel.0.clone(),
            progress: Progress::default(),
        };
        let name = call.tool.clone();
        let asked = tokio::select! {
            asked = self.gate.prompt(call) => asked,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the request was cancelled", None)),
        };
        match asked {
            Some(outcome) => said(outcome),
            None => Err(ErrorData::invalid_params(
                format!("there is no prompt `{name}`"),
                None,
            )),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let cancel = CancelOnDrop(Cancel::default());
        let token = context.meta.get_progress_token();
        let (progress, mut notes) = match token {
            Some(_) => {
                let (progress, notes) = Progress::listened();
                (progress, Some(notes))
            }
            None => (Progress::default(), None),
        };
        let call = Call {
            tool: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            malformed: malformed(&context),
            envelope: context.meta.get("tollgate/envelope_id").cloned(),
            caller: self.caller(&context),
            cancel: cancel.0.clone(),
            progress,
        };
        let running = self.gate.call(call);
        tokio::pin!(running);
        let outcome = loop {
            tokio::select! {
                outcome = &mut running => break outcome,
                () = context.ct.cancelled() => {
                    cancel.0.cancel();
                    break running.await;
                }
                Some(note) = next(&mut notes) => tell(&context, token.clone(), note).await,
            }
        };
        match outcome {
            Ok(outcome) => Ok(result(outcome, self.structured).into()),
            Err(unknown) => Err(ErrorData::invalid_params(unknown.to_string(), None)),
        }
    }
}

/// What a prompt says. MCP has no place for a refusal in the result of a prompt, so that it becomes an
/// error of the protocol, with everything a tool's refusal has.
fn said(outcome: Outcome) -> Result<GetPromptResponse, ErrorData> {
    let meta = meta(&outcome);
    match outcome.result {
        Ok(reply) => {
            let text = reply.text.unwrap_or(reply.json);
            let mut result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
            result.meta = Some(meta);
            Ok(result.into())
        }
        Err(err) => Err(ErrorData::invalid_params(
            err.to_string(),
            Some(json!({ "error": err })),
        )),
    }
}

/// Gives a call up when nobody waits for it any more.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The next note, if there will be any.
async fn next(notes: &mut Option<mpsc::Receiver<Note>>) -> Option<Note> {
    notes.as_mut()?.recv().await
}

/// Tells the client how far its call is.
async fn tell(context: &RequestContext<RoleServer>, token: Option<ProgressToken>, note: Note) {
    let Some(token) = token else { return };
    let mut params = ProgressNotificationParam::new(token, note.done).with_message(note.message);
    params.total = note.total;
    tokio::select! {
        sent = context.peer.notify_progress(params) => {
            if let Err(err) = sent {
                tracing::debug!(%err, "a progress notification was not sent");
            }
        }
        // A client that reads nothing can still give the call up.
        () = context.ct.cancelled() => {}
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

fn result(outcome: Outcome, structured: Structured) -> CallToolResult {
    let meta = meta(&outcome);
    let mut result = match outcome.result {
        Ok(reply) => success(reply, structured),
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
        let mut budget = json!({
            "mutations": counter(standing.mutations, standing.limits.max_mutations),
            "test_runs": counter(standing.test_runs, standing.limits.max_test_runs),
        });
        for (name, named) in &outcome.budgets {
            budget[name.as_str()] = json!({"used": named.used, "limit": named.limit, "left": named.left()});
        }
        add("budget", budget);
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
    if !outcome.stale.is_empty() {
        add("stale", json!({ "reasons": outcome.stale }));
    }
    meta
}

fn success(reply: Reply, structured: Structured) -> CallToolResult {
    let structured = match structured {
        Structured::Json => Value::Object(reply.structured()),
        Structured::Text => Value::String(reply.json.clone()),
    };
    let text = reply.text.unwrap_or(reply.json);
    let mut result = CallToolResult::success(vec![ContentBlock::text(shortened(text))]);
    result.structured_content = Some(structured);
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
