//! The pages, one file for each.

pub(crate) mod approvals;
pub(crate) mod envelopes;
pub(crate) mod host;
pub(crate) mod live;
pub(crate) mod login;
pub(crate) mod operation;
pub(crate) mod parts;
pub(crate) mod policies;
pub(crate) mod stats;
pub(crate) mod tests;
pub(crate) mod views;

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;

use crate::layout;
use crate::reader::ReadError;

/// Last part of an address. One that is no text is the name of nothing.
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

/// Rows that a page of the ledger has.
pub(crate) const ROWS: u32 = 60;

/// A page that could not be read.
pub(crate) struct Failed(Response);

impl From<ReadError> for Failed {
    fn from(err: ReadError) -> Failed {
        tracing::error!(err = %tollgate_core::text::chain(&err), "a page of the console could not be read");
        let text = "The store could not be read, or not in time. The host's log says why.";
        Failed(layout::plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "This page cannot be shown now",
            text,
        ))
    }
}

impl axum::response::IntoResponse for Failed {
    fn into_response(self) -> Response {
        self.0
    }
}

/// Page or failure.
pub(crate) type Shown = Result<Response, Failed>;

/// Nothing has this address.
pub(crate) async fn missing() -> Response {
    nothing("This page does not exist", "Nothing is at this address.")
}

/// Something that a page is about does not exist.
pub(crate) fn nothing(title: &str, text: &str) -> Response {
    layout::plain(StatusCode::NOT_FOUND, title, text)
}
