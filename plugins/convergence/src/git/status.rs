//! `git status --porcelain=v2 -z --untracked-files=all`.

use super::{Change, Entries, Listing, RepoPath, Status, fields, hash, mode};

/// The paths that differ from `HEAD`. A rename is a path that is gone and one that is new; what is
/// ignored is left out, and what was added and is gone again too.
#[must_use]
pub fn parse_status(output: &[u8]) -> Listing<Change> {
    Entries::new(output).read(|entry, rest, changes| match entry.split_at_checked(2)? {
        (b"1 ", entry) => ordinary(entry, changes),
        (b"2 ", entry) => renamed(entry, rest.next()?, changes),
        (b"u ", entry) => unmerged(entry, changes),
        (b"? ", path) => {
            changes.push(Change {
                path: RepoPath::from_bytes(path),
                status: Status::Untracked,
                mode: None,
                content: None,
            });
            Some(())
        }
        (b"! " | b"# ", _) => Some(()),
        _ => None,
    })
}

/// `<XY> <sub> <mH> <mI> <mW> <hH> <hI> <path>`.
fn ordinary(entry: &[u8], changes: &mut Vec<Change>) -> Option<()> {
    let ([xy, _, head, _, work_tree, _, index], path) = fields::<7>(entry)?;
    changes.extend(change(
        RepoPath::from_bytes(path),
        xy,
        mode(head)?,
        mode(work_tree)?,
        index,
    ));
    Some(())
}

/// `<XY> <sub> <mH> <mI> <mW> <hH> <hI> <X><score> <path>`, then the path it had.
fn renamed(entry: &[u8], from: &[u8], changes: &mut Vec<Change>) -> Option<()> {
    let ([xy, _, _, _, work_tree, _, index, score], path) = fields::<8>(entry)?;
    // A copy leaves the old path as it was.
    if score.starts_with('R') {
        changes.push(Change {
            path: RepoPath::from_bytes(from),
            status: Status::Deleted,
            mode: None,
            content: None,
        });
    }
    changes.extend(change(RepoPath::from_bytes(path), xy, 0, mode(work_tree)?, index));
    Some(())
}

/// `<XY> <sub> <m1> <m2> <m3> <mW> <h1> <h2> <h3> <path>`.
fn unmerged(entry: &[u8], changes: &mut Vec<Change>) -> Option<()> {
    let ([_, _, _, _, _, work_tree, _, _, _], path) = fields::<9>(entry)?;
    let mode = mode(work_tree)?;
    changes.push(Change {
        path: RepoPath::from_bytes(path),
        status: if mode == 0 {
            Status::Deleted
        } else {
            Status::Conflicted
        },
        mode: (mode != 0).then_some(mode),
        content: None,
    });
    Some(())
}

/// What became of a path that had the mode `head` and has the mode `work_tree`; 0 is no file.
fn change(path: RepoPath, xy: &str, head: u32, work_tree: u32, index: &str) -> Option<Change> {
    let status = match (head, work_tree) {
        (0, 0) => return None,
        (_, 0) => Status::Deleted,
        (0, _) => Status::Added,
        _ => Status::Modified,
    };
    let as_in_index = xy.ends_with('.') && status != Status::Deleted;
    Some(Change {
        path,
        status,
        mode: (work_tree != 0).then_some(work_tree),
        content: hash(index).filter(|_| as_in_index),
    })
}
