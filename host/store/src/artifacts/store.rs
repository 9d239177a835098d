//! The artifact store: free space, limits, and streaming of content of unknown size.

use std::io::{self, Write};
use std::sync::Arc;

use crossbeam_channel::Receiver;
use sha2::{Digest, Sha256};
use tollgate_core::clock::Clock;
use tollgate_core::hash::{hex, sha256_hex};
use tollgate_core::share::Share;
use tollgate_sdk::Timestamp;

use super::contents::{ArtifactsError, Contents};
use super::files::Draft;
use super::space::SpaceAccount;
use super::{Artifact, ArtifactKind, ArtifactSettings, Call};
use crate::data_dir::DataDir;
use crate::storage::{Database, Session};

const HOUR_MS: i64 = 3_600_000;
/// Bytes of room that a stream reserves at once.
const RESERVATION_BYTES: u64 = 1 << 20;

/// Artifact store of a host.
pub struct ArtifactStore {
    pub(super) contents: Contents,
    settings: ArtifactSettings,
    clock: Arc<dyn Clock>,
    pub(super) space: SpaceAccount,
}

impl ArtifactStore {
    /// Opens the store. `None` if it is disabled and was never enabled. Hosts of a server always have one, because
    /// others may store content in the database.
    pub fn open(
        data: &DataDir,
        settings: ArtifactSettings,
        clock: Arc<dyn Clock>,
        database: &Database,
    ) -> Result<Option<ArtifactStore>, ArtifactsError> {
        let contents = Contents::open(data, &settings, Arc::clone(&clock), database)?;
        Ok(contents.map(|contents| ArtifactStore {
            contents,
            space: SpaceAccount::new(settings.max_mib << 20),
            settings,
            clock,
        }))
    }

    /// Settings from the operator.
    pub fn settings(&self) -> &ArtifactSettings {
        &self.settings
    }

    /// Slice of content, up to `limit` bytes. `None` if the content was removed. Content that does not match its hash
    /// is an error of the kind [`InvalidData`](io::ErrorKind::InvalidData).
    pub fn read(&self, hash: &str, offset: u64, limit: usize) -> io::Result<Option<Vec<u8>>> {
        self.contents.read(hash, offset, limit)
    }

    /// Removes files of this data directory that no row names, while another host collects.
    pub fn sweep_files(&self, session: &Session) -> anyhow::Result<()> {
        self.contents.sweep_files(session)
    }

    /// Size of all contents in bytes above which some are removed. A host of a server that stores nothing leaves the
    /// limit to those that do.
    pub(super) fn limit(&self) -> u64 {
        match self.settings.enabled || !self.contents.are_shared() {
            true => self.settings.max_mib << 20,
            false => u64::MAX,
        }
    }

    /// Receives a message when the limit is exceeded, or other hosts may have added much.
    pub fn called(&self) -> Receiver<()> {
        self.space.called()
    }

    /// Reserves room for content of a caller. Returns `false` if its share is full.
    pub(super) fn take_room(&self, share: &Share, bytes: u64) -> bool {
        self.space.take(share, bytes, || {
            self.size().unwrap_or_else(|err| {
                tracing::warn!(%err, "cannot determine the space that artifacts use");
                0
            })
        })
    }

    /// True if the contents exceed the limit. Otherwise the count is reset.
    pub fn is_crowded(&self) -> io::Result<bool> {
        let size = self.size()?;
        let is_crowded = size > self.limit();
        if !is_crowded {
            self.space.saw(size);
        }
        Ok(is_crowded)
    }

    /// Counts the remaining contents as the new base.
    pub(super) fn look(&self) -> io::Result<()> {
        self.space.saw(self.size()?);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        self.contents.size()
    }

    /// Stores content for an artifact under its hash.
    pub(super) fn put(&self, content: &[u8], artifact: &str) -> io::Result<()> {
        let content = self.cut(content);
        self.contents.put(content, &sha256_hex(content), artifact)
    }

    /// Artifact that [`put`](ArtifactStore::put) will store.
    pub(super) fn describe(&self, kind: ArtifactKind, content: &[u8], holder: &Share) -> Artifact {
        let stored = self.cut(content);
        self.artifact(
            kind,
            holder,
            sha256_hex(stored),
            stored.len() as u64,
            content.len() as u64,
        )
    }

    fn artifact(
        &self,
        kind: ArtifactKind,
        holder: &Share,
        hash: String,
        size: u64,
        total_size: u64,
    ) -> Artifact {
        let now = self.clock.now_ms();
        let ttl = i64::from(self.settings.ttl_hours).saturating_mul(HOUR_MS);
        Artifact {
            id: self.clock.new_id("art"),
            hash,
            kind,
            holder: holder.as_str().to_owned(),
            size: i64::try_from(size).unwrap_or(i64::MAX),
            total_size: i64::try_from(total_size).unwrap_or(i64::MAX),
            created_at: Timestamp::from_ms(now).to_string(),
            expires_at: Timestamp::from_ms(now.saturating_add(ttl)).to_string(),
        }
    }

    pub(super) fn cut<'a>(&self, content: &'a [u8]) -> &'a [u8] {
        let most = usize::try_from(self.most()).unwrap_or(usize::MAX);
        content.get(..most).unwrap_or(content)
    }

    fn most(&self) -> u64 {
        self.settings.max_artifact_mib << 20
    }
}

/// An artifact that is being written. Bytes past the limit for one artifact, or past the caller's share of the room,
/// are counted and not stored.
pub struct ArtifactWriter {
    store: Arc<ArtifactStore>,
    kind: ArtifactKind,
    /// Call that it belongs to.
    call: Call,
    /// Room that it reserved.
    taken: u64,
    draft: Draft,
    hasher: Sha256,
    size: u64,
    total_size: u64,
}

impl ArtifactWriter {
    pub(super) fn begin(
        store: Arc<ArtifactStore>,
        kind: ArtifactKind,
        call: Call,
    ) -> io::Result<ArtifactWriter> {
        let draft = store.contents.draft()?;
        Ok(ArtifactWriter {
            store,
            kind,
            call,
            taken: 0,
            draft,
            hasher: Sha256::new(),
            size: 0,
            total_size: 0,
        })
    }

    /// Stores the written content as an artifact of the call. Returns its id.
    pub fn keep(mut self) -> io::Result<String> {
        let hash = hex(&self.hasher.clone().finalize());
        let holder = &self.call.share;
        let artifact = self
            .store
            .artifact(self.kind, holder, hash, self.size, self.total_size);
        self.store.contents.keep(&self.draft, &artifact)?;
        let id = artifact.id.clone();
        self.call.kept().push(artifact);
        self.store.space.fill(self.taken);
        self.taken = 0;
        Ok(id)
    }
}

impl ArtifactWriter {
    /// Reserves room for more bytes, in steps. If there is no room once, the content is cut there.
    fn make_room(&mut self, bytes: usize) -> bool {
        let wanted = self.size + bytes as u64;
        while self.taken < wanted {
            if self.size < self.total_size || !self.store.take_room(&self.call.share, RESERVATION_BYTES) {
                self.call.refuse();
                return false;
            }
            self.taken += RESERVATION_BYTES;
        }
        true
    }
}

impl Write for ArtifactWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = usize::try_from(self.store.most().saturating_sub(self.size)).unwrap_or(usize::MAX);
        let stored = bytes.get(..room).unwrap_or(bytes);
        let stored = if self.make_room(stored.len()) { stored } else { &[] };
        self.draft.file.write_all(stored)?;
        self.hasher.update(stored);
        self.size += stored.len() as u64;
        self.total_size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.draft.file.flush()
    }
}

impl Drop for ArtifactWriter {
    fn drop(&mut self) {
        if self.taken > 0 {
            self.store.space.give_back(&self.call.share, self.taken);
        }
        // The file has been moved if it was kept, so this removes only discarded drafts.
        self.store.contents.discard(&self.draft);
    }
}

#[cfg(test)]
mod tests {
    use super::super::CallArtifacts;
    use super::super::fixture::Place;
    use super::*;

    fn store(settings: ArtifactSettings) -> (Place, Arc<ArtifactStore>) {
        Place::with(settings)
    }

    fn settings() -> ArtifactSettings {
        ArtifactSettings {
            enabled: true,
            max_artifact_mib: 1,
            ..ArtifactSettings::default()
        }
    }

    #[test]
    fn a_stream_of_unknown_size_is_kept_up_to_the_limit() {
        let (_place, store) = store(settings());
        let call = CallArtifacts::new(Some(Arc::clone(&store)), Share::default());
        let mut log = call.create(ArtifactKind::Log).unwrap().unwrap();
        let output = vec![b'x'; 3 << 20];
        for part in output.chunks(70_000) {
            log.write_all(part).unwrap();
        }
        let id = log.keep().unwrap();
        let [kept] = <[Artifact; 1]>::try_from(call.kept()).unwrap();
        assert_eq!((kept.id, kept.size, kept.total_size), (id, 1 << 20, 3 << 20));
        assert_eq!(kept.hash, sha256_hex(&output[..1 << 20]));
        let end = store.read(&kept.hash, (1 << 20) - 2, 100).unwrap();
        assert_eq!(end, Some(b"xx".to_vec()));
        assert_eq!(store.read(&kept.hash, 5 << 20, 100).unwrap(), Some(Vec::new()));
        assert_eq!(store.read("none", 0, 100).unwrap(), None);
    }

    #[test]
    fn what_is_not_kept_leaves_nothing_behind() {
        let (_place, store) = store(settings());
        let call = CallArtifacts::new(Some(Arc::clone(&store)), Share::default());
        let mut log = call.create(ArtifactKind::Log).unwrap().unwrap();
        log.write_all(b"half").unwrap();
        assert_eq!(store.contents.names().len(), 1);
        drop(log);
        assert_eq!(store.contents.names(), Vec::<String>::new());
        assert_eq!(call.kept(), []);
    }

    #[test]
    fn only_what_the_operator_wants_is_kept() {
        let (_place, store) = store(ArtifactSettings {
            logs: false,
            ..settings()
        });
        let call = CallArtifacts::new(Some(store), Share::default());
        assert!(call.create(ArtifactKind::Log).unwrap().is_none());
        assert!(call.create(ArtifactKind::Diff).unwrap().is_some());
        assert!(!call.wants(ArtifactKind::Arguments));
        assert!(
            CallArtifacts::default()
                .create(ArtifactKind::Diff)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn equal_content_is_stored_once() {
        let (_place, store) = store(settings());
        store.put(b"same", "art_1").unwrap();
        store.put(b"same", "art_2").unwrap();
        let names: Vec<String> = store.contents.names();
        assert_eq!(names, [sha256_hex(b"same")]);
    }
}
