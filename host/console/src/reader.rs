//! Reads of the store for pages: few sessions, off the serving threads, and with a timeout.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::Semaphore;
use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_store::artifacts::ArtifactStore;
use tollgate_store::storage::{Database, OpenError, Session, StoreError};

/// Maximum number of concurrent reads for pages, so that pages never crowd out calls.
const MAX_CONCURRENT_READS: usize = 3;
/// Timeout of the reads for one page.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Reason why a page could not be read.
#[derive(Debug, Error)]
pub(crate) enum ReadError {
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A statement failed, or took too long.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The reading thread is gone.
    #[error("the reading thread ended")]
    Gone,
}

/// Sessions that only read.
#[derive(Clone)]
pub struct Reader {
    inner: Arc<Inner>,
}

struct Inner {
    database: Database,
    artifacts: Option<ArtifactStore>,
    idle: Mutex<Vec<Session>>,
    turns: Arc<Semaphore>,
}

impl Reader {
    /// Reads a database, and its artifacts if any are kept.
    pub fn new(database: Database, artifacts: Option<ArtifactStore>) -> Reader {
        Reader {
            inner: Arc::new(Inner {
                database,
                artifacts,
                idle: Mutex::default(),
                turns: Arc::new(Semaphore::new(MAX_CONCURRENT_READS)),
            }),
        }
    }

    /// Runs `body` on a snapshot.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        body: impl FnOnce(&Session) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let permit = Arc::clone(&self.inner.turns).acquire_owned().await;
        let permit = permit.map_err(|_| ReadError::Gone)?;
        let inner = Arc::clone(&self.inner);
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            inner.read(body)
        });
        read.await.map_err(|_| ReadError::Gone)?
    }

    /// Content of an artifact, at most `most` bytes. `None` if the content is gone or fails its check.
    pub(crate) fn artifact(&self, hash: &str, most: usize) -> Option<Vec<u8>> {
        let store = self.inner.artifacts.as_ref()?;
        store.read(hash, 0, most).unwrap_or_else(|err| {
            tracing::warn!(%err, hash, "an artifact cannot be shown");
            None
        })
    }
}

impl Inner {
    fn read<T>(&self, body: impl FnOnce(&Session) -> Result<T, StoreError>) -> Result<T, ReadError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let known = idle().pop();
        let session = match known {
            Some(session) => session,
            None => self.database.read_session()?,
        };
        session.limit_time(&Deadline::after(TIMEOUT, Cancel::default()));
        session.begin_read()?;
        let found = body(&session);
        // A session whose transaction cannot be ended is discarded.
        if session.commit().is_ok() {
            session.leave();
            idle().push(session);
        }
        Ok(found?)
    }
}
