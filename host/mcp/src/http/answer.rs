//! Refusals of requests that do not reach the gate, in the same form as refusals of calls.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tollgate_sdk::ToolError;

/// Delay before retrying a call whose pack is still being prepared.
const PREPARING_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// JSON-RPC code for server errors.
const SERVER_ERROR: i32 = -32000;

/// Refusal with an HTTP status: a JSON-RPC error without a request id, because no request was parsed.
pub(super) fn refusal(status: StatusCode, err: &ToolError) -> Response {
    let error = json!({ "code": SERVER_ERROR, "message": err.to_string(), "data": { "error": err } });
    message(status, Value::Null, error)
}

/// Standard JSON-RPC error about the request with this id. The id is null if it could not be read.
pub(super) fn error(status: StatusCode, code: i32, id: Value, why: &str) -> Response {
    message(status, id, json!({ "code": code, "message": why }))
}

fn message(status: StatusCode, id: Value, error: Value) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, body.to_string()).into_response()
}

/// Refusal that also says when to retry.
pub(super) fn later(status: StatusCode, err: &ToolError, after: Duration) -> Response {
    let mut response = refusal(status, err);
    let seconds = after.as_secs().max(1);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// Response to a call of a tool whose schema is not known yet.
pub(super) fn preparing(tool: &str) -> Response {
    let tool = tollgate_core::text::clean(tollgate_core::text::cut(tool, 64));
    let why = format!("{tool} may be a tool of a pack that is still being prepared");
    let err = ToolError::new("PACKS_PREPARING", why).remediation("Try again in a moment.");
    later(StatusCode::SERVICE_UNAVAILABLE, &err, PREPARING_RETRY_INTERVAL)
}

/// Response while the host is stopping and takes no more calls.
pub(super) fn stopping() -> Response {
    let err = ToolError::new("HOST_STOPPING", "the host is stopping; nothing was changed")
        .remediation("Connect again in a moment.");
    later(StatusCode::SERVICE_UNAVAILABLE, &err, Duration::from_secs(5))
}

/// Response if the metrics cannot be encoded.
pub(super) fn metrics_failed() -> Response {
    let err = ToolError::new("HOST_FAILED", "the metrics cannot be encoded as text")
        .remediation("Repeat the request.");
    refusal(StatusCode::INTERNAL_SERVER_ERROR, &err)
}

/// Response if a concurrency limit is reached.
pub(super) fn too_many(status: StatusCode, code: &str, what: &str, limit: usize) -> Response {
    let err = ToolError::new(code, format!("the limit of {limit} {what} is reached"))
        .remediation(
            "Wait until earlier requests have ended, or close what you no longer need. Then try again.",
        )
        .context("limit", limit);
    later(status, &err, Duration::from_secs(1))
}

/// Response if requests exceed the rate limit.
pub(super) fn too_fast(limit: u32) -> Response {
    let err = ToolError::new(
        "TOO_MANY_REQUESTS",
        format!("more requests arrived within a second than the limit of {limit}"),
    )
    .remediation("Slow down.")
    .context("limit", limit);
    later(StatusCode::TOO_MANY_REQUESTS, &err, Duration::from_secs(1))
}

/// Response if the body exceeds its size limit.
pub(super) fn too_large(limit: usize) -> Response {
    let err = ToolError::new("BODY_TOO_LARGE", format!("the body is longer than {limit} bytes"))
        .remediation("Send less at once; the operator can raise server.limits.body_kib.")
        .context("limit_bytes", limit);
    refusal(StatusCode::PAYLOAD_TOO_LARGE, &err)
}

/// Response for a path at which nothing is served.
pub(super) fn nothing_there(path: &str) -> Response {
    let err = ToolError::new("PATH_UNKNOWN", "there is nothing at this path")
        .remediation(format!("MCP is served at {path}."))
        .context("path", path);
    refusal(StatusCode::NOT_FOUND, &err)
}

/// Response for such a path if MCP is not served at all.
pub(super) fn no_mcp_there() -> Response {
    let err = ToolError::new("PATH_UNKNOWN", "there is nothing at this path")
        .remediation("This server serves only the console. `tollgate serve --http ADDRESS` serves MCP.");
    refusal(StatusCode::NOT_FOUND, &err)
}

/// Response if the head exceeds its size limit.
pub(super) fn head_too_large(limit: usize) -> Response {
    let err = ToolError::new("HEAD_TOO_LARGE", format!("the head is longer than {limit} bytes"))
        .remediation("Send fewer or shorter headers; the operator can raise server.limits.header_kib.")
        .context("limit_bytes", limit);
    refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &err)
}

/// Response if the body did not arrive in time.
pub(super) fn too_slow(limit: Duration) -> Response {
    let err = ToolError::new(
        "BODY_TOO_SLOW",
        format!("the body did not arrive within {} s", limit.as_secs()),
    )
    .remediation("Send the request again, without pauses in the body.")
    .context("limit_sec", limit.as_secs());
    refusal(StatusCode::REQUEST_TIMEOUT, &err)
}

/// Response if the body was cut off.
pub(super) fn broken_off() -> Response {
    let err =
        ToolError::new("BODY_BROKEN_OFF", "the body is incomplete").remediation("Send the request again.");
    refusal(StatusCode::BAD_REQUEST, &err)
}
