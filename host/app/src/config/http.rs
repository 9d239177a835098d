//! HTTP settings in `[server]`: access, host names, and limits.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;
use tollgate_mcp::http::Caps;

/// The `[server.limits]` table. Absent keys use the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpLimits {
    max_connections: Option<usize>,
    max_connections_per_peer: Option<usize>,
    max_sessions: Option<usize>,
    max_in_flight: Option<usize>,
    max_in_flight_per_client: Option<usize>,
    requests_per_sec: Option<NonZeroU32>,
    body_kib: Option<usize>,
    header_kib: Option<usize>,
    request_sec: Option<u64>,
    idle_session_sec: Option<u64>,
    shutdown_delay_sec: Option<u64>,
    drain_sec: Option<u64>,
}

impl HttpLimits {
    /// The limits, with defaults for absent keys.
    pub fn caps(&self) -> Caps {
        let default = Caps::default();
        let time = |seconds: Option<u64>, default| seconds.map_or(default, Duration::from_secs);
        Caps {
            connections: self.max_connections.unwrap_or(default.connections),
            connections_per_peer: self.max_connections_per_peer,
            sessions: self.max_sessions.unwrap_or(default.sessions),
            in_flight: self.max_in_flight.unwrap_or(default.in_flight),
            in_flight_per_client: self
                .max_in_flight_per_client
                .unwrap_or(default.in_flight_per_client),
            requests_per_sec: self.requests_per_sec,
            body: self.body_kib.map_or(default.body, |kib| kib << 10),
            header: self.header_kib.map_or(default.header, |kib| kib << 10),
            request: time(self.request_sec, default.request),
            idle_session: time(self.idle_session_sec, default.idle_session),
            shutdown_delay: time(self.shutdown_delay_sec, default.shutdown_delay),
            drain: time(self.drain_sec, default.drain),
        }
    }
}

impl HttpLimits {
    /// Changed limits that a running server cannot apply, because connections use them from their start.
    pub(super) fn waiting_for_a_start(&self, before: &HttpLimits) -> Vec<&'static str> {
        let waiting = [
            (
                "server.limits.max_connections",
                self.max_connections != before.max_connections,
            ),
            (
                "server.limits.max_connections_per_peer",
                self.max_connections_per_peer != before.max_connections_per_peer,
            ),
            ("server.limits.body_kib", self.body_kib != before.body_kib),
            ("server.limits.header_kib", self.header_kib != before.header_kib),
            (
                "server.limits.request_sec",
                self.request_sec != before.request_sec,
            ),
        ];
        let changed = waiting.into_iter().filter(|(_, is_other)| *is_other);
        changed.map(|(key, _)| key).collect()
    }
}
