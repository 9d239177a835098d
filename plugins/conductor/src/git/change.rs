//! What changed since a step began.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_kit::git::{
    FileStat, NameStatus, RepoPath, lines, parse_name_status, parse_numstat, parse_paths,
};

use super::{Git, parse};
use crate::error::GitFault;
use crate::gate::decide::{Change, Commit, GitFacts};
use crate::store::job::Baseline;

/// Paths in one run of git, so that no argument list gets too long.
const CHUNK: usize = 200;

impl Git<'_> {
    /// Git's state now, which the changes of the next step are counted from.
    pub(crate) fn baseline(&self) -> Result<Baseline, GitFault> {
        let status = self.status()?;
        let paths: Vec<String> = status.entries.into_iter().map(|entry| entry.path).collect();
        Ok(Baseline {
            commit: status.head.commit,
            dirty: self.hashes(&paths)?,
        })
    }

    /// The hash of each file's content, empty for those that are gone. Nothing is stored.
    fn hashes(&self, paths: &[String]) -> Result<BTreeMap<String, String>, GitFault> {
        let mut hashes = BTreeMap::new();
        let mut there = Vec::new();
        for path in paths {
            let entry = self.workspace.find(&self.pathspec(path));
            match entry.ok().flatten().map(|entry| entry.kind) {
                Some(tollgate_sdk::FileKind::File) => there.push(path),
                _ => {
                    hashes.insert(path.clone(), String::new());
                }
            }
        }
        for chunk in there.chunks(CHUNK) {
            let specs: Vec<String> = chunk.iter().map(|path| self.pathspec(path)).collect();
            let mut arguments = vec!["hash-object", "--no-filters", "--"];
            arguments.extend(specs.iter().map(String::as_str));
            let printed = self.run(&arguments)?;
            for (path, hash) in chunk.iter().zip(lines(&printed)) {
                hashes.insert((*path).clone(), hash);
            }
        }
        Ok(hashes)
    }

    /// What changed since a baseline, committed or not. Without one everything uncommitted counts.
    pub(crate) fn facts(&self, since: Option<&Baseline>, commit: Option<&str>) -> Result<GitFacts, GitFault> {
        let status = self.status()?;
        let uncommitted: Vec<String> = status.entries.iter().map(|entry| entry.path.clone()).collect();
        let base = match since {
            Some(baseline) => baseline.commit.clone(),
            None => status.head.commit.clone(),
        };
        let mut changed = self.changes(base.as_deref(), &status)?;
        if let Some(baseline) = since.filter(|baseline| !baseline.dirty.is_empty()) {
            let paths: Vec<String> = changed.iter().map(|change| change.path.clone()).collect();
            let now = self.hashes(&paths)?;
            changed.retain(|change| baseline.dirty.get(&change.path) != now.get(&change.path));
            for change in &mut changed {
                change.new &= !baseline.dirty.contains_key(&change.path);
            }
        }
        Ok(GitFacts {
            changed,
            uncommitted,
            commit: commit
                .map(|hash| self.classify(hash, base.as_deref()))
                .transpose()?,
        })
    }

    /// Every path that differs between a commit and the working tree, with untracked ones.
    fn changes(&self, base: Option<&str>, status: &parse::Status) -> Result<Vec<Change>, GitFault> {
        let Some(base) = base else {
            return self.everything();
        };
        let names = self.run(&["diff", "--name-status", "-z", "--no-renames", base])?;
        let counts = self.run(&["diff", "--numstat", "-z", "--no-renames", base])?;
        let counts: BTreeMap<RepoPath, u64> = parse_numstat(&counts)
            .entries
            .into_iter()
            .filter_map(|FileStat { path, lines, .. }| {
                lines.map(|(added, removed)| (path, added.saturating_add(removed)))
            })
            .collect();
        let mut changes: Vec<Change> = parse_name_status(&names)
            .entries
            .into_iter()
            .filter_map(|NameStatus { letter, path }| {
                Some(Change {
                    lines: counts.get(&path).copied().unwrap_or(0),
                    path: self.inside(&path)?,
                    new: letter == 'A',
                })
            })
            .collect();
        let untracked = status.entries.iter().filter(|entry| entry.unstaged == '?');
        changes.extend(untracked.map(|entry| self.new_file(&entry.path)));
        Ok(changes)
    }

    /// Before the first commit every file is new.
    fn everything(&self) -> Result<Vec<Change>, GitFault> {
        let listed = self.run(&[
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "--full-name",
        ])?;
        let listed = parse_paths(&listed).entries;
        let paths: BTreeSet<String> = listed.iter().filter_map(|path| self.inside(path)).collect();
        Ok(paths.iter().map(|path| self.new_file(path)).collect())
    }

    fn new_file(&self, path: &str) -> Change {
        Change {
            path: path.to_owned(),
            lines: self.lines_of(path),
            new: true,
        }
    }

    /// What a submitted commit is to the step.
    fn classify(&self, hash: &str, base: Option<&str>) -> Result<Commit, GitFault> {
        let Some(hash) = self.commit(hash)? else {
            return Ok(Commit::Unknown);
        };
        if !self.is_ancestor(&hash, "HEAD")? {
            return Ok(Commit::Elsewhere);
        }
        let old = match base {
            Some(base) => self.is_ancestor(&hash, base)?,
            None => false,
        };
        Ok(if old { Commit::Old } else { Commit::New })
    }
}
