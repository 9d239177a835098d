//! New rows of the ledger, read once for all open pages. Reading leaves no rows.
//!
//! While any page listens, one task polls for new rows and passes them to all streams. A reconnecting stream names the
//! last row that it has, and reads what it missed itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use futures::stream::unfold;
use serde_json::json;
use tokio::sync::{Mutex, broadcast};
use tokio_util::sync::CancellationToken;
use tollgate_store::storage::{OperationFilter, Session, StoreResult, StoredOperation};

use crate::filter::Filter;
use crate::kept_parts::Parts;
use crate::reader::{ReadError, Reader};
use crate::rows::Row;

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(150);
/// Number of polls without news before pages are told that time has passed, for clocks and bars.
const QUIET_LOOKS: u32 = 66;
/// Number of polls between two messages that parts of pages changed.
const PART_LOOKS: u32 = 7;
/// Maximum rows in one message.
const MAX_ROWS: u32 = 200;
/// Messages that a slow stream may lag behind before it reads from the store.
const MAX_LAG: usize = 64;
/// Idle time after which a stream gets a message that tests the connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// New rows, and the message for listeners without a filter.
#[derive(Debug)]
pub(crate) struct News {
    /// Position before the first row.
    after: i64,
    /// Position of the last row.
    to: i64,
    operations: Vec<(StoredOperation, Row)>,
    message: Bytes,
}

#[derive(Debug, Clone)]
enum TailEvent {
    News(Arc<News>),
    Parts,
}

/// The tail of one ledger.
pub(crate) struct Tail {
    reader: Reader,
    /// Cached parts. The cache is cleared before pages are told to request parts. Otherwise a page could get the state
    /// before the change, and no message would follow.
    parts: Arc<Parts>,
    sender: broadcast::Sender<TailEvent>,
    /// Held by the polling task.
    looking: Arc<Mutex<()>>,
}

impl Tail {
    /// Creates a tail without listeners.
    pub(crate) fn new(reader: Reader, parts: Arc<Parts>) -> Tail {
        Tail {
            reader,
            parts,
            sender: broadcast::Sender::new(MAX_LAG),
            looking: Arc::default(),
        }
    }

    /// Messages for one page: matching rows after a position, and changes of parts. Ends with `stop`.
    pub(crate) fn listen(
        &self,
        after: i64,
        filter: Filter,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> impl Stream<Item = Result<Bytes, ReadError>> + Send + 'static {
        let receiver = self.sender.subscribe();
        self.look();
        let page = Listener {
            reader: self.reader.clone(),
            receiver,
            last: after,
            filter: Arc::new(filter),
            is_behind: true,
        };
        let started = futures::stream::once(async { Ok(Bytes::from_static(b"retry: 500\n\n")) });
        let messages = unfold(page, |mut page| async move {
            let message = page.next().await;
            Some((message, page))
        });
        use futures::StreamExt as _;
        started.chain(messages).take_until(Box::pin(stop))
    }

    /// Starts polling, unless it is already running.
    fn look(&self) {
        let Ok(turn) = Arc::clone(&self.looking).try_lock_owned() else {
            return;
        };
        let (reader, parts, sender) = (self.reader.clone(), Arc::clone(&self.parts), self.sender.clone());
        let looking = Arc::clone(&self.looking);
        tokio::spawn(async move {
            let mut turn = Some(turn);
            while turn.is_some() {
                if let Err(err) = keep_looking(&reader, &parts, &sender).await {
                    tracing::warn!(%err, "reading new ledger rows failed; trying again");
                    tokio::time::sleep(KEEP_ALIVE_INTERVAL / 15).await;
                }
                drop(turn.take());
                // A listener that arrived as this ended saw the lock held, and relies on it.
                if sender.receiver_count() > 0 {
                    turn = Arc::clone(&looking).try_lock_owned().ok();
                }
            }
        });
    }
}

async fn keep_looking(
    reader: &Reader,
    parts: &Parts,
    sender: &broadcast::Sender<TailEvent>,
) -> Result<(), ReadError> {
    let mut last = reader.read(|session| Ok(session.ledger().head()?.seq)).await?;
    let (mut quiet, mut since_parts, mut is_stale) = (0, PART_LOOKS, true);
    while sender.receiver_count() > 0 {
        tokio::time::sleep(POLL_INTERVAL).await;
        let news = reader.read(move |session| news(session, last)).await?;
        quiet += 1;
        since_parts += 1;
        if let Some(news) = news {
            last = news.to;
            (quiet, is_stale) = (0, true);
            let _ = sender.send(TailEvent::News(Arc::new(news)));
        }
        if (is_stale && since_parts >= PART_LOOKS) || quiet >= QUIET_LOOKS {
            (quiet, since_parts, is_stale) = (0, 0, false);
            parts.forget().await;
            let _ = sender.send(TailEvent::Parts);
        }
    }
    Ok(())
}

/// Rows after a place, if there are any.
fn news(session: &Session, after: i64) -> StoreResult<Option<News>> {
    if session.ledger().head()?.seq <= after {
        return Ok(None);
    }
    let filter = OperationFilter {
        after: Some(after),
        ..OperationFilter::default()
    };
    let operations: Vec<(StoredOperation, Row)> = session
        .operations()
        .list(&filter, MAX_ROWS)?
        .into_iter()
        .map(|operation| Ok((Row::of(session, &operation)?, operation)))
        .map(|made: StoreResult<_>| made.map(|(row, operation)| (operation, row)))
        .collect::<StoreResult<_>>()?;
    let Some(to) = operations.last().map(|(operation, _)| operation.seq) else {
        return Ok(None);
    };
    let rows: Vec<&Row> = operations.iter().map(|(_, row)| row).collect();
    Ok(Some(News {
        after,
        to,
        message: message(to, &rows),
        operations,
    }))
}

/// A message with rows. Its id is where a reconnecting reader continues.
fn message(to: i64, rows: &[&Row]) -> Bytes {
    Bytes::from(format!("id: {to}\nevent: rows\ndata: {}\n\n", json!(rows)))
}

/// One open page.
struct Listener {
    reader: Reader,
    receiver: broadcast::Receiver<TailEvent>,
    /// Position of the last row that the listener has.
    last: i64,
    filter: Arc<Filter>,
    /// True if rows may be missing that no message will bring.
    is_behind: bool,
}

impl Listener {
    async fn next(&mut self) -> Result<Bytes, ReadError> {
        loop {
            if self.is_behind {
                match self.catch_up().await? {
                    Some(message) => return Ok(message),
                    None => self.is_behind = false,
                }
            }
            match tokio::time::timeout(KEEP_ALIVE_INTERVAL, self.receiver.recv()).await {
                Err(_) => return Ok(Bytes::from_static(b": still here\n\n")),
                Ok(Ok(TailEvent::Parts)) => return Ok(Bytes::from_static(b"event: parts\ndata: 1\n\n")),
                Ok(Ok(TailEvent::News(news))) if news.to <= self.last => {}
                Ok(Ok(TailEvent::News(news))) if news.after == self.last => return Ok(self.take(&news)),
                Ok(Ok(TailEvent::News(_)) | Err(broadcast::error::RecvError::Lagged(_))) => {
                    self.is_behind = true
                }
                Ok(Err(broadcast::error::RecvError::Closed)) => return Err(ReadError::Gone),
            }
        }
    }

    fn take(&mut self, news: &News) -> Bytes {
        self.last = news.to;
        if self.filter.is_empty() {
            return news.message.clone();
        }
        let fitting = news
            .operations
            .iter()
            .filter(|(operation, _)| self.filter.fits(operation));
        let rows: Vec<&Row> = fitting.map(|(_, row)| row).collect();
        message(news.to, &rows)
    }

    /// Next rows that the page lacks, read from the store.
    async fn catch_up(&mut self) -> Result<Option<Bytes>, ReadError> {
        let last = self.last;
        let news = self.reader.read(move |session| news(session, last)).await?;
        Ok(news.map(|news| self.take(&news)))
    }
}

/// Resolves when a stream must end: the server stops, the viewer's session or token ends, or the stream is too old.
pub(crate) async fn first_of(stop: CancellationToken, ends: Vec<CancellationToken>, longest: Duration) {
    let all = std::iter::once(stop).chain(ends);
    let ended = futures::future::select_all(all.map(|one| Box::pin(one.cancelled_owned())));
    tokio::select! {
        _ = ended => {}
        () = tokio::time::sleep(longest) => {}
    }
}
