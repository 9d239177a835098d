//! Pruning in small batches, so that writers never wait long.

use std::time::Duration;

use thiserror::Error;
use tollgate_sdk::Timestamp;

use super::LedgerSettings;
use crate::data_dir::{DataDir, DataDirError};
use crate::exclusive::{self, ExclusiveError};
use crate::key::LedgerKey;
use crate::storage::{Database, OpenError, PruneBatch, PruneError, Pruned, Retention};

/// Lock file: one pruner works at a time, in any process.
const LOCK: &str = "prune.lock";
/// Rows of the first batch, of the smallest and of the largest.
const FIRST_BATCH_ROWS: u32 = 64;
const BATCH_ROWS: std::ops::RangeInclusive<u32> = 16..=1_024;
/// Time for which a batch should hold the writer. Below the first value it may grow, above the second it shrinks.
const BATCH_DURATIONS: [Duration; 2] = [Duration::from_millis(3), Duration::from_millis(6)];
const DAY_MS: i64 = 86_400_000;

/// Reason for which pruning stopped.
#[derive(Debug, Error)]
pub enum RetentionError {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// Failed to determine whether another host prunes.
    #[error(transparent)]
    Exclusive(#[from] ExclusiveError),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The rows were changed, or storage failed.
    #[error(transparent)]
    Prune(#[from] PruneError),
}

/// Outcome of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The batch was removed, and the writer was held for this time.
    Out(Duration),
    /// Nothing more can be pruned now.
    Stop,
}

impl LedgerSettings {
    /// Current retention.
    pub fn retention(&self, now_ms: i64) -> Retention {
        let age = i64::from(self.retention_days).saturating_mul(DAY_MS);
        Retention {
            cutoff: Timestamp::from_ms(now_ms.saturating_sub(age)).to_string(),
            envelopes: self.retention_envelopes,
        }
    }
}

/// Prunes old rows, batch by batch. `take_out` commits each batch. Does nothing if another process is pruning.
pub fn prune(
    data: &DataDir,
    database: &Database,
    retention: &Retention,
    now_ms: i64,
    mut take_out: impl FnMut(PruneBatch) -> Result<Taken, PruneError>,
) -> Result<Pruned, RetentionError> {
    let mut all = Pruned::default();
    let Some(_alone) = exclusive::try_lock(data, database, LOCK)? else {
        return Ok(all);
    };
    let session = database.write_session()?;
    if session
        .maintenance()
        .prunable(retention)
        .map_err(PruneError::from)?
        == all
    {
        return Ok(all);
    }
    session.maintenance().check_before_prune()?;
    let key = LedgerKey::open(data)?;
    let now = Timestamp::from_ms(now_ms).to_string();
    let (mut after, mut rows) = (0, FIRST_BATCH_ROWS);
    loop {
        let batch = session
            .maintenance()
            .plan_prune(retention, &mut after, rows, &key, &now)?;
        if batch.is_empty() {
            return Ok(all);
        }
        let pruned = batch.pruned;
        match take_out(batch)? {
            Taken::Out(held) => {
                rows = pace(rows, held);
                // The next writer then needs no checkpoint, and holds the lock only for its own rows.
                session.checkpoint().map_err(PruneError::from)?;
            }
            Taken::Stop => return Ok(all),
        }
        all.add(pruned);
    }
}

/// Number of rows in the next batch.
fn pace(rows: u32, held: Duration) -> u32 {
    let [short, long] = BATCH_DURATIONS;
    let next = if held < short {
        rows * 2
    } else if held > long {
        rows / 2
    } else {
        rows
    };
    next.clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::fixture;

    #[test]
    fn what_a_batch_took_out_is_out_of_the_file_before_the_next() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::open(place.path()).unwrap();
        let database = Database::open(&data.database()).unwrap();
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        fixture::add(&session, &"o".repeat(100), 0);
        session.commit().unwrap();
        let alone = place.path().join("alone.db");
        let mut batches = 0;
        let pruned = prune(&data, &database, &fixture::retention(), 0, |batch| {
            if batches > 0 {
                // Without its log the file has what was committed before.
                std::fs::copy(data.database(), &alone).unwrap();
                let alone = Database::open(&alone).unwrap().read_session().unwrap();
                assert_eq!(fixture::rows_between(&alone, 1, 64), 0);
            }
            batches += 1;
            session.begin_write()?;
            session.maintenance().prune(&batch)?;
            session.commit()?;
            Ok(Taken::Out(Duration::ZERO))
        });
        assert_eq!((pruned.unwrap().rows_outside, batches), (100, 2));
    }

    #[test]
    fn batches_grow_while_they_are_quick() {
        let ms = Duration::from_millis;
        assert_eq!(pace(64, ms(1)), 128);
        assert_eq!(pace(64, ms(5)), 64);
        assert_eq!(pace(64, ms(9)), 32);
        assert_eq!(pace(16, ms(90)), 16);
        assert_eq!(pace(1_024, ms(0)), 1_024);
    }
}
