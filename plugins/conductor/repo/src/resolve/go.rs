//! Go: import paths below the paths of the tree's modules.

use std::collections::BTreeMap;

use super::{Index, Resolution};
use crate::language::Language;
use crate::manifest::Manifest;
use crate::path;

/// Modules of the tree.
pub(super) struct Modules<'a> {
    index: &'a Index<'a>,
    /// Directory of each module, by its path.
    modules: BTreeMap<&'a str, String>,
}

impl<'a> Modules<'a> {
    pub(super) fn new(index: &'a Index<'a>) -> Modules<'a> {
        let mut modules = BTreeMap::new();
        for (file, manifest) in index.manifests() {
            let Manifest::Go(go) = manifest else {
                continue;
            };
            let directory = path::parent(index.path(file));
            for (module, target) in &go.replaced {
                if let Some(target) = path::join(directory, target) {
                    modules.entry(module.as_str()).or_insert(target);
                }
            }
            modules.insert(go.module.as_str(), directory.to_owned());
        }
        Modules { index, modules }
    }

    pub(super) fn resolve(&self, import: &str) -> Resolution {
        for module in path::with_ancestors(import) {
            let Some(directory) = self.modules.get(module) else {
                continue;
            };
            let rest = path::relative(import, module).unwrap_or_default();
            let Some(package) = path::join(directory, rest) else {
                return Resolution::Missing;
            };
            let is_there = self.package(&package).is_some();
            return if is_there {
                Resolution::Package(package)
            } else {
                Resolution::Missing
            };
        }
        let vendored = path::below("vendor", import);
        if self.package(&vendored).is_some() {
            return Resolution::Package(vendored);
        }
        // In the standard library's own tree, import paths do not have the module's name.
        if let Some(package) = self
            .modules
            .get("std")
            .map(|directory| path::below(directory, import))
            && self.package(&package).is_some()
        {
            return Resolution::Package(package);
        }
        Resolution::External(import.to_owned())
    }

    /// Files of the package in a directory, without its tests.
    pub(super) fn package(&self, directory: &str) -> Option<Vec<usize>> {
        let is_part = |file: &usize| {
            let path = self.index.path(*file);
            Language::of(path) == Some(Language::Go) && !path.ends_with("_test.go")
        };
        let files: Vec<usize> = self
            .index
            .in_directory(directory)
            .iter()
            .copied()
            .filter(is_part)
            .collect();
        (!files.is_empty()).then_some(files)
    }
}
