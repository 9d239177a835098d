//! An OpenTelemetry collector on this machine: receives OTLP over HTTP and stores it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// Behaviour of the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Accepts everything.
    Takes,
    /// Refuses everything for the moment.
    Busy,
    /// Never answers.
    Hangs,
    /// Accepts metrics and has no endpoint for spans.
    Counts,
}

/// A collector that stops at the end of the test.
pub(crate) struct Collector {
    pub(crate) url: String,
    kept: Arc<Mutex<Kept>>,
}

struct Kept {
    mood: Mood,
    requests: usize,
    headers: Vec<HeaderMap>,
    spans: Vec<Span>,
    /// Resource attributes of the process that sent telemetry.
    resource: BTreeMap<String, String>,
    /// The newest metric of each name.
    metrics: BTreeMap<String, Metric>,
}

impl Collector {
    pub(crate) async fn start(mood: Mood) -> Collector {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let kept = Arc::new(Mutex::new(Kept {
            mood,
            requests: 0,
            headers: Vec::new(),
            spans: Vec::new(),
            resource: BTreeMap::new(),
            metrics: BTreeMap::new(),
        }));
        let app = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/metrics", post(metrics))
            .with_state(Arc::clone(&kept));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Collector { url, kept }
    }

    /// Changes the collector's behaviour.
    pub(crate) fn change(&self, mood: Mood) {
        self.kept.lock().unwrap().mood = mood;
    }

    /// Number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.kept.lock().unwrap().requests
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.kept.lock().unwrap().spans.clone()
    }

    /// Values of a header in all requests.
    pub(crate) fn headers(&self, name: &str) -> Vec<String> {
        let kept = self.kept.lock().unwrap();
        let values = kept.headers.iter().map(|headers| headers[name].to_str().unwrap());
        values.map(str::to_owned).collect()
    }

    pub(crate) fn resource(&self) -> BTreeMap<String, String> {
        self.kept.lock().unwrap().resource.clone()
    }

    /// The last value of a counter or gauge with these labels.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<i64> {
        let kept = self.kept.lock().unwrap();
        let points = match kept.metrics.get(name)?.data.as_ref()? {
            metric::Data::Sum(sum) => &sum.data_points,
            metric::Data::Gauge(gauge) => &gauge.data_points,
            other => panic!("{name}: {other:?}"),
        };
        let wanted = |attributes: &[KeyValue]| {
            let named = named(attributes);
            labels.iter().all(|(label, value)| named[*label] == *value)
        };
        match points.iter().find(|point| wanted(&point.attributes))?.value {
            Some(number_data_point::Value::AsInt(value)) => Some(value),
            other => panic!("{name}: {other:?}"),
        }
    }

    /// Number of calls of a tool in the histogram of durations.
    pub(crate) fn timed(&self, tool: &str) -> Option<u64> {
        let kept = self.kept.lock().unwrap();
        let Some(metric::Data::Histogram(histogram)) = &kept.metrics.get("tollgate.call.duration")?.data
        else {
            panic!("no histogram");
        };
        let mut points = histogram.data_points.iter();
        let point = points.find(|point| named(&point.attributes)["tool"] == tool)?;
        assert_eq!(point.count, point.bucket_counts.iter().sum::<u64>());
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        Some(point.count)
    }
}

/// Attributes by name, all with text values.
pub(crate) fn named(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let named = attributes.iter().map(|attribute| {
        match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(any_value::Value::StringValue(value)) => (attribute.key.clone(), value.clone()),
            other => panic!("{}: {other:?}", attribute.key),
        }
    });
    named.collect()
}

async fn traces(
    State(kept): State<Arc<Mutex<Kept>>>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    let status = receive(&kept, headers, "traces").await;
    if status == StatusCode::OK {
        let message = ExportTraceServiceRequest::decode(body).unwrap();
        let mut kept = kept.lock().unwrap();
        for told in message.resource_spans {
            kept.resource = named(&told.resource.unwrap().attributes);
            let spans = told.scope_spans.into_iter().flat_map(|told| told.spans);
            kept.spans.extend(spans);
        }
    }
    (status, "")
}

async fn metrics(
    State(kept): State<Arc<Mutex<Kept>>>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    let status = receive(&kept, headers, "metrics").await;
    if status == StatusCode::OK {
        let message = ExportMetricsServiceRequest::decode(body).unwrap();
        let mut kept = kept.lock().unwrap();
        for told in message.resource_metrics {
            kept.resource = named(&told.resource.unwrap().attributes);
            let metrics = told.scope_metrics.into_iter().flat_map(|told| told.metrics);
            kept.metrics
                .extend(metrics.map(|metric| (metric.name.clone(), metric)));
        }
    }
    (status, "")
}

async fn receive(kept: &Mutex<Kept>, headers: HeaderMap, what: &str) -> StatusCode {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let mood = {
        let mut kept = kept.lock().unwrap();
        kept.requests += 1;
        kept.headers.push(headers);
        kept.mood
    };
    match mood {
        Mood::Counts if what == "traces" => StatusCode::NOT_FOUND,
        Mood::Takes | Mood::Counts => StatusCode::OK,
        Mood::Busy => StatusCode::SERVICE_UNAVAILABLE,
        Mood::Hangs => std::future::pending().await,
    }
}
