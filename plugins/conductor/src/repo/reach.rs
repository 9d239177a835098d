//! Files that no entry point leads to, read from the work tree as it is now.

use std::collections::BTreeSet;

use conductor_repo::entry::{self, EntryKind};
use conductor_repo::facts::FactBook;
use conductor_repo::language::Language;
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
    let lone = lone(access, &map);
    Ok(Reach {
        lone,
        apart: apart.map(|candidate| candidate.path.clone()).collect(),
        files: map.files.into_iter().map(|file| file.path).collect(),
    })
}

/// Files that start themselves, with a block for `__main__` or a first line for a shell, and that nothing names: no
/// code, no manifest, no configuration and no registered command.
fn lone(access: &Access<'_>, map: &RepoMap) -> BTreeSet<String> {
    let own = map
        .entry_points
        .iter()
        .filter(|entry| entry.kind == EntryKind::Script);
    let own = own.filter_map(|entry| entry.file.as_ref().filter(|file| **file == entry.from));
    let is_named = |path: &String| {
        let mut others = map.entry_points.iter().filter(|entry| entry.from != *path);
        let mut files = map.files.iter();
        others.any(|entry| entry.file.as_ref() == Some(path))
            || files.any(|file| file.path == *path && file.imported_by > 0)
    };
    let mut lone: BTreeSet<String> = own
        .filter(|path| !is_named(path) && !entry::is_conventional(path))
        .cloned()
        .collect();
    if lone.is_empty() {
        return lone;
    }
    let commands = access
        .workspace
        .info()
        .tests
        .iter()
        .map(|test| test.argv.join(" "));
    let is_setting = |language: Option<Language>, path: &str| language.is_none() && !is_prose(path);
    let settings = map
        .files
        .iter()
        .filter(|file| file.size <= MAX_SETTINGS_BYTES as u64 && is_setting(file.language, &file.path));
    let texts = settings.filter_map(|file| {
        let read = access
            .workspace
            .read(&access.root.join(&file.path), MAX_SETTINGS_BYTES);
        Some(without_comments(&String::from_utf8_lossy(&read.ok()?)))
    });
    for text in commands.chain(texts) {
        lone.retain(|path| !names(&text, path));
    }
    lone
}

/// Lines of a text that are no comments.
fn without_comments(text: &str) -> String {
    let is_comment = |line: &&str| {
        ["#", ";", "//"]
            .iter()
            .any(|sign| line.trim_start().starts_with(sign))
    };
    let lines: Vec<&str> = text.lines().filter(|line| !is_comment(line)).collect();
    lines.join("\n")
}

/// Maximum bytes of a file that is read for the names of programs.
const MAX_SETTINGS_BYTES: usize = 256 << 10;

/// Checks whether a file is for readers, so that what it names is not started by it.
fn is_prose(path: &str) -> bool {
    let extension = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    matches!(
        extension.as_str(),
        "md" | "rst" | "txt" | "adoc" | "csv" | "lock" | "log"
    )
}

/// Checks whether a text names a program by its path or, for Python, by its module.
fn names(text: &str, path: &str) -> bool {
    let module = path.strip_suffix(".py").map(|path| path.replace('/', "."));
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    let mut words = text.split(|c: char| !part(c));
    words.any(|word| {
        let word = word.trim_start_matches("./");
        word == path || module.as_deref() == Some(word)
    })
}

/// Files of a repository.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach {
    /// Files that start themselves, and that nothing names.
    pub lone: BTreeSet<String>,
    /// Files that no entry point leads to.
    pub apart: BTreeSet<String>,
    /// All files.
    pub files: BTreeSet<String>,
}
