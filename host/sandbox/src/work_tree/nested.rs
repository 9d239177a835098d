//! Content of folders that Git does not descend into: repositories inside the work tree, submodules, folders that
//! only an uncommitted ignore file hides, and outside folders that links lead to.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::time::SystemTime;

use cap_std::fs::{Dir, Metadata, OpenOptions, OpenOptionsExt as _};
use tollgate_core::deadline::Deadline;
use tollgate_core::file;
use tollgate_core::hash::{self, Hasher};

use super::{LINK_MODE, mode_of};
use crate::looked::{Hashes, Stamp, Sum};

/// Most files in one scan, in all folders that must be read completely.
const MAX_FILES: usize = 50_000;
/// Most files of a folder behind a link whose times count. Further files are left out, because they do not belong to
/// the workspace.
const MAX_LINKED: usize = 20_000;
/// Most files whose contents count, in a folder that only an uncommitted rule hides. Of further files only the times
/// count.
const MAX_OUTLINED: usize = 20_000;
/// Most files in such a folder. With more, the scan of the folder fails.
const MAX_HIDDEN: usize = 200_000;
/// Largest file whose content counts in an outline.
const MAX_READ: u64 = 64 << 10;
/// Most bytes of content that count in one outlined folder.
const MAX_READ_IN_ALL: u64 = 32 << 20;
/// Deepest folder.
const MAX_DEPTH: usize = 64;
/// Read buffer size in bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// Reads folders during one scan.
pub(super) struct Folders<'a> {
    /// Hashes of the previous scan.
    pub(super) before: &'a Hashes,
    /// Hashes for the next scan.
    pub(super) known: &'a mut Hashes,
    pub(super) deadline: &'a Deadline,
    pub(super) now: SystemTime,
    /// Number of files so far, in folders that are read completely.
    pub(super) files: usize,
}

/// Hashes of a submodule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// Hash of the files in the submodule's index.
    pub(super) tracked: String,
    /// Hash of all other files, if there are any.
    pub(super) untracked: Option<String>,
}

/// Folder that is read in outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outlined {
    /// Hidden by an uncommitted rule: contents of small files count, and sizes and times of others.
    Hidden,
    /// Target of a link out of the workspace: sizes and times of the first files count.
    Linked,
}

/// Files and bytes of a folder that is read in outline.
#[derive(Debug)]
struct Outline {
    of: Outlined,
    files: usize,
    bytes: u64,
}

/// One pass through a folder.
#[derive(Default)]
struct Walk<'t> {
    /// Paths in the submodule's index.
    tracked: Option<&'t HashSet<Vec<u8>>>,
    /// Outline. Absent if everything is read.
    outline: Option<Outline>,
    /// Sum of the untracked files, or of all files.
    sum: Sum,
    has_files: bool,
    tracked_sum: Sum,
}

impl Folders<'_> {
    /// Hash of everything below a folder except Git's own files. The error is the rest of a sentence about the
    /// folder.
    pub(super) fn hash(&mut self, dir: &Dir, path: &[u8]) -> Result<String, String> {
        let mut walk = Walk::default();
        self.add(dir, path, 0, &mut walk)?;
        Ok(walk.sum.finish(""))
    }

    /// Hashes of a submodule, for the files in its index and for the rest.
    pub(super) fn split(
        &mut self,
        dir: &Dir,
        path: &[u8],
        tracked: &HashSet<Vec<u8>>,
    ) -> Result<Split, String> {
        let mut walk = Walk {
            tracked: Some(tracked),
            ..Walk::default()
        };
        self.add(dir, path, 0, &mut walk)?;
        Ok(Split {
            tracked: walk.tracked_sum.finish(""),
            untracked: walk.has_files.then(|| walk.sum.finish("")),
        })
    }

    /// Hash of a folder that may be large, in outline: files in the order of their names, and contents of small ones
    /// only.
    pub(super) fn outline(&mut self, dir: &Dir, path: &[u8], of: Outlined) -> Result<String, String> {
        let mut walk = Walk {
            outline: Some(Outline {
                of,
                files: 0,
                bytes: 0,
            }),
            ..Walk::default()
        };
        self.add(dir, path, 0, &mut walk)?;
        Ok(walk.sum.finish(""))
    }

    fn add(&mut self, dir: &Dir, path: &[u8], depth: usize, walk: &mut Walk<'_>) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return match walk.of() {
                Some(Outlined::Linked) => Ok(()),
                Some(Outlined::Hidden) | None => Err("nests folders too deeply".to_owned()),
            };
        }
        for name in names(dir, walk.outline.is_some())? {
            if walk.is_full() {
                return match walk.of() {
                    Some(Outlined::Hidden) => Err(format!(
                        "has more than {MAX_HIDDEN} files, and the rule that ignores it is not committed"
                    )),
                    Some(Outlined::Linked) | None => Ok(()),
                };
            }
            // A file that disappeared in the meantime is left out.
            let Ok(metadata) = dir.symlink_metadata(&name) else {
                continue;
            };
            let below = [path, b"/", name.as_bytes()].concat();
            if metadata.is_dir() {
                if let Ok(dir) = dir.open_dir(&name) {
                    self.add(&dir, &below, depth + 1, walk)?;
                }
                continue;
            }
            self.in_time()?;
            let is_read = match &mut walk.outline {
                Some(outline) => outline.takes(&metadata),
                None => self.count()?,
            };
            let content = match is_read {
                true => self.content(dir, &name, &below, &metadata)?,
                false => Stamp::of(&metadata).to_string(),
            };
            walk.take(&below, mode_of(&metadata), &content);
        }
        Ok(())
    }

    /// Counts a file that is read whatever its size.
    fn count(&mut self) -> Result<bool, String> {
        self.files += 1;
        match self.files > MAX_FILES {
            true => Err(format!("has more than {MAX_FILES} files")),
            false => Ok(true),
        }
    }

    /// Hash of a file, or a word in place of a hash.
    fn content(
        &mut self,
        dir: &Dir,
        name: &OsStr,
        path: &[u8],
        metadata: &Metadata,
    ) -> Result<String, String> {
        if mode_of(metadata) == LINK_MODE {
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
        // Git uses other hashes for the same content.
        let key = [b"/", path].concat();
        let known = self.before.get(&key).filter(|(before, _)| *before == stamp);
        let hash = match known {
            Some((_, hash)) => Some(hash.clone()),
            None => self.read(dir, name)?,
        };
        let Some(hash) = hash else {
            return Ok("unreadable".to_owned());
        };
        if known.is_some() || stamp.is_settled(self.now) {
            self.known.insert(key, (stamp, hash.clone()));
        }
        Ok(hash)
    }

    /// Hash of a file's content. `None` if it cannot be read.
    fn read(&self, dir: &Dir, name: &OsStr) -> Result<Option<String>, String> {
        let mut options = OpenOptions::new();
        // A pipe that replaced the file would otherwise wait for a writer.
        options.read(true).custom_flags(file::NO_WAIT);
        let Ok(mut content) = dir.open_with(name, &options) else {
            return Ok(None);
        };
        let mut hasher = Hasher::default();
        let mut part = vec![0; BUFFER_BYTES];
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

impl Outline {
    /// True if the next file's content counts. Files come in the order of their names, so that the result depends on
    /// nothing else.
    fn takes(&mut self, metadata: &Metadata) -> bool {
        self.files += 1;
        let size = metadata.len();
        let fits = self.of == Outlined::Hidden
            && self.files <= MAX_OUTLINED
            && size <= MAX_READ
            && self.bytes + size <= MAX_READ_IN_ALL;
        if fits {
            self.bytes += size;
        }
        fits
    }
}

impl Walk<'_> {
    fn of(&self) -> Option<Outlined> {
        self.outline.as_ref().map(|outline| outline.of)
    }

    /// True if a folder that is read in outline may have no further file.
    fn is_full(&self) -> bool {
        self.outline.as_ref().is_some_and(|outline| match outline.of {
            Outlined::Hidden => outline.files >= MAX_HIDDEN,
            Outlined::Linked => outline.files >= MAX_LINKED,
        })
    }

    fn take(&mut self, path: &[u8], mode: &str, content: &str) {
        if self.tracked.is_some_and(|tracked| tracked.contains(path)) {
            return self.tracked_sum.add(path, mode, content);
        }
        self.sum.add(path, mode, content);
        self.has_files = true;
    }
}

/// Names in a folder except Git's, sorted where the order matters.
fn names(dir: &Dir, is_sorted: bool) -> Result<Vec<OsString>, String> {
    let unreadable = |err: std::io::Error| format!("cannot be read: {err}");
    let mut names = Vec::new();
    for entry in dir.entries().map_err(unreadable)? {
        names.push(entry.map_err(unreadable)?.file_name());
    }
    names.retain(|name| name != ".git");
    if is_sorted {
        names.sort_unstable();
    }
    Ok(names)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use cap_std::ambient_authority;
    use tollgate_core::deadline::Cancel;

    use super::*;

    /// Reads a folder in outline, as if this many files had come before.
    fn outlined(place: &tempfile::TempDir, of: Outlined, before: usize) -> Result<String, String> {
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        let deadline = Deadline::after(std::time::Duration::from_secs(60), Cancel::default());
        let mut known = Hashes::new();
        let mut folders = Folders {
            before: &Hashes::new(),
            known: &mut known,
            deadline: &deadline,
            now: SystemTime::UNIX_EPOCH,
            files: 0,
        };
        let mut walk = Walk {
            outline: Some(Outline {
                of,
                files: before,
                bytes: 0,
            }),
            ..Walk::default()
        };
        folders.add(&dir, b"build", 0, &mut walk)?;
        Ok(walk.sum.finish(""))
    }

    #[test]
    fn a_hidden_folder_is_seen_as_a_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::write(place.path().join(name), "1").unwrap();
        }
        // Past the files whose contents count, sizes and times show an edit.
        let seen = |before| outlined(&place, Outlined::Hidden, before);
        let first = [0, MAX_OUTLINED, MAX_HIDDEN - 2].map(|before| seen(before).unwrap());
        std::fs::write(place.path().join("b"), "22").unwrap();
        for (before, first) in [0, MAX_OUTLINED, MAX_HIDDEN - 2].into_iter().zip(first) {
            assert_ne!(seen(before).unwrap(), first, "{before}");
        }
        let unseen = seen(MAX_HIDDEN - 1).unwrap_err();
        assert_eq!(
            unseen,
            "has more than 200000 files, and the rule that ignores it is not committed"
        );
        let linked = |before| outlined(&place, Outlined::Linked, before);
        assert_eq!(linked(MAX_LINKED).unwrap(), linked(MAX_LINKED + 9).unwrap());
    }

    #[test]
    fn a_hidden_folder_that_is_too_deep_is_not_seen() {
        let place = tempfile::tempdir().unwrap();
        let deep = vec!["d"; MAX_DEPTH + 2].join("/");
        std::fs::create_dir_all(place.path().join(&deep)).unwrap();
        std::fs::write(place.path().join(&deep).join("a"), "1").unwrap();
        let unseen = outlined(&place, Outlined::Hidden, 0).unwrap_err();
        assert_eq!(unseen, "nests folders too deeply");
        assert!(outlined(&place, Outlined::Linked, 0).is_ok());
    }
}
