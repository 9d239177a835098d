//! MCP Apps (SEP-1865): results of some tools as pages, for clients that can show pages. Other clients get the usual
//! results.

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, MetaObject, ReadResourceResult, ResourceContents, Tool};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use tollgate_components::catalog::Catalog;
use tollgate_components::tools::View;
use tollgate_console::app;
use tollgate_gate::CallOutcome;

/// Name of the extension, as clients declare it.
const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// Media type of a page.
const MIME: &str = "text/html;profile=mcp-app";
/// Key of the markup in a result.
const HTML: &str = "tollgate/html";
/// Largest markup of a result, in bytes. Longer results are shown as text.
const MAX_HTML: usize = 256 << 10;

/// Returns whether the client of a request shows pages.
pub(super) fn wanted(context: &RequestContext<RoleServer>) -> bool {
    let declared = context.client_capabilities();
    let extensions = declared.and_then(|declared| declared.extensions.clone());
    extensions.is_some_and(|extensions| extensions.contains_key(EXTENSION))
}

/// Adds the addresses of their pages to the tools that have one.
pub(super) fn link(tools: &mut [Tool], catalog: &Catalog) {
    for tool in tools {
        if let Some(view) = view(catalog, &tool.name) {
            let ui = json!({ "resourceUri": address(&view) });
            tool.meta.get_or_insert_default().0.insert("ui".to_owned(), ui);
        }
    }
}

/// Page of a tool's result, if the tool has one.
pub(super) fn view(catalog: &Catalog, tool: &str) -> Option<View> {
    let view = catalog.find(tool)?.view.clone();
    view.filter(|view| view.app)
}

/// Markup of a reply.
pub(super) fn markup(view: &View, outcome: &CallOutcome) -> Option<String> {
    let reply = outcome.result.as_ref().ok()?.structured();
    let lists: Vec<String> = view.items.iter().map(|items| items.list.clone()).collect();
    Some(app::result(&view.title, &lists, &reply)).filter(|html| html.len() <= MAX_HTML)
}

/// Adds the markup to a result's metadata, which models do not read.
pub(super) fn add(result: &mut CallToolResult, html: String) {
    let meta = result.meta.get_or_insert_default();
    meta.0.insert(HTML.to_owned(), Value::from(html));
}

/// Page at an address.
pub(super) fn resource(catalog: &Catalog, asked: &str) -> Option<ReadResourceResult> {
    let tools = catalog.all();
    let view = tools
        .filter_map(|tool| tool.view.as_ref())
        .find(|view| view.app && address(view) == asked)?;
    let meta = Map::from_iter([("ui".to_owned(), json!({ "prefersBorder": true }))]);
    let contents = ResourceContents::text(app::page(&view.title), asked).with_mime_type(MIME);
    Some(ReadResourceResult::new(vec![
        contents.with_meta(MetaObject(meta)),
    ]))
}

fn address(view: &View) -> String {
    format!("ui://{}/{}.html", view.pack, view.tool)
}
