//! Files with the same content.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foldhash::fast::FixedState;

use super::names;
use crate::entry::EXAMPLE_FOLDERS;
use crate::language::{self, Role};
use crate::path;
use crate::resolve::Index;
use crate::snapshot::Digest;

/// Minimum size of a duplicate; smaller files are alike by chance.
const DUPLICATE_BYTES: u64 = 64;

/// Manifests that make a directory a package of its own.
const PACKAGE_MANIFESTS: [&str; 6] = [
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "setup.py",
    "go.mod",
    "pom.xml",
];

/// For each copy, the file to keep: the most imported, not named like a copy, with the shortest path. Only files of
/// the same package are copies: each package has its own settings, and each example its own start. A start of a
/// program is not a copy either, unless its name says so.
pub(super) fn originals(
    index: &Index<'_>,
    importers: &[usize],
    roots: &BTreeSet<usize>,
) -> BTreeMap<usize, usize> {
    let mut alike: HashMap<Digest, Vec<usize>, FixedState> = HashMap::default();
    for file in 0..index.len() {
        let Some(record) = index.record(file).filter(|record| record.size >= DUPLICATE_BYTES) else {
            continue;
        };
        if let Some(digest) = record.digest()
            && counts(index, file)
        {
            alike.entry(digest).or_default().push(file);
        }
    }
    // Few contents occur twice, so only their packages are looked for.
    let mut groups: HashMap<(Digest, &str), Vec<usize>, FixedState> = HashMap::default();
    for (digest, files) in alike.into_iter().filter(|(_, files)| files.len() > 1) {
        for file in files {
            let package = package(index, index.path(file));
            groups.entry((digest, package)).or_default().push(file);
        }
    }
    let mut originals = BTreeMap::new();
    for group in groups.values().filter(|group| group.len() > 1) {
        let is_copy = |file: &usize| names::judge(index.path(*file)).is_some();
        let order = |file: &&usize| {
            let path = index.path(**file);
            let used = importers.get(**file).copied().unwrap_or_default();
            (is_copy(file), std::cmp::Reverse(used), path.len(), path)
        };
        if let Some(kept) = group.iter().min_by_key(order) {
            let others = group.iter().filter(|file| *file != kept);
            let others = others.filter(|file| !roots.contains(file) || is_copy(file));
            originals.extend(others.map(|file| (*file, *kept)));
        }
    }
    originals
}

/// Checks whether a file is kept by hand and means the same wherever it is.
fn counts(index: &Index<'_>, file: usize) -> bool {
    let name = path::name(index.path(file));
    let is_kept = matches!(
        index.role(file),
        Role::Source | Role::Script | Role::Docs | Role::Config
    );
    let has_place = name.starts_with('.') || name.starts_with("__init__.");
    is_kept && !has_place && !language::is_license(name) && !is_example(index.path(file))
}

fn is_example(path: &str) -> bool {
    path::is_below_any(path, &EXAMPLE_FOLDERS) || path::is_below_any(path, &["template", "templates"])
}

/// Nearest directory with a manifest.
fn package<'a>(index: &Index<'_>, path: &'a str) -> &'a str {
    let has = |directory: &&str| {
        PACKAGE_MANIFESTS
            .iter()
            .any(|name| index.find(&path::below(directory, name)).is_some())
    };
    path::ancestors(path).find(has).unwrap_or_default()
}
