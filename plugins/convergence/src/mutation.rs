//! The fingerprint of a change: the same for the same content at the same paths.

use serde::Serialize;

use crate::digest::Encoder;
use crate::git::{Change, FileStat, RepoPath, Status, Symbol};

/// How many paths, lines and symbols are told. The hashes are over all.
pub const MAX_TOLD: usize = 500;

const FILES_TAG: &str = "tollgate.files_changed.v1";
const BASE_TAG: &str = "tollgate.mutation_on_base.v1";
const MUTATION_TAG: &str = "tollgate.mutation.v1";

/// How much changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DiffStats {
    /// Paths that were added, changed or removed.
    pub files_changed: u64,
    /// Lines that were added. Binary files have none.
    pub insertions: u64,
    /// Lines that were removed.
    pub deletions: u64,
}

/// A state of the work tree, as it differs from what it is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mutation {
    /// SHA-256 over all of it.
    pub fingerprint: String,
    /// SHA-256 over path, mode and content of each path, in the order of the paths.
    pub files_changed_hash: String,
    /// How much changed.
    pub diff_stats: DiffStats,
    /// What changed by name, from the headers of the hunks.
    pub symbol_changes: Vec<Symbol>,
    /// The paths that changed.
    pub changed_paths: Vec<RepoPath>,
    /// One line for each: `+ a.py`, `~ b.rs`, `- c.go`.
    pub short_diff: Vec<String>,
    /// How many more paths changed than are told.
    pub more_paths: u64,
}

impl Mutation {
    /// Puts together what Git and whoever hashed the files say. Order does not matter, and a path
    /// that is both deleted and there, as after `git rm --cached`, is there.
    #[must_use]
    pub fn new(changes: &[Change], stats: &[FileStat], symbols: &[Symbol]) -> Mutation {
        let mut changes: Vec<&Change> = changes.iter().collect();
        changes.sort_by_key(|change| (&change.path, change.status == Status::Deleted));
        changes.dedup_by(|later, first| later.path == first.path);
        let mut symbols: Vec<Symbol> = symbols.to_vec();
        symbols.sort();
        symbols.dedup();
        let files_changed_hash = files_changed_hash(&changes);
        let diff_stats = diff_stats(&changes, stats);
        let fingerprint = fingerprint(&files_changed_hash, diff_stats, &symbols);
        symbols.truncate(MAX_TOLD);
        Mutation {
            fingerprint,
            files_changed_hash,
            diff_stats,
            symbol_changes: symbols,
            changed_paths: changes
                .iter()
                .take(MAX_TOLD)
                .map(|change| change.path.clone())
                .collect(),
            short_diff: changes
                .iter()
                .take(MAX_TOLD)
                .map(|change| short_diff(change))
                .collect(),
            more_paths: u64::try_from(changes.len().saturating_sub(MAX_TOLD)).unwrap_or(u64::MAX),
        }
    }
}

impl Mutation {
    /// The same on a base: the tree it differs from. Without it a commit, which leaves no difference,
    /// would look like going back to where all began.
    #[must_use]
    pub fn on(mut self, base: &str) -> Mutation {
        let mut encoder = Encoder::new(BASE_TAG);
        encoder.field(base.as_bytes());
        encoder.field(self.fingerprint.as_bytes());
        self.fingerprint = encoder.finish();
        self
    }
}

fn files_changed_hash(changes: &[&Change]) -> String {
    let mut encoder = Encoder::new(FILES_TAG);
    encoder.count(changes.len());
    for change in changes {
        encoder.count(usize::from(change.path.is_utf8()));
        encoder.field(change.path.as_str().as_bytes());
        let mode = mode(change).map(u32::to_be_bytes);
        encoder.optional(mode.as_ref().map(<[u8; 4]>::as_slice));
        encoder.optional(
            change
                .content
                .as_deref()
                .filter(|_| change.status != Status::Deleted)
                .map(str::as_bytes),
        );
    }
    encoder.finish()
}

/// An untracked file has the mode that `git add` gives to most: staging it is no change.
fn mode(change: &Change) -> Option<u32> {
    match change.status {
        Status::Deleted => None,
        Status::Untracked => change.mode.or(Some(0o100_644)),
        Status::Added | Status::Modified | Status::Conflicted => change.mode,
    }
}

fn diff_stats(changes: &[&Change], stats: &[FileStat]) -> DiffStats {
    let lines = || stats.iter().filter_map(|stat| stat.lines);
    DiffStats {
        files_changed: u64::try_from(changes.len()).unwrap_or(u64::MAX),
        insertions: lines().fold(0, |sum, (added, _)| sum.saturating_add(added)),
        deletions: lines().fold(0, |sum, (_, removed)| sum.saturating_add(removed)),
    }
}

fn fingerprint(files_changed_hash: &str, stats: DiffStats, symbols: &[Symbol]) -> String {
    let mut encoder = Encoder::new(MUTATION_TAG);
    encoder.field(files_changed_hash.as_bytes());
    for number in [stats.files_changed, stats.insertions, stats.deletions] {
        encoder.field(&number.to_be_bytes());
    }
    encoder.count(symbols.len());
    for symbol in symbols {
        encoder.field(symbol.path.as_str().as_bytes());
        encoder.field(symbol.name.as_bytes());
    }
    encoder.finish()
}

fn short_diff(change: &Change) -> String {
    let mark = match change.status {
        Status::Added | Status::Untracked => '+',
        Status::Modified | Status::Conflicted => '~',
        Status::Deleted => '-',
    };
    format!("{mark} {}", change.path.one_line())
}
