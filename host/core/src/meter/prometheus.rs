//! Metrics in Prometheus' text format. Names of packs and tools need no escaping.

use std::fmt::Write as _;

use super::{BOUNDS, Figures, Reading};

impl Figures {
    /// All metrics in Prometheus' text format.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let build = format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
        let help = "Version of this host.";
        figure(&mut text, "tollgate_build_info", "gauge", help, &[(build, 1)]);
        let packs = labelled("state", &self.packs);
        let help = "Packs by state.";
        figure(&mut text, "tollgate_packs", "gauge", help, &packs);
        let changes = [(String::new(), self.tools_changed)];
        let help = "Tools that differ from what the operator accepted.";
        figure(&mut text, "tollgate_tools_changed", "gauge", help, &changes);
        let reloads = labelled("outcome", &self.reloads);
        let help = "Number of times that the configuration was reloaded.";
        figure(&mut text, "tollgate_reloads_total", "counter", help, &reloads);
        if let Some(dropped) = self.spans_dropped {
            let dropped = [(String::new(), dropped)];
            let help = "Spans that the collector did not accept.";
            figure(
                &mut text,
                "tollgate_spans_dropped_total",
                "counter",
                help,
                &dropped,
            );
        }
        calls(&mut text, &self.tools);
        durations(&mut text, &self.tools);
        text
    }
}

pub(super) fn labelled(label: &str, counts: &[(&str, u64)]) -> Vec<(String, u64)> {
    let labelled = counts
        .iter()
        .map(|(value, count)| (format!("{{{label}=\"{value}\"}}"), *count));
    labelled.collect()
}

/// One metric, with its help and samples of labels and value.
pub(super) fn figure(text: &mut String, name: &str, kind: &str, help: &str, samples: &[(String, u64)]) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in samples {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

fn calls(text: &mut String, tools: &[Reading]) {
    let mut outcomes = Vec::new();
    for Reading {
        pack,
        tool,
        outcomes: counted,
        ..
    } in tools
    {
        for (outcome, count) in counted {
            let labels = format!("{{pack=\"{pack}\",tool=\"{tool}\",outcome=\"{outcome}\"}}");
            outcomes.push((labels, *count));
        }
    }
    let help = "Calls of tools by outcome.";
    figure(text, "tollgate_calls_total", "counter", help, &outcomes);
}

fn durations(text: &mut String, tools: &[Reading]) {
    let name = "tollgate_call_duration_seconds";
    let help = "Duration of calls, from admission to reply.";
    figure(text, name, "histogram", help, &[]);
    for reading in tools {
        let labels = format!("pack=\"{}\",tool=\"{}\"", reading.pack, reading.tool);
        let mut all = 0;
        let bounds = BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (bound, within) in bounds.zip(&reading.within) {
            all += within;
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {all}");
        }
        let (seconds, micros) = (reading.micros / 1_000_000, reading.micros % 1_000_000);
        let _ = writeln!(text, "{name}_sum{{{labels}}} {seconds}.{micros:06}");
        let _ = writeln!(text, "{name}_count{{{labels}}} {all}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;

    use super::super::Meter;
    use super::*;

    #[test]
    fn calls_are_counted_by_outcome_and_duration() {
        let (used, unused) = (Meter::default(), Meter::default());
        used.count(true, Duration::from_micros(400));
        used.count(true, Duration::from_millis(3));
        used.count(false, Duration::from_secs(700));
        let text = Figures {
            since_ms: 0,
            at_ms: 0,
            packs: [("loaded", 6), ("failed", 1)],
            tools_changed: 0,
            reloads: [("taken", 2), ("refused", 0)],
            spans_dropped: None,
            tools: [("slice_show", &used), ("slice_list", &unused)]
                .iter()
                .filter_map(|(tool, meter)| meter.read("gsd", tool))
                .collect(),
        }
        .prometheus();
        let few: Vec<&str> = text
            .lines()
            .filter(|line| {
                !line.contains("_bucket") && !line.starts_with("tollgate_build_info")
                    || line.contains("0.0005")
                    || line.contains("0.005")
                    || line.contains("Inf")
            })
            .collect();
        expect![[r#"
            # HELP tollgate_build_info Version of this host.
            # TYPE tollgate_build_info gauge
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
            # HELP tollgate_calls_total Calls of tools by outcome.
            # TYPE tollgate_calls_total counter
            tollgate_calls_total{pack="gsd",tool="slice_show",outcome="ok"} 2
            tollgate_calls_total{pack="gsd",tool="slice_show",outcome="error"} 1
            # HELP tollgate_call_duration_seconds Duration of calls, from admission to reply.
            # TYPE tollgate_call_duration_seconds histogram
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.0005"} 1
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="0.005"} 2
            tollgate_call_duration_seconds_bucket{pack="gsd",tool="slice_show",le="+Inf"} 3
            tollgate_call_duration_seconds_sum{pack="gsd",tool="slice_show"} 700.003400
            tollgate_call_duration_seconds_count{pack="gsd",tool="slice_show"} 3"#]]
        .assert_eq(&few.join("\n"));
    }
}
