//! The store: room for content, its limits, and content of unknown size that is written.

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
use super::room::Room;
use super::{Artifact, ArtifactKind, ArtifactSettings, Call};
use crate::data_dir::DataDir;
use crate::storage::{Database, Session};

const HOUR_MS: i64 = 3_600_000;
/// Room that a stream takes at once.
const STEP: u64 = 1 << 20;

/// The artifacts of a host.
pub struct ArtifactStore {
    pub(super) contents: Contents,
    settings: ArtifactSettings,
    clock: Arc<dyn Clock>,
    pub(super) room: Room,
}

impl ArtifactStore {
    /// Opens the store. There is none if it is off and was never on. Hosts of a server always have one, because others may
    /// keep content in its database.
    pub fn open(
        data: &DataDir,
        settings: ArtifactSettings,
        clock: Arc<dyn Clock>,
        database: &Database,
    ) -> Result<Option<ArtifactStore>, ArtifactsError> {
        let contents = Contents::open(data, &settings, Arc::clone(&clock), database)?;
        Ok(contents.map(|contents| ArtifactStore {
            contents,
            room: Room::new(settings.max_mib << 20),
            settings,
            clock,
        }))
    }

    /// Settings of the operator.
    pub fn settings(&self) -> &ArtifactSettings {
        &self.settings
    }

    /// A slice of content, at most so many bytes. `None` if the content is gone. Content that is not what its hash says
    /// is an error of the kind [`InvalidData`](io::ErrorKind::InvalidData).
    pub fn read(&self, hash: &str, offset: u64, limit: usize) -> io::Result<Option<Vec<u8>>> {
        self.contents.read(hash, offset, limit)
    }

    /// Takes away files of this data directory that no row names, while another host collects.
    pub fn sweep_files(&self, session: &Session) -> anyhow::Result<()> {
        self.contents.sweep_files(session)
    }

    /// Bytes of all contents above which some are removed. A host of a server that keeps nothing leaves the limit to those
    /// that do.
    pub(super) fn limit(&self) -> u64 {
        match self.settings.enabled || !self.contents.are_shared() {
            true => self.settings.max_mib << 20,
            false => u64::MAX,
        }
    }

    /// Hears when there is more than there may be, or others may have put much.
    pub fn called(&self) -> Receiver<()> {
        self.room.called()
    }

    /// Takes room for content of a caller. `false` if there is none left for it.
    pub(super) fn take_room(&self, share: &Share, bytes: u64) -> bool {
        self.room.take(share, bytes, || {
            self.size().unwrap_or_else(|err| {
                tracing::warn!(%err, "what artifacts take could not be counted");
                0
            })
        })
    }

    /// True if there is more than there may be. If there is not, counting begins anew.
    pub fn is_crowded(&self) -> io::Result<bool> {
        let size = self.size()?;
        let is_crowded = size > self.limit();
        if !is_crowded {
            self.room.saw(size);
        }
        Ok(is_crowded)
    }

    /// Counts what is left, for all that is stored from now on.
    pub(super) fn look(&self) -> io::Result<()> {
        self.room.saw(self.size()?);
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

    /// Description of what [`put`](ArtifactStore::put) will store.
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

/// An artifact that is being written. What goes past the limit for one artifact, or past its caller's share of the
/// room, is counted and not stored.
pub struct ArtifactWriter {
    store: Arc<ArtifactStore>,
    kind: ArtifactKind,
    /// The call it belongs to.
    call: Call,
    /// Room that it took.
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

    /// Keeps what was written, as an artifact of the call. Returns its id.
    pub fn keep(mut self) -> io::Result<String> {
        let hash = hex(&self.hasher.clone().finalize());
        let holder = &self.call.share;
        let artifact = self
            .store
            .artifact(self.kind, holder, hash, self.size, self.total_size);
        self.store.contents.keep(&self.draft, &artifact)?;
        let id = artifact.id.clone();
        self.call.kept().push(artifact);
        self.store.room.fill(self.taken);
        self.taken = 0;
        Ok(id)
    }
}

impl ArtifactWriter {
    /// Takes room for more bytes, in steps. Content that had none once is cut there.
    fn make_room(&mut self, bytes: usize) -> bool {
        let wanted = self.size + bytes as u64;
        while self.taken < wanted {
            if self.size < self.total_size || !self.store.take_room(&self.call.share, STEP) {
                self.call.refuse();
                return false;
            }
            self.taken += STEP;
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
            self.store.room.give_back(&self.call.share, self.taken);
        }
        // Of what was kept as a file, nothing has this name any more.
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
