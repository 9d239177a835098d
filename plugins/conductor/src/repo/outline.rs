//! A snapshot in a few lines: its directories, and the files to know first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use conductor_repo::language::is_manifest;
use conductor_repo::path::show;
use conductor_repo::snapshot::Snapshot;

/// Lines of a tree.
const LINES: usize = 80;
/// Files to know first.
const KEY_FILES: usize = 20;

/// The directories of the first two levels, each with how many files are below it, and the files of
/// the root.
pub(crate) fn tree(snapshot: &Snapshot) -> String {
    let mut directories: BTreeMap<&str, usize> = BTreeMap::new();
    let mut roots = Vec::new();
    // Files of a directory come one after the other, mostly.
    for files in snapshot
        .files
        .chunk_by(|a, b| upper_two(&a.path) == upper_two(&b.path))
    {
        let Some(first) = files.first() else {
            continue;
        };
        match upper_two(&first.path) {
            (None, _) => roots.extend(files.iter().map(|file| file.path.as_str())),
            (Some(outer), inner) => {
                for directory in [Some(outer), inner].into_iter().flatten() {
                    *directories.entry(directory).or_default() += files.len();
                }
            }
        }
    }
    let all = directories.len() + roots.len();
    let mut text = String::new();
    for (directory, files) in directories.iter().take(LINES) {
        let indent = if directory.contains('/') { "  " } else { "" };
        let name = directory.rsplit_once('/').map_or(*directory, |(_, name)| name);
        let _ = writeln!(text, "{indent}{}/ {files}", show(name));
    }
    for file in roots.iter().take(LINES.saturating_sub(directories.len())) {
        let _ = writeln!(text, "{}", show(file));
    }
    if all > LINES {
        let _ = writeln!(text, "… and {} more", all - LINES);
    }
    text
}

/// The first directory of a path, and the second inside it.
fn upper_two(path: &str) -> (Option<&str>, Option<&str>) {
    let mut slashes = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
    let mut next = || slashes.next().and_then(|(at, _)| path.get(..at));
    (next(), next())
}

/// Manifests, and what introduces the repository, those nearest to the root first.
pub(crate) fn key_files(snapshot: &Snapshot) -> Vec<String> {
    let introduces = |path: &str| {
        let starts = |start: &str| {
            let found = path.get(..start.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(start))
        };
        starts("README") || starts("CONTRIBUTING") || path.eq_ignore_ascii_case("AGENTS.MD")
    };
    let mut found: Vec<&str> = snapshot
        .files
        .iter()
        .map(|file| file.path.as_str())
        .filter(|path| {
            let name = path.rsplit('/').next().unwrap_or(path);
            is_manifest(name) || introduces(name)
        })
        .collect();
    found.sort_by_key(|path| (path.matches('/').count(), *path));
    found.truncate(KEY_FILES);
    found.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use conductor_repo::snapshot::{Content, FileRecord};
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_tree_is_two_levels_and_the_files_of_the_root() {
        let paths = [
            "Cargo.toml",
            "README.md",
            "a\nb",
            "src/deep/er/x.rs",
            "src/deep/y.rs",
            "src/main.rs",
            "sub/Cargo.toml",
        ];
        let files = paths.map(|path| FileRecord {
            path: path.to_owned(),
            content: Content::Other,
            size: 1,
            modified: 0,
        });
        let snapshot = Snapshot {
            files: files.into(),
            ..Snapshot::default()
        };
        expect![[r#"
            src/ 3
              deep/ 2
            sub/ 1
            Cargo.toml
            README.md
            "a\nb"
        "#]]
        .assert_eq(&tree(&snapshot));
        assert_eq!(
            key_files(&snapshot),
            ["Cargo.toml", "README.md", "sub/Cargo.toml"]
        );
    }
}
