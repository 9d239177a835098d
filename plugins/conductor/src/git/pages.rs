//! Listings of any size: one output of Git, or several about parts of the repository.

use tollgate_kit::git::{RepoPath, parse_paths, text};
use tollgate_sdk::workspace::MAX_ENTRIES;

use super::Git;
use crate::error::GitFault;

/// Maximum paths in one run of Git, so that no argument list gets too long.
const PATHS_PER_RUN: usize = 1_000;

impl Git<'_> {
    /// Outputs of a command about the job's repository. If one output would be too large, the command runs for
    /// parts of the tree. `revisions` name commits whose files count as well as those of the work tree.
    pub(crate) fn pages(&self, arguments: &[&str], revisions: &[&str]) -> Result<Vec<Vec<u8>>, GitFault> {
        self.pages_of(arguments, revisions, vec![self.pathspec("")])
    }

    /// Like [`Git::pages`], for some paths of the workspace.
    pub(crate) fn pages_of(
        &self,
        arguments: &[&str],
        revisions: &[&str],
        paths: Vec<String>,
    ) -> Result<Vec<Vec<u8>>, GitFault> {
        let mut pages = Vec::new();
        // Groups of paths that are still to list; the last one is next.
        let mut groups: Vec<Vec<String>> = paths
            .chunks(PATHS_PER_RUN)
            .rev()
            .map(<[String]>::to_vec)
            .collect();
        while let Some(group) = groups.pop() {
            let mut words = arguments.to_vec();
            words.push("--");
            words.extend(group.iter().map(String::as_str));
            match self.run(&words) {
                Ok(printed) => pages.push(printed),
                Err(fault @ GitFault::TooMuch { .. }) => {
                    let parts = match group.as_slice() {
                        [one] => self.children(one, revisions)?,
                        _ => group,
                    };
                    if parts.is_empty() {
                        return Err(fault);
                    }
                    let size = parts.len().div_ceil(2).min(PATHS_PER_RUN);
                    groups.extend(parts.chunks(size).rev().map(<[String]>::to_vec));
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(pages)
    }

    /// Paths of the job's repository that a command lists, each ended by NUL.
    pub(crate) fn paths(&self, arguments: &[&str]) -> Result<Vec<String>, GitFault> {
        let pages = self.pages(arguments, &["HEAD"])?;
        Ok(self.listed(&pages))
    }

    /// Paths of the job's repository in outputs of `ls-files -z --full-name`.
    pub(crate) fn listed(&self, pages: &[Vec<u8>]) -> Vec<String> {
        let paths = pages.iter().flat_map(|page| parse_paths(page).entries);
        paths.filter_map(|path: RepoPath| self.inside(&path)).collect()
    }

    /// Paths of the workspace directly below a directory, in the work tree or in a commit. Empty for a file.
    fn children(&self, directory: &str, revisions: &[&str]) -> Result<Vec<String>, GitFault> {
        let mut children = std::collections::BTreeSet::new();
        let plain = directory.trim_end_matches('/');
        let mut after: Option<String> = None;
        while let Ok(listed) = self.workspace.list(plain, after.as_deref(), MAX_ENTRIES) {
            let Some(last) = listed.last() else { break };
            after = last.path.rsplit('/').next().map(str::to_owned);
            let entries = listed.into_iter().map(|entry| entry.path);
            children.extend(entries.filter(|path| path.rsplit('/').next() != Some(".git")));
        }
        let below = match plain {
            "." => Vec::new(),
            plain => vec!["--".to_owned(), format!("{plain}/")],
        };
        for revision in revisions {
            let mut words = vec!["ls-tree", "--name-only", "-z", revision];
            words.extend(below.iter().map(String::as_str));
            // Before the first commit there is none to list.
            let printed = self.beginning(&words).unwrap_or_default();
            let names = printed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            children.extend(names.map(text));
        }
        children.remove(plain);
        Ok(children.into_iter().collect())
    }
}
