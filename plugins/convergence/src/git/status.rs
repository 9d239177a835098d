//! `git status --porcelain=v2 -z --untracked-files=all`, as changes.

use tollgate_kit::git::{self, Kind, StatusEntry};

use super::{Change, Listing, Status};

/// The paths that differ from `HEAD`. A rename is a deleted path and an added one. Ignored paths are left out, and
/// paths that were added and are gone again.
#[must_use]
pub fn parse_status(output: &[u8]) -> Listing<Change> {
    let (_, listing) = git::parse_status(output);
    let mut changes = Vec::with_capacity(listing.entries.len());
    for entry in listing.entries {
        read(entry, &mut changes);
    }
    Listing {
        entries: changes,
        complete: listing.complete,
    }
}

fn read(entry: StatusEntry, changes: &mut Vec<Change>) {
    let is_there = entry.mode != 0;
    let status = match (&entry.kind, is_there) {
        (Kind::Untracked, _) => Status::Untracked,
        (Kind::Ordinary { head_mode: 0 }, false) => return,
        (Kind::Renamed(_) | Kind::Copied(_), false) => {
            changes.extend(origin(entry.kind));
            return;
        }
        (_, false) => Status::Deleted,
        (Kind::Unmerged, true) => Status::Conflicted,
        (Kind::Ordinary { head_mode: 0 } | Kind::Renamed(_) | Kind::Copied(_), true) => Status::Added,
        (Kind::Ordinary { .. }, true) => Status::Modified,
    };
    // The index has the content of a file that the work tree has not changed since.
    let as_in_index = entry.unstaged == '.' && is_there && entry.kind != Kind::Unmerged;
    changes.extend(origin(entry.kind));
    changes.push(Change {
        path: entry.path,
        status,
        mode: is_there.then_some(entry.mode),
        content: entry.content.filter(|_| as_in_index),
    });
}

/// The path that a rename leaves behind.
fn origin(kind: Kind) -> Option<Change> {
    match kind {
        Kind::Renamed(path) => Some(Change {
            path,
            status: Status::Deleted,
            mode: None,
            content: None,
        }),
        _ => None,
    }
}
