//! MCP over streamable HTTP for many clients: authentication, limits, and graceful shutdown.

mod answer;
mod bodies;
mod caps;
pub(super) mod faults;
mod graceful_close;
mod head;
mod hosts;
mod limits;
mod listen;
mod metadata;
mod middleware;
mod pace;
mod page;
mod pulse;
mod seats;
mod sessions;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use futures::future::BoxFuture;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tollgate_core::identity::Identity;
use tollgate_core::meter;
use tollgate_gate::Gate;

use super::handler::Handler;
use crate::auth::{Auth, Authenticator, Issuer, KeyError, Keyring};

pub use caps::Caps;

use hosts::Hosts;
use middleware::Admission;
use pulse::Pulse;

/// Minimum size limit of a request's head in bytes, because the connection's buffer cannot be smaller.
const MIN_HEAD: usize = 8 << 10;
/// Path of the MCP endpoint.
const MCP_PATH: &str = "/mcp";

/// Reason why the HTTP server cannot start.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The address is reachable from other machines, and no authentication is configured.
    #[error(
        "{0} is not a loopback address, and callers are not authenticated; set server.auth.token_file or \
         server.auth.issuer, or serve at 127.0.0.1"
    )]
    Exposed(SocketAddr),
    /// The address cannot be bound.
    #[error("cannot bind to {address}")]
    Bind {
        /// Address to bind.
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// The issuer's keys cannot be fetched with this configuration.
    #[error("cannot use server.auth")]
    Issuer(#[source] KeyError),
    /// The pages for people cannot be created.
    #[error("the console cannot be served: {0}")]
    Pages(String),
}

/// Settings of an HTTP server.
pub struct Serving {
    /// Address to listen on.
    pub address: SocketAddr,
    /// Additional host names under which clients reach the server.
    pub hosts: Vec<String>,
    /// Origins of web pages that may use the server.
    pub origins: Vec<String>,
    /// Operator's tokens.
    pub tokens: Option<Arc<Keyring>>,
    /// Settings of the issuer and the requirements for its tokens.
    pub auth: Auth,
    /// Limits, which may change while the server runs.
    pub caps: watch::Receiver<Caps>,
    /// Pages for people, if enabled.
    pub pages: Option<Pages>,
}

/// Authenticates a token. `None` if the token is not valid.
pub type Prove = Arc<dyn Fn(String) -> BoxFuture<'static, Option<Proven>> + Send + Sync>;
/// A proven identity, a token that is cancelled on revocation, and the expiry time.
pub type Proven = (Identity, Option<CancellationToken>, Option<i64>);

/// Pages for people, served beside MCP. Host and origin are checked first. The pages authenticate their users
/// themselves.
pub struct Pages {
    /// Creates the pages from the authentication, if tokens are required, and from the signal that ends their streams.
    pub make: MakePages,
    /// Path that a browser is redirected to from `/`.
    pub path: &'static str,
    /// True if only the pages are served, and neither MCP nor metrics.
    pub alone: bool,
}

/// Constructor of pages.
pub type MakePages = Box<dyn FnOnce(Option<Prove>, CancellationToken) -> anyhow::Result<Router> + Send>;

/// Serves `/mcp`, `/healthz`, `/readyz` and `/metrics` until the process receives a stop signal and all admitted
/// requests are answered. `ready` gets the bound address, which matters if the port was 0.
pub async fn serve(
    mut serving: Serving,
    gate: Arc<Gate>,
    handler: impl Fn() -> Handler + Send + Sync + 'static,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), HttpError> {
    let address = serving.address;
    let is_open = serving.tokens.is_none() && serving.auth.issuer.is_none();
    if !address.ip().is_loopback() && is_open {
        return Err(HttpError::Exposed(address));
    }
    let bind = |source| HttpError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let bound = listener.local_addr().map_err(bind)?;
    let mut later = serving.caps.clone();
    let caps = later.borrow_and_update().clone();
    let stop = CancellationToken::new();
    let pages = serving.pages.take();
    let is_alone = pages.as_ref().is_some_and(|pages| pages.alone);
    let admission = Arc::new(admission(serving, caps.clone(), bound, Arc::clone(&gate))?);
    let longest = (caps.header.max(MIN_HEAD), caps.body);
    let routes = routes(handler, &admission, longest.1, &stop, pages)?;
    let app = guarded(routes, Arc::clone(&admission), longest.0, is_alone);
    // Signals that arrive right after the server reports ready must not be lost.
    let asked = listen::asked_to_stop();
    ready(bound);
    let fetching = {
        let admission = Arc::clone(&admission);
        tokio::spawn(async move { admission.fetch_keys().await })
    };
    let bounding = {
        let admission = Arc::clone(&admission);
        tokio::spawn(async move {
            while later.changed().await.is_ok() {
                let caps = later.borrow_and_update().clone();
                admission.bound(&caps);
            }
        })
    };
    listen::until_stopped(listener, app, &caps, admission, (asked, stop)).await;
    fetching.abort();
    bounding.abort();
    Ok(())
}

fn admission(
    serving: Serving,
    caps: Caps,
    bound: SocketAddr,
    gate: Arc<Gate>,
) -> Result<Admission, HttpError> {
    let resource = serving
        .auth
        .resource
        .clone()
        .unwrap_or_else(|| format!("http://{bound}{MCP_PATH}"));
    let issuer = serving
        .auth
        .issuer(&resource)
        .map(Issuer::new)
        .transpose()
        .map_err(HttpError::Issuer)?;
    let mut hosts = serving.hosts;
    hosts.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    if !bound.ip().is_unspecified() {
        hosts.push(bound.ip().to_string());
    }
    let mut origins = serving.origins;
    // Browsers send an origin, other clients do not. Pages with unknown origins are refused.
    let own = ["localhost", "127.0.0.1", "[::1]"];
    origins.extend(own.map(|host| format!("http://{host}:{}", bound.port())));
    Ok(Admission::new(
        Authenticator::new(serving.tokens, issuer),
        resource,
        hosts,
        origins,
        caps,
        gate,
    ))
}

/// All routes: MCP with its related endpoints, and pages if enabled.
fn routes(
    handler: impl Fn() -> Handler + Send + Sync + 'static,
    admission: &Arc<Admission>,
    longest_body: usize,
    stop: &CancellationToken,
    pages: Option<Pages>,
) -> Result<Router, HttpError> {
    let pulse = Arc::new(Pulse::default());
    let common = Router::new().route("/healthz", get(async || "ok\n")).route(
        "/readyz",
        get(async move |State(admission)| readiness(admission, &pulse).await),
    );
    let common = common.with_state(Arc::clone(admission));
    let Some(pages) = pages else {
        let home = Router::new().route("/", get(async || page::show()));
        return Ok(common
            .merge(home)
            .merge(mcp(handler, admission, longest_body, stop)));
    };
    let made = (pages.make)(prover(admission), stop.clone());
    let made = made.map_err(|err| HttpError::Pages(format!("{err:#}")))?;
    let home = Router::new().route("/", get(async move || Redirect::to(pages.path)));
    let common = common.merge(home).merge(made);
    Ok(match pages.alone {
        true => common,
        false => common.merge(mcp(handler, admission, longest_body, stop)),
    })
}

/// Routes for MCP clients.
fn mcp(
    handler: impl Fn() -> Handler + Send + Sync + 'static,
    admission: &Arc<Admission>,
    longest_body: usize,
    stop: &CancellationToken,
) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_cancellation_token(stop.clone())
        .with_max_request_body_bytes(longest_body)
        .with_allowed_hosts(admission.hosts.clone())
        .with_allowed_origins(admission.origins.clone())
        .enforce_origin_validation();
    let service = StreamableHttpService::new(move || Ok(handler()), Arc::clone(&admission.sessions), config);
    Router::new()
        .route_service(MCP_PATH, service)
        // Only on its own path, so that requests for other paths get a 404.
        .route_layer(from_fn_with_state(Arc::clone(admission), middleware::pass))
        .route("/metrics", get(metrics))
        .route(metadata::METADATA_PATH, get(metadata::show))
        .route(
            &format!("{}{MCP_PATH}", metadata::METADATA_PATH),
            get(metadata::show),
        )
        .with_state(Arc::clone(admission))
}

/// Authentication for pages, if the server requires tokens.
fn prover(admission: &Arc<Admission>) -> Option<Prove> {
    if admission.authenticator.is_open() {
        return None;
    }
    let admission = Arc::clone(admission);
    Some(Arc::new(move |token| {
        let admission = Arc::clone(&admission);
        Box::pin(async move {
            let bearer = admission
                .authenticator
                .identify(Some(&format!("Bearer {token}")))
                .await;
            bearer
                .ok()
                .flatten()
                .map(|bearer| (bearer.identity, bearer.revoked, bearer.until_ms))
        })
    }))
}

/// Wraps routes in the checks that every request must pass.
fn guarded(routes: Router, admission: Arc<Admission>, longest_head: usize, is_alone: bool) -> Router {
    let known = Arc::new(Hosts::new(&admission.hosts, &admission.origins));
    routes
        .fallback(async move || match is_alone {
            true => answer::no_mcp_there(),
            false => answer::nothing_there(MCP_PATH),
        })
        // Outermost, and also for unknown paths, so that DNS rebinding reveals nothing.
        .layer(from_fn_with_state(known, hosts::check))
        .layer(from_fn_with_state(longest_head, head::check))
        .layer(from_fn_with_state(admission, middleware::count))
}

/// Serves the metrics to a sender that may make calls.
async fn metrics(State(admission): State<Arc<Admission>>, headers: HeaderMap) -> Response {
    match admission.metrics(&headers).await {
        Ok(text) => ([(CONTENT_TYPE, meter::CONTENT_TYPE)], text).into_response(),
        Err(refusal) => refusal,
    }
}

/// Readiness for calls: the host is not stopping, its writer responds, and tokens can be checked.
async fn readiness(admission: Arc<Admission>, pulse: &Pulse) -> Response {
    let ready = if admission.is_leaving() {
        Err("stopping")
    } else {
        pulse.feel(admission.readiness()).await
    };
    match ready {
        Ok(()) => "ready\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}
