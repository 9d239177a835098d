//! The fingerprint of a change: the same for the same content at the same paths.

use serde::Serialize;

use crate::digest::Encoder;
use crate::git::{Change, FileStat, RepoPath, Status, Symbol};

/// Most paths, lines and symbols that are listed. The hashes cover all.
pub const MAX_TOLD: usize = 500;

const FILES_TAG: &str = "tollgate.files_changed.v1";
const BASE_TAG: &str = "tollgate.mutation_on_base.v1";
const MUTATION_TAG: &str = "tollgate.mutation.v1";

/// Size of the difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DiffStats {
    /// Number of paths that were added, changed or removed.
    pub files_changed: u64,
    /// Number of added lines, without binary files.
    pub insertions: u64,
    /// Number of removed lines.
    pub deletions: u64,
}

/// State of the work tree as a difference from its base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mutation {
    /// SHA-256 over the whole state.
    pub fingerprint: String,
    /// SHA-256 over path, mode and content of each path, in the order of the paths.
    pub files_changed_hash: String,
    /// Size of the difference.
    pub diff_stats: DiffStats,
    /// Changed symbols, from the headers of the hunks.
    pub symbol_changes: Vec<Symbol>,
    /// Changed paths.
    pub changed_paths: Vec<RepoPath>,
    /// A line for each path: `+ a.py`, `~ b.rs`, `- c.go`.
    pub short_diff: Vec<String>,
    /// Number of changed paths that are not listed.
    pub more_paths: u64,
}

impl Mutation {
    /// Combines Git's changes with the hashes of files. Order does not matter. A path that is both deleted
    /// and present, as after `git rm --cached`, counts as present.
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
    /// The mutation relative to a base tree. Without the base, a commit would look like a return to the first
    /// state, because it leaves no difference.
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

/// Mode of a path. An untracked file gets the usual mode of `git add`, so that staging the file is not a
/// change.
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
