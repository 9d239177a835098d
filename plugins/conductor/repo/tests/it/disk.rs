//! A tree on disk.
#![expect(clippy::disallowed_methods, reason = "the trees of tests and measurements")]

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use conductor_repo::path::from_bytes;
use conductor_repo::tree::{Entry, Kind, Tree, TreeError, TreeResult};

pub(crate) struct Disk {
    pub(crate) root: PathBuf,
}

impl Tree for Disk {
    fn list(&self, directory: &str, after: Option<&str>, limit: u32) -> TreeResult<Vec<Entry>> {
        let listing = fs::read_dir(self.root.join(directory)).map_err(|error| refusal(directory, &error))?;
        let mut entries = Vec::new();
        for found in listing {
            let found = found.map_err(|error| refusal(directory, &error))?;
            let name = from_bytes(found.file_name().as_bytes());
            let is_named = name.is_ok();
            let name = name.unwrap_or_else(|escaped| escaped);
            if after.is_some_and(|after| name.as_str() <= after) {
                continue;
            }
            let path = if directory.is_empty() {
                name
            } else {
                format!("{directory}/{name}")
            };
            // An entry may go between the listing and the look at it.
            if let Ok(metadata) = found.metadata() {
                let mut entry = entry(path, &metadata);
                if !is_named {
                    entry.kind = Kind::Unnamed;
                }
                entries.push(entry);
            }
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(entries)
    }

    fn stat(&self, path: &str) -> TreeResult<Entry> {
        let metadata = fs::symlink_metadata(self.root.join(path)).map_err(|error| refusal(path, &error))?;
        Ok(entry(path.to_owned(), &metadata))
    }

    fn read(&self, path: &str, offset: u64, limit: u32) -> TreeResult<Vec<u8>> {
        let read = || {
            let mut file = File::open(self.root.join(path))?;
            if offset > 0 {
                file.seek(SeekFrom::Start(offset))?;
            }
            let mut bytes = Vec::with_capacity(usize::try_from(limit).unwrap_or(0));
            file.take(u64::from(limit)).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error| refusal(path, &error))
    }
}

fn entry(path: String, metadata: &Metadata) -> Entry {
    let kind = match metadata.file_type() {
        kind if kind.is_symlink() => Kind::Symlink,
        kind if kind.is_dir() => Kind::Directory,
        kind if kind.is_file() => Kind::File,
        _ => Kind::Other,
    };
    let modified = metadata
        .modified()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    Entry {
        path,
        kind,
        size: if kind == Kind::Directory {
            0
        } else {
            metadata.len()
        },
        modified: modified.map_or(0, |at| i64::try_from(at.as_millis()).unwrap_or(i64::MAX)),
    }
}

fn refusal(path: &str, error: &io::Error) -> TreeError {
    match error.kind() {
        io::ErrorKind::NotFound => TreeError::NotFound(path.to_owned()),
        io::ErrorKind::PermissionDenied => TreeError::Denied(path.to_owned()),
        io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => TreeError::WrongKind(path.to_owned()),
        _ => TreeError::Internal,
    }
}
