//! Handler of MCP requests: calls the gate and converts its outcomes.
#![expect(deprecated, reason = "sessions of older eras subscribe and set a level")]

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
    CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, RequestId, ServerCapabilities,
    ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio_util::sync::DropGuard;
use tollgate_gate::Gate;

use super::elicitation::Seal;
use super::faulty_params;
use super::listing::{self, Schemas};
use super::listings::Listings;
use super::logs::WantedLines;
use super::request::{self, ClientRequest, Kind, Round};
use super::seen::Seen;
use super::subscriptions::{self, Subscriptions};
use super::tasks::{self, Taken};
use super::{apps, replies, resources};

/// One connection's view of the gate.
#[derive(Clone)]
pub struct Handler {
    pub(super) gate: Arc<Gate>,
    listings: Arc<Listings>,
    connection: Arc<Connection>,
    structured: Structured,
    seal: Seal,
    wanted_lines: Arc<WantedLines>,
    subscriptions: Arc<Subscriptions>,
    seen: Arc<Mutex<Seen>>,
    /// Guard of the task that notifies the client of changes while the connection lasts.
    hearing: Arc<Mutex<Option<DropGuard>>>,
}

/// A connection registered with the gate, until its last handler is dropped.
struct Connection {
    id: String,
    gate: Arc<Gate>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.gate.leave_connection(&self.id);
    }
}

/// Form in which structured results are passed to the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structured {
    /// As JSON, for any transport.
    Json,
    /// As text that contains the JSON. The transport must support this, see `ndjson.rs`.
    Text,
}

impl Handler {
    /// Creates a handler for a new connection.
    pub fn new(gate: Arc<Gate>, listings: Arc<Listings>) -> Handler {
        Handler {
            connection: Arc::new(Connection {
                id: gate.new_connection(),
                gate: Arc::clone(&gate),
            }),
            seal: Seal::new(gate.consent_key()),
            wanted_lines: Arc::default(),
            subscriptions: Arc::default(),
            seen: Arc::default(),
            gate,
            listings,
            structured: Structured::Json,
            hearing: Arc::default(),
        }
    }

    /// Sets the form of structured results, for a transport that supports it.
    #[must_use]
    pub fn replying_with(self, structured: Structured) -> Handler {
        Handler { structured, ..self }
    }

    /// Id of the connection.
    pub fn connection(&self) -> &str {
        &self.connection.id
    }

    pub(super) fn seal(&self) -> &Seal {
        &self.seal
    }

    /// Returns whether this is the session's first request with its id.
    pub(super) fn is_first(&self, id: &RequestId) -> bool {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_first(id)
    }

    pub(super) fn wanted_lines(&self) -> &WantedLines {
        &self.wanted_lines
    }
}

// The transport moves the future of a request several times, and it is as large as the largest of these methods. So
// whatever passes the gate is on the heap.
impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(
            ServerCapabilities::builder()
                .enable_tools()
                .enable_tool_list_changed()
                .enable_prompts()
                .enable_prompts_list_changed()
                .enable_resources()
                .enable_resources_subscribe()
                .enable_logging()
                .enable_completions()
                .enable_tasks()
                .build(),
        )
        .with_instructions(self.listings.current().instructions());
        config.server_info = Implementation::new("tollgate", env!("CARGO_PKG_VERSION"));
        config.server_info.title = Some("Tollgate".to_owned());
        config
    }

    /// Starts a session. Protocol versions with sessions do not have the extension for tasks.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        result.capabilities.extensions = None;
        Ok(result)
    }

    /// Finds a tool, so that the transport can compare arguments with the headers that repeat them.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let catalog = self.gate.catalog();
        let tool = catalog.find(name).filter(|tool| tool.has_headers)?;
        Some(listing::definition(&tool.spec, Schemas::Whole))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let hearing = self.listings.tell(context.peer);
        *self.hearing.lock().unwrap_or_else(PoisonError::into_inner) = Some(hearing);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // The capabilities decide which other notifications are offered.
        let mut accepted = requested.clone();
        if let Some(addresses) = &mut accepted.resource_subscriptions {
            addresses.retain(|address| subscriptions::owner(&self.gate, address).is_some());
            addresses.truncate(subscriptions::MAX_ADDRESSES);
        }
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        tokio::select! {
            told = self.listings.tell_subscriber(&subscription) => told,
            () = subscriptions::tell(&self.gate, &subscription) => Ok(()),
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.gate.introduced().await;
        let cursor = request.and_then(|request| request.cursor);
        let (mut tools, next_cursor) = self
            .listings
            .current()
            .page(cursor.as_deref())
            .map_err(|_| ErrorData::invalid_params("the cursor is not from this list", None))?;
        if apps::wanted(&context) {
            apps::link(&mut tools, &self.gate.catalog());
        }
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next_cursor;
        Ok(result)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = Box::pin(self.resources(&context)).await;
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.gate.introduced().await;
        let templates = resources::templates(&self.gate.catalog());
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let answered = (request.input_responses, request.request_state);
        Box::pin(self.resource(&request.uri, &context, answered)).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let completion = Box::pin(self.completion(&request, &context)).await?;
        Ok(CompleteResult::new(completion))
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.gate.introduced().await;
        let listing = self.listings.current();
        Ok(ListPromptsResult::with_all_items(listing.prompts().to_vec()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let client_request = ClientRequest {
            kind: Kind::Prompt,
            name: &request.name,
            arguments: request.arguments.unwrap_or_default(),
        };
        let answered = (request.input_responses, request.request_state);
        match Box::pin(self.execute(&context, client_request, answered)).await? {
            Round::Done(outcome) => replies::said(outcome),
            Round::Required(required) => Ok(required.into()),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let client_request = ClientRequest {
            kind: Kind::Tool,
            name: &request.name,
            arguments: request.arguments.unwrap_or_default(),
        };
        let answered = (request.input_responses, request.request_state);
        let round = if self.may_take_on(&context, &client_request) {
            match Box::pin(self.do_or_take_on(&context, client_request, answered)).await? {
                Taken::Round(round) => round,
                Taken::Task(task) => return Ok(tasks::created(&task).into()),
            }
        } else {
            Box::pin(self.execute(&context, client_request, answered)).await?
        };
        match round {
            Round::Done(outcome) => {
                if let Some(lacking) = tasks::required(&outcome) {
                    return Err(lacking);
                }
                let view = apps::view(&self.gate.catalog(), &request.name);
                let view = view.filter(|_| apps::wanted(&context));
                let html = view.and_then(|view| apps::markup(&view, &outcome));
                let mut result = replies::result(outcome, self.structured);
                if let Some(html) = html {
                    apps::add(&mut result, html);
                }
                Ok(result.into())
            }
            Round::Required(required) => Ok(required.into()),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Box::pin(self.look_at_task(&request.task_id, &context)).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Box::pin(self.answer_task(request, &context)).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Box::pin(self.end_task(&request.task_id, &context)).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = tollgate_core::text::clean(tollgate_core::text::cut(&request.method, 100));
        if let Some(err) = faulty_params::of(&method, request.params) {
            return Err(err);
        }
        let message = format!("there is no method {method}");
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request::is_stateless(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.wanted_lines.set(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.add(&self.gate, context.peer, request.uri)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
    }
}
