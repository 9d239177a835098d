//! Bytes of tracked files, compared with the index by this pack instead of by Git.
//!
//! Git decides by times, sizes and settings whether a file is as in the index, and compares it after conversions:
//! ends of lines, encodings, `ident`, filters, links that are plain files. All of that is in the hands of whoever is
//! checked, the index itself included.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_sdk::workspace::MAX_ENTRIES;
use tollgate_sdk::{FileEntry, FileKind};

use super::Git;
use super::look::{Index, Look};
use crate::error::GitFault;
use crate::store::job::Baseline;

/// Paths in one run of `git hash-object`.
const PATHS_PER_RUN: usize = 4_000;
/// Bytes of files in one run, and of one file. Of a larger file, size and time count.
const MAX_RUN_BYTES: u64 = 64 << 20;
/// Bytes of files in one look. Of the files after those, size and time count.
const MAX_LOOK_BYTES: u64 = 1 << 30;

impl Git<'_> {
    /// Tracked files whose bytes are not those of the index, with their hashes. `known` paths are left out: they were
    /// looked at already.
    pub(super) fn veiled(
        &self,
        index: &Index,
        known: &BTreeMap<String, String>,
        entries: &BTreeMap<String, FileEntry>,
    ) -> Result<BTreeMap<String, String>, GitFault> {
        let mut veiled = BTreeMap::new();
        let mut runs = Runs::default();
        for (path, blob) in index.files.iter().filter(|(path, _)| !known.contains_key(*path)) {
            let is_link = blob.starts_with("120000");
            match entries.get(path).map(|entry| (entry.kind, entry)) {
                Some((FileKind::Symlink, _)) if is_link => {}
                Some((FileKind::File, entry)) if !is_link && runs.take(path, entry.size) => {}
                Some((_, entry)) => {
                    let told = format!(
                        "{:?} of {} bytes at {}",
                        entry.kind, entry.size, entry.modified_ms
                    );
                    veiled.insert(path.clone(), told);
                }
                // A name that is not UTF-8 cannot be opened.
                None if path.starts_with("bytes:") => {}
                None => {
                    veiled.insert(path.clone(), String::new());
                }
            }
        }
        for run in runs.all {
            for (path, hash) in run.iter().zip(self.raw_hashes(&run)?) {
                let blob = index.files.get(*path).and_then(|entry| entry.split(' ').nth(1));
                if blob != Some(hash.as_str()) {
                    veiled.insert((*path).clone(), hash);
                }
            }
        }
        Ok(veiled)
    }

    /// Tracked paths whose bytes are others than when the step began, as far as a difference of Git may leave them out.
    pub(super) fn unveiled(&self, since: &Baseline, look: &Look) -> Result<BTreeMap<String, bool>, GitFault> {
        if !since.raw {
            return Ok(BTreeMap::new());
        }
        // `git status` goes by sizes as well, and tells files that a difference after conversions does not.
        let all = look.veiled.iter().chain(&look.tracked);
        let new: BTreeSet<&String> = all.filter(|path| !since.dirty.contains_key(*path)).collect();
        let before = match since.commit.as_deref() {
            Some(base) => self.blobs(base, new.clone())?,
            None => BTreeMap::new(),
        };
        let is_same = |path: &&String| {
            let blob = before.get(*path).map(|(_, blob)| blob);
            blob.is_some() && blob == look.hashes.get(*path)
        };
        let changed = new.into_iter().filter(|path| !is_same(path));
        Ok(changed
            .map(|path| (path.clone(), !before.contains_key(path)))
            .collect())
    }

    /// Files, links and directories of the work tree in the directories of these paths, by path.
    pub(super) fn entries_on_disk<'p>(
        &self,
        paths: impl Iterator<Item = &'p String>,
    ) -> BTreeMap<String, FileEntry> {
        let parent = |path: &'p String| path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let directories: BTreeSet<&str> = paths.map(parent).collect();
        let mut entries = BTreeMap::new();
        for directory in directories {
            let place = self.pathspec(directory);
            let mut after: Option<String> = None;
            while let Ok(listed) =
                self.workspace
                    .list(place.trim_end_matches('/'), after.as_deref(), MAX_ENTRIES)
            {
                let Some(last) = listed.last() else { break };
                after = last.path.rsplit('/').next().map(str::to_owned);
                for entry in listed {
                    let name = entry.path.rsplit('/').next().unwrap_or_default();
                    let path = match directory {
                        "" => name.to_owned(),
                        directory => format!("{directory}/{name}"),
                    };
                    entries.insert(path, entry);
                }
            }
        }
        entries
    }

    /// Hashes of the bytes of these files, in order.
    fn raw_hashes(&self, paths: &[&String]) -> Result<Vec<String>, GitFault> {
        let specs: Vec<String> = paths.iter().map(|path| self.pathspec(path)).collect();
        // Git reads one path from each line, and quotation marks at its beginning.
        let is_plain = |spec: &String| !spec.contains('\n') && !spec.starts_with('"');
        if !specs.iter().all(is_plain) {
            let mut hashes = Vec::new();
            for chunk in specs.chunks(500) {
                hashes.extend(self.hash_objects(chunk)?);
            }
            return Ok(hashes);
        }
        let mut text = specs.join("\n");
        text.push('\n');
        let printed = self.run_with(&["hash-object", "--no-filters", "--stdin-paths"], text.as_bytes())?;
        Ok(tollgate_kit::git::lines(&printed).collect())
    }
}

/// Paths for several runs of Git.
#[derive(Default)]
struct Runs<'p> {
    all: Vec<Vec<&'p String>>,
    /// Bytes of the last run, and of all.
    last: u64,
    total: u64,
}

impl<'p> Runs<'p> {
    /// Adds a file. False if it is too large.
    fn take(&mut self, path: &'p String, size: u64) -> bool {
        let (last, total) = (self.last.saturating_add(size), self.total.saturating_add(size));
        if size > MAX_RUN_BYTES || total > MAX_LOOK_BYTES {
            return false;
        }
        self.total = total;
        match self
            .all
            .last_mut()
            .filter(|run| last <= MAX_RUN_BYTES && run.len() < PATHS_PER_RUN)
        {
            Some(run) => {
                self.last = last;
                run.push(path);
            }
            None => {
                self.last = size;
                self.all.push(vec![path]);
            }
        }
        true
    }
}
