//! Files that no entry point leads to, read from the work tree as it is now.

use std::collections::BTreeSet;

use conductor_repo::facts::FactBook;
use conductor_repo::map::{Notes, RepoMap};
use conductor_repo::snapshot::{self, FileRecord, Limits};
use conductor_repo::stale::Reason;

use crate::access::Access;

/// Files that nothing imports, or that only unreachable files import.
pub(crate) fn unreachable(access: &Access<'_>) -> Result<Reach, String> {
    let mut book = FactBook::default();
    let mut observe = |file: &FileRecord, bytes: &[u8]| book.learn(file, bytes);
    let taken = snapshot::take(access, &Limits::DEFAULT, None, 0, &mut observe);
    let snapshot = taken.map_err(|err| err.to_string())?.snapshot;
    if snapshot.is_partial() {
        return Err("the repository is too large to be read whole".to_owned());
    }
    let map = RepoMap::build(&snapshot, &book, &Notes::default());
    let is_apart = |reason: &Reason| matches!(reason, Reason::NeverImported { .. } | Reason::Unreachable);
    let apart = map
        .stale
        .iter()
        .filter(|candidate| candidate.reasons.iter().any(is_apart));
    Ok(Reach {
        apart: apart.map(|candidate| candidate.path.clone()).collect(),
        files: map.files.into_iter().map(|file| file.path).collect(),
    })
}

/// Files of a repository.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach {
    /// Files that no entry point leads to.
    pub apart: BTreeSet<String>,
    /// All files.
    pub files: BTreeSet<String>,
}
