//! Background work beside the calls: pruning, collecting artifacts, and mirroring the ledger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tokio::sync::oneshot;
use tollgate_core::clock::Clock;
use tollgate_sdk::Timestamp;
use tollgate_store::artifacts::{self, ArtifactStore, Kept};
use tollgate_store::data_dir::DataDir;
use tollgate_store::exclusive;
use tollgate_store::ledger::mirror::Mirror;
use tollgate_store::ledger::retention::{self, Taken};
use tollgate_store::ledger::{LedgerSettings, heads};
use tollgate_store::storage::{Database, PruneError, Pruned, Retention, Session};

use super::job::{Job, Work};

/// Interval of collecting expired content.
const COLLECT_INTERVAL: Duration = Duration::from_secs(3_600);
/// Interval of signing the head of a ledger that hosts on several machines share.
const SIGN_INTERVAL: Duration = Duration::from_secs(30);
/// Least time between two checks for too many artifacts.
const ARTIFACT_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of checking for rows of hosts on other machines.
const REMOTE_ROWS_INTERVAL: Duration = Duration::from_secs(1);
/// Time that committed rows wait for others on their way to the mirror.
const MIRROR_DELAY_LIMIT: Duration = Duration::from_millis(100);

/// Background work and its settings.
pub struct Maintenance {
    /// The data directory.
    pub data: Arc<DataDir>,
    /// Settings of the ledger.
    pub settings: LedgerSettings,
    /// Artifact store, if content is stored.
    pub artifacts: Option<Arc<ArtifactStore>>,
}

/// Thread that prunes and collects. Its changes go through the writer.
pub(super) struct MaintenanceThread {
    maintenance: Arc<Maintenance>,
    database: Database,
    clock: Arc<dyn Clock>,
    writer: Sender<Job>,
    /// Receives nothing; closed when the host ends.
    stop: Receiver<()>,
}

impl MaintenanceThread {
    /// A maintenance thread that works until the sender is dropped.
    pub(super) fn new(
        maintenance: Arc<Maintenance>,
        database: Database,
        clock: Arc<dyn Clock>,
        writer: Sender<Job>,
    ) -> (Sender<()>, MaintenanceThread) {
        let (running, stop) = crossbeam_channel::bounded(0);
        let maintenance_thread = MaintenanceThread {
            maintenance,
            database,
            clock,
            writer,
            stop,
        };
        (running, maintenance_thread)
    }

    pub(super) fn work(self) {
        loop {
            self.tidy();
            let due = crossbeam_channel::after(COLLECT_INTERVAL);
            if !self.wait(&due) {
                return;
            }
        }
    }

    /// Waits until the next maintenance is due, and collects artifacts whenever that is needed. Returns `false` if
    /// the host ends.
    fn wait(&self, due: &Receiver<Instant>) -> bool {
        let never = crossbeam_channel::never();
        let called = self
            .maintenance
            .artifacts
            .as_ref()
            .map_or(never, |store| store.called());
        // Each host attests what the others write.
        let to_sign = match self.database.is_on_server() {
            true => crossbeam_channel::tick(SIGN_INTERVAL),
            false => crossbeam_channel::never(),
        };
        loop {
            crossbeam_channel::select! {
                recv(self.stop) -> _ => return false,
                recv(due) -> _ => return true,
                recv(to_sign) -> _ => {
                    if let Err(err) = self.sign_head(self.clock.now_ms()) {
                        tracing::error!("signing the ledger's head stopped early: {err:#}");
                    }
                    continue;
                }
                recv(called) -> _ => {}
            }
            let began = Instant::now();
            if let Err(err) = self.make_room() {
                tracing::error!("deleting artifacts to free space failed: {err:#}");
            }
            let pause = ARTIFACT_CHECK_INTERVAL.max(began.elapsed() * 4);
            if self.stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                return false;
            }
        }
    }

    /// Removes artifacts if they exceed the limit.
    fn make_room(&self) -> anyhow::Result<()> {
        let Some(store) = &self.maintenance.artifacts else {
            return Ok(());
        };
        if store.is_crowded()? {
            let now_ms = self.clock.now_ms();
            self.collect(&self.retention(now_ms)?, now_ms)?;
        }
        Ok(())
    }

    fn tidy(&self) {
        let now_ms = self.clock.now_ms();
        let retention = match self.retention(now_ms) {
            Ok(retention) => retention,
            Err(err) => return tracing::error!("the ledger cannot be read: {err:#}"),
        };
        // A failure of one task does not prevent the others.
        for (what, done) in [
            ("ending detached envelopes", self.end_detached(now_ms)),
            ("pruning", self.prune(&retention, now_ms)),
            ("collecting artifacts", self.collect(&retention, now_ms)),
            (
                "deleting old files of the ledger's mirror",
                self.thin_mirror(&retention),
            ),
            ("signing the ledger's head", self.sign_head(now_ms)),
        ] {
            if let Err(err) = done {
                tracing::error!("{what} stopped early: {err:#}");
            }
        }
    }

    /// Retention as of a time that the ledger confirms.
    fn retention(&self, now_ms: i64) -> anyhow::Result<Retention> {
        let confirmed_ms = self.database.read_session()?.ledger().confirmed_ms(now_ms)?;
        Ok(self.maintenance.settings.retention(confirmed_ms))
    }

    fn end_detached(&self, now_ms: i64) -> anyhow::Result<()> {
        let boot_ms = self.clock.boot_ms();
        let now = Timestamp::from_ms(now_ms).to_string();
        self.commit(Box::new(move |session| {
            session.envelopes().end_detached(boot_ms, &now).map(drop)
        }))?;
        Ok(())
    }

    /// Signs and stores the current head of the ledger, so that rows that are later cut from its end or replaced are
    /// detected.
    fn sign_head(&self, now_ms: i64) -> anyhow::Result<()> {
        let session = self.database.read_session()?;
        if let Some(regression) = heads::regression(&self.maintenance.data, &session)? {
            // The stored head is kept, so that `ledger verify` finds it.
            tracing::error!(
                "the ledger does not continue from its last known end: {regression}; see `tollgate ledger verify`"
            );
            return Ok(());
        }
        heads::note(&self.maintenance.data, &session, Timestamp::from_ms(now_ms))
    }

    fn prune(&self, retention: &Retention, now_ms: i64) -> anyhow::Result<()> {
        let data = &self.maintenance.data;
        let pruned = retention::prune(data, &self.database, retention, now_ms, |batch| {
            let held = self.commit(Box::new(move |session| session.maintenance().prune(&batch)))?;
            Ok(held.map_or(Taken::Stop, Taken::Out))
        })?;
        if pruned != Pruned::default() {
            tracing::info!(?pruned, "the ledger was pruned");
        }
        Ok(())
    }

    fn collect(&self, retention: &Retention, now_ms: i64) -> anyhow::Result<()> {
        let Some(store) = &self.maintenance.artifacts else {
            return Ok(());
        };
        // One collector at a time. A host that finds another at work only handles files that no other host reaches.
        let Some(_lock) = exclusive::try_lock(&self.maintenance.data, &self.database, "collect.lock")? else {
            return match self.database.is_on_server() {
                true => store.sweep_files(&self.database.read_session()?),
                false => Ok(()),
            };
        };
        let kept = Kept {
            now_ms,
            rows_since: &retention.cutoff,
        };
        artifacts::collect(store, &self.database.read_session()?, kept, |work| {
            matches!(self.commit(work), Ok(Some(_)))
        })
    }

    fn thin_mirror(&self, retention: &Retention) -> anyhow::Result<()> {
        if self.maintenance.settings.mirror {
            Mirror::open(&self.maintenance.data)?.forget_before(&retention.cutoff)?;
        }
        Ok(())
    }

    /// Has the writer make a change, then leaves the writer to others for as long as the change held it. `None` if
    /// the host ends.
    fn commit(&self, work: Work) -> Result<Option<Duration>, PruneError> {
        let (done, committed) = oneshot::channel();
        let _ = self.writer.send(Job::Maintain { work, done });
        let Ok(held) = committed.blocking_recv() else {
            return Ok(None);
        };
        let held = held?;
        let goes_on = self.stop.recv_timeout(held) == Err(RecvTimeoutError::Timeout);
        Ok(goes_on.then_some(held))
    }
}

/// Thread that mirrors committed rows.
pub(super) struct Mirrorer {
    mirror: Mirror,
    session: Session,
    /// Notified after a commit; closed when the writer ends.
    committed: Receiver<()>,
    /// Time after which it checks without a notification.
    patience: Duration,
}

impl Mirrorer {
    /// A mirrorer that is notified of commits until the sender is dropped.
    pub(super) fn open(
        database: &Database,
        maintenance: &Maintenance,
    ) -> anyhow::Result<(Sender<()>, Mirrorer)> {
        let (committed, heard) = crossbeam_channel::bounded(1);
        let mirrorer = Mirrorer {
            mirror: Mirror::open(&maintenance.data)?,
            session: database.read_session()?,
            committed: heard,
            patience: match database.is_on_server() {
                true => REMOTE_ROWS_INTERVAL,
                false => Duration::MAX,
            },
        };
        Ok((committed, mirrorer))
    }

    pub(super) fn work(self) {
        loop {
            if let Err(err) = self.mirror.catch_up(&self.session) {
                tracing::error!("the ledger's mirror is behind: {err:#}");
            }
            // Rows of other hosts come without a notification.
            match self.committed.recv_timeout(self.patience) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // Rows that follow at once are written together.
            let _ = self.committed.recv_deadline(Instant::now() + MIRROR_DELAY_LIMIT);
        }
    }
}
