//! Notifications about changes that hosts on other machines made, for listeners on this host.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tokio::sync::broadcast;
use tollgate_store::storage::{Database, OpenError, Session, StoreResult};

/// Interval of checking, while there are listeners.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Thread that checks for rows of other hosts. It ends when this is dropped.
pub(super) struct Others {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Others {
    /// Watches for changes by other hosts of a server's database. Hosts of a file run on one machine, and their
    /// clients are notified only of changes by their own host.
    pub(super) fn listen(
        database: &Database,
        host: &str,
        changes: broadcast::Sender<Arc<str>>,
    ) -> Option<Others> {
        if !database.is_on_server() {
            return None;
        }
        let (stop, stopped) = crossbeam_channel::bounded(0);
        let listening = Listening {
            database: database.clone(),
            host: host.to_owned(),
            changes,
            session: None,
            seen: None,
        };
        let thread = std::thread::Builder::new()
            .name("others".to_owned())
            .spawn(move || listening.work(&stopped))
            .expect("a thread can be started");
        Some(Others {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Listening {
    database: Database,
    host: String,
    changes: broadcast::Sender<Arc<str>>,
    session: Option<Session>,
    /// Place in the ledger up to which listeners were notified, while there are any.
    seen: Option<i64>,
}

impl Listening {
    fn work(mut self, stopped: &Receiver<()>) {
        while stopped.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if self.changes.receiver_count() == 0 {
                self.seen = None;
                self.session = None;
                continue;
            }
            if let Err(err) = self.look() {
                tracing::debug!(%err, "reading changes by other hosts failed; trying again");
                self.session = None;
            }
        }
    }

    fn look(&mut self) -> StoreResult<()> {
        let session = match self.session.take() {
            Some(session) => session,
            None => self.database.read_session().map_err(OpenError::into_cause)?,
        };
        let session = self.session.insert(session);
        let head = session.ledger().head()?.seq;
        if let Some(seen) = self.seen.filter(|seen| *seen < head) {
            for pack in session.operations().changed_by_others(&self.host, seen, head)? {
                // The last listener may just have left.
                let _ = self.changes.send(Arc::from(pack));
            }
        }
        self.seen = Some(head);
        Ok(())
    }
}
