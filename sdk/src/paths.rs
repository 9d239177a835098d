//! Paths in arguments, and globs that match them, for policies that allow and deny paths.

/// Normalises a path to the form of a workspace's file names: relative, with `/`, without `.` and double slashes.
/// Returns `None` if the path is absolute, begins in a home directory, leaves the workspace with `..` or contains a
/// NUL.
///
/// ```
/// use tollgate_sdk::paths::inside;
///
/// assert_eq!(inside("./src//lib.rs").as_deref(), Some("src/lib.rs"));
/// assert_eq!(inside("src\\lib.rs").as_deref(), Some("src/lib.rs"));
/// for outside in ["/etc/passwd", "~/x", "a/../../x", "a\0"] {
///     assert_eq!(inside(outside), None);
/// }
/// ```
#[must_use]
pub fn inside(path: &str) -> Option<String> {
    if path.starts_with(['/', '\\', '~']) || path.contains('\0') {
        return None;
    }
    let mut parts = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => return None,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns whether a glob matches a path that [`inside`] returned. `*` does not match `/`, `**` does. `?`, `[a-z]` and
/// `{a,b}` work as in a shell. An invalid glob matches nothing, so check globs with [`mistake`] first.
///
/// ```
/// use tollgate_sdk::paths::matches;
///
/// assert!(matches("src/**", "src/a/b.rs") && matches("*.{rs,toml}", "Cargo.toml"));
/// assert!(!matches("src/*", "src/a/b.rs"));
/// ```
#[must_use]
pub fn matches(glob: &str, path: &str) -> bool {
    fast_glob::glob_match(glob, path)
}

/// Describes the mistake in a glob, for [`Policy::problems`](crate::policy::Policy::problems).
///
/// ```
/// use tollgate_sdk::paths::mistake;
///
/// assert_eq!(mistake("src/**"), None);
/// assert_eq!(mistake("src/[ab").as_deref(), Some("`src/[ab` does not close `[`"));
/// ```
#[must_use]
pub fn mistake(glob: &str) -> Option<String> {
    let mut open = Vec::new();
    let mut chars = glob.chars();
    while let Some(c) = chars.next() {
        match (c, open.last()) {
            ('\\', _) if chars.next().is_none() => return Some(format!("`{glob}` ends in an escape")),
            (']', Some('[')) | ('}', Some('{')) => {
                open.pop();
            }
            ('[' | '{', last) if last != Some(&'[') => open.push(c),
            ('}', None) => return Some(format!("`{glob}` has a closing bracket without an opening one")),
            _ => {}
        }
    }
    open.last()
        .map(|open| format!("`{glob}` does not close `{open}`"))
}
