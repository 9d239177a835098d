//! The data directory: database, compiled components, keys. Accessible to its owner only.

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{
    Dir, DirBuilder, DirBuilderExt, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions,
};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use thiserror::Error;
use tollgate_core::file::NO_WAIT;

/// File name of the database.
pub const DATABASE: &str = "tollgate.db";

/// Reason for which the data directory cannot be used.
#[derive(Debug, Error)]
pub enum DataDirError {
    /// The path is not a directory, or the directory cannot be created.
    #[error("cannot use the directory {path}{}; choose another with --data-dir or --cache-dir", reason(.source))]
    Unusable {
        /// Data directory.
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// An entry cannot be created or opened.
    #[error("cannot use {what} in {path}")]
    Io {
        /// File or folder.
        what: String,
        /// Data directory.
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// Other users could replace the directory or its contents.
    #[error("other users can write to {at} and could replace {path}; run chmod {fix} {at}")]
    Writable {
        /// Writable folder.
        at: String,
        /// Data directory.
        path: String,
        /// Remedy.
        fix: &'static str,
    },
    /// One of the host's files is a link or not a regular file.
    #[error(
        "{what} in {path} is a symbolic link or not a regular file; stop all hosts and move the intended \
         one to {path}/{what}; to keep data elsewhere, set data_dir or --data-dir"
    )]
    NotAFile {
        /// File name.
        what: String,
        /// Data directory.
        path: String,
    },
    /// One of the host's folders is a link or not a folder.
    #[error(
        "{what} in {path} is a symbolic link or not a folder; stop all hosts and move the intended one to \
         {path}/{what}"
    )]
    NotAFolder {
        /// Folder name.
        what: String,
        /// Data directory.
        path: String,
    },
    /// One of the host's files belongs to another user.
    #[error(
        "{what} in {path} belongs to another user; run chown $USER {path}/{what}, \
         then chmod go-rwx {path}/{what}"
    )]
    Foreign {
        /// File name.
        what: String,
        /// Data directory.
        path: String,
    },
    /// Other users could have changed one of the host's files.
    #[error(
        "other users can write to {what} in {path}; run chmod go-rwx {path}/{what}, then check the ledger with \
         `tollgate ledger verify`"
    )]
    WritableFile {
        /// File name.
        what: String,
        /// Data directory.
        path: String,
    },
    /// Other users could access a private file or folder.
    #[error(
        "{what} belongs to another user or is accessible to others; make it private: chmod -R go-rwx {path}"
    )]
    Exposed {
        /// Exposed file or folder.
        what: String,
        /// Data directory.
        path: String,
    },
}

/// Reason for which a directory cannot be used, where the system's message would mislead.
fn reason(err: &std::io::Error) -> &'static str {
    use std::io::ErrorKind;
    match err.kind() {
        ErrorKind::AlreadyExists => ", because a file already has that name",
        ErrorKind::NotADirectory => ", because a parent of the directory is a file",
        ErrorKind::NotFound => ", because the directory does not exist and cannot be created",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            ", because you have no write permission"
        }
        _ => "",
    }
}

/// Refuses files of the host that are links or that other users could have changed. Files that others can only read
/// become private: SQLite gives its auxiliary files the database's permissions.
fn check_files(path: &Path, dir: &Dir) -> Result<(), DataDirError> {
    let failed = |what: &str, source| DataDirError::Io {
        what: what.to_owned(),
        path: path.display().to_string(),
        source,
    };
    let unread = |source| DataDirError::Unusable {
        path: path.display().to_string(),
        source,
    };
    for entry in dir.entries().map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !is_ours(&name) {
            continue;
        }
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // Another host removed it just now.
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => continue,
            Err(err) => return Err(failed(&name, err)),
        };
        check_file(path, &name, &metadata)?;
        if name.starts_with(DATABASE) && metadata.mode() & 0o077 != 0 {
            tracing::warn!(
                file = &*name,
                "a database file was readable by other users; its permissions are now private"
            );
            let private = Permissions::from_std(PermissionsExt::from_mode(0o600));
            dir.set_permissions(&*name, private)
                .map_err(|err| failed(&name, err))?;
        }
    }
    Ok(())
}

fn check_file(path: &Path, name: &str, metadata: &Metadata) -> Result<(), DataDirError> {
    let (what, at) = (name.to_owned(), path.display().to_string());
    if !metadata.is_file() {
        return Err(DataDirError::NotAFile { what, path: at });
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(DataDirError::Foreign { what, path: at });
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(DataDirError::WritableFile { what, path: at });
    }
    Ok(())
}

/// True if a file in the data directory is one of the host's own.
fn is_ours(name: &str) -> bool {
    name.starts_with(DATABASE) || name.ends_with(".key") || name.ends_with(".lock")
}

/// Reason for which another user could replace this data directory, or add to it.
fn check_place(path: &Path, dir: &Dir) -> Result<(), DataDirError> {
    let failed = |source| DataDirError::Unusable {
        path: path.display().to_string(),
        source,
    };
    let writable = |at: &Path, fix| DataDirError::Writable {
        at: at.display().to_string(),
        path: path.display().to_string(),
        fix,
    };
    let own = dir.dir_metadata().map_err(failed)?;
    if own.uid() != rustix::process::geteuid().as_raw() {
        return Err(DataDirError::Exposed {
            what: path.display().to_string(),
            path: path.display().to_string(),
        });
    }
    if own.mode() & 0o022 != 0 {
        return Err(writable(path, "go-rwx"));
    }
    #[allow(
        clippy::disallowed_methods,
        reason = "the folders above the one that the operator named"
    )]
    let whole = std::fs::canonicalize(path).map_err(failed)?;
    for above in whole.ancestors().skip(1) {
        let found = std::fs::metadata(above).map_err(failed)?;
        if is_open_to_others(found.uid(), found.gid(), found.mode()) {
            return Err(writable(above, "go-w"));
        }
    }
    Ok(())
}

/// True if users other than its owner can rename entries of a folder. In a sticky folder (`/tmp`) only owners can,
/// and a group whose number is that of the user is private to the user on most systems.
fn is_open_to_others(uid: u32, gid: u32, mode: u32) -> bool {
    let is_sticky = mode & 0o1000 != 0;
    let is_own_group = gid == uid || gid == 0;
    !is_sticky && (mode & 0o002 != 0 || (mode & 0o020 != 0 && !is_own_group))
}

/// An opened data directory.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    dir: Dir,
}

impl DataDir {
    /// Opens the directory, and creates it if it is missing.
    pub fn open(path: &Path) -> Result<DataDir, DataDirError> {
        let failed = |source| DataDirError::Unusable {
            path: path.display().to_string(),
            source,
        };
        #[allow(
            clippy::disallowed_methods,
            reason = "the one place that opens the data directory"
        )]
        let made = {
            use std::os::unix::fs::DirBuilderExt as _;
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
        };
        made.map_err(failed)?;
        DataDir::existing(path)
    }

    /// Opens an existing directory.
    pub fn existing(path: &Path) -> Result<DataDir, DataDirError> {
        let dir =
            Dir::open_ambient_dir(path, ambient_authority()).map_err(|source| DataDirError::Unusable {
                path: path.display().to_string(),
                source,
            })?;
        check_place(path, &dir)?;
        check_files(path, &dir)?;
        Ok(DataDir {
            path: path.to_owned(),
            dir,
        })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Handle of the directory, for copying it.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Path of the database. SQLite opens it itself.
    pub fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// True if it has an entry with this name.
    pub fn has(&self, name: &str) -> bool {
        self.dir.symlink_metadata(name).is_ok()
    }

    /// Entries that belong to another user or are accessible to others. `.` is the directory itself.
    pub fn exposed_entries(&self) -> std::io::Result<Vec<String>> {
        let mut exposed = Vec::new();
        if !is_private(&self.dir.dir_metadata()?) {
            exposed.push(".".to_owned());
        }
        for entry in self.dir.entries()? {
            let entry = entry?;
            if !is_private(&entry.metadata()?) {
                exposed.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        exposed.sort();
        Ok(exposed)
    }

    /// Number of bytes that its user can still write.
    pub fn free_bytes(&self) -> std::io::Result<u64> {
        let disk = rustix::fs::fstatvfs(&self.dir)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// Size of a file in it in bytes. Zero if there is no such file.
    pub fn bytes(&self, name: &str) -> u64 {
        self.dir
            .symlink_metadata(name)
            .map_or(0, |metadata| metadata.len())
    }

    /// Number of files in a subdirectory, and their bytes. Zero if there is none.
    pub fn usage(&self, name: &str) -> std::io::Result<(usize, u64)> {
        if !self.has(name) {
            return Ok((0, 0));
        }
        let (mut files, mut bytes) = (0, 0);
        for entry in self.dir.open_dir_nofollow(name)?.entries()? {
            // Other hosts may remove it meanwhile.
            if let Ok(metadata) = entry?.metadata() {
                files += 1;
                bytes += metadata.len();
            }
        }
        Ok((files, bytes))
    }

    /// Private subdirectory, created if it is missing.
    pub fn private_dir(&self, name: &str) -> Result<Dir, DataDirError> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        match self.dir.create_dir_with(name, &builder) {
            Err(err) if err.kind() != std::io::ErrorKind::AlreadyExists => return Err(self.failed(name, err)),
            _ => {}
        }
        if self.dir.symlink_metadata(name).is_ok_and(|found| !found.is_dir()) {
            return Err(DataDirError::NotAFolder {
                what: name.to_owned(),
                path: self.path.display().to_string(),
            });
        }
        let dir = self
            .dir
            .open_dir_nofollow(name)
            .map_err(|err| self.failed(name, err))?;
        let metadata = dir.dir_metadata().map_err(|err| self.failed(name, err))?;
        if is_private(&metadata) {
            Ok(dir)
        } else {
            Err(self.exposed(name))
        }
    }

    /// Secret of 32 bytes, created on first use.
    pub fn secret(&self, name: &str) -> Result<[u8; 32], DataDirError> {
        if let Some(secret) = self.find_secret(name)? {
            return Ok(secret);
        }
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).map_err(|err| self.failed(name, std::io::Error::other(err)))?;
        // Atomic: another process may read it at this moment, and another thread may create one.
        static DRAFT_COUNT: AtomicU64 = AtomicU64::new(0);
        let number = DRAFT_COUNT.fetch_add(1, Ordering::Relaxed);
        let draft = format!("{name}.{}.{number}", std::process::id());
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let linked = self.dir.open_with(&draft, &options).and_then(|mut file| {
            file.write_all(&fresh)?;
            file.sync_all()?;
            self.dir.hard_link(&draft, &self.dir, name)
        });
        let _ = self.dir.remove_file(&draft);
        match linked {
            Ok(()) => Ok(fresh),
            Err(err) if err.kind() == std::io::ErrorKind::AlreadyExists => {
                self.find_secret(name)?.ok_or_else(|| self.exposed(name))
            }
            Err(err) => Err(self.failed(name, err)),
        }
    }

    /// Secret of 32 bytes, if it exists.
    pub fn find_secret(&self, name: &str) -> Result<Option<[u8; 32]>, DataDirError> {
        let mut file = match open_private(&self.dir, name) {
            Ok(Some(file)) => file,
            Ok(None) => return Err(self.exposed(name)),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(self.failed(name, err)),
        };
        let mut secret = [0; 32];
        file.read_exact(&mut secret)
            .map_err(|err| self.failed(name, err))?;
        Ok(Some(secret))
    }

    /// Locks a file, unless another process holds the lock. Dropping the file releases it.
    pub fn try_lock(&self, name: &str) -> Result<Option<File>, DataDirError> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600).custom_flags(NO_WAIT);
        let file = self
            .dir
            .open_with(name, &options)
            .map_err(|err| self.failed(name, err))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(err) => Err(self.failed(name, err.into())),
        }
    }

    fn failed(&self, what: &str, source: std::io::Error) -> DataDirError {
        DataDirError::Io {
            what: what.to_owned(),
            path: self.path.display().to_string(),
            source,
        }
    }

    fn exposed(&self, what: &str) -> DataDirError {
        DataDirError::Exposed {
            what: what.to_owned(),
            path: self.path.display().to_string(),
        }
    }
}

/// Opens a file of the host for reading. `None` if other users could have changed it. Symbolic links are not
/// followed.
pub fn open_private(dir: &Dir, name: &str) -> std::io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .follow(FollowSymlinks::No)
        .custom_flags(NO_WAIT);
    let file = dir.open_with(name, &options)?;
    let metadata = file.metadata()?;
    Ok((metadata.is_file() && is_private(&metadata)).then_some(file))
}

fn is_private(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests make files as others could")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_secret_is_made_once() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::open(&place.path().join("data")).unwrap();
        let secret = data.secret("key").unwrap();
        assert_eq!(data.secret("key").unwrap(), secret);
        assert_ne!(data.secret("other").unwrap(), secret);
    }

    #[test]
    fn threads_that_make_a_secret_at_once_have_the_one_that_stays() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::open(&place.path().join("data")).unwrap();
        for round in 0..50 {
            let name = format!("key-{round}");
            let all = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| data.secret(&name).unwrap()))
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .collect::<Vec<_>>()
            });
            let kept = data.find_secret(&name).unwrap().unwrap();
            assert!(all.iter().all(|secret| *secret == kept), "round {round}");
        }
    }

    #[test]
    fn a_place_that_others_can_write_in_is_refused_and_made_private_otherwise() {
        let chmod = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap()
        };
        let place = tempfile::tempdir().unwrap();
        let (above, path) = (place.path().join("above"), place.path().join("above/data"));
        DataDir::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        for mode in [0o777, 0o770, 0o722, 0o702, 0o1777] {
            chmod(&path, mode);
            for opened in [DataDir::open(&path), DataDir::existing(&path)] {
                let said = opened.unwrap_err().to_string();
                assert!(
                    said.ends_with(&format!("chmod go-rwx {}", path.display())),
                    "{said}"
                );
            }
        }
        // Others see names, and nothing else; `doctor` tells of it.
        chmod(&path, 0o755);
        DataDir::open(&path).unwrap();
        for (mode, is_taken) in [
            (0o777, false),
            (0o773, false),
            (0o1777, true),
            (0o755, true),
            (0o700, true),
        ] {
            chmod(&above, mode);
            assert_eq!(DataDir::open(&path).is_ok(), is_taken, "{mode:o}");
        }
        // A link does not hide where the directory is.
        chmod(&above, 0o777);
        let link = place.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(matches!(DataDir::open(&link), Err(DataDirError::Writable { .. })));
    }

    #[test]
    fn files_of_ours_that_lead_elsewhere_or_that_others_can_write_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (place.path().join("data"), place.path().join("elsewhere"));
        DataDir::open(&path).unwrap();
        std::fs::write(&elsewhere, "x").unwrap();
        for name in ["tollgate.db", "tollgate.db-wal", "ledger.key", "collect.lock"] {
            let file = path.join(name);
            for target in [elsewhere.clone(), place.path().join("nowhere")] {
                symlink(target, &file).unwrap();
                for opened in [DataDir::open(&path), DataDir::existing(&path)] {
                    let said = opened.unwrap_err().to_string();
                    assert!(said.contains(&format!("{name} in ")), "{said}");
                    assert!(said.contains("symbolic link"), "{said}");
                }
                std::fs::remove_file(&file).unwrap();
            }
            for mode in [0o666, 0o660, 0o602, 0o620] {
                std::fs::write(&file, "x").unwrap();
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
                let said = DataDir::open(&path).unwrap_err().to_string();
                assert!(
                    said.contains(&format!("chmod go-rwx {}", file.display())),
                    "{said}"
                );
            }
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::create_dir(path.join("tollgate.db")).unwrap();
        assert!(matches!(DataDir::open(&path), Err(DataDirError::NotAFile { .. })));
    }

    #[test]
    fn a_database_that_others_could_read_becomes_private_and_a_key_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("data");
        let data = DataDir::open(&path).unwrap();
        data.secret("ledger.key").unwrap();
        let mode = |name: &str| std::fs::metadata(path.join(name)).unwrap().mode() & 0o777;
        let chmod = |name: &str, mode| {
            std::fs::set_permissions(path.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        std::fs::write(path.join("tollgate.db"), "x").unwrap();
        std::fs::write(path.join("notes.txt"), "x").unwrap();
        for name in ["tollgate.db", "notes.txt", "ledger.key"] {
            chmod(name, 0o644);
        }
        let data = DataDir::open(data.path()).unwrap();
        assert_eq!([mode("tollgate.db"), mode("notes.txt")], [0o600, 0o644]);
        assert!(matches!(
            data.find_secret("ledger.key"),
            Err(DataDirError::Exposed { .. })
        ));
        assert!(matches!(
            data.secret("ledger.key"),
            Err(DataDirError::Exposed { .. })
        ));
    }

    #[test]
    fn a_group_of_its_own_is_its_user() {
        assert!(!is_open_to_others(1000, 1000, 0o775));
        assert!(!is_open_to_others(0, 0, 0o775));
        assert!(is_open_to_others(1000, 100, 0o775));
        assert!(!is_open_to_others(1000, 100, 0o755));
        assert!(is_open_to_others(1000, 1000, 0o757));
        assert!(!is_open_to_others(0, 0, 0o1777));
    }

    #[test]
    fn what_others_can_change_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::open(place.path()).unwrap();
        data.private_dir("cache").unwrap();
        let open = std::fs::Permissions::from_mode(0o770);
        std::fs::set_permissions(place.path().join("cache"), open).unwrap();
        assert!(matches!(
            data.private_dir("cache"),
            Err(DataDirError::Exposed { .. })
        ));

        symlink(place.path().join("cache"), place.path().join("link")).unwrap();
        assert!(data.private_dir("link").is_err());
    }
}
