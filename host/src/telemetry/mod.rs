//! Telling an OpenTelemetry collector what is counted, and of each call that it happened: a span with names
//! and ids. What calls hold, arguments and results, never gets here.
//!
//! A call puts its span in a queue and goes on. A thread of its own makes messages of spans and figures and
//! sends them; whatever becomes of those, no call waits for it.

mod collector;
mod exporter;
mod figures;
mod headers;
mod message;
mod parent;
mod span;

use std::time::Duration;

pub use collector::{Collector, Sent};
pub use exporter::Exporter;
pub(crate) use headers::header_name;
pub use headers::{HeaderError, Headers, SecretIn};
pub use parent::Parent;
pub use span::{Method, Queue, Span, Spans, queue};

/// Where telemetry goes, and how much of it.
#[derive(Debug)]
pub struct Settings {
    /// The collector's address, without the paths of OTLP.
    pub otlp: String,
    /// What is sent along to be let in.
    pub headers: Headers,
    /// How often figures go out.
    pub interval: Duration,
    /// What this service is called there.
    pub service_name: String,
    /// Whether calls leave spans.
    pub traces: bool,
    /// Whether figures go out.
    pub metrics: bool,
}

impl Settings {
    /// Whether somebody on the way could read what lets this host in.
    pub fn exposes_headers(&self) -> bool {
        let is_clear = !self.headers.is_empty() && self.otlp.starts_with("http://");
        let host = url::Url::parse(&self.otlp).ok();
        let host = host.as_ref().and_then(url::Url::host_str);
        is_clear && !matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"))
    }
}
