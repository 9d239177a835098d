//! Content that commits since a baseline and the index hold, whatever the work tree looks like now. A commit that
//! is reverted, or whose files are put back afterwards, stays in the history.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_kit::git::RepoPath;

use super::Git;
use super::look::Look;
use crate::error::GitFault;
use crate::store::job::Baseline;

/// Options of a list of blobs that a commit or the index has in place of others.
const RAW_OPTIONS: [&str; 5] = ["--raw", "-z", "--abbrev=64", "--no-renames", "--no-relative"];
/// Maximum paths in one run of `git ls-tree`.
const PATHS_PER_RUN: usize = 500;
/// Maximum commits of which each is compared with the baseline to count lines. Of more, all their lines add up.
const MAX_COMPARED_COMMITS: usize = 100;

/// A path that a commit or the index changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    path: String,
    /// Mode and blob afterwards; the blob of a deleted path is empty.
    mode: String,
    blob: String,
}

/// Changes of commits and of the index.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Each path, and whether it is new.
    pub paths: BTreeMap<String, bool>,
    /// Commits since the baseline, oldest first.
    commits: Vec<String>,
}

impl Git<'_> {
    /// Paths that a commit since the baseline or the index gave other content than the baseline knows.
    pub(super) fn held(&self, since: &Baseline, look: &Look) -> Result<Held, GitFault> {
        let (base, head) = (since.commit.as_deref(), look.commit.as_deref());
        let mut held = Held::default();
        let mut entries = Vec::new();
        if let Some(head) = head.filter(|head| Some(*head) != base) {
            let range = base.map_or_else(|| head.to_owned(), |base| format!("{base}..{head}"));
            let listed = self.run(&["rev-list", "--reverse", &range, "--"])?;
            held.commits = tollgate_kit::git::lines(&listed).collect();
            for page in self.raw_of(&range, &held.commits)? {
                entries.extend(self.entries(&page));
            }
        }
        let staged = look.staged.iter().filter(|(path, _)| !path.ends_with('/'));
        entries.extend(staged.map(|(path, blob)| Entry {
            path: path.clone(),
            blob: blob.clone(),
            ..Entry::empty()
        }));
        let paths: BTreeSet<&String> = entries.iter().map(|entry| &entry.path).collect();
        let before = match base {
            Some(base) => self.blobs(base, paths)?,
            None => BTreeMap::new(),
        };
        for entry in entries {
            if is_known(&entry, since, before.get(&entry.path)) {
                continue;
            }
            let is_new = !before.contains_key(&entry.path) && !since.dirty.contains_key(&entry.path);
            held.paths.insert(entry.path, is_new);
        }
        Ok(held)
    }

    /// Raw differences of all commits of a range.
    fn raw_of(&self, range: &str, commits: &[String]) -> Result<Vec<Vec<u8>>, GitFault> {
        let log = ["log", "--reverse", "--root", "-c", "--format="];
        match self.run(&[log.as_slice(), &RAW_OPTIONS, &[range, "--"]].concat()) {
            Ok(printed) => return Ok(vec![printed]),
            Err(GitFault::TooMuch { .. }) => {}
            Err(fault) => return Err(fault),
        }
        let mut pages = Vec::new();
        let tree = ["diff-tree", "--no-commit-id", "-r", "-c", "--root"];
        for commit in commits {
            let words = [tree.as_slice(), &RAW_OPTIONS, &[commit.as_str()]].concat();
            pages.extend(self.pages(&words, &[commit])?);
        }
        Ok(pages)
    }

    /// Index entries that differ from HEAD: the blob of each path, empty for those that are gone.
    pub(super) fn staged(&self, head: Option<&str>) -> Result<BTreeMap<String, String>, GitFault> {
        if head.is_none() {
            return Ok(BTreeMap::new());
        }
        let words = [["diff", "--cached"].as_slice(), &RAW_OPTIONS, &["HEAD"]].concat();
        let pages = self.pages(&words, &["HEAD"])?;
        let entries = pages.iter().flat_map(|page| self.entries(page));
        Ok(entries.map(|entry| (entry.path, entry.blob)).collect())
    }

    fn entries(&self, printed: &[u8]) -> Vec<Entry> {
        let mut words = printed.split(|byte| *byte == 0);
        let mut entries = Vec::new();
        while let Some(facts) = words.next() {
            let facts = facts.trim_ascii_start();
            if facts.first() != Some(&b':') {
                continue;
            }
            let Some(path) = words.next() else { break };
            if let Some(path) = self.inside(&RepoPath::from_bytes(path)) {
                entries.extend(Entry::read(facts, path));
            }
        }
        entries
    }

    /// Mode and blob of each of these paths in a commit.
    pub(super) fn blobs(
        &self,
        commit: &str,
        paths: BTreeSet<&String>,
    ) -> Result<BTreeMap<String, (String, String)>, GitFault> {
        let mut blobs = BTreeMap::new();
        let paths: Vec<String> = paths.into_iter().map(|path| self.pathspec(path)).collect();
        for chunk in paths.chunks(PATHS_PER_RUN) {
            let mut words = vec!["ls-tree", "-r", "-z", "--full-name", commit, "--"];
            words.extend(chunk.iter().map(String::as_str));
            let printed = self.run(&words)?;
            for entry in printed.split(|byte| *byte == 0) {
                let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else {
                    continue;
                };
                let (facts, path) = entry.split_at(tab);
                let facts = String::from_utf8_lossy(facts);
                let mut facts = facts.split(' ');
                let path = RepoPath::from_bytes(path.get(1..).unwrap_or_default());
                if let (Some(mode), Some(_), Some(blob), Some(path)) =
                    (facts.next(), facts.next(), facts.next(), self.inside(&path))
                {
                    blobs.insert(path, (mode.to_owned(), blob.to_owned()));
                }
            }
        }
        Ok(blobs)
    }

    /// Paths that a commit gives other content than a commit before it. An old commit that is made anew has none.
    pub(super) fn touched(&self, commit: &str, base: Option<&str>) -> Result<Vec<String>, GitFault> {
        let tree = ["diff-tree", "--no-commit-id", "-r", "-m", "--root"];
        let printed = self.beginning(&[tree.as_slice(), &RAW_OPTIONS, &[commit]].concat())?;
        let entries = self.entries(&printed);
        let before = match base {
            Some(base) if base != commit => {
                self.blobs(base, entries.iter().map(|entry| &entry.path).collect())?
            }
            _ => BTreeMap::new(),
        };
        let none = Baseline::default();
        let is_new = |entry: &Entry| base == Some(commit) || !is_known(entry, &none, before.get(&entry.path));
        Ok(entries
            .into_iter()
            .filter(is_new)
            .map(|entry| entry.path)
            .collect())
    }

    /// Most lines by which the index or a commit differs from the baseline, for each path.
    pub(super) fn held_lines(&self, base: &str, held: &Held) -> Result<BTreeMap<String, u64>, GitFault> {
        let mut most = self.counts(&["--cached", base], Some(""))?;
        let one_by_one = held.commits.len() <= MAX_COMPARED_COMMITS;
        for commit in &held.commits {
            let parent = format!("{commit}^");
            let from = match one_by_one || self.commit(&parent)?.is_none() {
                true => base,
                false => &parent,
            };
            for (path, lines) in self.counts(&[from, commit], Some(commit))? {
                let known = most.entry(path).or_default();
                *known = match one_by_one {
                    true => lines.max(*known),
                    false => known.saturating_add(lines),
                };
            }
        }
        Ok(most)
    }
}

/// Checks whether the baseline had this content, committed, in the index or in the work tree.
fn is_known(entry: &Entry, since: &Baseline, before: Option<&(String, String)>) -> bool {
    let is_same = match before {
        Some((mode, blob)) => *blob == entry.blob && (entry.mode.is_empty() || *mode == entry.mode),
        None => entry.blob.is_empty(),
    };
    let is_dropping = since.droppings.contains(&entry.path);
    is_same
        || since.staged.get(&entry.path) == Some(&entry.blob)
        || (!is_dropping && since.dirty.get(&entry.path) == Some(&entry.blob))
}

impl Entry {
    fn empty() -> Entry {
        Entry {
            path: String::new(),
            mode: String::new(),
            blob: String::new(),
        }
    }

    /// Reads `:MODES HASHES STATUS`, with one colon for each parent.
    fn read(facts: &[u8], path: String) -> Option<Entry> {
        let parents = facts.iter().take_while(|byte| **byte == b':').count();
        let facts = String::from_utf8_lossy(facts.get(parents..)?);
        let fields: Vec<&str> = facts.split(' ').collect();
        let blob = *fields.get(parents.checked_mul(2)?.checked_add(1)?)?;
        let is_gone = blob.bytes().all(|byte| byte == b'0');
        Some(Entry {
            path,
            mode: (*fields.get(parents)?).to_owned(),
            blob: if is_gone { String::new() } else { blob.to_owned() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Entry;

    #[test]
    fn entries_of_merges_name_the_result() {
        let read = |facts: &str| {
            let entry = Entry::read(facts.as_bytes(), "a".to_owned()).unwrap();
            (entry.mode, entry.blob)
        };
        let is = |mode: &str, blob: &str| (mode.to_owned(), blob.to_owned());
        assert_eq!(read(":100644 100755 aa bb M"), is("100755", "bb"));
        assert_eq!(read(":100644 000000 aa 00 D"), is("000000", ""));
        assert_eq!(read("::100644 100644 100644 aa bb cc MM"), is("100644", "cc"));
        assert_eq!(Entry::read(b":100644", "a".to_owned()), None);
    }
}
