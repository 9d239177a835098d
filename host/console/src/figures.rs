//! Statistics of the ledger, kept in memory. Rows are counted once, and no page reads the whole ledger.
//!
//! Counting starts at the end of the ledger. New rows are counted as they arrive. Older rows are counted backwards in
//! small batches, back to the oldest row that a page shows, so that the newest figures are available first.

mod cells;
mod failures;
mod sums;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tollgate_core::clock::Clock;
use tollgate_store::storage::{Bucket, CountedRow};

pub(crate) use cells::{Counts, PolicyCounts, width_ms};
pub(crate) use failures::FailingSum;

use cells::Level;
use failures::Failures;

use crate::reader::{ReadError, Reader};

/// Number of minutes, hours and days that are kept. One more than pages show, because the first and last are
/// incomplete.
const KEPT_MINUTES: i64 = 61;
const KEPT_HOURS: i64 = 7 * 24 + 1;
const KEPT_DAYS: i64 = 15;
/// Number of rows read at once.
const BATCH_ROWS: i64 = 4_000;
/// Interval between checks for new rows while no page is open, so that a page has few rows to count.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Number of uncounted rows for which a page waits, and the longest wait. A long ledger takes seconds.
const UNCOUNTED_ROWS_LIMIT: i64 = 4 * BATCH_ROWS;
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// Counted figures.
pub(crate) struct Figures {
    minutes: Level,
    hours: Level,
    days: Level,
    failures: Failures,
    /// Range of counted rows: the position before the oldest, and the position of the newest.
    counted: Option<(i64, i64)>,
    /// True if no older row belongs to any figure.
    is_complete: bool,
}

impl Figures {
    fn new() -> Figures {
        Figures {
            minutes: Level::new(Bucket::Minute, KEPT_MINUTES),
            hours: Level::new(Bucket::Hour, KEPT_HOURS),
            days: Level::new(Bucket::Day, KEPT_DAYS),
            failures: Failures::default(),
            counted: None,
            is_complete: false,
        }
    }

    fn levels(&mut self) -> [&mut Level; 3] {
        [&mut self.minutes, &mut self.hours, &mut self.days]
    }

    fn level(&self, bucket: Bucket) -> &Level {
        match bucket {
            Bucket::Minute => &self.minutes,
            Bucket::Hour => &self.hours,
            Bucket::Day => &self.days,
        }
    }

    /// Counts the rows after the counted ones, up to a position.
    fn add(&mut self, rows: &[CountedRow], until: i64, now_ms: i64) {
        for row in rows {
            self.levels().into_iter().for_each(|level| level.add(row, now_ms));
            self.failures.add(row);
        }
        self.levels().into_iter().for_each(|level| level.forget(now_ms));
        let oldest = self.counted.map_or(until, |(oldest, _)| oldest);
        self.counted = Some((oldest, until));
    }

    /// Counts the rows before the counted ones, after a position. `first` is the oldest row of the ledger.
    fn add_before(&mut self, rows: &[CountedRow], after: i64, first: i64, now_ms: i64) {
        let Some((_, newest)) = self.counted else {
            return;
        };
        let is_recent = |seq: i64| seq > newest - failures::WINDOW_ROWS;
        for row in rows.iter().rev() {
            self.levels().into_iter().for_each(|level| level.add(row, now_ms));
            if is_recent(row.seq) {
                self.failures.add_before(row);
            }
        }
        self.counted = Some((after, newest));
        // Rows are ordered by the end of their calls, so a row can be older than later rows of the batch.
        let oldest_shown = now_ms - KEPT_DAYS * width_ms(Bucket::Day);
        let is_old = !rows.is_empty() && rows.iter().all(|row| row.at_ms < oldest_shown);
        self.is_complete = after < first || (is_old && !is_recent(after));
    }

    /// Calls since the interval that contains a time.
    pub(crate) fn since(&self, bucket: Bucket, time_ms: i64) -> Counts {
        self.level(bucket).since(time_ms)
    }

    /// Verdicts since the day of a time, by policy and mode.
    pub(crate) fn policies_since(&self, time_ms: i64) -> BTreeMap<(String, String), PolicyCounts> {
        self.days.policies_since(time_ms)
    }

    /// Failures among a number of the newest rows, seen at least a number of times, newest first.
    pub(crate) fn failing(&self, rows: i64, at_least: i64, most: usize) -> Vec<FailingSum> {
        let newest = self.counted.map_or(0, |(_, newest)| newest);
        self.failures.since(newest.saturating_sub(rows), at_least, most)
    }

    /// Positions of the newest calls that policies denied, newest first.
    pub(crate) fn denied(&self) -> Vec<i64> {
        self.failures.denied()
    }

    /// First counted position, if older rows are still being counted.
    pub(crate) fn counted_from(&self) -> Option<i64> {
        let from = self.counted.map(|(oldest, _)| oldest + 1);
        from.filter(|_| !self.is_complete)
    }
}

/// Statistics of one ledger, and the means to update them.
#[derive(Clone)]
pub(crate) struct Counting {
    reader: Reader,
    clock: Arc<dyn Clock>,
    figures: Arc<Mutex<Figures>>,
    /// Held while new rows are counted.
    turn: Arc<tokio::sync::Mutex<()>>,
    is_complete: watch::Sender<bool>,
}

impl Counting {
    /// Counts a ledger until `stop`. Must be called in a runtime.
    pub(crate) fn start(reader: Reader, clock: Arc<dyn Clock>, stop: CancellationToken) -> Counting {
        let counting = Counting {
            reader,
            clock,
            figures: Arc::new(Mutex::new(Figures::new())),
            turn: Arc::default(),
            is_complete: watch::Sender::new(false),
        };
        let own = counting.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled_owned(own.keep_on()).await;
        });
        counting
    }

    /// Calls `body` with up-to-date figures.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Figures) -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        self.count_new().await?;
        let oldest = self.figures().counted.map_or(0, |(oldest, _)| oldest);
        if oldest <= UNCOUNTED_ROWS_LIMIT {
            let mut complete = self.is_complete.subscribe();
            // A page of partial figures is better than none.
            let _ = tokio::time::timeout(COUNT_TIMEOUT, complete.wait_for(|complete| *complete)).await;
        }
        let own = self.clone();
        let looked = tokio::task::spawn_blocking(move || body(&own.figures()));
        looked.await.map_err(|_| ReadError::Gone)
    }

    async fn keep_on(self) {
        loop {
            let was_complete = self.is_complete();
            let counted = match was_complete {
                true => self.count_new().await,
                false => self.count_older().await,
            };
            if let Err(err) = &counted {
                tracing::warn!(%err, "counting ledger rows failed; trying again");
            }
            if was_complete || counted.is_err() {
                tokio::time::sleep(IDLE_CHECK_INTERVAL).await;
            }
        }
    }

    /// Counts the rows that arrived since the last update.
    async fn count_new(&self) -> Result<(), ReadError> {
        let _turn = self.turn.lock().await;
        while self.count_batch().await? {}
        Ok(())
    }

    /// Counts a batch of new rows. Returns whether there are more.
    async fn count_batch(&self) -> Result<bool, ReadError> {
        let own = self.clone();
        let batch = self.reader.read(move |session| {
            let head = session.ledger().head()?.seq;
            let known = own.figures().counted.map_or(head, |(_, newest)| newest);
            let until = head.min(known + BATCH_ROWS);
            let rows = session.stats().counted_rows(known, until)?;
            own.figures().add(&rows, until.max(known), own.clock.now_ms());
            Ok(until < head)
        });
        batch.await
    }

    /// Counts a batch of rows before the counted ones.
    async fn count_older(&self) -> Result<(), ReadError> {
        self.count_new().await?;
        let own = self.clone();
        let batch = self.reader.read(move |session| {
            let oldest = own.figures().counted.map_or(0, |(oldest, _)| oldest);
            let after = (oldest - BATCH_ROWS).max(0);
            let rows = session.stats().counted_rows(after, oldest)?;
            let first = session.operations().oldest()?.unwrap_or(i64::MAX);
            own.figures().add_before(&rows, after, first, own.clock.now_ms());
            Ok(own.figures().is_complete)
        });
        let is_complete = batch.await?;
        self.is_complete.send_replace(is_complete);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        *self.is_complete.borrow()
    }

    fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
