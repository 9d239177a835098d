//! Names inside one Rust file.

use super::{Index, SYSROOT_CRATES};
use crate::facts::What;

/// Path for which a `use` of the same file introduces the first segment, with the remaining segments appended,
/// and the module of that `use`.
pub(super) fn used<'a>(index: &Index<'a>, file: usize, wanted: &str) -> Option<(String, &'a str)> {
    let (first, rest) = split(wanted);
    let facts = index.facts(file)?;
    facts.imports.iter().find_map(|import| match &import.what {
        What::RustUse {
            path: target,
            scope,
            name,
        } if name.as_deref() == Some(first) && split(target).0 != first => {
            Some((inside(target, rest), scope.as_str()))
        }
        _ => None,
    })
}

/// First segment of a path, and the rest.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.split_once("::").unwrap_or((path, ""))
}

/// Path inside a module; the crate's root has an empty name.
pub(super) fn inside(module: &str, path: &str) -> String {
    match (module, path) {
        ("", path) => path.to_owned(),
        (module, "") => module.to_owned(),
        (module, path) => [module, path].join("::"),
    }
}

/// Enclosing module of a module; the root's is the root.
pub(super) fn around(module: &str) -> &str {
    module.rsplit_once("::").map_or("", |(around, _)| around)
}

/// Checks whether a file defines or imports a name.
pub(super) fn is_known(index: &Index<'_>, file: usize, wanted: &str) -> bool {
    index.facts(file).is_some_and(|facts| {
        facts.declares.contains(wanted)
            || facts.imports.iter().any(
                |import| matches!(&import.what, What::RustUse { name: Some(name), .. } if name == wanted),
            )
    })
}

/// Checks whether a file has a glob import.
pub(super) fn has_glob(index: &Index<'_>, file: usize) -> bool {
    index.facts(file).is_some_and(|facts| {
        let is_glob = |what: &What| matches!(what, What::RustUse { name: None, .. });
        facts.imports.iter().any(|import| is_glob(&import.what))
    })
}

/// Checks whether a path may continue through `name` in a file without such a module. Macros and globs bring
/// names that the source does not show.
pub(super) fn may_hold(index: &Index<'_>, file: usize, name: &str) -> bool {
    name.starts_with(char::is_uppercase)
        || is_known(index, file, name)
        || has_glob(index, file)
        || is_known(index, file, "!")
}

/// Crates of the compiler and types of the language.
pub(super) fn is_builtin(name: &str) -> bool {
    let types = [
        "str", "char", "bool", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128",
        "isize", "f32", "f64",
    ];
    SYSROOT_CRATES.contains(&name) || types.contains(&name)
}
