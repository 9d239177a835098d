//! Current gauges and counters: the HTTP server, the writer, the ledger, and denials by policies.

use super::prometheus::{figure, labelled};

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

impl Vitals {
    /// Metrics in Prometheus' text format.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let denials = by_policy(&self.denials);
        let help = "Verdicts of policies that refused a call, including failures to judge.";
        figure(
            &mut text,
            "tollgate_policy_denials_total",
            "counter",
            help,
            &denials,
        );
        let instances = by_policy(&self.instances);
        let help = "Instances of policies that were created in advance and wait for calls.";
        figure(
            &mut text,
            "tollgate_policy_instances_ready",
            "gauge",
            help,
            &instances,
        );
        let mut gauge = |name: &str, help: &str, value: u64| {
            figure(&mut text, name, "gauge", help, &[(String::new(), value)]);
        };
        gauge(
            "tollgate_writer_queue_jobs",
            "Jobs in the writer's queue.",
            self.writer_queue,
        );
        gauge(
            "tollgate_tasks_open",
            "Calls of this host that continue without their clients.",
            self.open_tasks,
        );
        if let Some(totals) = &self.totals {
            gauge(
                "tollgate_envelopes_open",
                "Envelopes that are open.",
                totals.open_envelopes,
            );
            gauge("tollgate_ledger_rows", "Rows of the ledger.", totals.ledger_rows);
            gauge(
                "tollgate_database_bytes",
                "Bytes of the database.",
                totals.database_bytes,
            );
            gauge(
                "tollgate_database_wal_bytes",
                "Bytes of the database's write-ahead log.",
                totals.wal_bytes,
            );
            gauge(
                "tollgate_database_free_bytes",
                "Bytes of the database that `tollgate ledger compact` would free.",
                totals.free_bytes,
            );
        }
        text
    }
}

fn by_policy(counts: &[(String, u64)]) -> Vec<(String, u64)> {
    let counts = counts.iter().map(|(policy, count)| (policy.as_str(), *count));
    labelled("policy", &counts.collect::<Vec<_>>())
}

impl AdmissionMetrics {
    /// Metrics in Prometheus' text format.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let mut gauge = |name: &str, help: &str, value: u64| {
            figure(&mut text, name, "gauge", help, &[(String::new(), value)]);
        };
        gauge("tollgate_sessions", "Sessions over HTTP.", self.sessions);
        gauge(
            "tollgate_http_requests_in_flight",
            "Requests that are not answered yet.",
            self.in_flight,
        );
        gauge(
            "tollgate_http_streams",
            "Streams that wait for notifications.",
            self.streams,
        );
        let refusals: Vec<(String, u64)> = self
            .refusals
            .iter()
            .map(|(status, count)| (format!("{{status=\"{status}\"}}"), *count))
            .collect();
        let help = "Answers over HTTP that refuse a request, by status.";
        figure(
            &mut text,
            "tollgate_http_refusals_total",
            "counter",
            help,
            &refusals,
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_help_and_type() {
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
        let text = vitals.prometheus() + &admission.prometheus();
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
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        for sample in samples {
            let name = sample.split(['{', ' ']).next().unwrap();
            assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
        }
    }
}
