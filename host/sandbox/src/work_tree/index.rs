//! Differences that the index of a work tree hides from `git status`: files that Git was told not to check
//! (`update-index --assume-unchanged` and `--skip-worktree`), files that were removed only from the index, submodules
//! and links.

use std::collections::{HashMap, HashSet};

use super::status::Difference;
use super::{LINK_MODE, Look, SUBMODULE_MODE};
use crate::looked::{File, IndexEntry, Known, Memory, Stamp};

/// Tracked files of each submodule, by its path.
pub(super) type Submodules = HashMap<Vec<u8>, HashSet<Vec<u8>>>;

/// A file whose properties are still unknown.
const UNKNOWN: File = File {
    mode: String::new(),
    hash: None,
};

impl Look<'_> {
    /// Adds differences that `git status` omits or shows with the state of the index. Hashes are added later.
    pub(super) fn add_unlisted(&self, differences: &mut Vec<Difference>, memory: &Memory) {
        let is_untracked = |found: &&Difference| found.is_untracked;
        let paths = differences.iter().filter(is_untracked);
        let untracked: HashSet<Vec<u8>> = paths.map(|found| found.path.clone()).collect();
        let mut listed = HashMap::new();
        for (at, found) in differences.iter_mut().enumerate() {
            // It was removed from the index, and an ignore file hides that it still exists.
            let is_hidden = found.now.is_none() && !untracked.contains(&found.path);
            if is_hidden
                && self
                    .metadata(&found.path)
                    .is_ok_and(|metadata| !metadata.is_dir())
            {
                found.now = Some(UNKNOWN);
            }
            if !found.is_untracked {
                listed.insert(found.path.clone(), at);
            }
        }
        for entry in &memory.index.entries {
            let is_there = self.metadata(&entry.path).is_ok();
            let found = listed.get(&entry.path).and_then(|at| differences.get_mut(*at));
            let is_closed = entry.is_flagged || entry.file.mode == SUBMODULE_MODE;
            match found {
                Some(found) if is_there && is_closed => found.now = Some(UNKNOWN),
                Some(_) => {}
                None if !is_closed || (!is_there && entry.is_skipped) => {}
                None => differences.push(Difference {
                    path: entry.path.clone(),
                    before: Some(entry.file.clone()),
                    now: is_there.then_some(UNKNOWN),
                    is_untracked: false,
                }),
            }
        }
    }

    /// Reads the index again if it was written since.
    pub(super) fn read_index(&self, prefix: &str, memory: &mut Memory) -> Result<(), String> {
        let index = self.workspace.git_index().map(|metadata| Stamp::of(&metadata));
        if index.is_some() && memory.index.index == index {
            return Ok(());
        }
        let output = self.list("ls-files", &["-v", "-s", "-z", "--full-name"], Vec::new())?;
        memory.index = Known {
            entries: parse(&output, prefix.as_bytes()),
            index,
        };
        Ok(())
    }

    /// Files that the work tree's submodules track, about which the index says nothing.
    pub(super) fn submodules(&self, prefix: &str, memory: &Memory) -> Result<Submodules, String> {
        let mut submodules = memory.index.submodules();
        if submodules.is_empty() {
            return Ok(submodules);
        }
        let output = self.list_with("ls-files", &["-z", "--full-name"], &["--recurse-submodules"])?;
        for path in output.split(|byte| *byte == 0) {
            let Some(path) = path.strip_prefix(prefix.as_bytes()) else {
                continue;
            };
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            for (at, _) in slashes {
                if let Some(tracked) = submodules.get_mut(path.get(..at).unwrap_or_default()) {
                    tracked.insert(path.to_owned());
                    break;
                }
            }
        }
        Ok(submodules)
    }
}

impl Known {
    /// Paths of the links.
    pub(super) fn links(&self) -> impl Iterator<Item = &Vec<u8>> {
        let links = self.entries.iter().filter(|entry| entry.file.mode == LINK_MODE);
        links.map(|entry| &entry.path)
    }

    fn submodules(&self) -> Submodules {
        let modules = self
            .entries
            .iter()
            .filter(|entry| entry.file.mode == SUBMODULE_MODE);
        modules
            .map(|entry| (entry.path.clone(), HashSet::new()))
            .collect()
    }
}

/// Parses the entries of interest in `git ls-files -v -s -z`: `tag mode hash stage`, a tab, and the path.
fn parse(output: &[u8], prefix: &[u8]) -> Vec<IndexEntry> {
    let entries = output.split(|byte| *byte == 0);
    let read = |entry: &[u8]| {
        let is_flagged = matches!(entry.first(), Some(b'S' | b'a'..=b'z'));
        let mode = entry.get(2..8)?;
        if !is_flagged && mode != LINK_MODE.as_bytes() && mode != SUBMODULE_MODE.as_bytes() {
            return None;
        }
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let mut words = std::str::from_utf8(entry.get(..tab)?).ok()?.split(' ');
        let (tag, mode, hash) = (words.next()?, words.next()?, words.next()?);
        Some(IndexEntry {
            path: entry.get(tab + 1..)?.strip_prefix(prefix)?.to_owned(),
            file: File {
                mode: mode.to_owned(),
                hash: Some(hash.to_owned()),
            },
            is_flagged,
            is_skipped: tag.eq_ignore_ascii_case("s"),
        })
    };
    entries.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_status_does_not_look_at_is_read() {
        let output = b"H 100644 aa 0\tsrc/plain\0h 100644 bb 0\tsrc/assumed\0S 100755 cc 0\tsrc/skipped\0\
            s 100644 dd 0\tsrc/both\0M 100644 ee 1\tsrc/conflict\0S 100644 ff 0\telsewhere\0S bad\0\
            H 160000 11 0\tsrc/lib\0H 120000 22 0\tsrc/link\0\0";
        let found = parse(output, b"src/");
        let shown: Vec<String> = found
            .iter()
            .map(|found| {
                let path = String::from_utf8_lossy(&found.path);
                format!(
                    "{path} {} {} {}",
                    found.file.mode, found.is_flagged, found.is_skipped
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "assumed 100644 true false",
                "skipped 100755 true true",
                "both 100644 true true",
                "lib 160000 false false",
                "link 120000 false false"
            ]
        );
        let known = Known {
            index: None,
            entries: found,
        };
        let links: Vec<&Vec<u8>> = known.links().collect();
        assert_eq!(links, [b"link"]);
        assert!(known.submodules().contains_key(&b"lib"[..]));
    }
}
