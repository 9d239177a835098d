//! Files that a path without its extension, or a path of build output, means.

use crate::path;
use crate::resolve::Index;

/// Extensions that a specifier may omit.
pub(super) const EXTENSIONS: [&str; 13] = [
    ".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".vue", ".svelte",
    ".astro",
];

/// Extensions that an extension may stand for.
pub(super) const ALIASES: [(&str, &[&str]); 4] = [
    (".js", &[".ts", ".tsx", ".d.ts", ".js", ".jsx"]),
    (".jsx", &[".tsx", ".jsx"]),
    (".mjs", &[".mts", ".d.mts", ".mjs"]),
    (".cjs", &[".cts", ".d.cts", ".cjs"]),
];

/// Directories of build output.
pub(crate) const OUTPUT_FOLDERS: [&str; 20] = [
    "dist",
    "build",
    "out",
    "output",
    "target",
    "node_modules",
    "coverage",
    "generated",
    "__generated__",
    "_generated",
    ".next",
    ".nuxt",
    ".output",
    ".svelte-kit",
    ".astro",
    ".react-router",
    ".velite",
    ".contentlayer",
    "styled-system",
    "storybook-static",
];

/// First directories of the path of a build product. What follows is the path of the source.
const BUILT_FOLDERS: [&str; 12] = [
    "dist", "build", "lib", "out", "output", "esm", "cjs", "es", "umd", "dist-es", "dist-cjs", "_build",
];

/// Extensions of build products.
const BUILT_EXTENSIONS: [&str; 9] = [
    ".d.ts", ".d.mts", ".d.cts", ".mjs", ".cjs", ".js", ".jsx", ".ts", ".tsx",
];

/// File that a path means: itself, with another extension, or the index of a directory without a manifest.
pub(crate) fn module_at(index: &Index<'_>, path: &str) -> Option<usize> {
    let alias = ALIASES
        .iter()
        .find_map(|(from, to)| Some((path.strip_suffix(from)?, to)));
    if let Some((stem, endings)) = alias
        && let Some(found) = index.first(endings.iter().map(|ending| format!("{stem}{ending}")))
    {
        return Some(found);
    }
    index
        .find(path)
        .or_else(|| with_extension(index, path))
        .or_else(|| {
            let is_plain =
                index.has_directory(path) && index.find(&path::below(path, "package.json")).is_none();
            is_plain.then(|| index_of(index, path)).flatten()
        })
}

/// File `index` of a directory.
pub(super) fn index_of(index: &Index<'_>, directory: &str) -> Option<usize> {
    with_extension(index, &path::below(directory, "index"))
}

fn with_extension(index: &Index<'_>, path: &str) -> Option<usize> {
    if path.is_empty() {
        return None;
    }
    let mut path = path.to_owned();
    let length = path.len();
    EXTENSIONS.iter().find_map(|extension| {
        path.truncate(length);
        path.push_str(extension);
        index.find(&path)
    })
}

/// Source of a file that the manifest in a directory names: the file itself, or the one that it is built from,
/// such as `src/a.ts` of `./dist/esm/a.mjs`.
pub(crate) fn source_of(index: &Index<'_>, directory: &str, target: &str) -> Option<usize> {
    let target = path::join("", target)?;
    if let Some(found) = module_at(index, &path::below(directory, &target)) {
        return Some(found);
    }
    let bare = BUILT_EXTENSIONS
        .iter()
        .find_map(|ending| target.strip_suffix(ending));
    let mut rest = bare.unwrap_or(&target);
    let mut bases = vec![rest];
    while let Some((first, behind)) = rest.split_once('/')
        && BUILT_FOLDERS.contains(&first)
    {
        bases.push(behind);
        rest = behind;
    }
    let bases = bases.into_iter().rev();
    bases.into_iter().find_map(|base| {
        let places = [
            format!("src/{base}"),
            base.to_owned(),
            format!("source/{base}"),
            format!("lib/{base}"),
        ];
        places
            .iter()
            .find_map(|place| module_at(index, &path::below(directory, place)))
    })
}

/// Sources of all files that an exported path with a `*` in a manifest means.
pub(crate) fn sources_of(index: &Index<'_>, directory: &str, pattern: &str) -> Vec<usize> {
    let before = pattern
        .trim_start_matches("./")
        .split('*')
        .next()
        .unwrap_or_default();
    let mut rest = before.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut folders = vec![rest.to_owned()];
    while let Some(first) = rest.split('/').next()
        && BUILT_FOLDERS.contains(&first)
    {
        rest = rest
            .get(first.len()..)
            .unwrap_or_default()
            .trim_start_matches('/');
        folders.push(path::below("src", rest));
    }
    let folders = folders
        .iter()
        .map(|folder| path::below(directory, folder.trim_end_matches('/')));
    let folders = folders.map(|folder| folder.trim_end_matches('/').to_owned());
    let mut known = folders.filter(|folder| index.has_directory(folder));
    known
        .next()
        .into_iter()
        .flat_map(|folder| index.below(&folder))
        .collect()
}

/// Checks whether a path lies in a directory of build output.
pub(crate) fn is_output(path: &str) -> bool {
    path::is_below_any(path, &OUTPUT_FOLDERS)
}
