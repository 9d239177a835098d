//! One client on standard input and output.

use anyhow::Context as _;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;

use super::handler::{Handler, Structured};
use super::lines::Lines;

/// Serves until the client closes standard input or the process is asked to stop.
pub async fn serve(handler: Handler) -> anyhow::Result<()> {
    let (read, write) = stdio_pipes();
    let handler = handler.replying_with(Structured::Text);
    let service = match handler.serve(Lines::new(read, write)).await {
        Ok(service) => service,
        // A client that leaves before it says anything is no failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(err) => return Err(err).context("the client did not begin a session"),
    };
    let stop = service.cancellation_token();
    tokio::spawn(async move {
        if super::stop_requested().await.is_ok() {
            stop.cancel();
        }
    });
    service.waiting().await.context("the session broke off")?;
    Ok(())
}
