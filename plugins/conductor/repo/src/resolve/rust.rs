//! Rust: crates as Cargo finds them, their module trees, and paths in them.

mod names;
mod tree;

use std::collections::BTreeMap;

use super::{Index, Resolution};
use crate::manifest::{Cargo, Manifest, in_code};
use crate::path;
use crate::targets::{self, TargetKind};
use tree::{ModuleFile, Modules};

/// Crates that come with the compiler.
const SYSROOT_CRATES: [&str; 5] = ["std", "core", "alloc", "proc_macro", "test"];

/// Maximum number of `use` renames followed for one path.
const MAX_HOPS: usize = 8;

/// Crates of the tree.
pub(super) struct Crates<'a> {
    index: &'a Index<'a>,
    packages: Vec<Package<'a>>,
    /// Package in each directory.
    directories: BTreeMap<&'a str, usize>,
    crates: Vec<Krate>,
    /// Place of a file in each crate that contains it.
    module_files: BTreeMap<usize, Vec<ModuleFile>>,
    /// Library of each package, by the package's name.
    libraries: BTreeMap<&'a str, usize>,
    /// Renamed dependencies of workspaces.
    renamed: BTreeMap<&'a str, &'a str>,
}

struct Package<'a> {
    directory: &'a str,
    name: &'a str,
    cargo: &'a Cargo,
    /// Name of the library in code.
    library_name: String,
}

/// A crate: its modules, each with its file.
struct Krate {
    package: usize,
    modules: Modules,
}

impl<'a> Crates<'a> {
    pub(super) fn new(index: &'a Index<'a>) -> Crates<'a> {
        let mut crates = Crates {
            index,
            packages: Vec::new(),
            directories: BTreeMap::new(),
            crates: Vec::new(),
            module_files: BTreeMap::new(),
            libraries: BTreeMap::new(),
            renamed: BTreeMap::new(),
        };
        for (file, manifest) in index.manifests() {
            if let Manifest::Cargo(cargo) = manifest {
                crates.manifest(path::parent(index.path(file)), cargo);
            }
        }
        crates
    }

    fn manifest(&mut self, directory: &'a str, cargo: &'a Cargo) {
        let renamed = cargo.workspace_dependencies.iter();
        self.renamed
            .extend(renamed.map(|(name, package)| (name.as_str(), package.as_str())));
        let Some(name) = cargo.package.as_deref() else {
            return;
        };
        let library = cargo.library.as_ref().and_then(|library| library.name.clone());
        let package = self.packages.len();
        self.directories.entry(directory).or_insert(package);
        self.packages.push(Package {
            directory,
            name,
            cargo,
            library_name: library.unwrap_or_else(|| in_code(name)),
        });
        for target in targets::cargo(self.index, directory, cargo) {
            let (modules, module_files) = tree::modules(self.index, self.crates.len(), target.file);
            if target.kind == TargetKind::Library {
                self.libraries.entry(name).or_insert(self.crates.len());
            }
            for (file, module_file) in module_files {
                self.module_files.entry(file).or_default().push(module_file);
            }
            self.crates.push(Krate { package, modules });
        }
    }

    /// Resolves `mod name;`.
    pub(super) fn module(&self, file: usize, name: &str, scope: &str, named: Option<&str>) -> Resolution {
        let module_files = self.module_files.get(&file).map_or(&[][..], Vec::as_slice);
        let owns_directory = module_files.iter().map(|module_file| module_file.owns_directory);
        let guessed = tree::owns_directory(self.index.path(file));
        let found = owns_directory
            .chain([guessed])
            .find_map(|owns| tree::child(self.index, file, owns, name, scope, named));
        Resolution::file(found)
    }

    /// Resolves a path in a `use` or in code.
    pub(super) fn path(&self, file: usize, path: &str, scope: &str) -> Resolution {
        let Some(module_files) = self.module_files.get(&file) else {
            return self.outside(file, path);
        };
        let mut last = Resolution::Missing;
        for module_file in module_files {
            match self.path_at(file, module_file, path, scope, MAX_HOPS) {
                Resolution::Missing => {}
                Resolution::Nothing => last = Resolution::Nothing,
                found => return found,
            }
        }
        last
    }

    /// Resolves `include!` and similar macros.
    pub(super) fn include(&self, file: usize, named: &str, from_package: bool) -> Resolution {
        let directory = if from_package {
            self.package_of(file).map_or("", |package| package.directory)
        } else {
            path::parent(self.index.path(file))
        };
        Resolution::file(path::join(directory, named).and_then(|path| self.index.find(&path)))
    }

    /// Resolves a path in a file outside all crates: only names of other crates are known.
    fn outside(&self, file: usize, path: &str) -> Resolution {
        let (first, rest) = names::split(path);
        let package = self.package_of(file);
        match self.other_crate(package, first) {
            Some(Ok(krate)) => self.walk(krate, String::new(), rest),
            Some(Err(name)) => Resolution::External(name),
            None => Resolution::Nothing,
        }
    }

    fn path_at(
        &self,
        file: usize,
        module_file: &ModuleFile,
        path: &str,
        scope: &str,
        hops: usize,
    ) -> Resolution {
        let (first, rest) = names::split(path);
        let here = names::inside(&module_file.module, scope);
        match first {
            "crate" => self.walk(module_file.krate, String::new(), rest),
            "self" | "super" => {
                let (mut here, mut rest) = (here.as_str(), path);
                while let (up @ ("self" | "super"), others) = names::split(rest) {
                    if up == "super" {
                        here = names::around(here);
                    }
                    rest = others;
                }
                self.walk(module_file.krate, here.to_owned(), rest)
            }
            _ => self.named(file, module_file, &here, path, hops),
        }
    }

    /// Resolves a path that starts with a name: a child module, a name in scope, or another crate.
    fn named(
        &self,
        file: usize,
        module_file: &ModuleFile,
        here: &str,
        path: &str,
        hops: usize,
    ) -> Resolution {
        let (first, rest) = names::split(path);
        if let Some(module) = self.enclosing(module_file, here, first) {
            return self.walk(module_file.krate, module, rest);
        }
        if let Some((target, scope)) = names::used(self.index, file, path)
            && hops > 0
        {
            return self.path_at(file, module_file, &target, scope, hops - 1);
        }
        let package = self
            .crates
            .get(module_file.krate)
            .and_then(|krate| self.packages.get(krate.package));
        match self.other_crate(package, first) {
            Some(Ok(krate)) => return self.walk(krate, String::new(), rest),
            Some(Err(name)) => return Resolution::External(name),
            None => {}
        }
        if names::is_known(self.index, file, first) || self.comes_with_parent(file, module_file, first) {
            Resolution::Nothing
        } else {
            Resolution::Missing
        }
    }

    /// Module called `first` in this one, or in one of the enclosing modules of the same file.
    fn enclosing(&self, module_file: &ModuleFile, here: &str, first: &str) -> Option<String> {
        let modules = &self.crates.get(module_file.krate)?.modules;
        let mut around = here;
        loop {
            let module = names::inside(around, first);
            if modules.contains_key(&module) {
                return Some(module);
            }
            if around.len() <= module_file.module.len() {
                return None;
            }
            around = names::around(around);
        }
    }

    /// Checks whether `use super::*` brings a name of the parent into scope.
    fn comes_with_parent(&self, file: usize, module_file: &ModuleFile, first: &str) -> bool {
        let modules = self.crates.get(module_file.krate).map(|krate| &krate.modules);
        let is_child = !module_file.module.is_empty();
        let parent = modules.filter(|_| is_child);
        let parent = parent.and_then(|modules| modules.get(names::around(&module_file.module)).copied());
        names::has_glob(self.index, file)
            || parent.is_some_and(|parent| names::is_known(self.index, parent, first))
    }

    /// Crate by the name that a package's code uses: one of the tree, or its external name.
    fn other_crate(&self, package: Option<&Package<'a>>, first: &str) -> Option<Result<usize, String>> {
        if let Some(package) = package {
            if first == package.library_name
                && let Some(library) = self.libraries.get(package.name)
            {
                return Some(Ok(*library));
            }
            if let Some(name) = package.cargo.dependencies.get(first) {
                let name = self.renamed.get(first).copied().unwrap_or(name);
                return Some(self.libraries.get(name).copied().ok_or_else(|| name.to_owned()));
            }
        }
        names::is_builtin(first).then(|| Err("std".to_owned()))
    }

    /// Follows modules as far as possible; the rest is an item of the last module.
    fn walk(&self, krate: usize, mut module: String, mut rest: &str) -> Resolution {
        let Some(modules) = self.crates.get(krate).map(|krate| &krate.modules) else {
            return Resolution::Nothing;
        };
        while !rest.is_empty() {
            let (first, others) = names::split(rest);
            let below = names::inside(&module, first);
            if !modules.contains_key(&below) {
                break;
            }
            (module, rest) = (below, others);
        }
        // Inline modules are in the file of the enclosing module.
        let mut holder = module.as_str();
        let file = loop {
            match modules.get(holder) {
                Some(file) => break *file,
                None if holder.is_empty() => return Resolution::Nothing,
                None => holder = names::around(holder),
            }
        };
        match rest.split_once("::") {
            Some((first, _)) if !names::may_hold(self.index, file, first) => Resolution::Missing,
            _ => Resolution::Files(vec![file]),
        }
    }

    fn package_of(&self, file: usize) -> Option<&Package<'a>> {
        let mut above = path::ancestors(self.index.path(file));
        let package = above.find_map(|directory| self.directories.get(directory))?;
        self.packages.get(*package)
    }
}
