//! MCP: the gate as a server over stdio and HTTP.

mod asking;
mod brief;
mod errand;
mod handler;
mod http;
mod lines;
mod listing;
mod listings;
mod logs;
mod questions;
mod replies;
mod resources;
mod seen;
mod stdio;
mod subscriptions;
pub mod wire;

pub use handler::Handler;
pub use http::{HttpError, Serving, serve as serve_http};
pub use listing::{Listing, Schemas};
pub use listings::Listings;
pub use stdio::serve as serve_stdio;

/// Resolves when the process is asked to stop.
async fn stop_requested() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        interrupted = tokio::signal::ctrl_c() => interrupted,
    }
}
