//! Current gauges and counters: the HTTP server, the writer, the ledger, and denials by policies.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::prometheus::{counters, gauge, gauges};

/// Statuses of refusals that are counted separately.
pub const STATUSES: [u16; 12] = [400, 401, 403, 404, 405, 408, 413, 415, 429, 431, 500, 503];

/// Current metrics of a gate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vitals {
    /// Calls that policies denied or failed to judge, by policy.
    pub denials: Vec<(String, u64)>,
    /// Instances that wait for calls to judge, by policy.
    pub instances: Vec<(String, u64)>,
    /// Jobs that wait for the writer.
    pub writer_queue: u64,
    /// Unfinished tasks of this host.
    pub open_tasks: u64,
    /// Metrics of the database, if it could be queried.
    pub totals: Option<Totals>,
}

/// Metrics of the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Rows of the ledger.
    pub ledger_rows: u64,
    /// Envelopes that are open.
    pub open_envelopes: u64,
    /// Bytes of the file.
    pub database_bytes: u64,
    /// Bytes of its write-ahead log.
    pub wal_bytes: u64,
    /// Free bytes in the file.
    pub free_bytes: u64,
}

/// Current metrics of an HTTP server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AdmissionMetrics {
    /// Sessions.
    pub sessions: u64,
    /// Requests that are not answered yet.
    pub in_flight: u64,
    /// Streams that wait for notifications.
    pub streams: u64,
    /// Refusals by status.
    pub refusals: Vec<(u16, u64)>,
}

impl Collector for Vitals {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let denials = by_policy(&self.denials);
        let help = "Verdicts of policies that refused a call, including failures to evaluate.";
        counters(encoder, "tollgate_policy_denials", help, "policy", denials)?;
        let instances = by_policy(&self.instances);
        let help = "Instances of policies that were created in advance and wait for calls.";
        gauges(
            encoder,
            "tollgate_policy_instances_ready",
            help,
            "policy",
            instances,
        )?;
        let help = "Jobs in the writer's queue.";
        gauge(encoder, "tollgate_writer_queue_jobs", help, self.writer_queue)?;
        let help = "Calls of this host that continue without their clients.";
        gauge(encoder, "tollgate_tasks_open", help, self.open_tasks)?;
        self.totals.iter().try_for_each(|totals| totals.encode(encoder))
    }
}

fn by_policy(counts: &[(String, u64)]) -> impl Iterator<Item = (&str, u64)> {
    counts.iter().map(|(policy, count)| (policy.as_str(), *count))
}

impl Totals {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Envelopes that are open.";
        gauge(encoder, "tollgate_envelopes_open", help, self.open_envelopes)?;
        let help = "Rows of the ledger.";
        gauge(encoder, "tollgate_ledger_rows", help, self.ledger_rows)?;
        let help = "Bytes of the database.";
        gauge(encoder, "tollgate_database_bytes", help, self.database_bytes)?;
        let help = "Bytes of the database's write-ahead log.";
        gauge(encoder, "tollgate_database_wal_bytes", help, self.wal_bytes)?;
        let help = "Bytes of the database that `tollgate ledger compact` would free.";
        gauge(encoder, "tollgate_database_free_bytes", help, self.free_bytes)
    }
}

impl Collector for AdmissionMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        gauge(encoder, "tollgate_sessions", "Sessions over HTTP.", self.sessions)?;
        let help = "Requests that are not answered yet.";
        gauge(encoder, "tollgate_http_requests_in_flight", help, self.in_flight)?;
        let help = "Streams that wait for notifications.";
        gauge(encoder, "tollgate_http_streams", help, self.streams)?;
        let refusals = self.refusals.iter().copied();
        let help = "Answers over HTTP that refuse a request, by status.";
        counters(encoder, "tollgate_http_refusals", help, "status", refusals)
    }
}

#[cfg(test)]
mod tests {
    use super::super::prometheus::text;
    use super::*;

    #[test]
    fn current_values_are_shown() {
        let vitals = Vitals {
            denials: vec![("rate-limit".to_owned(), 3)],
            instances: vec![("cel".to_owned(), 1)],
            writer_queue: 2,
            open_tasks: 3,
            totals: Some(Totals::default()),
        };
        let admission = AdmissionMetrics {
            sessions: 1,
            refusals: vec![(401, 7)],
            ..AdmissionMetrics::default()
        };
        let text = text([Box::new(vitals), Box::new(admission)]).unwrap();
        for line in [
            "tollgate_policy_denials_total{policy=\"rate-limit\"} 3",
            "tollgate_policy_instances_ready{policy=\"cel\"} 1",
            "tollgate_writer_queue_jobs 2",
            "tollgate_tasks_open 3",
            "tollgate_sessions 1",
            "tollgate_http_refusals_total{status=\"401\"} 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
