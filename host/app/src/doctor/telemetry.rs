//! Findings about the OpenTelemetry collector: whether it accepts data.

use std::time::Duration;

use tollgate_gate::telemetry::{HeaderError, Sent, Settings};

use super::Finding;

/// Time limit for the collector's answer.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(3);

/// Sends empty messages to the collector.
pub fn check(settings: Result<Option<Settings>, HeaderError>) -> Vec<Finding> {
    let settings = match settings {
        Ok(None) => return Vec::new(),
        Ok(Some(settings)) => settings,
        Err(err) => {
            let problems = err.to_string();
            let problems = problems.lines().map(|line| Finding::problem("telemetry", line));
            return problems.collect();
        }
    };
    let asked = settings
        .try_out(COLLECTOR_TIMEOUT)
        .into_iter()
        .map(|(url, sent)| match sent {
            Sent::Taken => Finding::ok("telemetry", format!("{url} accepts telemetry")),
            Sent::Later(why) | Sent::Refused(why) => {
                Finding::warning("telemetry", format!("{url} does not accept telemetry: {why}")).remedy(
                    "check that telemetry.otlp is a collector's address for OTLP over HTTP, and which \
                 telemetry.headers it needs; calls do not wait for the collector",
                )
            }
        });
    asked.collect()
}
