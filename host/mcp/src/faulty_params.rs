//! Errors for requests of known methods with invalid params. The library reports such requests as requests of unknown
//! methods.

use rmcp::model::{CancelTaskParams, ErrorData, GetTaskParams, UpdateTaskParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tollgate_core::text;
use tollgate_sdk::ToolError;

/// Longest reason, in bytes.
const MAX_REASON: usize = 300;

/// Methods with required params. Methods that the newest revision removed are unknown in that revision, whatever their
/// params are.
const METHODS_WITH_PARAMS: [&str; 9] = [
    "completion/complete",
    "prompts/get",
    "resources/read",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// Error for a method whose params the library rejected. `None` if there is no such method.
pub(super) fn of(method: &str, params: Option<Value>) -> Option<ErrorData> {
    if !METHODS_WITH_PARAMS.contains(&method) {
        return None;
    }
    let params = params.unwrap_or_else(|| json!({}));
    let reason = match method {
        "tasks/get" => fault::<GetTaskParams>(params),
        "tasks/update" => fault::<UpdateTaskParams>(params),
        "tasks/cancel" => fault::<CancelTaskParams>(params),
        _ => None,
    };
    let message = match reason {
        Some(reason) => format!("invalid params for {method}: {reason}"),
        None => format!("invalid params for {method}"),
    };
    let err = ToolError::new("PARAMS_INVALID", message)
        .remediation("Send the params that MCP's specification names for this method.");
    Some(ErrorData::invalid_params(
        err.message.clone(),
        Some(json!({ "error": err })),
    ))
}

fn fault<T: DeserializeOwned>(params: Value) -> Option<String> {
    let err = serde_json::from_value::<T>(params).err()?;
    Some(text::clean(text::cut(&err.to_string(), MAX_REASON)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_are_told_from_methods() {
        for unknown in ["nope", "logging/setLevel", "resources/subscribe"] {
            assert_eq!(of(unknown, None), None);
        }
        for (method, params, wanted) in [
            ("tasks/get", json!({"taskId": 5}), "invalid type: integer `5`"),
            ("tasks/get", json!({}), "missing field `taskId`"),
            ("tasks/cancel", json!({}), "missing field `taskId`"),
            (
                "tasks/update",
                json!({"taskId": "t"}),
                "missing field `inputResponses`",
            ),
            (
                "tasks/update",
                json!({"taskId": "t", "inputResponses": []}),
                "invalid type: sequence",
            ),
            ("tools/call", json!({}), "invalid params for tools/call"),
        ] {
            let err = of(method, Some(params)).unwrap();
            assert_eq!(err.code.0, -32602, "{err:?}");
            assert!(err.message.contains(wanted), "{err:?}");
            assert_eq!(err.data.unwrap()["error"]["code"], "PARAMS_INVALID");
        }
    }
}
