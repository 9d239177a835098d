//! A snapshot in a few lines: its directories, and the files to read first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use conductor_repo::language::is_manifest;
use conductor_repo::path::{self, show};

/// Maximum number of lines of a tree.
const MAX_LINES: usize = 80;
/// Maximum number of files to read first.
const KEY_FILES: usize = 20;

/// Directories of the first two levels, each with the number of files below it, and the files of the root.
pub(crate) fn tree<'a>(directories: impl Iterator<Item = (&'a str, usize)>, roots: &[&str]) -> String {
    let mut upper: BTreeMap<&str, usize> = BTreeMap::new();
    for (directory, files) in directories.filter(|(directory, files)| !directory.is_empty() && *files > 0) {
        let (outer, inner) = upper_two(directory);
        for directory in [Some(outer), inner].into_iter().flatten() {
            *upper.entry(directory).or_default() += files;
        }
    }
    let all = upper.len() + roots.len();
    let mut text = String::new();
    for (directory, files) in upper.iter().take(MAX_LINES) {
        let indent = if directory.contains('/') { "  " } else { "" };
        let name = directory.rsplit_once('/').map_or(*directory, |(_, name)| name);
        let _ = writeln!(text, "{indent}{}/ {files}", show(name));
    }
    for file in roots.iter().take(MAX_LINES.saturating_sub(upper.len())) {
        let _ = writeln!(text, "{}", show(file));
    }
    if all > MAX_LINES {
        let _ = writeln!(text, "… and {} more", all - MAX_LINES);
    }
    text
}

/// First directory of a path, and the second inside it.
fn upper_two(path: &str) -> (&str, Option<&str>) {
    let mut slashes = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/');
    let mut next = || slashes.next().and_then(|(at, _)| path.get(..at));
    match (next(), next()) {
        (None, _) => (path, None),
        (Some(outer), inner) => (outer, inner.or(Some(path))),
    }
}

/// Checks whether a file is one to read first: a manifest, or an introduction in the root.
pub(crate) fn is_key(path: &str) -> bool {
    let starts = |start: &str| {
        let found = path.get(..start.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(start))
    };
    match path::parent(path) {
        "" if starts("README") || starts("CONTRIBUTING") || path.eq_ignore_ascii_case("AGENTS.MD") => true,
        _ => is_manifest(path::name(path)),
    }
}

/// Files to read first, nearest to the root first, up to the limit.
pub(crate) fn key_files(mut found: Vec<String>) -> Vec<String> {
    found.sort_by(|a, b| {
        let depth = |path: &str| path.matches('/').count();
        depth(a).cmp(&depth(b)).then_with(|| a.cmp(b))
    });
    found.truncate(KEY_FILES);
    found
}

#[cfg(test)]
mod tests {
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
        let mut directories: BTreeMap<&str, usize> = BTreeMap::new();
        for path in paths {
            *directories.entry(path::parent(path)).or_default() += 1;
        }
        let roots: Vec<&str> = paths
            .into_iter()
            .filter(|path| path::parent(path).is_empty())
            .collect();
        expect![[r#"
            src/ 3
              deep/ 2
            sub/ 1
            Cargo.toml
            README.md
            "a\nb"
        "#]]
        .assert_eq(&tree(directories.into_iter(), &roots));
        let keys = ["docs/README.md"].into_iter().chain(paths);
        let keys = keys.filter(|path| is_key(path)).map(str::to_owned).collect();
        assert_eq!(key_files(keys), ["Cargo.toml", "README.md", "sub/Cargo.toml"]);
    }
}
