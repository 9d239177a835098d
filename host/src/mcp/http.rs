//! Many clients over streamable HTTP, on this machine only.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use super::wire;

/// What the text under `/metrics` is.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Why HTTP is not served.
#[derive(Debug, Error)]
pub enum HttpError {
    /// Other machines could reach it.
    #[error("{0} is not a loopback address; only this machine may connect, for instance 127.0.0.1:8765")]
    NotLoopback(SocketAddr),
    /// The address cannot be bound.
    #[error("{address} cannot be bound")]
    Bind {
        /// Which address.
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// The server broke off.
    #[error("the HTTP server broke off")]
    Serve(#[source] std::io::Error),
}

/// Serves `/mcp` at a loopback address until the process is asked to stop, and what is counted under
/// `/metrics`. `ready` hears the address once it is bound, which matters when the port was 0.
pub async fn serve(
    address: SocketAddr,
    handler: impl Fn() -> Handler + Send + Sync + 'static,
    metrics: impl Fn() -> String + Clone + Send + Sync + 'static,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), HttpError> {
    if !address.ip().is_loopback() {
        return Err(HttpError::NotLoopback(address));
    }
    let bind = |source| HttpError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let bound = listener.local_addr().map_err(bind)?;
    let stop = CancellationToken::new();
    let app = router(handler, metrics, stop.clone());
    ready(bound);
    let listener = listener.tap_io(|connection| {
        // Otherwise the kernel holds small replies back for 40 ms.
        if let Err(err) = connection.set_nodelay(true) {
            tracing::debug!(%err, "TCP_NODELAY could not be set");
        }
    });
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            if super::stop_requested().await.is_ok() {
                stop.cancel();
            } else {
                std::future::pending::<()>().await;
            }
        })
        .await
        .map_err(HttpError::Serve)
}

fn router(
    handler: impl Fn() -> Handler + Send + Sync + 'static,
    metrics: impl Fn() -> String + Clone + Send + Sync + 'static,
    stop: CancellationToken,
) -> Router {
    // Every Origin is refused: browsers send one, the clients this serves do not.
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(stop)
        .with_max_request_body_bytes(wire::MAX_MESSAGE)
        .enforce_origin_validation();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler()), sessions, config);
    Router::new()
        .route_service("/mcp", service)
        .route(
            "/metrics",
            get(async move || ([(CONTENT_TYPE, PROMETHEUS)], metrics())),
        )
        .layer(middleware::from_fn(repair_body))
}

/// Gives a tool call that cannot be read to the gate all the same.
async fn repair_body(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let body: Bytes = match axum::body::to_bytes(body, wire::MAX_MESSAGE).await {
        Ok(body) => body,
        Err(_) => {
            return (
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body is too large or broke off",
            )
                .into_response();
        }
    };
    let body = wire::repair(&body).map_or(body, Bytes::from);
    next.run(Request::from_parts(parts, Body::from(body))).await
}
