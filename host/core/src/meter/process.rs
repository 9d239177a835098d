//! Metrics of this process as Linux reports them, under the names that Prometheus' client libraries use.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::prometheus::{counter, gauge, seconds};
use crate::clock::{Clock as _, SystemClock};

/// Milliseconds of one clock tick in Linux' process statistics.
const TICK_MS: i64 = 10;
/// Index of the start time in `/proc/self/stat`, counted after the program's name.
const START_FIELD: usize = 19;

/// Metrics of this process, which are read when they are encoded. Metrics that cannot be read are left out.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        if let Some(nanos) = cpu_nanos() {
            let help = "CPU time of user and system together.";
            counter(encoder, "process_cpu_seconds", help, seconds(nanos, 1e9))?;
        }
        if let Some(millis) = started_ms().and_then(|ms| u64::try_from(ms).ok()) {
            let help = "Start of the process, in seconds since 1970.";
            gauge(encoder, "process_start_time_seconds", help, seconds(millis, 1e3))?;
        }
        for (name, help, value) in sizes() {
            if let Some(value) = value {
                gauge(encoder, name, help, value)?;
            }
        }
        Ok(())
    }
}

/// Gauges with whole numbers: name, help and value.
fn sizes() -> [(&'static str, &'static str, Option<u64>); 5] {
    let status = read("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| number(&status, name).map(|kib| kib * 1024);
    [
        ("process_resident_memory_bytes", "Memory in use.", bytes("VmRSS:")),
        (
            "process_virtual_memory_bytes",
            "Virtual address space in use.",
            bytes("VmSize:"),
        ),
        ("process_threads", "Threads.", number(&status, "Threads:")),
        ("process_open_fds", "Open file descriptors.", open_files()),
        (
            "process_max_fds",
            "Maximum number of open file descriptors.",
            getrlimit(Resource::Nofile).current,
        ),
    ]
}

/// CPU time of this process in nanoseconds.
fn cpu_nanos() -> Option<u64> {
    let cpu = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok()?;
    u64::try_from(cpu.as_nanos()).ok()
}

#[allow(clippy::disallowed_methods, reason = "what the kernel says of this process")]
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[allow(clippy::disallowed_methods, reason = "what the kernel says of this process")]
fn open_files() -> Option<u64> {
    let entries = std::fs::read_dir("/proc/self/fd").ok()?;
    // One of the entries is the open directory itself.
    u64::try_from(entries.count()).ok()?.checked_sub(1)
}

/// First number after a name at the start of a line.
fn number(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Start of the process, in milliseconds since 1970.
fn started_ms() -> Option<i64> {
    let stat = read("/proc/self/stat")?;
    // The program's name can contain anything but ends at the last parenthesis.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: i64 = fields.split_whitespace().nth(START_FIELD)?.parse().ok()?;
    let age_ms = SystemClock.boot_ms() - ticks * TICK_MS;
    Some(SystemClock.now_ms() - age_ms)
}

#[cfg(test)]
mod tests {
    use super::super::prometheus::text;
    use super::*;

    #[test]
    fn a_process_knows_itself() {
        let text = text([Box::new(Process)]).unwrap();
        let value = |name: &str| -> f64 {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("{name} in {text}"))
                .parse()
                .unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 3.0 && value("process_max_fds") >= value("process_open_fds"));
        assert!(value("process_threads") >= 1.0);
        #[allow(clippy::cast_precision_loss, reason = "seconds of this age of the world")]
        let age = SystemClock.now_ms() as f64 / 1_000.0 - value("process_start_time_seconds");
        assert!((-1.0..3_600.0).contains(&age), "{age}");
        assert!(value("process_cpu_seconds_total") > 0.0);
    }
}
