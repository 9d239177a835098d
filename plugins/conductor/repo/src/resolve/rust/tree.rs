//! Module tree of one crate: the files that `mod name;` refers to.

use std::collections::{BTreeMap, BTreeSet};

use super::Index;
use super::names::inside;
use crate::facts::What;
use crate::path;

/// Maximum depth of nested modules.
const MAX_DEPTH: usize = 64;

/// File of each module, by the module's path; the root's is empty.
pub(super) type Modules = BTreeMap<String, usize>;

/// Place of a file in a crate.
#[derive(Clone, Debug)]
pub(super) struct ModuleFile {
    pub(super) krate: usize,
    pub(super) module: String,
    /// True if its child modules are beside it, as for `mod.rs` and a crate's root.
    pub(super) owns_directory: bool,
}

/// Modules reachable from a root, and the place of each file.
pub(super) fn modules(index: &Index<'_>, krate: usize, root: usize) -> (Modules, Vec<(usize, ModuleFile)>) {
    let mut modules = BTreeMap::new();
    let mut module_files = Vec::new();
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
        module_files.push((
            file,
            ModuleFile {
                krate,
                module,
                owns_directory,
            },
        ));
    }
    (modules, module_files)
}

/// File of `mod name;` inside the inline modules `scope`.
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

/// Checks by the name of a file whether its child modules are beside it.
pub(super) fn owns_directory(path: &str) -> bool {
    matches!(path::name(path), "mod.rs" | "lib.rs" | "main.rs")
}
