//! The parts of `[server]` that are about HTTP: who gets in, under which names, and how much at once.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::auth::{IssuerSettings, KeySource};

/// The `[server.auth]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// The operator's own tokens.
    pub token_file: Option<PathBuf>,
    /// An OAuth 2 issuer whose tokens are taken.
    pub issuer: Option<String>,
    /// This server's own address, as its clients know it.
    pub resource: Option<String>,
    /// What tokens name as their audience, if it is not the address.
    pub audience: Vec<String>,
    /// Scopes that every token must have.
    pub scopes: Vec<String>,
    /// Where the issuer's keys are: an address, or a file.
    pub jwks: Option<String>,
}

impl Auth {
    /// What tokens of the issuer must say, if one is configured. `resource` is the server's address.
    pub fn issuer(&self, resource: &str) -> Option<IssuerSettings> {
        let issuer = self.issuer.clone()?;
        Some(IssuerSettings {
            issuer,
            audience: match &self.audience[..] {
                [] => vec![resource.to_owned()],
                named => named.to_vec(),
            },
            scopes: self.scopes.clone(),
            keys: match &self.jwks {
                None => KeySource::Discovered,
                Some(url) if is_url(url) => KeySource::Url(url.clone()),
                Some(path) => KeySource::File(path.into()),
            },
        })
    }

    /// Lets relative paths start at a directory.
    pub(super) fn rebase(&mut self, base: &Path) {
        if let Some(path) = &mut self.token_file {
            *path = base.join(&*path);
        }
        if let Some(path) = self.jwks.as_mut().filter(|jwks| !is_url(jwks)) {
            *path = base.join(&*path).display().to_string();
        }
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

/// The `[server.limits]` table. Absent values are the defaults.
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
    drain_sec: Option<u64>,
}

impl HttpLimits {
    /// The limits, with defaults for what is absent.
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
            drain: time(self.drain_sec, default.drain),
        }
    }
}

impl HttpLimits {
    /// Which of these a running server does not take over: they are the connections' own from their start.
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

/// How much HTTP may take at once, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Open connections.
    pub connections: usize,
    /// Those of one peer address. Absent: half of them, and all on loopback, where a proxy may be the only peer.
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
            drain: Duration::from_secs(30),
        }
    }
}
