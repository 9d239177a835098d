//! `git diff --numstat -z`, `git diff --name-status -z`, and lists of paths.

use super::{Entries, Listing, RepoPath};

/// Numbers of added and removed lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// Path of the file.
    pub path: RepoPath,
    /// Previous path, if Git considers the file renamed.
    pub from: Option<RepoPath>,
    /// Number of added and of removed lines. `None` for a binary file.
    pub lines: Option<(u64, u64)>,
}

impl FileStat {
    /// Statistics of an untracked file, which no diff includes. All its lines are new.
    #[must_use]
    pub fn of_new_file(path: RepoPath, content: &[u8]) -> FileStat {
        // Git decides this by the first bytes as well.
        let is_binary = content.iter().take(8_000).any(|byte| *byte == 0);
        let ends = content.iter().filter(|byte| **byte == b'\n').count();
        let unended = usize::from(content.last().is_some_and(|last| *last != b'\n'));
        let lines = u64::try_from(ends.saturating_add(unended)).unwrap_or(u64::MAX);
        FileStat {
            path,
            from: None,
            lines: (!is_binary).then_some((lines, 0)),
        }
    }
}

/// Parses `git diff --numstat -z`.
#[must_use]
pub fn parse_numstat(output: &[u8]) -> Listing<FileStat> {
    Entries::new(output).read(|entry, rest, stats| {
        let mut parts = entry.splitn(3, |byte| *byte == b'\t');
        let mut number = || std::str::from_utf8(parts.next()?).ok();
        let (added, removed) = (number()?, number()?);
        let lines = match (added, removed) {
            ("-", "-") => None,
            _ => Some((added.parse().ok()?, removed.parse().ok()?)),
        };
        let path = parts.next()?;
        // For a rename the path is empty, and the old and new paths follow.
        let (from, path) = match path.is_empty() {
            true => (Some(RepoPath::from_bytes(rest.next()?)), rest.next()?),
            false => (None, path),
        };
        stats.push(FileStat {
            path: RepoPath::from_bytes(path),
            from,
            lines,
        });
        Some(())
    })
}

/// Parses NUL-terminated paths, as `git ls-files --others --exclude-standard -z` prints them.
#[must_use]
pub fn parse_paths(output: &[u8]) -> Listing<RepoPath> {
    Entries::new(output).read(|entry, _, paths| {
        paths.push(RepoPath::from_bytes(
            Some(entry).filter(|entry| !entry.is_empty())?,
        ));
        Some(())
    })
}

/// A path of `git diff --name-status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameStatus {
    /// Letter of the change, such as `A`, `M` or `D`.
    pub letter: char,
    /// Path. For a rename or copy, the new one.
    pub path: RepoPath,
}

/// Parses `git diff --name-status -z`.
#[must_use]
pub fn parse_name_status(output: &[u8]) -> Listing<NameStatus> {
    Entries::new(output).read(|entry, rest, all| {
        let letter = char::from(*entry.first()?);
        let mut path = rest.next()?;
        if matches!(letter, 'R' | 'C') {
            path = rest.next()?;
        }
        all.push(NameStatus {
            letter,
            path: RepoPath::from_bytes(path),
        });
        Some(())
    })
}
