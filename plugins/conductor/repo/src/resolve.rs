//! Resolution of imports to files, by the rules of each language.

mod absent;
mod c;
mod go;
mod index;
mod java;
mod javascript;
mod python;
mod python_names;
mod references;
mod rust;

pub(crate) use index::Index;
pub(crate) use javascript::{module_at, source_of, sources_of};

use absent::Absent;

use crate::facts::{Import, What};
use crate::snapshot::Problem;

/// Result of resolving an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// Files of the snapshot, by index.
    Files(Vec<usize>),
    /// All files of a package, by its key in [`Resolvers::package`].
    Package(String),
    /// Something outside the tree: a dependency or a standard library.
    External(String),
    /// A file that should be in the tree and is not.
    Missing,
    /// Something in the same file, or of unknown meaning.
    Nothing,
}

impl Resolution {
    fn file(file: Option<usize>) -> Resolution {
        file.map_or(Resolution::Missing, |file| Resolution::Files(vec![file]))
    }
}

/// Resolvers of all languages.
pub(crate) struct Resolvers<'a> {
    rust: rust::Crates<'a>,
    python: python::Roots<'a>,
    javascript: javascript::Node<'a>,
    go: go::Modules<'a>,
    java: java::Packages<'a>,
    c: c::Headers<'a>,
    index: &'a Index<'a>,
    absent: Absent<'a>,
}

impl<'a> Resolvers<'a> {
    pub(crate) fn new(index: &'a Index<'a>) -> Resolvers<'a> {
        Resolvers {
            rust: rust::Crates::new(index),
            python: python::Roots::new(index),
            javascript: javascript::Node::new(index),
            go: go::Modules::new(index),
            java: java::Packages::new(index),
            c: c::Headers::new(index),
            index,
            absent: Absent::new(index),
        }
    }

    /// Configurations of compilers that are used only in part.
    pub(crate) fn problems(&self) -> &[Problem] {
        self.javascript.problems()
    }

    /// Files that a file refers to without importing them.
    pub(crate) fn references(&self, file: usize) -> Vec<usize> {
        references::of(self.index, self, file)
    }

    /// Resolves an import of a file. What the build makes, and what a tool wrote, is not missing.
    pub(crate) fn resolve(&self, file: usize, import: &Import) -> Resolution {
        let outcome = self.by_language(file, import);
        if outcome != Resolution::Missing {
            return outcome;
        }
        let is_generated = self.index.facts(file).is_some_and(|facts| facts.generated);
        if is_generated || self.absent.explains(file, import, &self.python) {
            return Resolution::External(crate::graph::written(&import.what));
        }
        outcome
    }

    fn by_language(&self, file: usize, import: &Import) -> Resolution {
        match &import.what {
            What::RustMod {
                name,
                scope,
                file: named,
            } => self.rust.module(file, name, scope, named.as_deref()),
            What::RustUse { path, scope, .. } => self.rust.path(file, path, scope),
            What::RustPath { path, scope } => match self.rust.path(file, path, scope) {
                Resolution::Files(files) => Resolution::Files(files),
                _ => Resolution::Nothing,
            },
            What::RustInclude {
                file: named,
                from_package,
            } => self.rust.include(file, named, *from_package),
            What::Python { module, level, names } => self.python.resolve(file, module, *level, names),
            What::JavaScript { specifier, optional } => {
                self.javascript.resolve(&self.absent, file, specifier, *optional)
            }
            What::JavaScriptGlob { pattern } => self.javascript.fitting(file, pattern),
            What::Go { path } => self.go.resolve(path),
            What::Java { path, all } => self.java.resolve(path, *all),
            What::JavaName { name } => self.java.neighbour(file, name),
            What::C { path, system } => self.c.resolve(file, path, *system),
        }
    }

    /// Resolves a Python module named in a manifest.
    pub(crate) fn python_module(&self, manifest: usize, module: &str) -> Resolution {
        self.python.resolve(manifest, module, 0, &[])
    }

    /// Resolves a Java type named in a manifest.
    pub(crate) fn java_type(&self, name: &str) -> Resolution {
        self.java.resolve(name, false)
    }

    /// Files of the package in an outcome.
    pub(crate) fn package(&self, key: &str) -> Vec<usize> {
        self.go
            .package(key)
            .or_else(|| self.java.package(key))
            .unwrap_or_default()
    }
}
