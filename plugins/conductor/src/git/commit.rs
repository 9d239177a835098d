//! Facts about the commit that a submission names.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_kit::git::{lines, text};
use tollgate_sdk::FileKind;

use super::Git;
use super::parse::Entry;
use crate::error::GitFault;
use crate::gate::known::{Commit, CommitFacts};
use crate::store::job::Baseline;

/// Files in one run of `git hash-object`.
const FILES_PER_RUN: usize = 500;

impl Git<'_> {
    /// Status of the files that a commit of the work tree at these paths of the workspace would contain. Omits files
    /// whose changes are only staged: the work tree has them as HEAD does, and a commit would unstage the changes.
    pub(crate) fn committable(&self, specs: &[&str]) -> Result<Vec<Entry>, GitFault> {
        let mut status = self.status()?;
        if status.head.commit.is_none() {
            status
                .entries
                .retain(|entry| (entry.staged, entry.unstaged) != ('A', 'D'));
            return Ok(status.entries);
        }
        let arguments = [
            "diff",
            "--name-only",
            "-z",
            "--no-renames",
            "--no-relative",
            "HEAD",
        ];
        let specs = specs.iter().map(|&spec| spec.to_owned()).collect();
        let differing = self.listed(&self.pages_of(&arguments, &["HEAD"], specs)?);
        let mut changed: BTreeSet<String> = differing.into_iter().collect();
        let is_untracked = |entry: &&Entry| entry.unstaged == '?';
        let untracked: BTreeSet<String> = status
            .entries
            .iter()
            .filter(is_untracked)
            .map(|entry| entry.path.clone())
            .collect();
        // Removed from the index only, so that both Git's diff and its list of untracked files have it.
        let unindexed: BTreeSet<String> = changed.intersection(&untracked).cloned().collect();
        changed.extend(untracked);
        for path in self.as_in_head(&unindexed)? {
            changed.remove(&path);
        }
        status.entries.retain(|entry| changed.contains(&entry.path));
        Ok(status.entries)
    }

    /// Paths whose files have the same content as in HEAD, whatever the index has.
    fn as_in_head(&self, paths: &BTreeSet<String>) -> Result<Vec<String>, GitFault> {
        let committed = self.blobs("HEAD", paths.iter().collect())?;
        let is_file = |path: &&String| {
            let found = self.workspace.find(&self.pathspec(path)).ok().flatten();
            found.is_some_and(|entry| entry.kind == FileKind::File)
        };
        let files: Vec<&String> = paths.iter().filter(is_file).collect();
        let mut same = Vec::new();
        for chunk in files.chunks(FILES_PER_RUN) {
            let specs: Vec<String> = chunk.iter().map(|path| self.pathspec(path)).collect();
            let mut arguments = vec!["hash-object", "--"];
            arguments.extend(specs.iter().map(String::as_str));
            let printed = self.run(&arguments)?;
            for (path, hash) in chunk.iter().zip(lines(&printed)) {
                if committed.get(*path).is_some_and(|(_, blob)| *blob == hash) {
                    same.push((*path).clone());
                }
            }
        }
        Ok(same)
    }

    /// Facts about a submitted commit, compared with the state when the step began.
    pub(crate) fn commit_facts(
        &self,
        name: &str,
        since: Option<&Baseline>,
        head: Option<&str>,
    ) -> Result<CommitFacts, GitFault> {
        let Some(hash) = self.commit(name)? else {
            return Ok(CommitFacts::default());
        };
        let base = match since {
            Some(baseline) => baseline.commit.as_deref(),
            None => head,
        };
        let is_old = match (since, base) {
            (Some(_), Some(base)) => self.is_ancestor(&hash, base)?,
            _ => false,
        };
        let standing = match () {
            () if !self.is_ancestor(&hash, "HEAD")? => Commit::Elsewhere,
            () if is_old => Commit::Old,
            () => Commit::New,
        };
        let listed = self.touched(&hash, base)?;
        let is_undone = standing == Commit::New && self.is_undone(&listed, base)?;
        let printed = self.beginning_of_text(&["log", "--max-count=1", "--format=%B", &hash]);
        let printed = printed.unwrap_or_default();
        Ok(CommitFacts {
            is_empty: listed.is_empty(),
            is_undone,
            files: listed,
            message: text(printed.trim_ascii()),
            standing,
            hash,
        })
    }

    /// Checks whether HEAD has all of these paths as a commit before it.
    fn is_undone(&self, paths: &[String], base: Option<&str>) -> Result<bool, GitFault> {
        let paths: BTreeSet<&String> = paths.iter().collect();
        let before = match base {
            Some(base) => self.blobs(base, paths.clone())?,
            None => BTreeMap::new(),
        };
        Ok(!paths.is_empty() && self.blobs("HEAD", paths)? == before)
    }
}
