//! Content of folders that Git does not look into: repositories inside of the work tree, and submodules.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::time::SystemTime;

use cap_std::fs::{Dir, Metadata, OpenOptions, OpenOptionsExt as _};
use tollgate_core::deadline::Deadline;
use tollgate_core::file;
use tollgate_core::hash::{self, Hasher};

use super::sum::Sum;
use super::{LINK, Stamp, mode_of};

/// Most files of all such folders in one look.
const MAX_FILES: usize = 20_000;
/// Deepest folder.
const MAX_DEPTH: usize = 64;
/// Bytes that are read at once.
const PART: usize = 64 << 10;

/// Hashes of files by path, with the metadata that they had.
pub(super) type Hashes = HashMap<Vec<u8>, (Stamp, String)>;

/// Reads folders in one look.
pub(super) struct Folders<'a> {
    /// Hashes of the look before.
    pub(super) before: &'a Hashes,
    /// Hashes for the next look.
    pub(super) known: &'a mut Hashes,
    pub(super) deadline: &'a Deadline,
    pub(super) now: SystemTime,
    /// Files so far.
    pub(super) files: usize,
}

impl Folders<'_> {
    /// Hash of everything below a folder but Git's own files. The error is the rest of a sentence about the folder.
    pub(super) fn hash(&mut self, dir: &Dir, path: &[u8]) -> Result<String, String> {
        let mut sum = Sum::default();
        self.add(dir, path, 0, &mut sum)?;
        Ok(sum.finish(""))
    }

    fn add(&mut self, dir: &Dir, path: &[u8], depth: usize, sum: &mut Sum) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err("has too many folders in each other".to_owned());
        }
        let unreadable = |err: std::io::Error| format!("cannot be read: {err}");
        for entry in dir.entries().map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            if name == ".git" {
                continue;
            }
            // What went in the meantime is not there.
            let Ok(metadata) = dir.symlink_metadata(&name) else {
                continue;
            };
            let below = [path, b"/", name.as_bytes()].concat();
            if metadata.is_dir() {
                if let Ok(dir) = dir.open_dir(&name) {
                    self.add(&dir, &below, depth + 1, sum)?;
                }
                continue;
            }
            self.files += 1;
            if self.files > MAX_FILES {
                return Err(format!("has more than {MAX_FILES} files"));
            }
            self.in_time()?;
            let content = self.content(dir, &name, &below, &metadata)?;
            sum.add(&below, mode_of(&metadata), &content);
        }
        Ok(())
    }

    /// Hash of a file, or a word for what has none.
    fn content(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        path: &[u8],
        metadata: &Metadata,
    ) -> Result<String, String> {
        if mode_of(metadata) == LINK {
            let target = dir.read_link_contents(name);
            return Ok(target.map_or_else(
                |_| "link".to_owned(),
                |target| hash::sha256_hex(target.as_os_str().as_bytes()),
            ));
        }
        if !metadata.is_file() {
            return Ok("special".to_owned());
        }
        let stamp = Stamp::of(metadata);
        let known = self.before.get(path).filter(|(before, _)| *before == stamp);
        let hash = match known {
            Some((_, hash)) => Some(hash.clone()),
            None => self.read(dir, name)?,
        };
        let Some(hash) = hash else {
            return Ok("unreadable".to_owned());
        };
        if known.is_some() || stamp.is_settled(self.now) {
            self.known.insert(path.to_owned(), (stamp, hash.clone()));
        }
        Ok(hash)
    }

    /// Hash of a file's content. `None` if it cannot be read.
    fn read(&self, dir: &Dir, name: &OsStr) -> Result<Option<String>, String> {
        let mut options = OpenOptions::new();
        // A pipe that took the file's place would otherwise wait for a writer.
        options.read(true).custom_flags(file::NO_WAIT);
        let Ok(mut content) = dir.open_with(name, &options) else {
            return Ok(None);
        };
        let mut hasher = Hasher::default();
        let mut part = vec![0; PART];
        while let Ok(count) = content.read(&mut part) {
            if count == 0 {
                return Ok(Some(hasher.finish()));
            }
            self.in_time()?;
            hasher.update(part.get(..count).unwrap_or_default());
        }
        Ok(None)
    }

    fn in_time(&self) -> Result<(), String> {
        if self.deadline.remaining().is_zero() {
            return Err("takes too long to read".to_owned());
        }
        Ok(())
    }
}
