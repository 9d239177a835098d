//! Server for one client on standard input and output.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;
use tokio_util::task::AbortOnDropHandle;

use super::handler::{Handler, Structured};
use super::ndjson::Lines;

/// Time during which calls may still start after standard input was closed. The calls of a piped script are made. The
/// calls of a client that is gone are of no use to it.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves until the client closes standard input or the process receives a stop signal.
pub async fn serve(handler: Handler) -> anyhow::Result<()> {
    // Before the first response, so that a signal right after it stops the server gracefully.
    let mut stopped = Box::pin(super::stop_signals().context("cannot listen for signals")?);
    let (read, write) = stdio_pipes();
    let handler = handler.replying_with(Structured::Text);
    let (gate, lines) = (Arc::clone(&handler.gate), Lines::new(read, write));
    let ended = lines.ended();
    let leaving = tokio::spawn(async move {
        ended.cancelled().await;
        tokio::time::sleep(LEAVE_TIMEOUT).await;
        gate.leave();
    });
    let _leaving = AbortOnDropHandle::new(leaving);
    let begun = tokio::select! {
        // On the heap, because the library moves the future of a request several times.
        begun = handler.into_dyn().serve(lines) => begun,
        () = &mut stopped => return Ok(()),
    };
    let service = match begun {
        Ok(service) => service,
        // A client that disconnects before sending anything is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(err) => return Err(err).context("the client did not start a session"),
    };
    let stop = service.cancellation_token();
    tokio::spawn(async move {
        stopped.await;
        stop.cancel();
    });
    service.waiting().await.context("the session failed")?;
    Ok(())
}
