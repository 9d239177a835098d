//! Files and folders of a backup: copied with their hashes, private, flushed, and put in place as a whole.

use std::fs::DirBuilder;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fsync, openat};
use sha2::{Digest as _, Sha256};
use tollgate_core::file::NO_WAIT;
use tollgate_core::hash::hex;

use super::BackupError;
use super::list::{Entry, List};
use crate::data_dir::DataDir;

/// Copy buffer size in bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// An unfinished folder next to its target. Dropping it removes it.
pub(super) struct StagingFolder {
    path: PathBuf,
    dir: Dir,
    is_placed: bool,
}

impl StagingFolder {
    /// Creates an unfinished folder for a target, on the same disk.
    pub(super) fn beside(target: &Path) -> Result<StagingFolder, BackupError> {
        let folder = target.parent().unwrap_or(Path::new("/"));
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = folder.join(format!(".{name}.unfinished-{}", std::process::id()));
        #[allow(clippy::disallowed_methods, reason = "the operator names the place")]
        let made = std::fs::create_dir_all(folder).and_then(|()| DirBuilder::new().mode(0o700).create(&path));
        made.map_err(BackupError::io(&path))?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(BackupError::io(&path))?;
        Ok(StagingFolder {
            path,
            dir,
            is_placed: false,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Moves the folder to its target. Anything at the target stays, unless it is an empty folder.
    pub(super) fn put(mut self, target: &Path) -> Result<(), BackupError> {
        let failed = || BackupError::io(target);
        sync(&self.dir).map_err(failed())?;
        rustix::fs::rename(&self.path, target)
            .map_err(io::Error::from)
            .map_err(failed())?;
        self.is_placed = true;
        let folder = target.parent().unwrap_or(Path::new("/"));
        let folder = Dir::open_ambient_dir(folder, ambient_authority()).map_err(BackupError::io(folder))?;
        sync(&folder).map_err(failed())
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        if !self.is_placed {
            #[allow(clippy::disallowed_methods, reason = "it was made here")]
            let removed = std::fs::remove_dir_all(&self.path);
            if let Err(err) = removed {
                tracing::warn!(%err, path = %self.path.display(), "cannot remove the unfinished backup folder");
            }
        }
    }
}

/// Flushes the names in a folder. The folder is opened anew, because a path-only handle cannot be flushed.
fn sync(dir: &Dir) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(dir, ".", flags, Mode::empty())?;
    Ok(fsync(opened)?)
}

/// Takes a shared lock, and waits for an exclusive holder.
pub(super) fn share(data: &DataDir, name: &str) -> Result<File, BackupError> {
    let path = data.path().join(name);
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create(true)
        .mode(0o600)
        .follow(FollowSymlinks::No)
        .custom_flags(NO_WAIT);
    let file = data
        .dir()
        .open_with(name, &options)
        .map_err(BackupError::io(&path))?;
    flock(&file, FlockOperation::LockShared)
        .map_err(io::Error::from)
        .map_err(BackupError::io(&path))?;
    Ok(file)
}

/// Copies the files of a folder into one with the same name. Unfinished files, locks, and files that disappear
/// meanwhile are left out.
pub(super) fn copy(from: &Dir, staging: &StagingFolder, name: &str, list: &mut List) -> io::Result<()> {
    staging.dir.create_dir_with(name, &private_folder())?;
    let to = staging.dir.open_dir_nofollow(name)?;
    for entry in from.entries()? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if is_passing(&file) || !entry.file_type()?.is_file() {
            continue;
        }
        match copy_file(from, &file, &to, &file) {
            Ok(copied) => list.add(&format!("{name}/{file}"), copied),
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            Err(err) => return Err(err),
        }
    }
    sync(&to)
}

/// True for a file that exists only while a host runs.
fn is_passing(name: &str) -> bool {
    name == "lock" || name.ends_with(".lock") || name.starts_with("new-") || name.starts_with('.')
}

/// Copies a file with owner-only permissions, and returns its entry.
pub(super) fn copy_file(from: &Dir, name: &str, to: &Dir, as_name: &str) -> io::Result<Entry> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .follow(FollowSymlinks::No)
        .custom_flags(NO_WAIT);
    let mut source = from.open_with(name, &options)?;
    let mut copy = to.open_with(as_name, &private_file())?;
    let entry = pass(&mut source, |bytes| copy.write_all(bytes))?;
    copy.sync_all()?;
    Ok(entry)
}

/// Writes a file with owner-only permissions.
pub(super) fn write(to: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = to.open_with(name, &private_file())?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Size and hash of an existing file.
pub(super) fn entry(dir: &Dir, name: &str) -> io::Result<Entry> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .follow(FollowSymlinks::No)
        .custom_flags(NO_WAIT);
    let mut file = dir.open_with(name, &options)?;
    pass(&mut file, |_| Ok(()))
}

/// Reads a text file. A pipe or a device is an error.
pub(super) fn read_text(dir: &Dir, name: &str) -> io::Result<String> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .follow(FollowSymlinks::No)
        .custom_flags(NO_WAIT);
    let mut text = Vec::new();
    pass(&mut dir.open_with(name, &options)?, |bytes| text.write_all(bytes))?;
    String::from_utf8(text).map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err))
}

fn pass(source: &mut File, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<Entry> {
    if !source.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let (mut hash, mut bytes) = (Sha256::new(), 0_u64);
    let mut chunk = vec![0; BUFFER_BYTES];
    loop {
        let read = source.read(&mut chunk)?;
        let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else {
            break;
        };
        each(part)?;
        hash.update(part);
        bytes += part.len() as u64;
    }
    Ok(Entry {
        bytes,
        sha256: hex(&hash.finalize()),
    })
}

pub(super) fn private_folder() -> cap_std::fs::DirBuilder {
    use cap_std::fs::DirBuilderExt as _;
    let mut builder = cap_std::fs::DirBuilder::new();
    builder.mode(0o700);
    builder
}

fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .follow(FollowSymlinks::No);
    options
}
