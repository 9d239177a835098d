//! The pages, one file each.

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

use axum::http::StatusCode;
use axum::response::Response;

use crate::layout;
use crate::reader::ReadError;

/// Rows on one page of the ledger.
pub(crate) const PAGE_ROWS: u32 = 60;

/// Error response for a page that could not be read.
pub(crate) struct Failed(Response);

impl From<ReadError> for Failed {
    fn from(err: ReadError) -> Failed {
        tracing::error!(err = %tollgate_core::text::chain(&err), "reading a page of the console failed");
        let text = "Reading the store failed or took too long. The host's log has the reason.";
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
