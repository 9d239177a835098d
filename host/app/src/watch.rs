//! Triggers of a reload: SIGHUP, and a changed configuration file or component.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Time without changes before a reload, because few programs write a file in one step.
const QUIET_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum wait for that, in a folder with constant changes.
const RELOAD_DELAY_LIMIT: Duration = Duration::from_secs(1);

/// Reason to reload the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// An explicit request.
    Asked,
    /// A changed file.
    Changed,
}

/// Watches the files that make up a configuration.
pub struct Watch {
    hang_up: Signal,
    watcher: Option<RecommendedWatcher>,
    changes: mpsc::Receiver<()>,
    files: BTreeMap<PathBuf, Option<Mark>>,
    folders: BTreeSet<PathBuf>,
}

/// Fingerprint of a file: device, inode, size, permissions, and modification time.
type Mark = (u64, u64, u64, u32, Option<SystemTime>);

impl Watch {
    /// Creates a watch that only reacts to SIGHUP.
    pub fn new() -> std::io::Result<Watch> {
        let (changed, changes) = mpsc::channel(1);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // One pending notification is enough. An error may hide a change.
            if event.map_or(true, |event| !event.kind.is_access()) {
                let _ = changed.try_send(());
            }
        });
        Ok(Watch {
            hang_up: signal(SignalKind::hangup())?,
            watcher: watcher
                .inspect_err(|err| {
                    tracing::warn!(%err, "files are not watched; send SIGHUP after changing the configuration");
                })
                .ok(),
            changes,
            files: BTreeMap::new(),
            folders: BTreeSet::new(),
        })
    }

    /// Watches these files from now on, and no others. They need not exist.
    pub fn follow(&mut self, files: BTreeSet<PathBuf>) {
        let Some(watcher) = &mut self.watcher else { return };
        // Files are usually replaced rather than rewritten, so their folders must be watched.
        let folders: BTreeSet<PathBuf> = files.iter().filter_map(|file| folder(file)).collect();
        for folder in self.folders.difference(&folders) {
            let _ = watcher.unwatch(folder);
        }
        for folder in folders.difference(&self.folders) {
            if let Err(err) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                tracing::warn!(folder = %folder.display(), %err, "changes in a folder are not detected; send SIGHUP \
                    after a change");
            }
        }
        self.folders = folders;
        let mut known = std::mem::take(&mut self.files);
        self.files = files
            .into_iter()
            .map(|file| {
                let mark = known.remove(&file).unwrap_or_else(|| mark(&file));
                (file, mark)
            })
            .collect();
    }

    /// Waits for a reason to reload.
    pub async fn next(&mut self) -> Cause {
        loop {
            let Watch { hang_up, changes, .. } = self;
            let quiet = async {
                if changes.recv().await.is_none() {
                    // Files are not watched.
                    std::future::pending::<()>().await;
                }
                let more = async {
                    while let Ok(Some(())) = tokio::time::timeout(QUIET_INTERVAL, changes.recv()).await {}
                };
                let _ = tokio::time::timeout(RELOAD_DELAY_LIMIT, more).await;
            };
            let cause = tokio::select! {
                Some(()) = hang_up.recv() => Cause::Asked,
                () = quiet => Cause::Changed,
            };
            if self.mark_all() || cause == Cause::Asked {
                return cause;
            }
        }
    }

    /// Records the current state of the files. Returns whether any has changed.
    fn mark_all(&mut self) -> bool {
        let mut is_changed = false;
        for (file, known) in &mut self.files {
            let now = mark(file);
            is_changed |= *known != now;
            *known = now;
        }
        is_changed
    }
}

fn mark(file: &Path) -> Option<Mark> {
    let found = std::fs::metadata(file).ok()?;
    Some((
        found.dev(),
        found.ino(),
        found.size(),
        // Included because a file that others can read is refused, and accepted again after a change of permissions.
        found.mode(),
        found.modified().ok(),
    ))
}

fn folder(file: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(file).ok()?.parent()?.to_owned();
    folder.is_dir().then_some(folder)
}
