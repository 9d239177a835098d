//! Accumulators for calls and verdicts.

use serde::Deserialize;

use super::super::engine::Row;
use super::super::error::StoreResult;
use super::{Bucket, By, PolicyTally, Tally};

/// Period, pack, tool, actor and client of calls that are counted together.
pub(super) type Key = [Option<String>; 5];
/// Period, policy and mode.
pub(super) type VerdictKey = (Option<String>, String, String);

/// Accumulator for calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Count {
    tally: Tally,
    durations: Vec<f64>,
}

impl Count {
    pub(super) fn add(&mut self, row: &Row<'_>) -> StoreResult<()> {
        let tally = &mut self.tally;
        let success: Option<bool> = row.get(5)?;
        tally.calls += 1;
        tally.failed += i64::from(success == Some(false));
        tally.unknown += i64::from(success.is_none());
        let outcome = row.column(6)?.text();
        tally.tests_failed += i64::from(outcome.is_some_and(|outcome| outcome != "passed"));
        self.durations.push(row.get(7)?);
        if let Some(code) = row.get::<Option<String>>(8)? {
            *tally.errors.entry(code).or_default() += 1;
        }
        Ok(())
    }
}

/// A verdict to count.
#[derive(Deserialize)]
pub(super) struct Said {
    #[serde(default)]
    pub(super) policy: String,
    #[serde(default)]
    pub(super) mode: String,
    #[serde(default)]
    verdict: String,
    us: Option<u64>,
    #[serde(default = "once")]
    times: i64,
}

fn once() -> i64 {
    1
}

/// Accumulator for verdicts.
#[derive(Debug, Clone, Default)]
pub(super) struct VerdictTally {
    tally: PolicyTally,
    times: Vec<u64>,
}

impl VerdictTally {
    pub(super) fn add(&mut self, said: &Said) {
        let tally = &mut self.tally;
        tally.judged += said.times;
        match said.verdict.as_str() {
            "deny" => tally.denied += said.times,
            "ask" => tally.asked += said.times,
            "amend" => tally.amended += said.times,
            "failed" => tally.failed += said.times,
            _ => {}
        }
        self.times.extend(said.us);
    }

    pub(super) fn finish(
        ((bucket, policy, mode), mut verdict_tally): (VerdictKey, VerdictTally),
    ) -> PolicyTally {
        verdict_tally.times.sort_unstable();
        let of = |share| percentile(&verdict_tally.times, share).and_then(|us| i64::try_from(us).ok());
        PolicyTally {
            bucket,
            policy,
            mode,
            median_us: of(50),
            p99_us: of(99),
            ..verdict_tally.tally
        }
    }
}

pub(super) fn key(row: &Row<'_>, by: &[By], bucket: Option<Bucket>) -> StoreResult<Key> {
    let of = |property: By, column: usize| match by.contains(&property) {
        true => row.get(column),
        false => Ok(None),
    };
    Ok([
        stretch(row, bucket)?,
        of(By::Tool, 1)?,
        of(By::Tool, 2)?,
        of(By::Actor, 3)?,
        of(By::Client, 4)?,
    ])
}

/// Period of a row whose first column is its timestamp.
pub(super) fn stretch(row: &Row<'_>, bucket: Option<Bucket>) -> StoreResult<Option<String>> {
    let Some(bucket) = bucket else {
        return Ok(None);
    };
    let timestamp: &str = row.get(0)?;
    Ok(Some(
        timestamp.get(..bucket.letters()).unwrap_or(timestamp).to_owned(),
    ))
}

pub(super) fn finish(([bucket, pack, tool, actor, client], mut count): (Key, Count)) -> Tally {
    count.durations.sort_unstable_by(f64::total_cmp);
    let of = |share| percentile(&count.durations, share).unwrap_or_default();
    Tally {
        bucket,
        pack,
        tool,
        actor,
        client,
        median_ms: of(50),
        p95_ms: of(95),
        longest_ms: of(100),
        ..count.tally
    }
}

/// Percentile of sorted values: the lowest value that at least `percent` percent do not exceed.
fn percentile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let place = (sorted.len() * percent).div_ceil(100).checked_sub(1)?;
    sorted.get(place).copied()
}
