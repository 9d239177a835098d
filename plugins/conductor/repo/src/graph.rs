//! Import graph of a tree.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::{Import, What};
use crate::language::Language;
use crate::resolve::{Index, Resolution, Resolvers};

/// Maximum missing files kept with their position; all of them are counted.
const MAX_MISSING: usize = 1_000;

/// Imports of a tree, between files by their index in the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    /// Files that each file imports, sorted.
    files: Vec<Vec<usize>>,
    /// Packages that each file imports as a whole, sorted.
    packages: Vec<Vec<usize>>,
    /// Files of each such package.
    members: Vec<Vec<usize>>,
    /// Files that each file refers to without an import, such as a module named in settings.
    references: Vec<Vec<usize>>,
    /// Imports from outside the tree, with their number of uses.
    pub external: BTreeMap<String, usize>,
    /// Imports whose file should be in the tree and is not.
    pub missing: Vec<Missing>,
    /// Import counts by language.
    pub counts: BTreeMap<Language, Counts>,
}

/// An import whose file does not exist.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Missing {
    /// File with the import.
    pub path: String,
    /// Line of the import.
    pub line: u32,
    /// Target of the import, as written.
    pub import: String,
}

/// Import counts of one language.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Files of the language.
    pub files: usize,
    /// Imports that resolve to files of the tree.
    pub resolved: usize,
    /// Imports of something outside the tree.
    pub external: usize,
    /// Imports of a file of the tree that does not exist.
    pub missing: usize,
    /// Imports of something in the same file, or of unknown meaning.
    pub unknown: usize,
}

impl Graph {
    /// Resolves all imports.
    pub(crate) fn new(index: &Index<'_>, resolvers: &Resolvers<'_>) -> Graph {
        let mut graph = Graph::default();
        let mut keys: BTreeMap<String, usize> = BTreeMap::new();
        for file in 0..index.len() {
            graph.files.push(Vec::new());
            graph.packages.push(Vec::new());
            graph.references.push(resolvers.references(file));
            let Some(language) = index.language(file) else {
                continue;
            };
            graph.counts.entry(language).or_default().files += 1;
            for import in index.facts(file).into_iter().flat_map(|facts| &facts.imports) {
                let outcome = resolvers.resolve(file, import);
                let is_counted = !matches!(
                    import.what,
                    What::RustPath { .. } | What::JavaName { .. } | What::JavaScriptGlob { .. }
                );
                if is_counted {
                    graph.count(language, index.path(file), import, &outcome);
                }
                match outcome {
                    Resolution::Files(found) => graph.link(file, found),
                    Resolution::Package(key) => {
                        let members = &mut graph.members;
                        let package = *keys.entry(key).or_insert_with_key(|key| {
                            members.push(resolvers.package(key));
                            members.len() - 1
                        });
                        graph
                            .packages
                            .last_mut()
                            .into_iter()
                            .for_each(|into| into.push(package));
                    }
                    Resolution::External(_) | Resolution::Missing | Resolution::Nothing => {}
                }
            }
            for list in [graph.files.last_mut(), graph.packages.last_mut()]
                .into_iter()
                .flatten()
            {
                list.sort_unstable();
                list.dedup();
            }
        }
        graph
    }

    fn link(&mut self, file: usize, found: Vec<usize>) {
        if let Some(into) = self.files.get_mut(file) {
            into.extend(found.into_iter().filter(|found| *found != file));
        }
    }

    fn count(&mut self, language: Language, path: &str, import: &Import, outcome: &Resolution) {
        let counts = self.counts.entry(language).or_default();
        match outcome {
            Resolution::Files(_) | Resolution::Package(_) => counts.resolved += 1,
            Resolution::Nothing => counts.unknown += 1,
            Resolution::External(name) => {
                counts.external += 1;
                *self.external.entry(name.clone()).or_default() += 1;
            }
            Resolution::Missing => {
                counts.missing += 1;
                if self.missing.len() < MAX_MISSING {
                    self.missing.push(Missing {
                        path: path.to_owned(),
                        line: import.line,
                        import: written(&import.what),
                    });
                }
            }
        }
    }

    /// Files that a file imports, including those of whole packages, sorted.
    pub(crate) fn imports_of(&self, file: usize) -> Cow<'_, [usize]> {
        let own = self.files.get(file).map(Vec::as_slice).unwrap_or_default();
        let packages = self.packages.get(file).map(Vec::as_slice).unwrap_or_default();
        if packages.is_empty() {
            return Cow::Borrowed(own);
        }
        let mut found = own.to_vec();
        let members = packages.iter().filter_map(|package| self.members.get(*package));
        found.extend(members.flatten().filter(|found| **found != file));
        found.sort_unstable();
        found.dedup();
        Cow::Owned(found)
    }

    /// Files that a file refers to without an import.
    pub(crate) fn references_of(&self, file: usize) -> &[usize] {
        self.references.get(file).map(Vec::as_slice).unwrap_or_default()
    }

    /// Number of files that import each file.
    pub(crate) fn importer_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.files.len()];
        for file in 0..self.files.len() {
            for imported in self.imports_of(file).iter() {
                counts
                    .get_mut(*imported)
                    .into_iter()
                    .for_each(|count| *count += 1);
            }
        }
        counts
    }

    /// Files that import a file.
    pub(crate) fn importers_of(&self, wanted: usize) -> Vec<usize> {
        let holds = |list: &[usize], wanted: &usize| list.binary_search(wanted).is_ok();
        let packages: Vec<usize> = (0..self.members.len())
            .filter(|package| self.members.get(*package).is_some_and(|of| of.contains(&wanted)))
            .collect();
        let imports = |file: &usize| {
            let of = self.packages.get(*file);
            let whole = of.is_some_and(|of| of.iter().any(|package| holds(&packages, package)));
            whole || self.files.get(*file).is_some_and(|files| holds(files, &wanted))
        };
        (0..self.files.len())
            .filter(|file| *file != wanted && imports(file))
            .collect()
    }

    /// For each file, whether imports lead to it from the given files, which are included.
    pub(crate) fn reached(&self, roots: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut reached = vec![false; self.files.len()];
        let mut open: Vec<usize> = Vec::new();
        let mut reach = |file: usize, open: &mut Vec<usize>| {
            if reached.get(file) == Some(&false) {
                reached.get_mut(file).into_iter().for_each(|is| *is = true);
                open.push(file);
            }
        };
        roots.into_iter().for_each(|root| reach(root, &mut open));
        while let Some(file) = open.pop() {
            self.imports_of(file)
                .iter()
                .chain(self.references_of(file))
                .for_each(|found| reach(*found, &mut open));
        }
        reached
    }
}

/// An import in the notation of its language.
pub(crate) fn written(what: &What) -> String {
    match what {
        What::RustMod { name, .. } => format!("mod {name}"),
        What::RustUse { path, .. } | What::RustPath { path, .. } => path.clone(),
        What::RustInclude { file, .. } => format!("include {file}"),
        What::Python { module, level, names } => {
            let dots = ".".repeat(usize::try_from(*level).unwrap_or(0).min(20));
            match names.as_slice() {
                [] => format!("{dots}{module}"),
                names => format!("{dots}{module}: {}", names.join(", ")),
            }
        }
        What::JavaScript { specifier, .. } => specifier.clone(),
        What::JavaScriptGlob { pattern } => pattern.clone(),
        What::Go { path } => path.clone(),
        What::Java { path, all } => format!("{path}{}", if *all { ".*" } else { "" }),
        What::JavaName { name } => name.clone(),
        What::C { path, .. } => path.clone(),
    }
}
