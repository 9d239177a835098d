//! Path parameters, and pages for unknown addresses.

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;

use crate::layout;

/// Last part of an address. A part that is not UTF-8 matches nothing.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Name, Response> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Name(name)),
            Err(_) => Err(missing().await),
        }
    }
}

/// Page for an unknown address.
pub(crate) async fn missing() -> Response {
    nothing("This page does not exist", "No page exists at this address.")
}

/// Page about something that does not exist.
pub(crate) fn nothing(title: &str, text: &str) -> Response {
    layout::plain(StatusCode::NOT_FOUND, title, text)
}
