//! The OpenTelemetry collector: whether it takes what it is sent.

use std::time::Duration;

use tollgate_gate::telemetry::{HeaderError, Sent, Settings};

use super::Finding;

/// Time limit for the collector's answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sends it messages without anything in them.
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
        .try_out(PATIENCE)
        .into_iter()
        .map(|(url, sent)| match sent {
            Sent::Taken => Finding::ok("telemetry", format!("{url} takes it")),
            Sent::Later(why) | Sent::Refused(why) => {
                Finding::warning("telemetry", format!("{url} does not take it: {why}")).remedy(
                    "look whether telemetry.otlp is a collector's address for OTLP over HTTP, and what \
                 telemetry.headers it wants; calls are not held up by it",
                )
            }
        });
    asked.collect()
}
