//! `git diff --raw -z` and `git ls-files -s -z`.

use tollgate_kit::git::{Entries, fields, hash, mode};

use super::{Change, Listing, RepoPath, Status};

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
    /// The path itself.
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
