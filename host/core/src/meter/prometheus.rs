//! Metrics in Prometheus' text format. The crate `prometheus-client` writes the text.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, EncodeLabelValue, EncodeMetric,
    MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;

pub use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

use super::process::Process;
use super::{AdmissionMetrics, BOUNDS, Figures, Reading, Vitals};

/// Labels of a metric that has one sample.
const NO_LABELS: [(&str, &str); 0] = [];

/// All metrics of a server at one moment, and those of its process.
pub fn prometheus(
    figures: Figures,
    vitals: Vitals,
    admission: AdmissionMetrics,
) -> Result<String, fmt::Error> {
    text([
        Box::new(figures),
        Box::new(vitals),
        Box::new(admission),
        Box::new(Process),
    ])
}

/// Text of these metrics.
pub(super) fn text<const N: usize>(metrics: [Box<dyn Collector>; N]) -> Result<String, fmt::Error> {
    // This registry serves one scrape. Calls add to the atomics of their tools, and take no lock.
    let mut registry = Registry::default();
    for metrics in metrics {
        registry.register_collector(metrics);
    }
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// Writes a metric with one sample for each set of labels.
///
/// The crate adds `_total` to the names of counters and `_info` to those of information.
pub(super) fn samples<L: EncodeLabelSet, M: EncodeMetric + TypedMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (L, M)>,
) -> fmt::Result {
    // Without a unit, because the crate would add it to the name again.
    let mut metric = encoder.encode_descriptor(name, help, None, M::TYPE)?;
    for (labels, sample) in samples {
        sample.encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Writes a gauge with one sample.
pub(super) fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: impl EncodeGaugeValue,
) -> fmt::Result {
    samples(encoder, name, help, [(NO_LABELS, ConstGauge::new(value))])
}

/// Writes a gauge with one sample for each value of a label.
pub(super) fn gauges<V: EncodeLabelValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    counts: impl IntoIterator<Item = (V, u64)>,
) -> fmt::Result {
    let gauges = counts
        .into_iter()
        .map(|(value, count)| ([(label, value)], ConstGauge::new(count)));
    samples(encoder, name, help, gauges)
}

/// Writes a counter with one sample for each value of a label.
pub(super) fn counters<V: EncodeLabelValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    label: &str,
    counts: impl IntoIterator<Item = (V, u64)>,
) -> fmt::Result {
    let counters = counts
        .into_iter()
        .map(|(value, count)| ([(label, value)], ConstCounter::new(count)));
    samples(encoder, name, help, counters)
}

/// Writes a counter with one sample.
pub(super) fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: impl EncodeCounterValue,
) -> fmt::Result {
    samples(encoder, name, help, [(NO_LABELS, ConstCounter::new(value))])
}

/// Seconds from a count of smaller units. The result is rounded once, so 700003400 microseconds are 700.0034 seconds.
#[allow(
    clippy::cast_precision_loss,
    reason = "a sum is exact to the microsecond below 2^33 seconds, which are 272 years"
)]
pub(super) fn seconds(count: u64, per_second: f64) -> f64 {
    count as f64 / per_second
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        let help = "Version of this host.";
        samples(encoder, "tollgate_build", help, [(NO_LABELS, version)])?;
        let help = "Packs by state.";
        gauges(encoder, "tollgate_packs", help, "state", self.packs)?;
        let help = "Tools that differ from what the operator accepted.";
        gauge(encoder, "tollgate_tools_changed", help, self.tools_changed)?;
        let help = "Number of times that the configuration was reloaded.";
        counters(encoder, "tollgate_reloads", help, "outcome", self.reloads)?;
        if let Some(dropped) = self.spans_dropped {
            let help = "Spans that the collector did not accept.";
            counter(encoder, "tollgate_spans_dropped", help, dropped)?;
        }
        let calls = self.tools.iter().flat_map(Reading::calls);
        samples(encoder, "tollgate_calls", "Calls of tools by outcome.", calls)?;
        let durations = self
            .tools
            .iter()
            .map(|reading| (reading.labels(), Durations(reading)));
        let help = "Duration of calls, from admission to reply.";
        samples(encoder, "tollgate_call_duration_seconds", help, durations)
    }
}

impl Reading {
    fn labels(&self) -> [(&str, &str); 2] {
        [("pack", &self.pack), ("tool", &self.tool)]
    }

    fn calls(&self) -> impl Iterator<Item = ([(&str, &str); 3], ConstCounter)> {
        let [pack, tool] = self.labels();
        self.outcomes
            .iter()
            .map(move |(outcome, count)| ([pack, tool, ("outcome", outcome)], ConstCounter::new(*count)))
    }
}

/// Histogram of the durations of a tool's calls.
struct Durations<'a>(&'a Reading);

impl TypedMetric for Durations<'_> {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Durations<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Reading { micros, within, .. } = self.0;
        // The encoder adds up the buckets. A call that is being counted at this moment may be in some of the counters
        // and not yet in others, so the number of calls is the sum of the buckets.
        let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(*within).collect();
        let sum = seconds(*micros, 1e6);
        encoder.encode_histogram::<NoLabelSet>(sum, within.iter().sum(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use expect_test::expect;
    use proptest::prelude::*;

    use super::super::{Meter, Totals};
    use super::*;

    fn figures(tools: Vec<Reading>) -> Figures {
        Figures {
            since_ms: 0,
            at_ms: 0,
            packs: [("loaded", 6), ("failed", 1)],
            tools_changed: 0,
            reloads: [("taken", 2), ("refused", 0)],
            spans_dropped: Some(4),
            tools,
        }
    }

    fn reading(pack: &str) -> Reading {
        let meter = Meter::default();
        meter.count(true, Duration::from_micros(400));
        meter.count(true, Duration::from_millis(3));
        meter.count(false, Duration::from_secs(700));
        meter.read(pack, "slice_show").unwrap()
    }

    #[test]
    fn calls_are_counted_by_outcome_and_duration() {
        let unused = Meter::default().read("gsd", "slice_list");
        let tools = [reading("gsd")].into_iter().chain(unused);
        let text = text([Box::new(figures(tools.collect()))]).unwrap();
        let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        expect![[r#"
            # HELP tollgate_build_info Version of this host.
            # TYPE tollgate_build_info gauge
            tollgate_build_info{version="VERSION"} 1
            # HELP tollgate_packs Packs by state.
            # TYPE tollgate_packs gauge
            tollgate_packs{state="loaded"} 6
            tollgate_packs{state="failed"} 1
            # HELP tollgate_tools_changed Tools that differ from what the operator accepted.
            # TYPE tollgate_tools_changed gauge
            tollgate_tools_changed 0
            # HELP tollgate_reloads_total Number of times that the configuration was reloaded.
            # TYPE tollgate_reloads_total counter
            tollgate_reloads_total{outcome="taken"} 2
            tollgate_reloads_total{outcome="refused"} 0
            # HELP tollgate_spans_dropped_total Spans that the collector did not accept.
            # TYPE tollgate_spans_dropped_total counter
            tollgate_spans_dropped_total 4
            # HELP tollgate_calls_total Calls of tools by outcome.
            # TYPE tollgate_calls_total counter
            tollgate_calls_total{pack="gsd",tool="slice_show",outcome="ok"} 2
            tollgate_calls_total{pack="gsd",tool="slice_show",outcome="error"} 1
            # HELP tollgate_call_duration_seconds Duration of calls, from admission to reply.
            # TYPE tollgate_call_duration_seconds histogram
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.0005"} 1
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.001"} 1
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.0025"} 1
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.005"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.01"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.025"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.05"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.1"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.25"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="1"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="5"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="30"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="120"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="600"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="+Inf"} 3
            tollgate_call_duration_seconds_sum{pack="gsd",tool="slice_show"} 700.0034
            tollgate_call_duration_seconds_count{pack="gsd",tool="slice_show"} 3
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn labels_are_escaped() {
        let text = text([Box::new(figures(vec![reading("a\"b\\c\nd")]))]).unwrap();
        let sample = r#"tollgate_calls_total{pack="a\"b\\c\nd",tool="slice_show",outcome="ok"} 2"#;
        assert!(text.lines().any(|line| line == sample), "{text}");
    }

    /// Ends of the names of samples, by the type of their metric.
    fn suffixes(kind: &str) -> &'static [&'static str] {
        match kind {
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        }
    }

    #[test]
    fn every_sample_follows_the_only_help_and_type_of_its_metric() {
        let vitals = Vitals {
            denials: vec![("rate-limit".to_owned(), 3)],
            instances: vec![("cel".to_owned(), 1)],
            totals: Some(Totals::default()),
            ..Vitals::default()
        };
        let admission = AdmissionMetrics {
            refusals: vec![(401, 7)],
            ..AdmissionMetrics::default()
        };
        let text = prometheus(figures(vec![reading("gsd")]), vitals, admission).unwrap();
        let mut names = BTreeSet::new();
        let (mut helped, mut family, mut kind) = ("", "", "");
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                helped = help.split_once(' ').unwrap().0;
            } else if let Some(declared) = line.strip_prefix("# TYPE ") {
                (family, kind) = declared.split_once(' ').unwrap();
                assert!(helped == family && names.insert(family), "{line}");
            } else {
                let name = line.split(['{', ' ']).next().unwrap();
                let suffix = name.strip_prefix(family);
                assert!(
                    suffix.is_some_and(|suffix| suffixes(kind).contains(&suffix)),
                    "{line}"
                );
            }
        }
        assert!(
            names.contains("process_cpu_seconds_total") && names.contains("tollgate_http_refusals_total")
        );
    }

    proptest! {
        #[test]
        fn sums_are_exact_to_the_microsecond(micros in 0..(1_u64 << 33) * 1_000_000) {
            let reading = Reading { micros, ..reading("gsd") };
            let text = text([Box::new(figures(vec![reading]))]).unwrap();
            let line = text.lines().find(|line| line.contains("_seconds_sum")).unwrap();
            let sum: f64 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
            prop_assert_eq!(format!("{sum:.6}"), format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000));
        }
    }
}
