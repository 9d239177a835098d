//! Export to an OpenTelemetry collector: metrics, and for each call a span with names and ids. Arguments and results
//! of calls never get here.
//!
//! A call puts its span in a queue and continues. A separate thread encodes and sends spans and metrics, and no call
//! waits for the result.

mod collector;
mod exporter;
mod figures;
mod headers;
mod message;
mod parent;
mod span;

use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

use collector::Collector;

pub use collector::Sent;
pub use exporter::Exporter;
pub use headers::header_name;
pub use headers::{HeaderError, Headers, SecretIn};
pub use parent::Parent;
pub use span::{Method, Queue, Span, Spans, queue};

/// Settings of telemetry.
#[derive(Debug)]
pub struct Settings {
    /// Address of the collector, without the paths of OTLP.
    pub otlp: String,
    /// Headers that authorise the export.
    pub headers: Headers,
    /// Interval of exporting metrics.
    pub interval: Duration,
    /// Name of this service.
    pub service_name: String,
    /// True if spans are exported.
    pub traces: bool,
    /// True if metrics are exported.
    pub metrics: bool,
}

impl Settings {
    /// Sends a collector an empty message of each configured kind. Returns the addresses and the outcomes.
    pub fn try_out(&self, patience: Duration) -> Vec<(String, Sent)> {
        let traces = self.traces.then(|| {
            let collector = Collector::of_traces(self);
            let sent = collector.send(&ExportTraceServiceRequest::default(), patience);
            (collector.url().to_owned(), sent)
        });
        let metrics = self.metrics.then(|| {
            let collector = Collector::of_metrics(self);
            let sent = collector.send(&ExportMetricsServiceRequest::default(), patience);
            (collector.url().to_owned(), sent)
        });
        traces.into_iter().chain(metrics).collect()
    }

    /// True if the headers that authorise this host are sent unencrypted over a network.
    pub fn exposes_headers(&self) -> bool {
        let is_clear = !self.headers.is_empty() && self.otlp.starts_with("http://");
        let host = url::Url::parse(&self.otlp).ok();
        let host = host.as_ref().and_then(url::Url::host_str);
        is_clear && !matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"))
    }
}
