//! Start of a session over two pipes: messages that arrive too early, and the errors that say what to send first.

use rmcp::RoleServer;
use rmcp::model::{ClientRequest, ErrorCode, ErrorData, GetMeta as _, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};

/// Prefix of the `_meta` keys with which a request carries what a session would otherwise provide.
const OWN_KEYS: &str = "io.modelcontextprotocol/";

/// Classification of a message from a client that has not started a session.
pub(super) enum Opening {
    /// Starts the session, or does not need one.
    Begins,
    /// Is allowed before a session starts.
    Before,
    /// Needs neither a session nor a response.
    Ignored,
    /// Needs a session, and is answered with this error.
    Refused(Box<TxJsonRpcMessage<RoleServer>>),
}

impl Opening {
    pub(super) fn of(message: &RxJsonRpcMessage<RoleServer>) -> Opening {
        let JsonRpcMessage::Request(sent) = message else {
            return Opening::Ignored;
        };
        let refused = |code, text: String| {
            let refusal = ErrorData::new(code, text, None);
            Opening::Refused(Box::new(JsonRpcMessage::error(refusal, Some(sent.id.clone()))))
        };
        let meta = sent.request.get_meta();
        match &sent.request {
            ClientRequest::InitializeRequest(_) => Opening::Begins,
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => Opening::Before,
            ClientRequest::CustomRequest(request) if request.method == "initialize" => refused(
                ErrorCode::INVALID_PARAMS,
                "initialize needs params with protocolVersion, capabilities, and clientInfo with name and version"
                    .to_owned(),
            ),
            _ if meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty() => Opening::Begins,
            _ if meta.keys().any(|key| key.starts_with(OWN_KEYS)) => Opening::Before,
            request => refused(
                ErrorCode::INVALID_REQUEST,
                format!(
                    "send initialize first; {} needs a session, and none has started",
                    tollgate_core::text::clean(tollgate_core::text::cut(request.method(), 100))
                ),
            ),
        }
    }
}
