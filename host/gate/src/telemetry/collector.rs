//! Collector endpoint for one kind of message, and whether it accepts messages.

use std::time::Duration;

use prost::Message;
use ureq::tls::{RootCerts, TlsConfig};

use super::Settings;

/// Content type of OTLP's messages.
const PROTOBUF: &str = "application/x-protobuf";
/// Largest answer that is read, in bytes.
const MAX_ANSWER: u64 = 64 << 10;

/// Endpoint and state for one kind of message.
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
    /// The collector refused temporarily, for this reason. The message can be sent again.
    Later(String),
    /// The collector refused for good, for this reason.
    Refused(String),
}

impl Collector {
    /// Endpoint for spans.
    pub(super) fn of_traces(settings: &Settings) -> Collector {
        Collector::at(settings, "v1/traces")
    }

    /// Endpoint for metrics.
    pub(super) fn of_metrics(settings: &Settings) -> Collector {
        Collector::at(settings, "v1/metrics")
    }

    fn at(settings: &Settings, path: &str) -> Collector {
        // Fails if a provider is installed already, which is the same one.
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

    /// Address of the endpoint.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// True if the last message was not accepted.
    pub(super) fn is_away(&self) -> bool {
        self.is_away
    }

    /// Sends a message, and logs once when messages are no longer accepted.
    pub(super) fn tell(&mut self, message: &impl Message, patience: Duration) -> Sent {
        let sent = self.send(message, patience);
        let url = &self.url;
        match &sent {
            Sent::Taken if self.is_away => tracing::info!(url, "the collector accepts telemetry again"),
            Sent::Later(why) | Sent::Refused(why) if !self.is_away => tracing::warn!(
                url,
                why,
                "the collector does not accept telemetry; this is logged once until it does"
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
                    // Reading the response frees its connection for reuse.
                    let _ = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
                    Sent::Taken
                }
                status @ (408 | 429 | 500..=599) => Sent::Later(format!("it answers {status}")),
                status => Sent::Refused(format!("it answers {status}")),
            },
        }
    }
}
