//! Sums of calls and verdicts that can be added to each other, with a histogram for percentiles.

use std::collections::BTreeMap;

use tollgate_store::storage::{CountedRow, CountedVerdict, PolicyTally, Tally};

/// Classes per power of two. A value differs from the middle of its class by less than 2 %.
const CLASSES: u64 = 32;
const CLASS_BITS: u32 = CLASSES.trailing_zeros();
/// Maximum number of separately counted codes.
const MAX_CODES: usize = 32;

/// Numbers of values by class.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram {
    /// Class and number, in the order of classes.
    counts: Vec<(u16, u32)>,
}

impl Histogram {
    fn add(&mut self, value: u64) {
        self.add_class(class(value), 1);
    }

    fn add_class(&mut self, class: u16, count: u32) {
        match self.counts.binary_search_by_key(&class, |(known, _)| *known) {
            Ok(at) => {
                if let Some((_, known)) = self.counts.get_mut(at) {
                    *known = known.saturating_add(count);
                }
            }
            Err(at) => self.counts.insert(at, (class, count)),
        }
    }

    fn merge(&mut self, other: &Histogram) {
        for (class, count) in &other.counts {
            self.add_class(*class, *count);
        }
    }

    /// Value that `percent` percent of all values do not exceed.
    fn percentile(&self, percent: u64) -> Option<u64> {
        let all: u64 = self.counts.iter().map(|(_, count)| u64::from(*count)).sum();
        let place = (all * percent).div_ceil(100).max(1);
        let mut passed = 0;
        let found = self.counts.iter().find(|(_, count)| {
            passed += u64::from(*count);
            passed >= place
        });
        found.map(|(class, _)| middle(*class))
    }
}

/// Class of a value. Small values have a class each.
fn class(value: u64) -> u16 {
    let exponent = value.max(1).ilog2();
    let Some(shift) = exponent.checked_sub(CLASS_BITS) else {
        return u16::try_from(value).unwrap_or_default();
    };
    let within = (value >> shift) % CLASSES;
    u16::try_from(u64::from(shift + 1) * CLASSES + within).unwrap_or(u16::MAX)
}

/// Value in the middle of a class.
fn middle(class: u16) -> u64 {
    let (class, within) = (u64::from(class) / CLASSES, u64::from(class) % CLASSES);
    let Some(shift) = class.checked_sub(1) else {
        return within;
    };
    let lowest = (CLASSES + within) << shift;
    lowest + (1 << shift) / 2
}

/// Calls that are counted together.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    calls: i64,
    failed: i64,
    tests_failed: i64,
    unknown: i64,
    longest_ms: f64,
    took_us: Histogram,
    errors: BTreeMap<String, i64>,
}

impl Sums {
    pub(super) fn add(&mut self, row: &CountedRow) {
        self.calls += 1;
        self.failed += i64::from(row.success == Some(false));
        self.unknown += i64::from(row.success.is_none());
        self.tests_failed += i64::from(row.tests_failed);
        self.longest_ms = self.longest_ms.max(row.duration_ms);
        self.took_us.add(micros(row.duration_ms));
        if let Some(code) = &row.error_code {
            self.add_error(code, 1);
        }
    }

    pub(super) fn merge(&mut self, other: &Sums) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.tests_failed += other.tests_failed;
        self.longest_ms = self.longest_ms.max(other.longest_ms);
        self.took_us.merge(&other.took_us);
        for (code, count) in &other.errors {
            self.add_error(code, *count);
        }
    }

    fn add_error(&mut self, code: &str, count: i64) {
        if let Some(known) = self.errors.get_mut(code) {
            *known += count;
        } else if self.errors.len() < MAX_CODES {
            self.errors.insert(code.to_owned(), count);
        }
    }

    pub(super) fn tally(self) -> Tally {
        // The middle of a class can exceed every value in it.
        let of = |percent| {
            self.took_us
                .percentile(percent)
                .map_or(0.0, millis)
                .min(self.longest_ms)
        };
        Tally {
            median_ms: of(50),
            p95_ms: of(95),
            longest_ms: self.longest_ms,
            calls: self.calls,
            failed: self.failed,
            tests_failed: self.tests_failed,
            unknown: self.unknown,
            errors: self.errors,
            ..Tally::default()
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a duration is not negative, and a cast from a float saturates"
)]
fn micros(ms: f64) -> u64 {
    (ms * 1_000.0).round() as u64
}

#[allow(clippy::cast_precision_loss, reason = "a class is coarser than a float")]
fn millis(us: u64) -> f64 {
    us as f64 / 1_000.0
}

/// Verdicts of one policy in one mode.
#[derive(Debug, Clone, Default)]
pub(super) struct Verdicts {
    tally: PolicyTally,
    took_us: Histogram,
}

impl Verdicts {
    pub(super) fn add(&mut self, said: &CountedVerdict) {
        let (tally, times) = (&mut self.tally, said.times.0);
        tally.judged += times;
        match said.verdict.as_str() {
            "deny" => tally.denied += times,
            "ask" => tally.asked += times,
            "amend" => tally.amended += times,
            "failed" => tally.failed += times,
            _ => {}
        }
        if let Some(us) = said.us {
            self.took_us.add(us);
        }
    }

    pub(super) fn merge(&mut self, other: &Verdicts) {
        let (tally, more) = (&mut self.tally, &other.tally);
        tally.judged += more.judged;
        tally.denied += more.denied;
        tally.asked += more.asked;
        tally.amended += more.amended;
        tally.failed += more.failed;
        self.took_us.merge(&other.took_us);
    }

    pub(super) fn denied(&self) -> i64 {
        self.tally.denied
    }

    pub(super) fn tally(self) -> PolicyTally {
        let of = |percent| {
            let us = self.took_us.percentile(percent);
            us.and_then(|us| i64::try_from(us).ok())
        };
        PolicyTally {
            median_us: of(50),
            p99_us: of(99),
            ..self.tally
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_near_each_of_its_values() {
        for value in (0..2_000).chain([4_097, 65_535, 812_400, u64::from(u32::MAX), 1 << 50]) {
            let found = middle(class(value));
            let off = found.abs_diff(value);
            assert!(off * 50 <= value, "{value} is shown as {found}");
        }
        let classes: Vec<u16> = (0..70_000).map(class).collect();
        assert!(classes.is_sorted(), "a larger value has no lower class");
    }

    #[test]
    fn percentiles_of_merged_sums_are_those_of_all_values() {
        let (mut low, mut high) = (Histogram::default(), Histogram::default());
        (0..900).for_each(|_| low.add(10));
        (0..100).for_each(|_| high.add(8_000));
        low.merge(&high);
        assert_eq!(low.percentile(50), Some(10));
        assert_eq!(low.percentile(90), Some(10));
        let p95 = low.percentile(95).unwrap();
        assert!(p95.abs_diff(8_000) < 160, "{p95}");
        assert_eq!(Histogram::default().percentile(50), None);
    }
}
