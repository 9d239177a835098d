//! Limits of the HTTP server.

use std::num::NonZeroU32;
use std::time::Duration;

/// Concurrency limits, size limits and timeouts of HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Open connections.
    pub connections: usize,
    /// Open connections of one peer address. Default half of `connections`; on loopback all of them, because a proxy
    /// may be the only peer.
    pub connections_per_peer: Option<usize>,
    /// Sessions of clients that begin with `initialize`.
    pub sessions: usize,
    /// Requests that have not been answered yet.
    pub in_flight: usize,
    /// Requests in flight of one identity, or of one address without an identity, over all of its sessions.
    pub in_flight_per_client: usize,
    /// Requests of one identity per second, if limited.
    pub requests_per_sec: Option<NonZeroU32>,
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of a request's head.
    pub header: usize,
    /// Timeout for sending a request's head, for sending its body, and for reading more of the answer.
    pub request: Duration,
    /// Idle time after which a session ends.
    pub idle_session: Duration,
    /// Time between the stop signal and the first refusal. During this time `/readyz` already tells load balancers to
    /// use other hosts.
    pub shutdown_delay: Duration,
    /// Time to finish calls after the stop signal.
    pub drain: Duration,
}

impl Caps {
    /// Copy of these limits with the values of `next` that can change while the server runs.
    #[must_use]
    pub fn with_live(&self, next: &Caps) -> Caps {
        Caps {
            sessions: next.sessions,
            in_flight: next.in_flight,
            in_flight_per_client: next.in_flight_per_client,
            requests_per_sec: next.requests_per_sec,
            idle_session: next.idle_session,
            shutdown_delay: next.shutdown_delay,
            drain: next.drain,
            ..self.clone()
        }
    }
}

impl Default for Caps {
    fn default() -> Caps {
        Caps {
            connections: 256,
            connections_per_peer: None,
            sessions: 100,
            in_flight: 256,
            in_flight_per_client: 64,
            requests_per_sec: None,
            body: 4 << 20,
            header: 32 << 10,
            request: Duration::from_secs(30),
            idle_session: Duration::from_secs(1800),
            shutdown_delay: Duration::ZERO,
            drain: Duration::from_secs(30),
        }
    }
}
