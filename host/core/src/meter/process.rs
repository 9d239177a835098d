//! Metrics of this process as Linux reports them, under the names that Prometheus' client libraries use.

use std::fmt::Write as _;

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::clock::{Clock as _, SystemClock};

/// Milliseconds of one clock tick in Linux' process statistics.
const TICK_MS: i64 = 10;
/// Index of the start time in `/proc/self/stat`, counted after the program's name.
const START_FIELD: usize = 19;

/// Metrics in Prometheus' text format. Metrics that cannot be read are left out.
pub fn prometheus() -> String {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let status = read("/proc/self/status").unwrap_or_default();
    let kib = |name: &str| number(&status, name).map(|kib| kib * 1024);
    let mut text = String::new();
    let mut add = |name: &str, kind: &str, help: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
    };
    let whole = |value: Option<u64>| value.map(|value| value.to_string());
    add(
        "process_cpu_seconds_total",
        "counter",
        "Processor time of user and system together.",
        Some(format!("{}.{:09}", cpu.tv_sec, cpu.tv_nsec)),
    );
    add(
        "process_start_time_seconds",
        "gauge",
        "Start of the process, in seconds since 1970.",
        started_ms().map(|ms| format!("{}.{:03}", ms / 1_000, ms % 1_000)),
    );
    add(
        "process_resident_memory_bytes",
        "gauge",
        "Memory in use.",
        whole(kib("VmRSS:")),
    );
    add(
        "process_virtual_memory_bytes",
        "gauge",
        "Virtual address space in use.",
        whole(kib("VmSize:")),
    );
    add(
        "process_threads",
        "gauge",
        "Threads.",
        whole(number(&status, "Threads:")),
    );
    add(
        "process_open_fds",
        "gauge",
        "Open file descriptors.",
        whole(open_files()),
    );
    add(
        "process_max_fds",
        "gauge",
        "Maximum number of open file descriptors.",
        whole(getrlimit(Resource::Nofile).current),
    );
    text
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
    use super::*;

    #[test]
    fn a_process_knows_itself() {
        let text = prometheus();
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
