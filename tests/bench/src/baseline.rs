//! Reference servers for the comparison with tollgate, on the same MCP library and over the same pipes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::io::stdio_pipes;
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Map, Value};
use task_store::PACK;

use crate::native::Native;

/// Serves the pack natively: the same SQL, and a commit for each write.
pub(crate) fn serve_plain(db: &Path) -> anyhow::Result<()> {
    serve(Work::Native(Box::new(Mutex::new(Native::create(db)?))))
}

/// Serves constant replies, to measure the cost of the protocol itself. A reply is chosen by the requested task or,
/// without one, by the tool.
pub(crate) fn serve_null(replies: &str) -> anyhow::Result<()> {
    let replies: BTreeMap<String, Value> =
        serde_json::from_str(replies).context("--replies is no JSON object")?;
    let replies = replies
        .into_iter()
        .map(|(key, reply)| (key, result(reply.to_string(), reply)));
    serve(Work::Constant(replies.collect()))
}

fn serve(work: Work) -> anyhow::Result<()> {
    let handler = Handler {
        work: Arc::new(work),
        tools: Arc::new(tools()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = handler
            .serve(stdio_pipes())
            .await
            .context("the client did not begin a session")?;
        service.waiting().await.context("the session broke off")?;
        Ok(())
    })
}

enum Work {
    Native(Box<Mutex<Native>>),
    Constant(BTreeMap<String, CallToolResult>),
}

#[derive(Clone)]
struct Handler {
    work: Arc<Work>,
    tools: Arc<Vec<Tool>>,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new("bench", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let failed = |err: anyhow::Error| ErrorData::internal_error(format!("{err:#}"), None);
        let result = self.work.answer(&request.name, &arguments).map_err(failed)?;
        Ok(result.into())
    }
}

impl Work {
    /// Answers on the calling thread, because moving to another thread would only be slower.
    fn answer(&self, tool: &str, arguments: &Value) -> anyhow::Result<CallToolResult> {
        match self {
            Work::Native(native) => {
                let native = native.lock().unwrap_or_else(PoisonError::into_inner);
                let reply = native.run(tool, &arguments.to_string())?;
                drop(native);
                let structured = serde_json::from_str(&reply.structured)?;
                Ok(result(reply.structured, structured))
            }
            Work::Constant(replies) => {
                let task = arguments.get("task_id").and_then(Value::as_str);
                let reply = replies.get(task.unwrap_or(tool)).cloned();
                reply.with_context(|| format!("there is no reply for {tool} {arguments}"))
            }
        }
    }
}

fn result(text: String, structured: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured);
    result
}

/// The pack's tools as clients see them.
fn tools() -> Vec<Tool> {
    let object = |schema: Value| match schema {
        Value::Object(members) => Arc::new(members),
        _ => Arc::new(Map::new()),
    };
    let describe = |schema: &Value| {
        schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let tool = |entry: &tollgate_sdk::Entry| {
        let input = (entry.input_schema)();
        Tool::new(entry.name, describe(&input), object(input))
            .with_title(entry.title)
            .with_raw_output_schema(object((entry.output_schema)()))
    };
    PACK.tools.iter().map(tool).collect()
}
