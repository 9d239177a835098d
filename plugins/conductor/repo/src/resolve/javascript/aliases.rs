//! Aliases of bundlers and frameworks.

use std::collections::BTreeMap;

use crate::manifest::Manifest;
use crate::path;
use crate::resolve::Index;

/// Beginnings of modules that a framework makes, such as SvelteKit's `$app/stores`.
const VIRTUAL_PREFIXES: [&str; 12] = [
    "$app/",
    "$env/",
    "$service-worker",
    "./$types",
    "#imports",
    "#app",
    "#build",
    "#components",
    "#internal/nuxt",
    "virtual:",
    "astro:",
    "@theme/",
];

/// Aliases with literal values, by the directory of the settings.
#[derive(Default)]
pub(super) struct Aliases<'a> {
    settings: BTreeMap<&'a str, Vec<(&'a str, &'a str)>>,
}

impl<'a> Aliases<'a> {
    pub(super) fn of(index: &Index<'a>) -> Aliases<'a> {
        let mut aliases = Aliases::default();
        for (file, manifest) in index.manifests() {
            if let Manifest::Settings(settings) = manifest {
                let own = settings
                    .aliases
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()));
                aliases
                    .settings
                    .entry(path::parent(index.path(file)))
                    .or_default()
                    .extend(own);
            }
        }
        aliases
    }

    /// Paths that a specifier may mean in a directory, nearest settings first.
    pub(super) fn paths(&self, directory: &str, specifier: &str) -> impl Iterator<Item = String> {
        path::with_ancestors(directory).flat_map(move |directory| {
            let own = self.settings.get(directory).into_iter().flatten();
            own.filter_map(move |(name, value)| {
                let rest = rest_of(name, specifier)?;
                let target = value.trim_start_matches('/').trim_end_matches("/*");
                path::join(directory, &format!("{target}/{rest}"))
            })
        })
    }

    /// Checks whether a specifier begins with an alias whose value is a path.
    pub(super) fn maps(&self, directory: &str, specifier: &str) -> bool {
        path::with_ancestors(directory).any(|directory| {
            let mut own = self.settings.get(directory).into_iter().flatten();
            own.any(|(name, value)| value.starts_with(['.', '/']) && rest_of(name, specifier).is_some())
        })
    }
}

/// Rest of a specifier after an alias: `@` fits `@/x`, `@/*` fits `@/x`, and `x$` fits only `x`.
fn rest_of<'s>(name: &str, specifier: &'s str) -> Option<&'s str> {
    if let Some(exact) = name.strip_suffix('$').filter(|exact| !exact.is_empty()) {
        return (specifier == exact).then_some("");
    }
    let name = name.trim_end_matches('*');
    let rest = specifier.strip_prefix(name)?;
    (rest.is_empty() || name.ends_with('/') || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
}

/// Checks whether a framework makes the module when it builds.
pub(super) fn is_virtual(specifier: &str) -> bool {
    VIRTUAL_PREFIXES.iter().any(|start| specifier.starts_with(start)) || specifier.ends_with("/$types")
}

/// Paths of a specifier by the habits of frameworks, in the package around a file: `@/x`, `~/x` and `$lib/x` are
/// below its sources.
pub(super) fn habitual(package: &str, specifier: &str) -> Vec<String> {
    if specifier == "$lib" || specifier.starts_with("$lib/") {
        let rest = specifier.trim_start_matches("$lib").trim_start_matches('/');
        return vec![
            path::below(package, &format!("src/lib/{rest}"))
                .trim_end_matches('/')
                .to_owned(),
        ];
    }
    let starts = ["@/", "~/", "~~/", "@@/", "/"];
    let Some(rest) = starts.iter().find_map(|start| specifier.strip_prefix(start)) else {
        return Vec::new();
    };
    let folders = ["src/", "app/", "", "resources/js/", "public/"];
    folders
        .iter()
        .map(|folder| path::below(package, &format!("{folder}{rest}")))
        .collect()
}
