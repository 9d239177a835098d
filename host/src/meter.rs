//! Counting what calls came to, for those who watch a host: a few atomics for each tool.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram of durations, in seconds.
const BOUNDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0,
];

/// The calls of one tool since the host started.
#[derive(Debug, Default)]
pub struct Meter {
    done: AtomicU64,
    refused: AtomicU64,
    micros: AtomicU64,
    /// How many took at most so long, each bound by itself; the last one is for those above all bounds.
    within: [AtomicU64; BOUNDS.len() + 1],
}

impl Meter {
    /// Counts a call.
    pub fn count(&self, is_done: bool, duration: Duration) {
        let outcome = if is_done { &self.done } else { &self.refused };
        outcome.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        let seconds = duration.as_secs_f64();
        let place = BOUNDS.iter().position(|bound| seconds <= *bound);
        if let Some(within) = self.within.get(place.unwrap_or(BOUNDS.len())) {
            within.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether anything was counted.
    fn is_used(&self) -> bool {
        self.done.load(Ordering::Relaxed) + self.refused.load(Ordering::Relaxed) > 0
    }
}

/// One figure in Prometheus' text format, with its help and samples of labels and value.
pub fn figure(text: &mut String, name: &str, kind: &str, help: &str, samples: &[(String, u64)]) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in samples {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

/// Calls and durations of tools in Prometheus' text format. Names of packs and tools need no escaping.
pub fn calls<'a>(text: &mut String, tools: impl Iterator<Item = (&'a str, &'a str, &'a Meter)>) {
    let used: Vec<_> = tools.filter(|(.., meter)| meter.is_used()).collect();
    let mut outcomes = Vec::new();
    for (pack, tool, meter) in &used {
        for (outcome, count) in [("ok", &meter.done), ("error", &meter.refused)] {
            let labels = format!("{{pack=\"{pack}\",tool=\"{tool}\",outcome=\"{outcome}\"}}");
            outcomes.push((labels, count.load(Ordering::Relaxed)));
        }
    }
    let name = "tollgate_calls_total";
    figure(text, name, "counter", "Calls of tools by outcome.", &outcomes);
    let name = "tollgate_call_duration_seconds";
    figure(
        text,
        name,
        "histogram",
        "From reaching the gate to the reply.",
        &[],
    );
    for (pack, tool, meter) in used {
        let labels = format!("pack=\"{pack}\",tool=\"{tool}\"");
        let mut all = 0;
        let bounds = BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, within) in bounds.zip(&meter.within) {
            all += within.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {all}");
        }
        let micros = meter.micros.load(Ordering::Relaxed);
        let _ = writeln!(
            text,
            "{name}_sum{{{labels}}} {}.{:06}",
            micros / 1_000_000,
            micros % 1_000_000
        );
        let _ = writeln!(text, "{name}_count{{{labels}}} {all}");
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn calls_are_counted_by_outcome_and_duration() {
        let (used, unused) = (Meter::default(), Meter::default());
        used.count(true, Duration::from_micros(400));
        used.count(true, Duration::from_millis(3));
        used.count(false, Duration::from_secs(700));
        let mut text = String::new();
        calls(
            &mut text,
            [("gsd", "slice_show", &used), ("gsd", "slice_list", &unused)].into_iter(),
        );
        let few: Vec<&str> = text
            .lines()
            .filter(|line| {
                !line.contains("_bucket")
                    || line.contains("0.0005")
                    || line.contains("0.005")
                    || line.contains("Inf")
            })
            .collect();
        expect![[r#"
            # HELP tollgate_calls_total Calls of tools by outcome.
            # TYPE tollgate_calls_total counter
            tollgate_calls_total{pack="gsd",tool="slice_show",outcome="ok"} 2
            tollgate_calls_total{pack="gsd",tool="slice_show",outcome="error"} 1
            # HELP tollgate_call_duration_seconds From reaching the gate to the reply.
            # TYPE tollgate_call_duration_seconds histogram
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.0005"} 1
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.005"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="+Inf"} 3
            tollgate_call_duration_seconds_sum{pack="gsd",tool="slice_show"} 700.003400
            tollgate_call_duration_seconds_count{pack="gsd",tool="slice_show"} 3"#]]
        .assert_eq(&few.join("\n"));
    }
}
