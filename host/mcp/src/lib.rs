//! MCP server over stdio and HTTP, backed by the gate.

mod apps;
pub mod auth;
mod brief;
mod elicitation;
mod elicitation_form;
mod faulty_params;
mod handler;
pub mod http;
mod listing;
mod listings;
mod logs;
mod ndjson;
mod opening;
mod replies;
mod request;
mod resources;
pub mod sanitize;
mod seen;
mod sender;
mod stdio;
mod subscriptions;
mod tasks;

pub use handler::Handler;
pub use http::{HttpError, Pages, Serving, serve as serve_http};
pub use listing::{Listing, Schemas};
pub use listings::Listings;
pub use stdio::serve as serve_stdio;

/// Resolves when the process receives a stop signal. Signals are caught from the moment of this call, not only once the
/// future is polled.
fn stop_signals() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
