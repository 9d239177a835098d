//! `git diff --numstat -z`, `git diff --raw -z`, `git ls-files -s -z`, and lists of paths.

use super::{Change, Entries, Listing, RepoPath, Status, fields, hash, mode};

/// How many lines of a file were added and removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// Which file.
    pub path: RepoPath,
    /// The path it had, if Git takes it for renamed.
    pub from: Option<RepoPath>,
    /// Lines added and lines removed; none of a binary file.
    pub lines: Option<(u64, u64)>,
}

impl FileStat {
    /// An untracked file, which no diff tells: all its lines are new.
    #[must_use]
    pub fn of_new_file(path: RepoPath, content: &[u8]) -> FileStat {
        // As Git decides it: by the first bytes.
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

/// Reads `git diff --numstat -z`.
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
        // Of a rename the path is empty, and both follow.
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

/// Reads `git diff --raw --no-abbrev -z <commit>`: what differs from a commit, without untracked
/// files.
#[must_use]
pub fn parse_raw(output: &[u8]) -> Listing<Change> {
    Entries::new(output).read(|entry, rest, changes| {
        let entry = std::str::from_utf8(entry.strip_prefix(b":")?).ok()?;
        let mut words = entry.split(' ');
        let (_, after, _, content, letter) = (
            words.next()?,
            words.next()?,
            words.next()?,
            words.next()?,
            words.next()?,
        );
        let mut path = RepoPath::from_bytes(rest.next()?);
        if letter.starts_with(['R', 'C']) {
            let from = std::mem::replace(&mut path, RepoPath::from_bytes(rest.next()?));
            if letter.starts_with('R') {
                changes.push(Change {
                    path: from,
                    status: Status::Deleted,
                    mode: None,
                    content: None,
                });
            }
        }
        let status = match letter.as_bytes().first()? {
            b'A' | b'C' | b'R' => Status::Added,
            b'D' => Status::Deleted,
            b'M' | b'T' => Status::Modified,
            b'U' => Status::Conflicted,
            _ => return None,
        };
        let mode = mode(after).filter(|mode| *mode != 0);
        changes.push(Change {
            path,
            status,
            mode,
            content: hash(content),
        });
        Some(())
    })
}

/// A path in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// Which.
    pub path: RepoPath,
    /// Its mode.
    pub mode: u32,
    /// The hash of its content.
    pub content: String,
    /// 0, or which side of a merge it is.
    pub stage: u8,
}

/// Reads `git ls-files -s -z`.
#[must_use]
pub fn parse_staged(output: &[u8]) -> Listing<Staged> {
    Entries::new(output).read(|entry, _, staged| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let (head, path) = entry.split_at_checked(tab)?;
        let ([octal, content], stage) = fields::<2>(head)?;
        staged.push(Staged {
            path: RepoPath::from_bytes(path.get(1..).filter(|path| !path.is_empty())?),
            mode: mode(octal)?,
            content: content.to_owned(),
            stage: std::str::from_utf8(stage).ok()?.parse().ok()?,
        });
        Some(())
    })
}

/// Reads paths that end with NUL, as `git ls-files --others --exclude-standard -z` writes them.
#[must_use]
pub fn parse_paths(output: &[u8]) -> Listing<RepoPath> {
    Entries::new(output).read(|entry, _, paths| {
        paths.push(RepoPath::from_bytes(
            Some(entry).filter(|entry| !entry.is_empty())?,
        ));
        Some(())
    })
}
