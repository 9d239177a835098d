//! Contents as files of the data directory, written atomically and named by their hash.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt};
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use tollgate_core::clock::Clock;
use tollgate_core::file::NO_WAIT;
use tollgate_core::hash::hex;

use super::space;
use crate::data_dir::{DataDir, DataDirError};

/// Directory inside the data directory.
pub(super) const DIR: &str = "artifacts";
/// Lock file: shared while files are added, exclusive while files are removed.
const LOCK: &str = "lock";
/// Prefix of an unfinished file.
pub(super) const UNFINISHED: &str = "new-";
/// Time without a write after which an unfinished file is abandoned.
const ABANDONED_MS: i64 = 600_000;

/// Contents in files.
pub(super) struct Files {
    dir: Dir,
    clock: Arc<dyn Clock>,
}

/// An unfinished file.
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) file: File,
}

impl Files {
    pub(super) fn open(data: &DataDir, clock: Arc<dyn Clock>) -> Result<Files, DataDirError> {
        Ok(Files {
            dir: data.private_dir(DIR)?,
            clock,
        })
    }

    /// Creates an unfinished file.
    pub(super) fn create(&self) -> io::Result<Draft> {
        let name = self.clock.new_id(UNFINISHED);
        let mut options = OpenOptions::new();
        // Readable, so that it can be copied to another storage.
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = self.dir.open_with(&name, &options)?;
        Ok(Draft { name, file })
    }

    /// Stores content.
    pub(super) fn put(&self, content: &[u8], hash: &str) -> io::Result<()> {
        let mut draft = self.create()?;
        let placed = draft
            .file
            .write_all(content)
            .and_then(|()| self.place(&draft.name, hash));
        placed.inspect_err(|_| self.discard(&draft.name))
    }

    /// Turns a finished file into the content of its hash.
    pub(super) fn place(&self, name: &str, hash: &str) -> io::Result<()> {
        let _lock = self.lock(FlockOperation::LockShared)?;
        self.dir.rename(name, &self.dir, hash)
    }

    pub(super) fn discard(&self, name: &str) {
        let _ = self.dir.remove_file(name);
    }

    /// Slice of content. `None` if the content was removed.
    pub(super) fn read(&self, hash: &str, offset: u64, limit: usize) -> io::Result<Option<Vec<u8>>> {
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
            let why = "the content does not match its hash: the file was changed";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        file.seek(SeekFrom::Start(offset))?;
        let mut slice = Vec::new();
        file.take(limit as u64).read_to_end(&mut slice)?;
        Ok(Some(slice))
    }

    /// Removes a file if `is_over` returns true for its age. No file is added meanwhile.
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

    /// Bytes of all files, including the reserved bytes of unfinished files.
    pub(super) fn size(&self) -> io::Result<u64> {
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
                size += space::counted(metadata.len());
            }
        }
        Ok(size)
    }

    /// Names of all files except the lock.
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

    /// Makes all files look this many milliseconds older.
    #[cfg(test)]
    pub(super) fn age(&self, ms: i64) {
        for name in self.names().unwrap() {
            let mut options = OpenOptions::new();
            let file = self.dir.open_with(&name, options.write(true)).unwrap().into_std();
            let before = std::time::Duration::from_millis(ms.unsigned_abs() + 1);
            let modified = file.metadata().unwrap().modified().unwrap();
            file.set_modified(modified - before).unwrap();
        }
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
