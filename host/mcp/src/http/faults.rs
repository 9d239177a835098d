//! JSON-RPC errors for requests that are not valid MCP. The library answers such requests with plain text.

use axum::body::Body;
use axum::http::{Method, StatusCode, header};
use axum::response::Response;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tollgate_sdk::ToolError;

use super::answer;

/// JSON-RPC codes for unreadable messages.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const INVALID_PARAMS: i32 = -32_602;
/// Longest text of the library that an answer repeats, in bytes.
const MAX_TEXT: usize = 500;

/// Parts of a message that decide its handling.
#[derive(Deserialize)]
pub(super) struct Outline<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    /// Params, of which only a name matters here. The library validates the rest.
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Name of a tool in params.
#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Value of a field that is present, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

impl<'a> Outline<'a> {
    /// Parses the outline of a message, if it is an object with a method that is text.
    pub(super) fn of(message: &'a [u8]) -> Option<Outline<'a>> {
        serde_json::from_slice(message).ok()
    }

    /// Returns whether the message is `initialize`.
    pub(super) fn begins_session(&self) -> bool {
        self.method.as_deref() == Some("initialize")
    }

    /// Name of the tool, if the message is a tool call.
    pub(super) fn tool(&self) -> Option<String> {
        let params = self
            .params
            .filter(|_| self.method.as_deref() == Some("tools/call"))?;
        let named: Named = serde_json::from_str(params.get()).ok()?;
        Some(named.name)
    }

    /// Returns whether the id is not valid for a request.
    pub(super) fn has_odd_id(&self) -> bool {
        let is_plain = |id: &RawValue| id.get().starts_with('"') || id.get().parse::<i64>().is_ok();
        self.id.is_some_and(|id| !is_plain(id))
    }
}

/// Response to a message that the library rejects.
pub(super) fn unreadable(message: &[u8]) -> Response {
    let (code, id, why) = told(message);
    answer::error(StatusCode::BAD_REQUEST, code, id, &why)
}

/// JSON-RPC code, message id and explanation for a message that the library rejects.
pub(crate) fn told(message: &[u8]) -> (i32, Value, String) {
    match serde_json::from_slice::<Value>(message) {
        Err(err) => (
            PARSE_ERROR,
            Value::Null,
            format!("the message is not JSON: {err}"),
        ),
        Ok(Value::Object(object)) => fault(&object, Outline::of(message).is_none()),
        Ok(Value::Array(_)) => {
            let why = "the message is a batch; send each message by itself";
            (INVALID_REQUEST, Value::Null, why.to_owned())
        }
        Ok(_) => (
            INVALID_REQUEST,
            Value::Null,
            "the message is not an object".to_owned(),
        ),
    }
}

fn fault(message: &serde_json::Map<String, Value>, is_ambiguous: bool) -> (i32, Value, String) {
    let id = match message.get("id") {
        None => Value::Null,
        Some(id) if id.is_string() || id.is_i64() => id.clone(),
        Some(id) => {
            let why = format!("id must be a string or a 64-bit integer, but is {}", kind(id));
            return (INVALID_REQUEST, Value::Null, why);
        }
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return (INVALID_REQUEST, id, "jsonrpc must be \"2.0\"".to_owned());
    }
    match message.get("method") {
        Some(Value::String(_)) if is_ambiguous => {
            let why = "id or method occurs twice, or contains half a surrogate pair";
            (INVALID_REQUEST, Value::Null, why.to_owned())
        }
        Some(Value::String(method)) => {
            let method = tollgate_core::text::clean(tollgate_core::text::cut(method, 100));
            (INVALID_PARAMS, id, format!("invalid params for {method}"))
        }
        Some(method) => {
            let why = format!("method must be a string, but is {}", kind(method));
            (INVALID_REQUEST, id, why)
        }
        None => {
            let why = "the message has no method, and no result or error that can be read";
            (INVALID_REQUEST, id, why.to_owned())
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "another number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Replaces plain text in the library's response with a JSON-RPC error. `message` is the request's message.
pub(super) async fn in_json(response: Response, method: &Method, message: Option<&[u8]>) -> Response {
    let status = response.status();
    if *method == Method::DELETE && status == StatusCode::ACCEPTED {
        // The session is over, so there is no content. Some clients treat 202 as a failure.
        let (mut parts, _) = response.into_parts();
        parts.status = StatusCode::NO_CONTENT;
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::CONTENT_TYPE);
        return Response::from_parts(parts, Body::empty());
    }
    let is_json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !(status.is_client_error() || status.is_server_error()) || is_json {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, 64 << 10).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let refusal = match message {
        Some(message) if text.starts_with(UNREADABLE) => unreadable(message),
        _ => {
            let text = tollgate_core::text::clean(tollgate_core::text::cut(text.trim(), MAX_TEXT));
            let (code, remediation) = advice(status);
            answer::refusal(status, &ToolError::new(code, text).remediation(remediation))
        }
    };
    // Headers of the response are kept, for example the allowed methods.
    let (own, body) = refusal.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.status = own.status;
    parts.headers.extend(own.headers);
    Response::from_parts(parts, body)
}

/// Prefix of the library's answer to a message that it cannot read.
const UNREADABLE: &str = "fail to deserialize request body";

/// Error code and remediation for a status.
fn advice(status: StatusCode) -> (&'static str, &'static str) {
    match status {
        StatusCode::NOT_FOUND => ("SESSION_NOT_FOUND", "Start another session with initialize."),
        StatusCode::NOT_ACCEPTABLE => (
            "NOT_ACCEPTABLE",
            "POST: send Accept: application/json, text/event-stream. GET: send Accept: text/event-stream.",
        ),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (
            "CONTENT_TYPE_NOT_JSON",
            "Send the message as JSON with Content-Type: application/json.",
        ),
        StatusCode::METHOD_NOT_ALLOWED => (
            "METHOD_NOT_ALLOWED",
            "POST messages; GET and DELETE belong to a session.",
        ),
        status if status.is_server_error() => ("HOST_FAILED", "Check the host's log."),
        _ => (
            "BAD_REQUEST",
            "Send what the negotiated protocol version requires.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn said(message: &str) -> String {
        let response = unreadable(message.as_bytes());
        assert_eq!(response.status(), 400);
        let body = axum::body::to_bytes(response.into_body(), 1 << 16).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["jsonrpc"], "2.0");
        format!(
            "{} {} {}",
            body["error"]["code"], body["id"], body["error"]["message"]
        )
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_named() {
        assert!(said("{").await.starts_with("-32700 null"));
        for (message, wanted) in [
            (
                "[]",
                "-32600 null \"the message is a batch; send each message by itself\"",
            ),
            ("1", "-32600 null \"the message is not an object\""),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#,
                "-32600 null \"id must be a string or a 64-bit integer, but is an object\"",
            ),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
                r#"-32600 1 "jsonrpc must be \"2.0\"""#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":7}"#,
                "-32600 \"a\" \"method must be a string, but is another number\"",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"x","id":2}"#,
                "-32600 null \"id or method occurs twice, or contains half a surrogate pair\"",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#,
                "-32602 1 \"invalid params for tools/call\"",
            ),
        ] {
            assert_eq!(said(message).await, wanted, "{message}");
        }
    }

    #[test]
    fn ids_are_text_or_whole_numbers() {
        let is_odd = |id: &str| {
            let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            Outline::of(message.as_bytes()).unwrap().has_odd_id()
        };
        for id in ["1", "-1", "9223372036854775807", "\"\"", "\"a\""] {
            assert!(!is_odd(id), "{id}");
        }
        for id in [
            "null",
            "1.0",
            "1.5",
            "1e3",
            "9223372036854775808",
            "true",
            "{}",
            "[]",
            "[1]",
        ] {
            assert!(is_odd(id), "{id}");
        }
        let notification = Outline::of(br#"{"jsonrpc":"2.0","method":"initialize"}"#).unwrap();
        assert!(!notification.has_odd_id() && notification.begins_session());
    }
}
