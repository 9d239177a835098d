//! Metadata that tells a client how to get a token (RFC 9728), and the challenges that point to it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use tollgate_sdk::ToolError;

use super::answer;
use super::middleware::Admission;
use crate::auth::Refused;

/// Path of the metadata. The path of the resource may be appended.
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Serves the metadata. Not found if no issuer is configured.
pub(super) async fn show(State(admission): State<Arc<Admission>>) -> Response {
    let Some(issuer) = admission.authenticator.issuer() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let settings = issuer.settings();
    let mut metadata = json!({
        "resource": admission.resource,
        "resource_name": "Tollgate",
        "authorization_servers": [settings.issuer],
        "bearer_methods_supported": ["header"],
    });
    if !settings.scopes.is_empty() {
        metadata["scopes_supported"] = json!(settings.scopes);
    }
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, metadata.to_string()).into_response()
}

/// Response to a sender without access: 401 with advice, or 403 with the missing scopes.
pub(super) fn challenge(admission: &Admission, refused: &Refused) -> Response {
    let (status, code, error) = match refused {
        Refused::NoToken => (StatusCode::UNAUTHORIZED, "TOKEN_REQUIRED", None),
        Refused::Invalid(_) => (StatusCode::UNAUTHORIZED, "TOKEN_INVALID", Some("invalid_token")),
        Refused::Expired => (StatusCode::UNAUTHORIZED, "TOKEN_EXPIRED", Some("invalid_token")),
        Refused::Scope(_) => (StatusCode::FORBIDDEN, "SCOPE_MISSING", Some("insufficient_scope")),
        Refused::NoKeys => (StatusCode::SERVICE_UNAVAILABLE, "ISSUER_UNAVAILABLE", None),
    };
    // Details about an invalid token would help an attacker.
    let message = match refused {
        Refused::Invalid(_) => "the bearer token is not valid".to_owned(),
        refused => refused.to_string(),
    };
    let remediation = match (refused, admission.authenticator.issuer()) {
        (Refused::NoKeys, _) => "Try again in a moment.".to_owned(),
        (Refused::Scope(scope), None) => {
            format!("Ask the operator for another token: tollgate tokens add NAME --scope {scope}.")
        }
        (_, Some(issuer)) => format!("Get a token from {}.", issuer.settings().issuer),
        (_, None) => "Send `Authorization: Bearer TOKEN` with a token from the operator.".to_owned(),
    };
    let err = ToolError::new(code, message).remediation(remediation);
    let mut response = answer::refusal(status, &err);
    let value = HeaderValue::try_from(authenticate(admission, error));
    if let (true, Ok(value)) = (status.is_client_error(), value) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

/// Value of `WWW-Authenticate`.
fn authenticate(admission: &Admission, error: Option<&str>) -> String {
    let mut parts = Vec::new();
    match admission.authenticator.issuer() {
        Some(issuer) => {
            parts.push(format!("resource_metadata=\"{}\"", address(&admission.resource)));
            let scopes = &issuer.settings().scopes;
            if !scopes.is_empty() {
                parts.push(format!("scope=\"{}\"", scopes.join(" ")));
            }
        }
        None => parts.push("realm=\"tollgate\"".to_owned()),
    }
    parts.extend(error.map(|error| format!("error=\"{error}\"")));
    format!("Bearer {}", parts.join(", "))
}

/// Address of a resource's metadata: the well-known path, followed by the resource's path.
fn address(resource: &str) -> String {
    match url::Url::parse(resource) {
        Ok(url) => {
            let path = url.path().trim_end_matches('/');
            format!("{}{METADATA_PATH}{path}", url.origin().ascii_serialization())
        }
        Err(_) => METADATA_PATH.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_resource_goes_behind_the_well_known_one() {
        for (resource, expected) in [
            (
                "https://t.example/mcp",
                "https://t.example/.well-known/oauth-protected-resource/mcp",
            ),
            (
                "https://t.example/",
                "https://t.example/.well-known/oauth-protected-resource",
            ),
            (
                "http://127.0.0.1:8765/mcp",
                "http://127.0.0.1:8765/.well-known/oauth-protected-resource/mcp",
            ),
        ] {
            assert_eq!(address(resource), expected);
        }
    }
}
