//! Listener: limits the number of connections, enforces timeouts on requests, and shuts down gracefully.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::service_fn;

use super::answer;
use super::caps::Caps;
use super::graceful_close::GracefulClose;
use super::middleware::Admission;
use super::seats::{Seats, TakenSeat};

/// Number of connections beyond the limit that get a refusal. Further ones are closed immediately.
const MAX_REFUSED: usize = 16;
/// Timeout for sending a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for open connections to close at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of headers of a request, far more than clients and proxies send.
const MAX_HEADERS: usize = 256;
/// Pause after a failed accept, for example if no file descriptors are left.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Serves until the process receives a stop signal, and during the shutdown delay after it. Then waits until all
/// admitted requests are answered, the drain time is over, or a second signal arrives.
pub(super) async fn until_stopped(
    listener: TcpListener,
    app: Router,
    caps: &Caps,
    admission: Arc<Admission>,
    (asked, stop): (impl Future<Output = ()>, CancellationToken),
) {
    let graceful = GracefulShutdown::new();
    let sweeping = sweep(&admission);
    let revoking = admission.end_revoked();
    let seats = Seats::new(caps, admission.authenticator.is_open());
    let accepting = accept(listener, app, caps, (&seats, &admission), &graceful);
    let stopping = async {
        asked.await;
        let again = asked_to_stop();
        admission.leave();
        let delay = admission.caps().shutdown_delay;
        if !delay.is_zero() {
            tracing::info!(
                "stopping in {} s to give load balancers time to notice",
                delay.as_secs()
            );
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = again => {}
            }
        }
        tracing::info!("stopping: admitted calls are finished first");
        admission.stop();
        tokio::select! {
            () = admission.answered() => {}
            () = tokio::time::sleep(admission.caps().drain) => {
                tracing::warn!("calls that are not finished in time are cancelled");
            }
            () = asked_to_stop() => {}
        }
    };
    // New connections are refused with a message that the host is stopping.
    tokio::select! {
        () = accepting => {}
        () = sweeping => {}
        () = revoking => {}
        () = stopping => {}
    }
    stop.cancel();
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await;
}

/// Resolves when the process receives a stop signal, from this call on. Never resolves if signals are not available.
pub(super) fn asked_to_stop() -> impl Future<Output = ()> {
    let signals = crate::stop_signals();
    async {
        match signals {
            Ok(signals) => signals.await,
            Err(_) => std::future::pending().await,
        }
    }
}

/// Ends idle sessions when they are due, forever.
async fn sweep(admission: &Admission) {
    loop {
        let pause = admission.sessions.end_idle().await;
        tokio::time::sleep(pause).await;
    }
}

/// Accepts connections, forever.
async fn accept(
    listener: TcpListener,
    app: Router,
    caps: &Caps,
    (seats, admission): (&Arc<Seats>, &Admission),
    graceful: &GracefulShutdown,
) {
    let told = Arc::new(Semaphore::new(MAX_REFUSED));
    loop {
        let (connection, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(err) => {
                tracing::warn!(%err, "accepting a connection failed");
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
                continue;
            }
        };
        // Otherwise the kernel delays small replies by 40 ms.
        if let Err(err) = connection.set_nodelay(true) {
            tracing::debug!(%err, "setting TCP_NODELAY failed");
        }
        let Ok(local) = connection.local_addr() else {
            // The connection is already closed.
            continue;
        };
        match seats.take(peer, local.ip().to_canonical()) {
            Ok(taken_seat) => serve(connection, taken_seat, app.clone(), caps, graceful),
            Err(limit) => {
                admission.count(StatusCode::SERVICE_UNAVAILABLE);
                if let Ok(permit) = Arc::clone(&told).try_acquire_owned() {
                    let refusing = refuse(connection, caps.clone(), limit);
                    tokio::spawn(async move {
                        let _ = tokio::time::timeout(REFUSAL_TIMEOUT, refusing).await;
                        drop(permit);
                    });
                }
            }
        }
    }
}

/// Serves a connection until it ends or its seat is given to another connection.
fn serve(
    connection: TcpStream,
    taken_seat: TakenSeat,
    app: Router,
    caps: &Caps,
    graceful: &GracefulShutdown,
) {
    let seat = Arc::clone(taken_seat.seat());
    let io = GracefulClose::new(connection, caps.request, Some(Arc::clone(&seat)));
    let app = TowerToHyperService::new(app);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let seat = Arc::clone(&seat);
        request.extensions_mut().insert(Arc::clone(&seat));
        let answering = hyper::service::Service::call(&app, request);
        async move {
            let answer = answering.await;
            seat.answered();
            answer
        }
    });
    let serving = builder(caps).serve_connection(TokioIo::new(io), service);
    let serving = graceful.watch(serving);
    tokio::spawn(async move {
        tokio::select! {
            served = serving => {
                if let Err(err) = served {
                    tracing::debug!(%err, "a connection failed");
                }
            }
            () = taken_seat.seat().given_up.cancelled() => {}
        }
        drop(taken_seat);
    });
}

fn builder(caps: &Caps) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(caps.request)
        // Bodies are read in pieces, so this limits only the head. A head that is slightly too long still gets a
        // readable refusal.
        .max_buf_size(caps.header.max(super::MIN_HEAD).saturating_mul(2))
        .max_headers(MAX_HEADERS);
    builder
}

/// Answers the first request of a connection for which there is no seat.
async fn refuse(connection: TcpStream, caps: Caps, limit: usize) {
    let service = service_fn(move |_: Request<Incoming>| async move {
        let response: Response<Body> = answer::too_many(
            StatusCode::SERVICE_UNAVAILABLE,
            "TOO_MANY_CONNECTIONS",
            "connections",
            limit,
        );
        Ok::<_, std::convert::Infallible>(response)
    });
    let serving = builder(&caps).keep_alive(false).serve_connection(
        TokioIo::new(GracefulClose::new(connection, REFUSAL_TIMEOUT, None)),
        TowerToHyperService::new(service),
    );
    if let Err(err) = serving.await {
        tracing::debug!(%err, "cannot answer a connection that exceeds the limit");
    }
}
