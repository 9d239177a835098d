//! State of a work tree at one moment, with everything that Git's index or exclude files could hide.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use test_readers::digest::Encoder;
use tollgate_kit::git::{RepoPath, lines};
use tollgate_sdk::workspace::MAX_ENTRIES;
use tollgate_sdk::{FileEntry, FileKind};

use super::Git;
use super::untracked::Untracked;
use crate::digest::digest;
use crate::error::GitFault;
use crate::gate::newcomers::may_take_part;
use crate::store::job::Baseline;

/// Paths in one run of `git hash-object`.
const PATHS_PER_RUN: usize = 500;
/// Maximum files of a nested repository whose content is hashed. Of larger ones, size and time count.
const MAX_NESTED_FILES: usize = 5_000;

/// State of a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Commit of HEAD; `None` before the first commit.
    pub commit: Option<String>,
    /// Tracked paths that differ from HEAD.
    pub tracked: BTreeSet<String>,
    /// Paths that Git does not track and no `.gitignore` ignores that was committed when the step began.
    pub untracked: BTreeSet<String>,
    /// Paths of `untracked` that Git itself does not show.
    pub hidden: BTreeSet<String>,
    /// Paths of `untracked` that a `.gitignore` ignores which was committed since the step began.
    pub late: BTreeSet<String>,
    /// Tracked paths whose changes the index hides from Git.
    pub flagged: BTreeSet<String>,
    /// Tracked paths that Git takes for unchanged, although the index has other bytes.
    pub veiled: BTreeSet<String>,
    /// Hash of the content of each of these paths, and of each nested repository.
    pub hashes: BTreeMap<String, String>,
    /// Time of the last change of each file and link on disk.
    pub times: BTreeMap<String, i64>,
    /// Blob of each path that the index holds in place of HEAD's, empty for those that are gone.
    pub staged: BTreeMap<String, String>,
}

/// Entries of the index.
#[derive(Debug, Default)]
pub(super) struct Index {
    flagged: BTreeSet<String>,
    submodules: BTreeSet<String>,
    /// Mode and blob of each file and link, as Git writes them, with a blank between.
    pub files: BTreeMap<String, String>,
}

impl Look {
    /// Uncommitted paths, but those that a gate's command wrote or that Git's user hides from Git.
    pub(crate) fn uncommitted(&self, since: Option<&Baseline>) -> Vec<String> {
        let known = |path: &String| {
            since.is_some_and(|baseline| {
                baseline.is_dropping(path, self.hashes.get(path))
                    || (self.hidden.contains(path)
                        && (!baseline.whole || baseline.dirty.get(path) == self.hashes.get(path)))
            })
        };
        let untracked = self
            .untracked
            .iter()
            .filter(|path| !known(path) && !self.late.contains(*path));
        let is_new = |path: &&String| {
            since.is_some_and(|since| since.raw && since.dirty.get(*path) != self.hashes.get(*path))
        };
        let veiled = self.veiled.iter().filter(is_new);
        self.tracked
            .iter()
            .chain(untracked)
            .chain(veiled)
            .cloned()
            .collect()
    }

    /// Hash of the state, without what commands of gates left behind.
    pub(crate) fn state(&self, since: Option<&Baseline>) -> String {
        let is_dropping = |path: &String, hash: &String| {
            since.is_some_and(|baseline| baseline.is_dropping(path, Some(hash)))
        };
        let paths = self.hashes.iter().filter(|(path, hash)| !is_dropping(path, hash));
        let mut encoder = Encoder::new("conductor.work_tree.v1");
        encoder.optional(self.commit.as_deref().map(str::as_bytes));
        for (path, hash) in paths {
            encoder.field(path.as_bytes());
            encoder.field(hash.as_bytes());
        }
        encoder.finish()
    }

    /// The state as the baseline of a step.
    pub(crate) fn baseline(&self) -> Baseline {
        Baseline {
            commit: self.commit.clone(),
            dirty: self
                .hashes
                .iter()
                // Those that take part in tests count in later steps as well.
                .filter(|(path, _)| !self.late.contains(*path) || may_take_part(path))
                .map(|(path, hash)| (path.clone(), hash.clone()))
                .collect(),
            flagged: self.flagged.clone(),
            staged: self.staged.clone(),
            whole: true,
            raw: true,
            ..Baseline::default()
        }
    }
}

impl Git<'_> {
    /// Looks at the work tree, for a step or a job that begins.
    pub(crate) fn look(&self) -> Result<Look, GitFault> {
        self.look_since(None)
    }

    /// Looks at the work tree. Ignore rules that are newer than the step hide nothing.
    pub(crate) fn look_since(&self, since: Option<&Baseline>) -> Result<Look, GitFault> {
        let status = self.status_of("--untracked-files=no")?;
        let index = self.index()?;
        let Untracked {
            all: untracked,
            hidden,
            late,
        } = self.untracked(since)?;
        let tracked: BTreeSet<String> = status.entries.into_iter().map(|entry| entry.path).collect();
        let mut paths: BTreeSet<&String> = tracked.iter().chain(&untracked).chain(&index.flagged).collect();
        let nested: Vec<String> = index.submodules.iter().map(|path| format!("{path}/")).collect();
        paths.extend(&nested);
        let mut hashes = self.hashes(paths)?;
        let entries = self.entries_on_disk(index.files.keys().chain(&untracked));
        let veiled = self.veiled(&index, &hashes, &entries)?;
        let is_known = |path: &String| index.files.contains_key(path) || untracked.contains(path);
        let times = entries.into_iter().filter(|(path, _)| is_known(path));
        let times = times.map(|(path, entry)| (path, entry.modified_ms)).collect();
        let commit = self.head()?;
        Ok(Look {
            staged: self.staged(commit.as_deref())?,
            commit,
            tracked,
            untracked,
            hidden,
            late,
            times,
            flagged: index.flagged,
            veiled: veiled.keys().cloned().collect(),
            hashes: {
                hashes.extend(veiled);
                hashes
            },
        })
    }

    /// Entries of the index, with those that it hides from Git, and submodules.
    fn index(&self) -> Result<Index, GitFault> {
        let mut index = Index::default();
        let listed = self.pages(&["ls-files", "-z", "-s", "-v", "--full-name"], &["HEAD"])?;
        for entry in listed.iter().flat_map(|page| page.split(|byte| *byte == 0)) {
            let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else {
                continue;
            };
            let (facts, path) = entry.split_at(tab);
            let path = RepoPath::from_bytes(path.get(1..).unwrap_or_default());
            let Some(path) = self.inside(&path) else { continue };
            let tag = facts.first().copied().unwrap_or_default();
            if tag.is_ascii_lowercase() || tag == b'S' {
                index.flagged.insert(path.clone());
            }
            let facts = facts.get(2..).unwrap_or_default();
            match facts.strip_suffix(b" 0") {
                Some(_) if facts.starts_with(b"160000") => {
                    index.submodules.insert(path);
                }
                Some(blob) => {
                    index.files.insert(path, tollgate_kit::git::text(blob));
                }
                // A conflict, which Git shows.
                None => {}
            }
        }
        Ok(index)
    }

    /// The hash of each path's content, empty for those that are gone. Nothing is stored.
    pub(crate) fn hashes<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p String>,
    ) -> Result<BTreeMap<String, String>, GitFault> {
        let mut hashes = BTreeMap::new();
        let mut files = Vec::new();
        for path in paths {
            if path.ends_with('/') {
                hashes.insert(
                    path.clone(),
                    self.tree_hash(&self.pathspec(path.trim_end_matches('/')))?,
                );
                continue;
            }
            let entry = self.workspace.find(&self.pathspec(path)).ok().flatten();
            let told = match entry.map(|entry| (entry.kind, entry.modified_ms)) {
                Some((FileKind::File, _)) => {
                    files.push(path);
                    continue;
                }
                Some((FileKind::Symlink, modified)) => format!("link {modified}"),
                Some((FileKind::Directory, _)) => "directory".to_owned(),
                Some(_) => "other".to_owned(),
                None => String::new(),
            };
            hashes.insert(path.clone(), told);
        }
        for chunk in files.chunks(PATHS_PER_RUN) {
            let specs: Vec<String> = chunk.iter().map(|path| self.pathspec(path)).collect();
            let found = self.hash_objects(&specs)?;
            hashes.extend(chunk.iter().map(|path| (*path).clone()).zip(found));
        }
        Ok(hashes)
    }

    /// Hashes of files of the workspace, as Git computes them for blobs.
    pub(super) fn hash_objects(&self, specs: &[String]) -> Result<Vec<String>, GitFault> {
        let mut arguments = vec!["hash-object", "--no-filters", "--"];
        arguments.extend(specs.iter().map(String::as_str));
        Ok(lines(&self.run(&arguments)?).collect())
    }

    /// Entries of a directory at any depth, but directories and what is in a `.git`, up to a number.
    fn entries_below(&self, directory: &str, most: usize) -> Vec<FileEntry> {
        let mut files = Vec::new();
        let mut directories = vec![directory.to_owned()];
        while let Some(directory) = directories.pop() {
            let mut after: Option<String> = None;
            while let Ok(listed) = self.workspace.list(&directory, after.as_deref(), MAX_ENTRIES) {
                let Some(last) = listed.last().filter(|_| files.len() < most) else {
                    break;
                };
                after = last.path.rsplit('/').next().map(str::to_owned);
                for entry in listed {
                    match entry.kind {
                        _ if entry.path.rsplit('/').next() == Some(".git") => {}
                        FileKind::Directory => directories.push(entry.path),
                        _ => files.push(entry),
                    }
                }
            }
        }
        files
    }

    /// Paths of the files in a directory at any depth, up to a number.
    pub(crate) fn files_below(&self, directory: &str, most: usize) -> Vec<String> {
        let entries = self.entries_below(&self.pathspec(directory), most).into_iter();
        let below = |path: &str| path.strip_prefix(self.directory.as_str()).map(str::to_owned);
        entries.filter_map(|entry| below(&entry.path)).collect()
    }

    /// Checks whether there is a link at a path.
    pub(crate) fn is_link(&self, path: &str) -> bool {
        let found = self.workspace.find(&self.pathspec(path)).ok().flatten();
        found.is_some_and(|entry| entry.kind == FileKind::Symlink)
    }

    /// Hash of all files of a nested repository, which Git does not enter.
    fn tree_hash(&self, directory: &str) -> Result<String, GitFault> {
        let mut files = self.entries_below(directory, usize::MAX);
        if files.is_empty() {
            return Ok(String::new());
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let mut text = String::new();
        let (plain, odd): (Vec<_>, Vec<_>) = files
            .iter()
            .partition(|entry| entry.kind == FileKind::File && files.len() <= MAX_NESTED_FILES);
        for entry in odd {
            let _ = write!(text, "{} {} {}\0", entry.path, entry.size, entry.modified_ms);
        }
        for chunk in plain.chunks(PATHS_PER_RUN) {
            let specs: Vec<String> = chunk.iter().map(|entry| entry.path.clone()).collect();
            for (path, hash) in specs.iter().zip(self.hash_objects(&specs)?) {
                let _ = write!(text, "{path} {hash}\0");
            }
        }
        Ok(format!("tree {}", digest(&text)))
    }
}
