//! Target for messages of clients.

use serde_json::Value;
use tollgate_mcp::sanitize;

/// Checks that a repaired message can be parsed, answers the same request, and needs no further repair.
pub(crate) fn run(bytes: &[u8]) {
    let Some(sanitized) = sanitize::sanitize(bytes) else {
        return;
    };
    assert!(std::str::from_utf8(&sanitized).is_ok());
    let Ok(message) = serde_json::from_slice::<Value>(&sanitized) else {
        return;
    };
    // A client may write the key itself anywhere, but the key only has an effect in a call.
    if message["method"] != "tools/call" || message["params"]["_meta"].get(sanitize::MALFORMED).is_none() {
        return;
    }
    if let Ok(original) = serde_json::from_slice::<Value>(bytes) {
        assert_eq!(original.get("id"), message.get("id"));
    }
    assert_eq!(sanitize::sanitize(&sanitized), None, "it was not repaired");
}
