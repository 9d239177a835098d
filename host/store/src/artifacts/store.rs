//! The files: written whole or not at all, named by their content.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::sync::Arc;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt};
use crossbeam_channel::Receiver;
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use tollgate_core::clock::Clock;
use tollgate_core::file::NO_WAIT;
use tollgate_core::hash::{hex, sha256_hex};
use tollgate_core::share::Share;
use tollgate_sdk::Timestamp;

use super::room::{self, Room};
use super::{Artifact, ArtifactKind, ArtifactSettings, Call};
use crate::data_dir::{DataDir, DataDirError};

/// The directory in the data directory.
const DIR: &str = "artifacts";
/// Shared by who puts files in place, exclusive for who takes them away.
const LOCK: &str = "lock";
/// Prefix of a file that is not whole yet.
pub(super) const UNFINISHED: &str = "new-";
const HOUR_MS: i64 = 3_600_000;
/// Time without a write after which nobody writes a file that is not whole any more.
const ABANDONED_MS: i64 = 600_000;
/// Room that a stream takes at once.
const STEP: u64 = 1 << 20;

/// The artifacts of a data directory.
pub struct ArtifactStore {
    dir: Dir,
    settings: ArtifactSettings,
    clock: Arc<dyn Clock>,
    pub(super) room: Room,
}

impl ArtifactStore {
    /// Opens the store. There is none if it is off and was never on.
    pub fn open(
        data: &DataDir,
        settings: ArtifactSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Option<ArtifactStore>, DataDirError> {
        if !settings.enabled && !data.has(DIR) {
            return Ok(None);
        }
        Ok(Some(ArtifactStore {
            dir: data.private_dir(DIR)?,
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
        let mut options = OpenOptions::new();
        options
            .read(true)
            .follow(FollowSymlinks::No)
            .custom_flags(NO_WAIT);
        let mut file = match self.dir.open_with(hash, &options) {
            Ok(file) => file,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(err),
        };
        let mut hasher = Sha256::new();
        let mut chunk = vec![0; 64 << 10];
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                length => hasher.update(&chunk[..length]),
            }
        }
        if hex(&hasher.finalize()) != hash {
            let why = "the content is not what was kept: its file was changed";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        file.seek(SeekFrom::Start(offset))?;
        let mut slice = Vec::new();
        file.take(limit as u64).read_to_end(&mut slice)?;
        Ok(Some(slice))
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
        let is_crowded = size > self.settings.max_mib << 20;
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

    /// Bytes of all files. Those that somebody writes have taken their room already.
    fn size(&self) -> io::Result<u64> {
        let mut size = 0;
        for entry in self.dir.entries()? {
            let entry = entry?;
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(err) if err.kind() == io::ErrorKind::NotFound => continue,
                Err(err) => return Err(err),
            };
            let is_written = entry.file_name().to_string_lossy().starts_with(UNFINISHED)
                && self.clock.now_ms().saturating_sub(modified_ms(&metadata)) < ABANDONED_MS;
            if !is_written {
                size += room::counted(metadata.len());
            }
        }
        Ok(size)
    }

    /// Stores content under its hash.
    pub(super) fn put(&self, content: &[u8]) -> io::Result<()> {
        let content = self.cut(content);
        let name = self.unfinished();
        let mut file = self.create(&name)?;
        let placed = file
            .write_all(content)
            .and_then(|()| self.place(&name, &sha256_hex(content)));
        placed.inspect_err(|_| self.discard(&name))
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

    fn unfinished(&self) -> String {
        self.clock.new_id(UNFINISHED)
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        self.dir.open_with(name, &options)
    }

    fn place(&self, name: &str, hash: &str) -> io::Result<()> {
        let _lock = self.lock(FlockOperation::LockShared)?;
        self.dir.rename(name, &self.dir, hash)
    }

    fn discard(&self, name: &str) {
        let _ = self.dir.remove_file(name);
    }

    /// Takes a file away if `is_over` says so of its name and age, while nobody puts any in place.
    pub(super) fn remove(&self, name: &str, is_over: impl FnOnce(i64) -> bool) -> io::Result<bool> {
        let _lock = self.lock(FlockOperation::LockExclusive)?;
        let metadata = match self.dir.symlink_metadata(name) {
            Ok(metadata) => metadata,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(err) => return Err(err),
        };
        if !is_over(self.clock.now_ms().saturating_sub(modified_ms(&metadata))) {
            return Ok(false);
        }
        self.dir.remove_file(name).map(|()| true)
    }

    /// The names of all files but the lock.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.dir.entries()? {
            if let Ok(name) = entry?.file_name().into_string()
                && name != LOCK
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn lock(&self, operation: FlockOperation) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600);
        let file = self.dir.open_with(LOCK, &options)?;
        flock(&file, operation)?;
        Ok(file)
    }
}

/// Time of the last write to a file.
fn modified_ms(metadata: &Metadata) -> i64 {
    metadata
        .modified()
        .ok()
        .and_then(|modified| modified.into_std().duration_since(std::time::UNIX_EPOCH).ok())
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or_default()
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
    name: String,
    file: File,
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
        let name = store.unfinished();
        let file = store.create(&name)?;
        Ok(ArtifactWriter {
            store,
            kind,
            call,
            taken: 0,
            name,
            file,
            hasher: Sha256::new(),
            size: 0,
            total_size: 0,
        })
    }

    /// Keeps what was written, as an artifact of the call. Returns its id.
    pub fn keep(mut self) -> io::Result<String> {
        let hash = hex(&self.hasher.clone().finalize());
        self.store.place(&self.name, &hash)?;
        let holder = &self.call.share;
        let artifact = self
            .store
            .artifact(self.kind, holder, hash, self.size, self.total_size);
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
        self.file.write_all(stored)?;
        self.hasher.update(stored);
        self.size += stored.len() as u64;
        self.total_size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for ArtifactWriter {
    fn drop(&mut self) {
        if self.taken > 0 {
            self.store.room.give_back(&self.call.share, self.taken);
        }
        // Once it was kept, nothing has this name any more.
        self.store.discard(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::clock::SystemClock;

    use super::super::CallArtifacts;
    use super::*;

    fn store(settings: ArtifactSettings) -> (tempfile::TempDir, Arc<ArtifactStore>) {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::open(place.path()).unwrap();
        let store = ArtifactStore::open(&data, settings, Arc::new(SystemClock)).unwrap();
        (place, Arc::new(store.unwrap()))
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
        assert_eq!(store.names().unwrap().len(), 1);
        drop(log);
        assert_eq!(store.names().unwrap(), Vec::<String>::new());
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
    fn equal_content_is_one_file() {
        let (_place, store) = store(settings());
        store.put(b"same").unwrap();
        store.put(b"same").unwrap();
        let names: Vec<String> = store.names().unwrap();
        assert_eq!(names, [sha256_hex(b"same")]);
    }
}
