//! Limits of the HTTP server.

use std::num::NonZeroU32;
use std::time::Duration;

/// Limits of HTTP: numbers at once, and times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Open connections.
    pub connections: usize,
    /// Open connections of one peer address. Absent: half of them, and all on loopback, where a proxy may be the only peer.
    pub connections_per_peer: Option<usize>,
    /// Sessions of clients that begin with `initialize`.
    pub sessions: usize,
    /// Requests that are not answered yet.
    pub in_flight: usize,
    /// The same of one identity, or of one address without one, whatever sessions it has.
    pub in_flight_per_client: usize,
    /// Requests of one identity in a second, if that is limited.
    pub requests_per_sec: Option<NonZeroU32>,
    /// Bytes of a request's body.
    pub body: usize,
    /// Bytes of a request's head.
    pub header: usize,
    /// Time to send a request's head, then its body, and to read on in the answer.
    pub request: Duration,
    /// Time without requests after which a session is over.
    pub idle_session: Duration,
    /// Time between a request to stop and the first refusal, in which `/readyz` already sends load balancers elsewhere.
    pub shutdown_delay: Duration,
    /// Time to finish calls when the process is asked to stop.
    pub drain: Duration,
}

impl Caps {
    /// The same with those of other limits that a running server takes over.
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
