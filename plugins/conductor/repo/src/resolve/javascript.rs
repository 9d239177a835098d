//! JavaScript and TypeScript: relative paths, aliases, Node's rules and those of `tsconfig.json`.
//!
//! `oxc_resolver` knows Node's rules. What it cannot know is tried around it: aliases of bundlers and frameworks,
//! configurations that are only partly readable, and sources of packages whose manifest names build output.

mod aliases;
mod configs;
mod files;
mod packages;
mod places;

use bstr::ByteSlice as _;
use gix_glob::wildmatch::Mode;
use oxc_resolver::{ResolveError, ResolveOptions, ResolverGeneric, TsconfigDiscovery};

use super::absent::Absent;
use super::{Index, Resolution};
use crate::path;
use crate::snapshot::Problem;
use aliases::{Aliases, habitual, is_virtual};
use configs::Configs;
use files::Files;
use packages::{Packages, Subpath};
use places::{ALIASES, EXTENSIONS, index_of};
pub(crate) use places::{is_output, module_at, source_of, sources_of};

/// Maximum number of files of one pattern.
const MAX_FITTING: usize = 2_000;

/// Resolves specifiers in the files of the tree.
pub(super) struct Node<'a> {
    index: &'a Index<'a>,
    files: Files,
    configs: Configs,
    packages: Packages<'a>,
    aliases: Aliases<'a>,
    /// Resolver of code that runs, then that of code for type checkers or bundlers.
    resolvers: [ResolverGeneric<Files>; 2],
}

impl<'a> Node<'a> {
    pub(super) fn new(index: &'a Index<'a>) -> Node<'a> {
        let packages = Packages::of(index);
        let configs = Configs::of(index, |specifier| {
            let (directory, rest) = packages.named(specifier)?;
            Some((directory.to_owned(), rest.to_owned()))
        });
        let files = Files::of(index, &configs);
        let runs = ["import", "require", "node", "default"];
        let checks = ["source", "types", "browser", "import", "default"];
        let resolver =
            |conditions: &[&str]| ResolverGeneric::new_with_file_system(files.clone(), options(conditions));
        let resolvers = [resolver(&runs), resolver(&checks)];
        Node {
            index,
            configs,
            packages,
            aliases: Aliases::of(index),
            resolvers,
            files,
        }
    }

    /// Configurations that are used only in part.
    pub(super) fn problems(&self) -> &[Problem] {
        &self.configs.problems
    }

    pub(super) fn resolve(
        &self,
        absent: &Absent<'_>,
        file: usize,
        specifier: &str,
        optional: bool,
    ) -> Resolution {
        let specifier = bare(specifier);
        if specifier.contains("://") || specifier.starts_with("data:") || specifier.contains('\0') {
            return Resolution::External(specifier.to_owned());
        }
        let from = self.index.path(file);
        let directory = path::parent(from);
        let found = match is_relative(specifier) {
            true => path::join(directory, specifier).and_then(|path| module_at(self.index, &path)),
            false => self.aliased(directory, specifier),
        };
        if let Some(found) = found {
            return Resolution::Files(vec![found]);
        }
        match self.by_node(from, specifier) {
            Some(outcome) => outcome,
            None => self.unresolved(absent, file, specifier, optional),
        }
    }

    /// Resolves an alias of a bundler.
    fn aliased(&self, directory: &str, specifier: &str) -> Option<usize> {
        let mut paths = self.aliases.paths(directory, specifier);
        paths.find_map(|path| self.at(&path))
    }

    /// File at a path, or the index of a directory that has its own manifest.
    fn at(&self, path: &str) -> Option<usize> {
        module_at(self.index, path).or_else(|| index_of(self.index, path))
    }

    fn by_node(&self, from: &str, specifier: &str) -> Option<Resolution> {
        let from = format!("/{from}");
        for resolver in &self.resolvers {
            match resolver.resolve_file(&from, specifier) {
                Ok(found) => return Some(self.place(found.path().to_str()).unwrap_or(Resolution::Missing)),
                Err(ResolveError::Builtin { .. }) => return Some(Resolution::External("node".to_owned())),
                Err(_) => {}
            }
        }
        None
    }

    fn place(&self, found: Option<&str>) -> Option<Resolution> {
        let path = self.files.real(found?)?;
        let found = self.index.find(path.trim_start_matches('/'))?;
        Some(Resolution::Files(vec![found]))
    }

    /// Resolves what Node's rules do not cover, or tells why there is no file.
    fn unresolved(&self, absent: &Absent<'_>, file: usize, specifier: &str, optional: bool) -> Resolution {
        let from = self.index.path(file);
        let directory = path::parent(from);
        let package = self.packages.around(from).unwrap_or_default();
        let external = || Resolution::External(package_name(specifier).to_owned());
        let candidates = self.candidates(directory, package, specifier);
        if let Some(found) = candidates.iter().find_map(|path| self.at(path)) {
            return Resolution::Files(vec![found]);
        }
        if is_virtual(specifier) {
            return external();
        }
        if specifier.starts_with('#')
            && let Some(found) = self.packages.internal(self.index, package, specifier)
        {
            return subpath(found, external());
        }
        if self.is_local(directory, specifier) {
            if candidates.iter().any(|path| self.index.has_directory(path)) {
                return Resolution::Nothing;
            }
            let is_made = optional || candidates.iter().any(|path| absent.is_expected(path));
            return if is_made {
                Resolution::External(specifier.to_owned())
            } else {
                Resolution::Missing
            };
        }
        let Some((inside, rest)) = self.packages.named(specifier) else {
            return external();
        };
        if path::relative(from, inside).is_some() && rest.is_empty() && optional {
            return external();
        }
        match self.packages.subpath(self.index, inside, rest) {
            Subpath::Missing if absent.is_expected(&path::below(inside, rest)) => external(),
            found => subpath(found, external()),
        }
    }

    /// Paths that a specifier may mean besides Node's rules.
    fn candidates(&self, directory: &str, package: &str, specifier: &str) -> Vec<String> {
        if is_relative(specifier) {
            return path::join(directory, specifier).into_iter().collect();
        }
        let mut paths: Vec<String> = self.configs.mapped(directory, specifier).collect();
        paths.extend(self.aliases.paths(directory, specifier));
        paths.extend(habitual(package, specifier));
        paths
    }

    /// Checks whether a specifier can only mean a file of the tree.
    fn is_local(&self, directory: &str, specifier: &str) -> bool {
        let is_marked = specifier.starts_with(['.', '/', '#'])
            || ["@/", "~/", "$lib/"]
                .iter()
                .any(|start| specifier.starts_with(start));
        is_marked
            || (self.packages.named(specifier).is_none()
                && (self.configs.maps(directory, specifier) || self.aliases.maps(directory, specifier)))
    }

    /// Resolves a pattern to all files that fit it.
    pub(super) fn fitting(&self, file: usize, pattern: &str) -> Resolution {
        let from = self.index.path(file);
        let directory = path::parent(from);
        let package = self.packages.around(from).unwrap_or_default();
        let fixed = pattern.split(['*', '{', '?']).next().unwrap_or_default();
        let (start, _) = fixed.rsplit_once('/').unwrap_or_default();
        let rest = pattern
            .get(start.len()..)
            .unwrap_or_default()
            .trim_start_matches('/');
        let starts = match start.starts_with('.') {
            true => path::join(directory, start).into_iter().collect(),
            false => self.candidates(directory, package, start),
        };
        let mut found = Vec::new();
        for start in starts.iter().filter(|start| self.index.has_directory(start)) {
            for pattern in alternatives(rest) {
                let pattern = path::below(start, &pattern);
                let fits = |at: &usize| {
                    let path = self.index.path(*at).as_bytes().as_bstr();
                    *at != file
                        && gix_glob::wildmatch(
                            pattern.as_bytes().as_bstr(),
                            path,
                            Mode::NO_MATCH_SLASH_LITERAL,
                        )
                };
                found.extend(self.index.below(start).filter(fits).take(MAX_FITTING));
            }
        }
        if found.is_empty() {
            Resolution::Nothing
        } else {
            Resolution::Files(found)
        }
    }
}

/// Specifier without what bundlers put around it: loaders before it, a query after it.
fn bare(specifier: &str) -> &str {
    let specifier = specifier.rsplit('!').next().unwrap_or_default();
    let specifier = match specifier.split_once('?') {
        Some((path, _)) if !path.is_empty() => path,
        _ => specifier,
    };
    match specifier.trim_end_matches('/') {
        "" => specifier,
        trimmed => trimmed,
    }
}

fn is_relative(specifier: &str) -> bool {
    matches!(specifier, "." | "..") || specifier.starts_with("./") || specifier.starts_with("../")
}

fn subpath(found: Subpath, external: Resolution) -> Resolution {
    match found {
        Subpath::File(file) => Resolution::Files(vec![file]),
        Subpath::Built => external,
        Subpath::Missing => Resolution::Missing,
    }
}

/// Patterns that one with `{a,b}` stands for.
fn alternatives(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return vec![pattern.to_owned()];
    };
    let Some((inside, after)) = rest.split_once('}') else {
        return vec![pattern.to_owned()];
    };
    let parts = inside.split(',').take(20);
    parts
        .map(|part| format!("{before}{}{after}", part.trim()))
        .collect()
}

/// Package of a specifier: `@scope/name` or `name`.
fn package_name(specifier: &str) -> &str {
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    let end = specifier
        .match_indices('/')
        .nth(parts - 1)
        .map_or(specifier.len(), |(at, _)| at);
    specifier.get(..end).unwrap_or(specifier)
}

fn options(conditions: &[&str]) -> ResolveOptions {
    let texts = |list: &[&str]| {
        list.iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<String>>()
    };
    ResolveOptions {
        tsconfig: Some(TsconfigDiscovery::Auto),
        extensions: texts(&EXTENSIONS),
        extension_alias: ALIASES
            .iter()
            .map(|(from, to)| ((*from).to_owned(), texts(to)))
            .collect(),
        condition_names: texts(conditions),
        main_fields: texts(&["source", "module", "main", "types"]),
        builtin_modules: true,
        symlinks: false,
        ..ResolveOptions::default()
    }
}
