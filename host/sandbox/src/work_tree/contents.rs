//! Hashes of everything that differs from the commit.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::SystemTime;

use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use tollgate_core::text;
use tollgate_sdk::Ending;

use super::change::MAX_FILE;
use super::index::Submodules;
use super::nested::{Folders, Outlined};
use super::status::Difference;
use super::{LINK_MODE, Look, SUBMODULE_MODE};
use crate::looked::{File, Hashes, Memory, Stamp};

/// Most files that one command hashes.
const HASHED_AT_ONCE: usize = 1_000;
/// Most unreadable files before a scan fails.
const MAX_UNREADABLE: usize = 20;

/// Folders among the differences that need special handling.
pub(super) struct Special {
    /// Tracked files of submodules.
    pub(super) submodules: Submodules,
    /// Folders that only an uncommitted rule hides.
    pub(super) hidden: HashSet<Vec<u8>>,
}

/// State of a pass over the differences.
struct Pass<'a> {
    special: &'a Special,
    /// Hashes of files for the next scan.
    known: &'a mut Hashes,
    folders: Folders<'a>,
    links: BTreeSet<Vec<u8>>,
    /// Further differences that Git did not list.
    more: Vec<Difference>,
}

impl Look<'_> {
    /// Adds hashes, and differences that only show when contents are read.
    #[allow(
        clippy::disallowed_methods,
        reason = "compared with the times that the file system wrote, which no test fixes"
    )]
    pub(super) fn add_hashes(
        &self,
        differences: &mut Vec<Difference>,
        special: &Special,
        memory: &mut Memory,
    ) -> Result<(), String> {
        let now = SystemTime::now();
        let (mut known, mut below, mut unknown) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut pass = Pass {
            special,
            known: &mut known,
            folders: Folders {
                before: &memory.hashes,
                known: &mut below,
                deadline: &self.deadline,
                now,
                files: 0,
            },
            links: memory.index.links().cloned().collect(),
            more: Vec::new(),
        };
        for found in differences.iter_mut() {
            if let (path, Some(file)) = (&found.path, &mut found.now)
                && let Some(stamp) = self.read(path, file, &mut pass)?
            {
                unknown.push((path.clone(), stamp, file));
            }
        }
        let behind = self.behind_links(&pass.links, &mut pass.folders)?;
        let more = pass.more;
        self.hash_all(unknown, now, &mut known, memory)?;
        known.extend(below);
        memory.hashes = known;
        differences.extend(more);
        differences.extend(behind);
        memory.make_room(differences);
        Ok(())
    }

    /// Hashes anything that is not a regular file, and reuses the hash of a file that is unchanged since another
    /// scan. Returns the metadata of all others.
    fn read(&self, path: &[u8], file: &mut File, pass: &mut Pass<'_>) -> Result<Option<Stamp>, String> {
        if file.hash.is_some() {
            return Ok(None);
        }
        // A file that disappeared in the meantime has no hash and counts as removed.
        let Ok(metadata) = self.metadata(path) else {
            return Ok(None);
        };
        if file.mode.is_empty() {
            file.mode = mode_of(&metadata).to_owned();
        }
        let stamp = Stamp::of(&metadata);
        let before = pass.folders.before.get(path);
        if let Some((_, hash)) = before.filter(|(before, _)| *before == stamp) {
            file.hash = Some(hash.clone());
            pass.known.insert(path.to_owned(), (stamp, hash.clone()));
            return Ok(None);
        }
        file.hash = self.by_kind(path, file, &metadata, pass)?;
        Ok(file.hash.is_none().then_some(stamp))
    }

    /// Hashes the files that no scan hashed before.
    fn hash_all(
        &self,
        unknown: Vec<(Vec<u8>, Stamp, &mut File)>,
        now: SystemTime,
        known: &mut Hashes,
        memory: &mut Memory,
    ) -> Result<(), String> {
        let mut hashes = Vec::with_capacity(unknown.len());
        let paths: Vec<Vec<u8>> = unknown.iter().map(|(path, ..)| quoted(path)).collect();
        for paths in paths.chunks(HASHED_AT_ONCE) {
            self.hash(paths, &mut hashes)?;
        }
        for ((path, stamp, file), hash) in unknown.into_iter().zip(hashes) {
            if stamp.size <= MAX_FILE && !memory.contents.contains_key(&hash) {
                let content = self.workspace.tree.dir().read(OsStr::from_bytes(&path));
                memory
                    .contents
                    .extend(content.ok().map(|content| (hash.clone(), Arc::from(content))));
            }
            if stamp.is_settled(now) {
                known.insert(path, (stamp, hash.clone()));
            }
            file.hash = Some(hash);
        }
        Ok(())
    }

    pub(super) fn metadata(&self, path: &[u8]) -> std::io::Result<Metadata> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        self.workspace
            .tree
            .dir()
            .symlink_metadata(OsStr::from_bytes(path))
    }

    /// Content of anything but a regular file: target of a link, files of a submodule or of a nested repository.
    fn by_kind(
        &self,
        path: &[u8],
        file: &File,
        metadata: &Metadata,
        pass: &mut Pass<'_>,
    ) -> Result<Option<String>, String> {
        let dir = self.workspace.tree.dir();
        let place = path.strip_suffix(b"/").unwrap_or(path);
        let name = OsStr::from_bytes(place);
        if metadata.is_dir() {
            let Ok(below) = dir.open_dir(name) else {
                return Ok(Some("folder".to_owned()));
            };
            let hash = pass.folder(path, &below).map_err(|why| {
                let place = text::clean(text::cut(&name.to_string_lossy(), 200));
                format!("folder {place} of workspace {} {why}", self.workspace.info.name)
            })?;
            return Ok(Some(hash));
        }
        if file.mode == LINK_MODE || metadata.is_symlink() {
            pass.links.insert(path.to_owned());
            let Ok(target) = dir.read_link_contents(name) else {
                return Ok(Some("link".to_owned()));
            };
            let output = self.list(
                "hash-object",
                &["--stdin"],
                target.as_os_str().as_bytes().to_vec(),
            )?;
            return Ok(Some(String::from_utf8_lossy(&output).trim().to_owned()));
        }
        Ok((!metadata.is_file()).then(|| "special".to_owned()))
    }

    /// Hashes files. An unreadable file gets a placeholder.
    fn hash(&self, paths: &[Vec<u8>], hashes: &mut Vec<String>) -> Result<(), String> {
        let mut rest = paths;
        let mut unreadable = 0;
        while !rest.is_empty() {
            let input = rest
                .iter()
                .flat_map(|path| [path.as_slice(), b"\n"].concat())
                .collect();
            let (output, ending, _) = self.git("hash-object", &["--stdin-paths"], input)?;
            let said = String::from_utf8_lossy(&output);
            let read = said
                .lines()
                .take(rest.len())
                .map(|line| hashes.push(line.to_owned()))
                .count();
            rest = rest.get(read..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            if matches!(ending, Ending::TimedOut) || unreadable == MAX_UNREADABLE {
                return Err(format!(
                    "cannot read the changed files of workspace {}",
                    self.workspace.info.name
                ));
            }
            unreadable += 1;
            hashes.push("unreadable".to_owned());
            rest = rest.get(1..).unwrap_or_default();
        }
        Ok(())
    }
}

impl Pass<'_> {
    /// Hash of a folder.
    fn folder(&mut self, path: &[u8], dir: &Dir) -> Result<String, String> {
        let place = path.strip_suffix(b"/").unwrap_or(path);
        if self.special.hidden.contains(path) {
            return self.folders.outline(dir, place, Outlined::Hidden);
        }
        let Some(tracked) = self.special.submodules.get(path) else {
            return self.folders.hash(dir, place);
        };
        let split = self.folders.split(dir, place, tracked)?;
        // For example build output, which a test run may leave.
        self.more.extend(split.untracked.map(|hash| Difference {
            path: [place, b"/"].concat(),
            before: None,
            now: Some(File {
                mode: SUBMODULE_MODE.to_owned(),
                hash: Some(hash),
            }),
            is_untracked: true,
        }));
        Ok(split.tracked)
    }
}

/// Mode of a file that Git does not track.
pub(super) fn mode_of(metadata: &Metadata) -> &'static str {
    match metadata {
        metadata if metadata.is_symlink() => LINK_MODE,
        metadata if metadata.is_dir() => SUBMODULE_MODE,
        metadata if metadata.mode() & 0o100 != 0 => "100755",
        _ => "100644",
    }
}

/// Path as Git reads it from a list of lines.
fn quoted(path: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f | 0x7f);
    if path.iter().all(is_plain) {
        return path.to_owned();
    }
    let mut quoted = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            byte if is_plain(byte) => quoted.push(*byte),
            byte => quoted.extend(format!("\\{byte:03o}").into_bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_git_would_misread_them() {
        assert_eq!(quoted(b"a b/c.py"), b"a b/c.py");
        assert_eq!(quoted("ä".as_bytes()), "ä".as_bytes());
        assert_eq!(quoted(b"a\"b\\c\nd"), b"\"a\\\"b\\\\c\\012d\"");
    }
}
