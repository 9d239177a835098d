//! What names mean inside one Rust file.

use super::{Index, SYSROOT};
use crate::facts::What;

/// What a `use` of the same file calls this path's first segment, with the rest behind it, and
/// where that `use` stands.
pub(super) fn used(index: &Index<'_>, file: usize, path: &[String]) -> Option<(Vec<String>, Vec<String>)> {
    let (first, rest) = path.split_first()?;
    let facts = index.facts(file)?;
    facts.imports.iter().find_map(|import| match &import.what {
        What::RustUse {
            path: target,
            scope,
            name,
        } if name.as_ref() == Some(first) && target.first() != Some(first) => {
            let whole = target.iter().chain(rest).cloned().collect();
            Some((whole, scope.clone()))
        }
        _ => None,
    })
}

/// Whether a file defines or imports a name.
pub(super) fn is_known(index: &Index<'_>, file: usize, wanted: &str) -> bool {
    index.facts(file).is_some_and(|facts| {
        let declared = facts
            .declares
            .binary_search_by(|name| name.as_str().cmp(wanted))
            .is_ok();
        declared
            || facts.imports.iter().any(
                |import| matches!(&import.what, What::RustUse { name: Some(name), .. } if name == wanted),
            )
    })
}

/// Whether a file takes everything from somewhere.
pub(super) fn has_glob(index: &Index<'_>, file: usize) -> bool {
    index.facts(file).is_some_and(|facts| {
        let is_glob = |what: &What| matches!(what, What::RustUse { name: None, .. });
        facts.imports.iter().any(|import| is_glob(&import.what))
    })
}

/// Whether a path may go on through `name` in a file that has no such module of its own. Macros and
/// globs bring names that nobody sees in the source.
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
    SYSROOT.contains(&name) || types.contains(&name)
}
