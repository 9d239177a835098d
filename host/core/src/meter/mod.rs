//! Metrics of calls: a few atomics for each tool.

mod process;
mod prometheus;
mod vitals;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use prometheus::{CONTENT_TYPE, prometheus};
pub use vitals::{AdmissionMetrics, STATUSES, Totals, Vitals};

/// Upper bounds of the histogram of durations, in seconds.
pub const BOUNDS: [f64; 14] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0,
];

/// The calls of one tool since the host started.
#[derive(Debug, Default)]
pub struct Meter {
    done: AtomicU64,
    refused: AtomicU64,
    micros: AtomicU64,
    /// Number of calls within each bound; the last one is for those above all bounds.
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

    /// Figures of a tool, if anything was counted.
    pub fn read(&self, pack: &str, tool: &str) -> Option<Reading> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let reading = Reading {
            pack: pack.to_owned(),
            tool: tool.to_owned(),
            outcomes: [("ok", read(&self.done)), ("error", read(&self.refused))],
            micros: read(&self.micros),
            within: self.within.each_ref().map(read),
        };
        reading
            .outcomes
            .iter()
            .any(|(_, calls)| *calls > 0)
            .then_some(reading)
    }
}

/// Figures of one tool at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The pack that has it.
    pub pack: String,
    /// Its name.
    pub tool: String,
    /// Calls by outcome.
    pub outcomes: [(&'static str, u64); 2],
    /// Microseconds that all of them took.
    pub micros: u64,
    /// Calls by duration: those between each bound of the histogram and the one before it, and those above all
    /// bounds.
    pub within: [u64; BOUNDS.len() + 1],
}

/// All metrics of a host at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// Start of counting, in milliseconds since 1970.
    pub since_ms: i64,
    /// Time of reading.
    pub at_ms: i64,
    /// Packs by load result.
    pub packs: [(&'static str, u64); 2],
    /// Tools that differ from what the operator accepted.
    pub tools_changed: u64,
    /// Number of reloads of the configuration, by outcome.
    pub reloads: [(&'static str, u64); 2],
    /// Spans that were dropped, if spans are recorded.
    pub spans_dropped: Option<u64>,
    /// Tools that were called.
    pub tools: Vec<Reading>,
}
