//! Python: absolute names below the directories that contain top-level packages, relative names below their
//! own.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use super::python_names::is_standard;
use super::{Index, Resolution};
use crate::language::Language;
use crate::path;

/// Extensions of a module's file.
const MODULE_EXTENSIONS: [&str; 3] = [".py", ".pyi", ".pyx"];

/// Directories in which absolute names may start.
pub(super) struct Roots<'a> {
    index: &'a Index<'a>,
    /// Directories with a project file.
    projects: BTreeSet<&'a str>,
    /// Directories that contain a top-level package, by the package's name.
    packages: BTreeMap<&'a str, Vec<&'a str>>,
    /// Roots of absolute names for the directories of files seen so far.
    own: RefCell<HashMap<&'a str, Rc<[&'a str]>>>,
}

/// Target of a dotted name.
enum Module {
    File(usize),
    /// Directory without `__init__.py`.
    Namespace(String),
}

impl<'a> Roots<'a> {
    pub(super) fn new(index: &'a Index<'a>) -> Roots<'a> {
        let mut projects = BTreeSet::new();
        let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for directory in index.directories() {
            let has = |name: &str| index.find(&path::below(directory, name)).is_some();
            if ["pyproject.toml", "setup.py", "setup.cfg"].into_iter().any(has) {
                projects.insert(directory);
            }
            let is_top = !is_package(index, path::parent(directory));
            if !directory.is_empty() && is_top && is_package(index, directory) {
                let name = path::name(directory);
                packages.entry(name).or_default().push(path::parent(directory));
            }
        }
        Roots {
            index,
            projects,
            packages,
            own: RefCell::default(),
        }
    }

    pub(super) fn resolve(&self, file: usize, module: &str, level: u32, names: &[String]) -> Resolution {
        if level > 0 {
            return self.relative(file, module, level, names);
        }
        let first = module.split('.').next().unwrap_or_default();
        let own = self.own_roots(file);
        let roots = own.iter().copied().chain(self.foreign_roots(first));
        let mut has_first = false;
        for root in roots {
            let Some(start) = self.module(&path::below(root, first)) else {
                continue;
            };
            has_first |= match start {
                Module::File(found) => found != file || module.contains('.'),
                Module::Namespace(directory) => self.holds_python(&directory) && !self.is_alembic(&directory),
            };
            if let Some(found) = self.names_in(&path::below(root, &module.replace('.', "/")), names)
                && (found != [file] || module.contains('.'))
            {
                return Resolution::Files(found);
            }
        }
        if has_first && !is_standard(first) {
            return Resolution::Missing;
        }
        Resolution::External(first.to_owned())
    }

    fn relative(&self, file: usize, module: &str, level: u32, names: &[String]) -> Resolution {
        let mut directory = path::parent(self.index.path(file));
        for _ in 1..level {
            if directory.is_empty() {
                return Resolution::Missing;
            }
            directory = path::parent(directory);
        }
        let base = match module {
            "" => directory.to_owned(),
            module => path::below(directory, &module.replace('.', "/")),
        };
        self.names_in(&base, names)
            .map_or(Resolution::Missing, Resolution::Files)
    }

    /// Paths at which the file of a module could be, without its extension.
    pub(super) fn bases(&self, file: usize, module: &str, level: u32) -> Vec<String> {
        let relative = module.replace('.', "/");
        if level == 0 {
            let roots = self.own_roots(file);
            return roots.iter().map(|root| path::below(root, &relative)).collect();
        }
        let above = path::ancestors(self.index.path(file));
        let directory = above
            .into_iter()
            .nth(usize::try_from(level - 1).unwrap_or(usize::MAX));
        directory
            .map(|directory| path::below(directory, &relative))
            .into_iter()
            .collect()
    }

    /// Files of the longest part of a dotted name that is a module. A package alone is not enough: only its
    /// submodule or an item in it is meant.
    pub(super) fn named(&self, file: usize, name: &str) -> Vec<usize> {
        let first = name.split('.').next().unwrap_or_default();
        if is_standard(first) {
            return Vec::new();
        }
        let own = self.own_roots(file);
        let above = path::ancestors(self.index.path(file));
        let roots: Vec<&str> = own
            .iter()
            .copied()
            .chain(above)
            .chain(self.foreign_roots(first))
            .collect();
        let mut part = name;
        loop {
            let relative = part.replace('.', "/");
            for root in &roots {
                if let Some(Module::File(found)) = self.module(&path::below(root, &relative)) {
                    return vec![found];
                }
            }
            match part.rsplit_once('.') {
                Some((shorter, _)) => part = shorter,
                None => return Vec::new(),
            }
        }
    }

    /// Files with the names of a module: the file of each submodule, and the module's own for other names.
    fn names_in(&self, base: &str, names: &[String]) -> Option<Vec<usize>> {
        let module = self.module(base)?;
        let mut files = BTreeSet::new();
        let mut inside = names.is_empty();
        let has_modules = self.index.has_directory(base);
        for name in names {
            match has_modules
                .then(|| self.module(&path::below(base, name)))
                .flatten()
            {
                Some(Module::File(file)) if name != "*" => files.extend([file]),
                _ => inside = true,
            }
        }
        match module {
            Module::File(file) if inside => files.extend([file]),
            Module::Namespace(directory) if names.is_empty() && files.is_empty() => {
                files.extend(self.python_in(&directory).take(1));
            }
            _ => {}
        }
        (!files.is_empty()).then(|| files.into_iter().collect())
    }

    fn module(&self, base: &str) -> Option<Module> {
        let is_directory = self.index.has_directory(base);
        let as_package = MODULE_EXTENSIONS.iter().filter(|_| is_directory);
        let as_package = as_package.map(|ending| path::below(base, &format!("__init__{ending}")));
        let as_file = MODULE_EXTENSIONS.iter().filter(|_| !base.is_empty());
        let as_file = as_file.map(|ending| format!("{base}{ending}"));
        if let Some(file) = self.index.first(as_package.chain(as_file)) {
            return Some(Module::File(file));
        }
        is_directory.then(|| Module::Namespace(base.to_owned()))
    }

    /// Roots of a file's own absolute names: beside a script, above its package, at its project.
    fn own_roots(&self, file: usize) -> Rc<[&'a str]> {
        let directory = path::parent(self.index.path(file));
        let known = self.own.borrow().get(directory).cloned();
        known.unwrap_or_else(|| {
            let roots: Rc<[&str]> = self.roots_of(file, directory).into();
            self.own.borrow_mut().insert(directory, Rc::clone(&roots));
            roots
        })
    }

    fn roots_of(&self, file: usize, directory: &'a str) -> Vec<&'a str> {
        let mut top = directory;
        while !top.is_empty() && is_package(self.index, top) {
            top = path::parent(top);
        }
        let mut roots = vec![top];
        let above =
            path::ancestors(self.index.path(file)).filter(|at| at.is_empty() || self.projects.contains(at));
        for project in above {
            roots.push(project);
            let sources = self.index.directories_in(project).iter().copied();
            roots.extend(sources.filter(|inside| matches!(path::name(inside), "src" | "lib" | "python")));
        }
        let mut seen = BTreeSet::new();
        roots.retain(|root| seen.insert(*root));
        roots
    }

    /// Other directories of the tree with a package of this name. A standard module takes precedence.
    fn foreign_roots(&self, first: &str) -> impl Iterator<Item = &'a str> {
        let roots = self.packages.get(first).filter(|_| !is_standard(first));
        roots.into_iter().flatten().copied()
    }

    /// Checks whether a directory holds migrations. It is often called like the package that runs them.
    fn is_alembic(&self, directory: &str) -> bool {
        let marks = ["env.py", "script.py.mako"].map(|name| path::below(directory, name));
        self.index.first(marks).is_some()
    }

    fn holds_python(&self, directory: &str) -> bool {
        self.python_in(directory).next().is_some()
            || self
                .index
                .directories_in(directory)
                .iter()
                .any(|inside| self.python_in(inside).next().is_some())
    }

    fn python_in(&self, directory: &str) -> impl Iterator<Item = usize> {
        let is_python = |file: &usize| self.index.language(*file) == Some(Language::Python);
        self.index
            .in_directory(directory)
            .iter()
            .copied()
            .filter(is_python)
    }
}

fn is_package(index: &Index<'_>, directory: &str) -> bool {
    let inits = ["__init__.py", "__init__.pyi"];
    index
        .first(inits.map(|init| path::below(directory, init)))
        .is_some()
}
