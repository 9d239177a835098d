//! A collector's address for one kind of message, and whether it takes them.

use std::time::Duration;

use prost::Message;
use ureq::tls::{RootCerts, TlsConfig};

use super::Settings;

/// Content type of OTLP's messages.
const PROTOBUF: &str = "application/x-protobuf";
/// Largest answer that is read, in bytes.
const MAX_ANSWER: u64 = 64 << 10;

/// Address and state for one kind of message.
#[derive(Debug)]
pub(super) struct Collector {
    agent: ureq::Agent,
    url: String,
    headers: super::Headers,
    is_away: bool,
}

/// Outcome of sending a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The collector accepted the message.
    Taken,
    /// Not now, for this reason. It can be sent again.
    Later(String),
    /// Never, for this reason.
    Refused(String),
}

impl Collector {
    /// Collector of spans.
    pub(super) fn of_traces(settings: &Settings) -> Collector {
        Collector::at(settings, "v1/traces")
    }

    /// Collector of metrics.
    pub(super) fn of_metrics(settings: &Settings) -> Collector {
        Collector::at(settings, "v1/metrics")
    }

    fn at(settings: &Settings, path: &str) -> Collector {
        // Whoever was first has installed the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let trust = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let agent = ureq::Agent::config_builder()
            .tls_config(trust.build())
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("tollgate/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Collector {
            agent,
            url: format!("{}/{path}", settings.otlp.trim_end_matches('/')),
            headers: settings.headers.clone(),
            is_away: false,
        }
    }

    /// The address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// True if the last message was not accepted.
    pub(super) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Sends a message, and says once when they are not taken any more.
    pub(super) fn tell(&mut self, message: &impl Message, patience: Duration) -> Sent {
        let sent = self.send(message, patience);
        let url = &self.url;
        match &sent {
            Sent::Taken if self.is_away => tracing::info!(url, "the collector takes telemetry again"),
            Sent::Later(why) | Sent::Refused(why) if !self.is_away => tracing::warn!(
                url,
                why,
                "the collector does not take telemetry; this is said once until it does"
            ),
            _ => {}
        }
        self.is_away = sent != Sent::Taken;
        sent
    }

    /// Sends a message.
    pub(super) fn send(&self, message: &impl Message, patience: Duration) -> Sent {
        let request = self.agent.post(&self.url).header("content-type", PROTOBUF);
        let request = self
            .headers
            .iter()
            .fold(request, |request, (name, value)| request.header(name, value));
        let request = request.config().timeout_global(Some(patience)).build();
        match request.send(&message.encode_to_vec()[..]) {
            Err(err) => Sent::Later(tollgate_core::text::chain(&err)),
            Ok(mut response) => match response.status().as_u16() {
                200..=299 => {
                    // Whoever has read an answer can use its connection again.
                    let _ = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
                    Sent::Taken
                }
                status @ (408 | 429 | 500..=599) => Sent::Later(format!("it answers {status}")),
                status => Sent::Refused(format!("it answers {status}")),
            },
        }
    }
}
