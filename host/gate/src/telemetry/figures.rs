//! Metrics in OTLP. Their names are those that a Prometheus behind a collector would derive as the names of
//! `/metrics`.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum, metric, number_data_point,
};
use tollgate_core::meter::{BOUNDS, Figures, Reading};

use super::message::{Origin, nanos, scope, text};

impl Origin {
    /// Message with these metrics.
    pub(super) fn count(&self, figures: &Figures) -> ExportMetricsServiceRequest {
        let metrics = ScopeMetrics {
            scope: Some(scope()),
            metrics: Points(figures).metrics(),
            ..ScopeMetrics::default()
        };
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource()),
                scope_metrics: vec![metrics],
                ..ResourceMetrics::default()
            }],
        }
    }
}

/// Metrics that are converted to data points.
struct Points<'a>(&'a Figures);

impl Points<'_> {
    fn metrics(&self) -> Vec<Metric> {
        let by = |label: &str, counts: &[(&str, u64)]| {
            let points = counts
                .iter()
                .map(|(value, count)| self.point(*count, vec![text(label, value)]));
            points.collect::<Vec<_>>()
        };
        let calls = self.0.tools.iter().flat_map(|reading| {
            let outcomes = reading.outcomes.iter();
            outcomes.map(|(outcome, count)| {
                let mut labels = labels(reading);
                labels.push(text("outcome", outcome));
                self.point(*count, labels)
            })
        });
        let durations = self.0.tools.iter().map(|reading| self.durations(reading));
        let mut metrics = vec![
            metric("tollgate.packs", "{pack}", gauge(by("state", &self.0.packs))),
            metric(
                "tollgate.tools_changed",
                "{tool}",
                gauge(vec![self.point(self.0.tools_changed, Vec::new())]),
            ),
            metric(
                "tollgate.reloads",
                "{reload}",
                sum(by("outcome", &self.0.reloads)),
            ),
            metric("tollgate.calls", "{call}", sum(calls.collect())),
            metric(
                "tollgate.call.duration",
                "s",
                metric::Data::Histogram(Histogram {
                    data_points: durations.collect(),
                    aggregation_temporality: AggregationTemporality::Cumulative.into(),
                }),
            ),
        ];
        metrics.extend(self.0.spans_dropped.map(|dropped| {
            let point = self.point(dropped, Vec::new());
            metric("tollgate.spans_dropped", "{span}", sum(vec![point]))
        }));
        metrics
    }

    fn point(&self, count: u64, attributes: Vec<KeyValue>) -> NumberDataPoint {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        NumberDataPoint {
            attributes,
            start_time_unix_nano: nanos(self.0.since_ms),
            time_unix_nano: nanos(self.0.at_ms),
            value: Some(number_data_point::Value::AsInt(count)),
            ..NumberDataPoint::default()
        }
    }

    fn durations(&self, reading: &Reading) -> HistogramDataPoint {
        let seconds = std::time::Duration::from_micros(reading.micros).as_secs_f64();
        HistogramDataPoint {
            attributes: labels(reading),
            start_time_unix_nano: nanos(self.0.since_ms),
            time_unix_nano: nanos(self.0.at_ms),
            // A call that is being counted at this moment may be in some of the counters and not yet in others.
            count: reading.within.iter().sum(),
            sum: Some(seconds),
            bucket_counts: reading.within.to_vec(),
            explicit_bounds: BOUNDS.to_vec(),
            ..HistogramDataPoint::default()
        }
    }
}

fn labels(reading: &Reading) -> Vec<KeyValue> {
    vec![text("pack", &reading.pack), text("tool", &reading.tool)]
}

fn metric(name: &str, unit: &str, data: metric::Data) -> Metric {
    Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn gauge(data_points: Vec<NumberDataPoint>) -> metric::Data {
    metric::Data::Gauge(Gauge { data_points })
}

/// Monotonic sum since the host's start.
fn sum(data_points: Vec<NumberDataPoint>) -> metric::Data {
    metric::Data::Sum(Sum {
        data_points,
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
        is_monotonic: true,
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::time::Duration;

    use expect_test::expect;
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use tollgate_core::meter::Meter;

    use super::*;

    fn values(attributes: &[KeyValue]) -> String {
        let values = attributes.iter().map(|attribute| {
            match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
                Some(Value::StringValue(value)) => format!("{}={value}", attribute.key),
                other => panic!("{other:?}"),
            }
        });
        values.collect::<Vec<_>>().join(",")
    }

    fn numbers(log: &mut String, points: &[NumberDataPoint]) {
        for point in points {
            let times = (point.start_time_unix_nano, point.time_unix_nano);
            let _ = writeln!(
                log,
                "  {{{}}} {:?} {times:?}",
                values(&point.attributes),
                point.value
            );
        }
    }

    #[test]
    fn a_message_has_what_the_meters_counted() {
        let meter = Meter::default();
        meter.count(true, Duration::from_micros(400));
        meter.count(true, Duration::from_millis(3));
        meter.count(false, Duration::from_secs(700));
        let figures = Figures {
            since_ms: 1,
            at_ms: 2,
            packs: [("loaded", 6), ("failed", 1)],
            tools_changed: 0,
            reloads: [("taken", 2), ("refused", 0)],
            spans_dropped: Some(4),
            tools: meter.read("gsd", "slice_show").into_iter().collect(),
        };
        let origin = Origin {
            service_name: "gate".to_owned(),
            host_id: "hst_1".to_owned(),
        };
        let message = origin.count(&figures);
        let told = &message.resource_metrics[0];
        let mut log = format!("{}\n", values(&told.resource.as_ref().unwrap().attributes))
            .replace(env!("CARGO_PKG_VERSION"), "VERSION");
        for metric in &told.scope_metrics[0].metrics {
            let _ = writeln!(log, "{} {}", metric.name, metric.unit);
            match metric.data.as_ref().unwrap() {
                metric::Data::Gauge(gauge) => numbers(&mut log, &gauge.data_points),
                metric::Data::Sum(sum) => {
                    assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
                    numbers(&mut log, &sum.data_points);
                }
                metric::Data::Histogram(histogram) => {
                    assert_eq!(histogram.aggregation_temporality, 2);
                    let point = &histogram.data_points[0];
                    assert_eq!(point.explicit_bounds, BOUNDS);
                    let _ = writeln!(
                        log,
                        "  {{{}}} {:?} {} {:?}",
                        values(&point.attributes),
                        point.bucket_counts,
                        point.count,
                        point.sum
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        expect![[r#"
            service.name=gate,service.version=VERSION,service.instance.id=hst_1
            tollgate.packs {pack}
              {state=loaded} Some(AsInt(6)) (1000000, 2000000)
              {state=failed} Some(AsInt(1)) (1000000, 2000000)
            tollgate.tools_changed {tool}
              {} Some(AsInt(0)) (1000000, 2000000)
            tollgate.reloads {reload}
              {outcome=taken} Some(AsInt(2)) (1000000, 2000000)
              {outcome=refused} Some(AsInt(0)) (1000000, 2000000)
            tollgate.calls {call}
              {pack=gsd,tool=slice_show,outcome=ok} Some(AsInt(2)) (1000000, 2000000)
              {pack=gsd,tool=slice_show,outcome=error} Some(AsInt(1)) (1000000, 2000000)
            tollgate.call.duration s
              {pack=gsd,tool=slice_show} [1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] 3 Some(700.0034)
            tollgate.spans_dropped {span}
              {} Some(AsInt(4)) (1000000, 2000000)
        "#]]
        .assert_eq(&log);
    }
}
