//! The modules of one crate: where `mod name;` looks.

use std::collections::{BTreeMap, BTreeSet};

use super::Index;
use super::names::inside;
use crate::facts::What;
use crate::path;

/// Modules inside each other.
const MAX_DEPTH: usize = 64;

/// The file of each module, by the module's path; the root's is empty.
pub(super) type Modules = BTreeMap<String, usize>;

/// Where a file stands in a crate.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) krate: usize,
    pub(super) module: String,
    /// Its children are beside it, as for `mod.rs` and a crate's root.
    pub(super) owns_directory: bool,
}

/// The modules that follow from a root, and where each file stands.
pub(super) fn modules(index: &Index<'_>, krate: usize, root: usize) -> (Modules, Vec<(usize, Place)>) {
    let mut modules = BTreeMap::new();
    let mut places = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![(root, String::new(), true)];
    while let Some((file, module, owns_directory)) = open.pop() {
        if !seen.insert(file) || module.matches("::").count() > MAX_DEPTH {
            continue;
        }
        for import in index.facts(file).into_iter().flat_map(|facts| &facts.imports) {
            let What::RustMod {
                name,
                scope,
                file: named,
            } = &import.what
            else {
                continue;
            };
            if let Some(found) = child(index, file, owns_directory, name, scope, named.as_deref()) {
                let below = inside(&inside(&module, scope), name);
                modules.entry(below.clone()).or_insert(found);
                let owns = named.is_some() || self::owns_directory(index.path(found));
                open.push((found, below, owns));
            }
        }
        modules.entry(module.clone()).or_insert(file);
        places.push((
            file,
            Place {
                krate,
                module,
                owns_directory,
            },
        ));
    }
    (modules, places)
}

/// The file of `mod name;` inside the inline modules `scope`.
pub(super) fn child(
    index: &Index<'_>,
    file: usize,
    owns_directory: bool,
    name: &str,
    scope: &str,
    named: Option<&str>,
) -> Option<usize> {
    let source = index.path(file);
    let beside = path::parent(source);
    let mut directory = beside.to_owned();
    if !owns_directory {
        directory = path::below(&directory, path::stem(source));
    }
    for inline in scope.split("::").filter(|inline| !inline.is_empty()) {
        directory = path::below(&directory, inline);
    }
    if let Some(named) = named {
        let from = if scope.is_empty() { beside } else { &directory };
        return index.find(&path::join(from, named)?);
    }
    let base = path::below(&directory, name);
    index.first([format!("{base}.rs"), format!("{base}/mod.rs")])
}

/// Whether a file's children are beside it, by its name alone.
pub(super) fn owns_directory(path: &str) -> bool {
    matches!(path::name(path), "mod.rs" | "lib.rs" | "main.rs")
}
