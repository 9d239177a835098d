//! Refusals of requests that do not reach the gate, in the shape that refusals of calls have.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tollgate_sdk::ToolError;

/// Time after which a call may be made again whose pack was still being prepared.
const PREPARING: Duration = Duration::from_secs(5);
/// JSON-RPC's code for errors of the server's own.
const SERVER_ERROR: i32 = -32000;

/// A refusal with a status: an error of JSON-RPC that names no request, because none was read.
pub(super) fn refusal(status: StatusCode, err: &ToolError) -> Response {
    let error = json!({ "code": SERVER_ERROR, "message": err.to_string(), "data": { "error": err } });
    message(status, Value::Null, error)
}

/// An error with one of JSON-RPC's own codes, about the request with an id, or about none that could be read.
pub(super) fn error(status: StatusCode, code: i32, id: Value, why: &str) -> Response {
    message(status, id, json!({ "code": code, "message": why }))
}

fn message(status: StatusCode, id: Value, error: Value) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, body.to_string()).into_response()
}

/// The same, saying when to come again.
pub(super) fn later(status: StatusCode, err: &ToolError, after: Duration) -> Response {
    let mut response = refusal(status, err);
    let seconds = after.as_secs().max(1);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// The answer to a call of a tool of which nobody knows yet what it takes.
pub(super) fn preparing(tool: &str) -> Response {
    let tool = tollgate_core::text::clean(tollgate_core::text::cut(tool, 64));
    let why = format!("{tool} may be a tool of a pack that is still being prepared");
    let err = ToolError::new("PACKS_PREPARING", why).remediation("Try again in a moment.");
    later(StatusCode::SERVICE_UNAVAILABLE, &err, PREPARING)
}

/// The host takes no more calls.
pub(super) fn stopping() -> Response {
    let err = ToolError::new("HOST_STOPPING", "the host is stopping; nothing was changed")
        .remediation("Connect again in a moment.");
    later(StatusCode::SERVICE_UNAVAILABLE, &err, Duration::from_secs(5))
}

/// There are as many of something as may be at once.
pub(super) fn too_many(status: StatusCode, code: &str, what: &str, limit: usize) -> Response {
    let err = ToolError::new(code, format!("there are {limit} {what} already"))
        .remediation("Wait for answers, end what is not needed, and try again.")
        .context("limit", limit);
    later(status, &err, Duration::from_secs(1))
}

/// Requests come faster than they may.
pub(super) fn too_fast(limit: u32) -> Response {
    let err = ToolError::new(
        "TOO_MANY_REQUESTS",
        format!("more than {limit} requests came in a second"),
    )
    .remediation("Slow down.")
    .context("limit", limit);
    later(StatusCode::TOO_MANY_REQUESTS, &err, Duration::from_secs(1))
}

/// The body is longer than it may be.
pub(super) fn too_large(limit: usize) -> Response {
    let err = ToolError::new("BODY_TOO_LARGE", format!("the body is longer than {limit} bytes"))
        .remediation("Send less at once; the operator can raise server.limits.body_kib.")
        .context("limit_bytes", limit);
    refusal(StatusCode::PAYLOAD_TOO_LARGE, &err)
}

/// Nothing is served at the path.
pub(super) fn nothing_there(path: &str) -> Response {
    let err = ToolError::new("PATH_UNKNOWN", "there is nothing at this path")
        .remediation(format!("MCP is served at {path}."))
        .context("path", path);
    refusal(StatusCode::NOT_FOUND, &err)
}

/// Nothing is served at the path, and MCP at none.
pub(super) fn no_mcp_there() -> Response {
    let err = ToolError::new("PATH_UNKNOWN", "there is nothing at this path")
        .remediation("This server serves the console alone. `tollgate serve --http ADDRESS` serves MCP.");
    refusal(StatusCode::NOT_FOUND, &err)
}

/// The head is longer than it may be.
pub(super) fn head_too_large(limit: usize) -> Response {
    let err = ToolError::new("HEAD_TOO_LARGE", format!("the head is longer than {limit} bytes"))
        .remediation("Send fewer or shorter headers; the operator can raise server.limits.header_kib.")
        .context("limit_bytes", limit);
    refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &err)
}

/// The body did not come in time.
pub(super) fn too_slow(limit: Duration) -> Response {
    let err = ToolError::new(
        "BODY_TOO_SLOW",
        format!("the body did not come within {} s", limit.as_secs()),
    )
    .remediation("Send it again, at once.")
    .context("limit_sec", limit.as_secs());
    refusal(StatusCode::REQUEST_TIMEOUT, &err)
}

/// The body broke off.
pub(super) fn broken_off() -> Response {
    let err = ToolError::new("BODY_BROKEN_OFF", "the body broke off").remediation("Send it again.");
    refusal(StatusCode::BAD_REQUEST, &err)
}
