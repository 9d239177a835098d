//! Files below one opened directory, as a workspace offers them. The host and the native backend share this code, so
//! that a pack's tests have the same rules as production.
//!
//! The operating system resolves every path below the directory, so no link leads out, not even one created between a
//! check and a use. Writing opens one directory at a time and follows no links, so a granted prefix cannot be
//! redirected to another place.

use std::ffi::CStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{
    Dir, File, FileType, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt,
};

use rustix::fs::{AtFlags, Mode, OFlags, RawDir, Stat};

use crate::workspace::{MAX_ENTRIES, MAX_READ, MAX_WRITE};
use crate::{FileEntry, FileKind, Listing, WorkspaceError};

/// Maximum length of a path, in bytes.
const MAX_PATH: usize = 1024;
/// Maximum number of entries of a listed directory.
const MAX_SCANNED: usize = 100_000;
/// Number of entries between two checks for cancellation.
const ENTRIES_PER_CHECK: usize = 64;
/// Size of the buffer for names, in bytes.
const NAME_BUFFER_BYTES: usize = 16 << 10;
/// Maximum size of a file after appending.
const MAX_APPENDED: u64 = 256 << 20;

/// A directory and everything below it.
#[derive(Debug)]
pub struct Tree {
    dir: Dir,
    umask: u32,
}

/// A change to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// Path, as [`path`] normalised it.
    pub path: String,
    /// New content, or content to append.
    pub content: Vec<u8>,
    /// True to append.
    pub append: bool,
}

impl FileWrite {
    /// Creates a change, and checks its path and size.
    pub fn new(path: &str, content: &[u8], append: bool) -> Result<FileWrite, WorkspaceError> {
        let checked = self::path(path)?;
        if checked == "." {
            return Err(WorkspaceError::WrongKind(format!("`{path}` is a directory")));
        }
        if let Some(control) = checked.chars().find(|c| c.is_control()) {
            return Err(WorkspaceError::Denied(format!(
                "`{}` contains {control:?}, which is not allowed in a file name",
                path.escape_debug()
            )));
        }
        if checked.split('/').any(crate::permit::is_git_name) {
            return Err(WorkspaceError::Denied(format!("`{path}` belongs to git")));
        }
        if content.len() > MAX_WRITE {
            return Err(WorkspaceError::TooLarge(format!(
                "{} bytes for `{path}`; at most {MAX_WRITE} are allowed",
                content.len()
            )));
        }
        Ok(FileWrite {
            path: checked,
            content: content.to_owned(),
            append,
        })
    }
}

/// Normalises a relative path: no `.`, `..` or double slashes; `.` for the directory itself.
pub fn path(text: &str) -> Result<String, WorkspaceError> {
    let refuse = |why: &str| Err(WorkspaceError::Denied(format!("`{}` {why}", text.escape_debug())));
    if text.contains('\0') {
        return refuse("contains a NUL");
    }
    if text.starts_with('/') {
        return refuse("is absolute; paths start at the workspace's root");
    }
    if text.len() > MAX_PATH {
        return Err(WorkspaceError::Denied(format!(
            "the path is longer than {MAX_PATH} bytes"
        )));
    }
    let names: Vec<&str> = text
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    if names.contains(&"..") {
        return refuse("contains `..`");
    }
    Ok(match names.as_slice() {
        [] => ".".to_owned(),
        names => names.join("/"),
    })
}

impl Tree {
    /// Wraps an opened directory. New files get the permissions given by `umask`, not by the process.
    #[must_use]
    pub fn new(dir: Dir, umask: u32) -> Tree {
        Tree { dir, umask }
    }

    /// Directory itself.
    #[must_use]
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Entries directly below a directory, sorted by name, after the one named `after`.
    pub fn list(
        &self,
        directory: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FileEntry>, WorkspaceError> {
        self.list_while(directory, after, limit, &|| true)
    }

    /// Like [`list`](Tree::list), but stops when `go_on` returns false.
    pub fn list_while(
        &self,
        directory: &str,
        after: Option<&str>,
        limit: u32,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Vec<FileEntry>, WorkspaceError> {
        let directory = path(directory)?;
        let failed = |err| reading(&directory, &err);
        // Opened once, so that each entry is looked up by its name alone.
        let dir = self.dir.open_dir(&directory).map_err(failed)?;
        let limit = limit.min(MAX_ENTRIES) as usize;
        let mut names: Vec<(String, bool)> = Vec::new();
        for (count, entry) in dir.entries().map_err(failed)?.enumerate() {
            may_take(count, &directory, go_on)?;
            let (name, readable) = match entry.map_err(failed)?.file_name().into_string() {
                Ok(name) => (name, true),
                Err(name) => (name.to_string_lossy().into_owned(), false),
            };
            if after.is_none_or(|after| name.as_str() > after) {
                names.push((name, readable));
            }
        }
        if names.len() > limit {
            names.select_nth_unstable(limit);
            names.truncate(limit);
        }
        names.sort_unstable();
        let mut entries = Vec::with_capacity(names.len());
        for (count, (name, readable)) in names.into_iter().enumerate() {
            may_take(count, &directory, go_on)?;
            entries.extend(entry_of(&dir, &name, below(&directory, &name), readable));
        }
        Ok(entries)
    }

    /// First entries of a directory, unless its fingerprint is the known one.
    pub fn list_unless(
        &self,
        directory: &str,
        known: Option<u64>,
        limit: u32,
    ) -> Result<Option<Listing>, WorkspaceError> {
        self.list_unless_while(directory, known, limit, &|| true)
    }

    /// Like [`list_unless`](Tree::list_unless), but stops when `go_on` returns false.
    pub fn list_unless_while(
        &self,
        directory: &str,
        known: Option<u64>,
        limit: u32,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Listing>, WorkspaceError> {
        let directory = path(directory)?;
        let failed = |err| reading(&directory, &err);
        let dir = self.dir.open_dir(&directory).map_err(failed)?;
        // The fingerprint is usually the same. If not, a second pass costs less than preparing for it.
        if known.is_some() && known == Some(scan(&dir, &directory, go_on, |_, _| ())?) {
            return Ok(None);
        }
        let mut entries = Vec::new();
        let fingerprint = scan(&dir, &directory, go_on, |name, found| {
            let name = name.to_string_lossy();
            let is_named = matches!(name, std::borrow::Cow::Borrowed(_));
            entries.push(entry_from(below(&directory, &name), is_named.then_some(found)));
        })?;
        let limit = limit.min(MAX_ENTRIES) as usize;
        let by_path = |one: &FileEntry, other: &FileEntry| one.path.cmp(&other.path);
        if entries.len() > limit {
            entries.select_nth_unstable_by(limit, by_path);
            entries.truncate(limit);
        }
        entries.sort_unstable_by(by_path);
        Ok(Some(Listing { entries, fingerprint }))
    }

    /// Entry at a path. A symbolic link at its end is not followed.
    pub fn stat(&self, path: &str) -> Result<FileEntry, WorkspaceError> {
        let path = self::path(path)?;
        match self.dir.symlink_metadata(&path) {
            Ok(metadata) => Ok(entry(path, &metadata)),
            Err(err) => Err(reading(&path, &err)),
        }
    }

    /// At most `limit` bytes of a file from `offset`.
    pub fn read(&self, path: &str, offset: u64, limit: u32) -> Result<Vec<u8>, WorkspaceError> {
        let path = self::path(path)?;
        let failed = |err| reading(&path, &err);
        let mut options = OpenOptions::new();
        // Opening a pipe without a writer would block.
        options.read(true).custom_flags(nonblocking());
        let mut file = self.dir.open_with(&path, &options).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(WorkspaceError::WrongKind(format!("`{path}` is not a file")));
        }
        if offset > 0 {
            file.seek(SeekFrom::Start(offset))
                .map_err(|_| WorkspaceError::TooLarge(format!("offset {offset} is beyond any file")))?;
        }
        let left = metadata.len().saturating_sub(offset);
        let expected = left.min(limit.min(MAX_READ).into());
        let mut content = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
        file.take(limit.min(MAX_READ).into())
            .read_to_end(&mut content)
            .map_err(failed)?;
        Ok(content)
    }

    /// Applies a change durably.
    pub fn apply(&self, change: &FileWrite) -> Result<(), WorkspaceError> {
        let (parents, name) = match change.path.rsplit_once('/') {
            Some((parents, name)) => (Some(parents), name),
            None => (None, change.path.as_str()),
        };
        let failed = |err| writing(&change.path, &err);
        let parent = self.directory(parents).map_err(failed)?;
        let before = match parent.symlink_metadata(name) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(WorkspaceError::WrongKind(format!(
                    "`{}` exists and is not a regular file",
                    change.path
                )));
            }
            Ok(metadata) => Some(metadata),
            Err(err) if err.kind() == ErrorKind::NotFound => None,
            Err(err) => return Err(failed(err)),
        };
        if change.append {
            self.append(&parent, name, before.as_ref(), change)
        } else {
            self.replace(&parent, name, before.as_ref(), &change.content)
                .map_err(failed)
        }
    }

    /// Opens a directory component by component, creating missing ones.
    fn directory(&self, parents: Option<&str>) -> std::io::Result<Dir> {
        let mut dir = self.dir.try_clone()?;
        for name in parents.into_iter().flat_map(|parents| parents.split('/')) {
            dir = match dir.open_dir_nofollow(name) {
                Err(err) if err.kind() == ErrorKind::NotFound => self.new_directory(&dir, name)?,
                opened => opened?,
            };
        }
        Ok(dir)
    }

    fn new_directory(&self, parent: &Dir, name: &str) -> std::io::Result<Dir> {
        match parent.create_dir(name) {
            // Another process created the directory first.
            Err(err) if err.kind() == ErrorKind::AlreadyExists => return parent.open_dir_nofollow(name),
            made => made?,
        }
        let dir = parent.open_dir_nofollow(name)?;
        dir.open(".")?
            .set_permissions(Permissions::from_mode(0o777 & !self.umask))?;
        sync(parent)?;
        Ok(dir)
    }

    /// Replaces a file with a new one that has the same permissions.
    fn replace(
        &self,
        parent: &Dir,
        name: &str,
        before: Option<&Metadata>,
        content: &[u8],
    ) -> std::io::Result<()> {
        let mode = before.map_or(0o666 & !self.umask, |before| before.mode() & 0o777);
        let (temporary, mut file) = temporary(parent)?;
        let written = file
            .write_all(content)
            .and_then(|()| file.set_permissions(Permissions::from_mode(mode)))
            .and_then(|()| file.sync_all())
            .and_then(|()| parent.rename(&temporary, parent, name));
        if let Err(err) = written {
            // A file that could not be moved into place is removed, if possible.
            let _ = parent.remove_file(&temporary);
            return Err(err);
        }
        sync(parent)
    }

    fn append(
        &self,
        parent: &Dir,
        name: &str,
        before: Option<&Metadata>,
        change: &FileWrite,
    ) -> Result<(), WorkspaceError> {
        let failed = |err| writing(&change.path, &err);
        let mut options = OpenOptions::new();
        options
            .append(true)
            .create(true)
            .mode(0o600)
            .follow(FollowSymlinks::No)
            .custom_flags(nonblocking());
        let mut file = parent.open_with(name, &options).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() || metadata.nlink() > 1 {
            return Err(WorkspaceError::WrongKind(format!(
                "`{}` is not a regular file, or has several hard links",
                change.path
            )));
        }
        if metadata.len() + change.content.len() as u64 > MAX_APPENDED {
            return Err(WorkspaceError::TooLarge(format!(
                "`{}` would be larger than {MAX_APPENDED} bytes",
                change.path
            )));
        }
        if before.is_none() {
            file.set_permissions(Permissions::from_mode(0o666 & !self.umask))
                .map_err(failed)?;
        }
        file.write_all(&change.content)
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
        if before.is_none() {
            sync(parent).map_err(failed)?;
        }
        Ok(())
    }
}

/// Creates a file next to others, under an unused name.
fn temporary(parent: &Dir) -> std::io::Result<(String, File)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .follow(FollowSymlinks::No);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".tollgate-{}-{count}.tmp", std::process::id());
        match parent.open_with(&name, &options) {
            Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
            opened => return Ok((name, opened?)),
        }
    }
}

/// Makes the names in a directory durable.
fn sync(dir: &Dir) -> std::io::Result<()> {
    dir.open(Path::new("."))?.sync_all()
}

fn nonblocking() -> i32 {
    i32::from_ne_bytes(OFlags::NONBLOCK.bits().to_ne_bytes())
}

fn entry(path: String, metadata: &Metadata) -> FileEntry {
    let kind = kind(metadata.file_type());
    FileEntry {
        path,
        kind,
        size: if kind == FileKind::File { metadata.len() } else { 0 },
        modified_ms: latest(
            (metadata.mtime(), metadata.mtime_nsec()),
            (metadata.ctime(), metadata.ctime_nsec()),
        ),
    }
}

fn kind(file_type: FileType) -> FileKind {
    if file_type.is_file() {
        FileKind::File
    } else if file_type.is_dir() {
        FileKind::Directory
    } else if file_type.is_symlink() {
        FileKind::Symlink
    } else {
        FileKind::Other
    }
}

/// Checks whether a path was refused because it leaves the tree, rather than by permissions.
fn leads_out(err: &std::io::Error) -> bool {
    err.kind() == ErrorKind::PermissionDenied && err.raw_os_error().is_none()
}

/// Checks whether an operation failed on a link that it must not follow.
fn is_link(err: &std::io::Error) -> bool {
    err.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Reads every entry of a directory, in the system's order, and returns the directory's fingerprint.
fn scan(
    dir: &Dir,
    directory: &str,
    go_on: &dyn Fn() -> bool,
    mut each: impl FnMut(&CStr, &Stat),
) -> Result<u64, WorkspaceError> {
    let failed = |err: rustix::io::Errno| reading(directory, &err.into());
    // A new handle with its own read position.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(dir, c".", flags, Mode::empty()).map_err(failed)?;
    let mut buffer = [MaybeUninit::uninit(); NAME_BUFFER_BYTES];
    let mut names = RawDir::new(&opened, &mut buffer);
    let mut fingerprint = DefaultHasher::new();
    let mut count = 0;
    while let Some(entry) = names.next() {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        may_take(count, directory, go_on)?;
        count += 1;
        // A name from the directory itself cannot lead elsewhere, so one system call is enough.
        let Ok(found) = rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
            // The entry was removed in the meantime.
            continue;
        };
        name.hash(&mut fingerprint);
        for number in [found.st_ino, found.st_mtime_nsec, found.st_ctime_nsec] {
            fingerprint.write_u64(number);
        }
        for number in [found.st_size, found.st_mtime, found.st_ctime] {
            fingerprint.write_i64(number);
        }
        fingerprint.write_u32(found.st_mode);
        each(name, &found);
    }
    Ok(fingerprint.finish())
}

/// Checks whether one more entry may be read after `count` entries.
fn may_take(count: usize, directory: &str, go_on: &dyn Fn() -> bool) -> Result<(), WorkspaceError> {
    if count == MAX_SCANNED {
        return Err(WorkspaceError::TooLarge(format!(
            "`{directory}` has more than {MAX_SCANNED} entries"
        )));
    }
    if count.is_multiple_of(ENTRIES_PER_CHECK) && !go_on() {
        return Err(WorkspaceError::TooLarge(format!(
            "`{directory}` could not be listed within the remaining time"
        )));
    }
    Ok(())
}

/// Path of a directory's entry.
fn below(directory: &str, name: &str) -> String {
    match directory {
        "." => name.to_owned(),
        directory => [directory, "/", name].concat(),
    }
}

/// Entry of a listing; `None` if it was removed in the meantime.
fn entry_of(dir: &Dir, name: &str, path: String, readable: bool) -> Option<FileEntry> {
    if !readable {
        return Some(entry_from(path, None));
    }
    let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(entry_from(path, Some(&found)))
}

/// Entry of a listing; without metadata if no request can name it.
fn entry_from(path: String, found: Option<&Stat>) -> FileEntry {
    let Some(found) = found else {
        return FileEntry {
            path,
            kind: FileKind::Unnameable,
            size: 0,
            modified_ms: 0,
        };
    };
    let kind = match rustix::fs::FileType::from_raw_mode(found.st_mode) {
        rustix::fs::FileType::RegularFile => FileKind::File,
        rustix::fs::FileType::Directory => FileKind::Directory,
        rustix::fs::FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    };
    let size = u64::try_from(found.st_size).unwrap_or_default();
    FileEntry {
        path,
        kind,
        size: if kind == FileKind::File { size } else { 0 },
        modified_ms: latest(
            (found.st_mtime, nanoseconds(found.st_mtime_nsec)),
            (found.st_ctime, nanoseconds(found.st_ctime_nsec)),
        ),
    }
}

fn nanoseconds(found: u64) -> i64 {
    i64::try_from(found).unwrap_or_default()
}

/// Later of the modification time and the change time. Programs can set the first freely. Only the system sets the
/// second.
fn latest(modified: (i64, i64), changed: (i64, i64)) -> i64 {
    let (seconds, nanoseconds) = modified.max(changed);
    milliseconds(seconds, nanoseconds)
}

fn milliseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds
        .saturating_mul(1000)
        .saturating_add(nanoseconds / 1_000_000)
}

fn reading(path: &str, err: &std::io::Error) -> WorkspaceError {
    let path = path.escape_debug();
    match err.kind() {
        ErrorKind::NotFound => WorkspaceError::NotFound(path.to_string()),
        _ if leads_out(err) => WorkspaceError::Denied(format!("`{path}` leaves the workspace")),
        ErrorKind::PermissionDenied => {
            WorkspaceError::Denied(format!("`{path}`: permission denied for the host's user"))
        }
        ErrorKind::NotADirectory => WorkspaceError::WrongKind(format!(
            "`{path}` is, or goes through, a path that is not a directory"
        )),
        ErrorKind::IsADirectory => WorkspaceError::WrongKind(format!("`{path}` is a directory")),
        _ => WorkspaceError::WrongKind(format!("`{path}` cannot be read: {err}")),
    }
}

fn writing(path: &str, err: &std::io::Error) -> WorkspaceError {
    match err.kind() {
        _ if leads_out(err) => WorkspaceError::Denied(format!("`{path}` leaves the workspace")),
        kind if kind == ErrorKind::NotADirectory || is_link(err) => WorkspaceError::Denied(format!(
            "`{path}` goes through a link or a path that is not a directory; writes do not follow links"
        )),
        ErrorKind::IsADirectory => WorkspaceError::WrongKind(format!("`{path}` is a directory")),
        _ => WorkspaceError::Unwritable(format!("`{path}`: {err}")),
    }
}
