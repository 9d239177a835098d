//! JavaScript and TypeScript: Node's rules and those of `tsconfig.json`, by `oxc_resolver`.

mod files;

use oxc_resolver::{ResolveError, ResolveOptions, ResolverGeneric, TsconfigDiscovery};

use super::{Index, Outcome};
use crate::path;
use files::Files;

/// Extensions that a specifier may omit.
const EXTENSIONS: [&str; 12] = [
    ".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".vue", ".svelte",
];

/// Extensions that an extension may stand for.
const ALIASES: [(&str, &[&str]); 4] = [
    (".js", &[".ts", ".tsx", ".d.ts", ".js", ".jsx"]),
    (".jsx", &[".tsx", ".jsx"]),
    (".mjs", &[".mts", ".d.mts", ".mjs"]),
    (".cjs", &[".cts", ".d.cts", ".cjs"]),
];

/// Resolves specifiers in the files of the tree.
pub(super) struct Node<'a> {
    index: &'a Index<'a>,
    files: Files,
    /// Resolver of code that runs, then that of code for type checkers or bundlers.
    resolvers: [ResolverGeneric<Files>; 2],
}

impl<'a> Node<'a> {
    pub(super) fn new(index: &'a Index<'a>) -> Node<'a> {
        let files = Files::of(index);
        let runs = ["import", "require", "node", "default"];
        let checks = ["source", "types", "browser", "import", "default"];
        let resolver =
            |conditions: &[&str]| ResolverGeneric::new_with_file_system(files.clone(), options(conditions));
        let resolvers = [resolver(&runs), resolver(&checks)];
        Node {
            index,
            files,
            resolvers,
        }
    }

    pub(super) fn resolve(&self, file: usize, specifier: &str, optional: bool) -> Outcome {
        let specifier = specifier.trim_end_matches('/');
        if specifier.contains("://") || specifier.starts_with("data:") || specifier.contains('\0') {
            return Outcome::External(specifier.to_owned());
        }
        if let Some(found) = self.beside(file, specifier) {
            return Outcome::Files(vec![found]);
        }
        let from = format!("/{}", self.index.path(file));
        for resolver in &self.resolvers {
            match resolver.resolve_file(&from, specifier) {
                Ok(found) => return self.place(found.path().to_str()).unwrap_or(Outcome::Missing),
                Err(ResolveError::Builtin { .. }) => return Outcome::External("node".to_owned()),
                Err(_) => {}
            }
        }
        self.unresolved(file, specifier, optional)
    }

    /// Resolves a relative specifier that is a file, with or without an extension. Most are, and no manifest is
    /// needed. A specifier that ends like a compiler's output may mean the source.
    fn beside(&self, file: usize, specifier: &str) -> Option<usize> {
        let is_relative = specifier.starts_with("./") || specifier.starts_with("../");
        if !is_relative
            || specifier.contains(['?', '#'])
            || ALIASES.iter().any(|(from, _)| specifier.ends_with(from))
        {
            return None;
        }
        let mut path = path::join(path::parent(self.index.path(file)), specifier)?;
        if let Some(found) = self.index.find(&path) {
            return Some(found);
        }
        let length = path.len();
        EXTENSIONS.iter().find_map(|extension| {
            path.truncate(length);
            path.push_str(extension);
            self.index.find(&path)
        })
    }

    fn place(&self, found: Option<&str>) -> Option<Outcome> {
        let path = self.files.real(found?)?;
        let found = self.index.find(path.trim_start_matches('/'))?;
        Some(Outcome::Files(vec![found]))
    }

    /// Resolves to the sources of a package in the tree whose manifest points to build output.
    fn unresolved(&self, file: usize, specifier: &str, optional: bool) -> Outcome {
        let is_local = specifier.starts_with(['.', '/', '#'])
            || specifier.starts_with("@/")
            || specifier.starts_with("~/");
        if is_local {
            let name = specifier.to_owned();
            return if optional {
                Outcome::External(name)
            } else {
                Outcome::Missing
            };
        }
        let Some((package, directory, rest)) = self.files.package(specifier) else {
            return Outcome::External(package_name(specifier).to_owned());
        };
        if path::relative(self.index.path(file), &directory).is_some() && rest.is_empty() && optional {
            return Outcome::External(package);
        }
        let inside = if rest.is_empty() { "index" } else { rest };
        let bases = ["src/", "lib/", ""].map(|folder| path::below(&directory, &format!("{folder}{inside}")));
        let endings = [".ts", ".tsx", ".js", ".mjs", ".jsx"];
        let guesses = bases
            .iter()
            .flat_map(|base| endings.map(|ending| format!("{base}{ending}")));
        Outcome::file(self.index.first(guesses))
    }
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
