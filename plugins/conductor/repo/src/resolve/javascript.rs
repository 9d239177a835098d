//! JavaScript and TypeScript: Node's rules and those of `tsconfig.json`, by `oxc_resolver`.

mod files;

use oxc_resolver::{ResolveError, ResolveOptions, ResolverGeneric, TsconfigDiscovery};

use super::{Index, Outcome};
use crate::path;
use files::Files;

/// Endings that a specifier may leave out.
const EXTENSIONS: [&str; 12] = [
    ".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".vue", ".svelte",
];

/// What an ending may stand for.
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
    /// What runs, then what only a type checker or a bundler takes.
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

    /// A relative specifier that is a file as it stands, or with one of the endings. Most are, and no
    /// manifest has a say in it; one that ends like what a compiler writes may mean its source.
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

    /// A package of the tree may point to what its build makes: then its sources are meant.
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

/// The package of a specifier: `@scope/name` or `name`.
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
