//! Absolute paths, normalised so that two checkouts agree.

use std::sync::LazyLock;

use regex_lite::{Captures, Regex};

/// Folders after which a path is the same on every machine.
const LIBRARIES: &[(&str, &str)] = &[
    (r"/(?:site|dist)-packages/", ""),
    (r"/node_modules/", "node_modules/"),
    (r"/rustc/[0-9a-f]{7,40}/", ""),
    (r"/rustlib/src/rust/", ""),
    (r"/registry/src/[^/]+/", ""),
    (r"/git/checkouts/[^/]+/[^/]+/", ""),
    (r"/pkg/mod/", ""),
    (r"/lib/python\d[\d.]*/", "python/"),
    (r"/go(?:-\d[\d.]*)?/src/", "go/"),
];

/// Top folders of checkouts, homes and temporary files. `/etc` and `/dev` are the same on all machines.
const TOP_FOLDERS: &[&str] = &[
    "home",
    "Users",
    "root",
    "tmp",
    "var",
    "private",
    "usr",
    "opt",
    "mnt",
    "media",
    "srv",
    "data",
    "work",
    "workspace",
    "workspaces",
    "build",
    "builds",
    "github",
    "app",
    "code",
    "src",
    "go",
    "nix",
    "Volumes",
    "run",
];

static LIBRARY_PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let compiled = |(pattern, prefix): &(&str, &'static str)| Some((Regex::new(pattern).ok()?, *prefix));
    LIBRARIES.iter().filter_map(compiled).collect()
});

/// Path in a text. The path starts at a boundary; the first group is the text before it.
static IN_TEXT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let boundary = r#"(^|[\s'"`(\[{<=,;|@:])"#;
    let part = r#"[^\s/\\'"`()\[\]{}<>,;|:*?]+"#;
    let unix = format!(r"(?:/{part})+/?");
    let windows = format!(r"(?:\\\\\?\\)?[A-Za-z]:(?:[\\/]+{part})+");
    Regex::new(&format!(
        "(?m){boundary}((?:file:///?)?(?:{windows})|(?:file://)?(?:{unix}))"
    ))
    .ok()
});
static RANDOM_NAME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:tmp[A-Za-z0-9_]{6,}|\.tmp\w{6}|[0-9a-f]{16,})(?:\.|$)").ok());
static LINE_AND_COLUMN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?::\d+){1,2}$").ok());

/// Replaces every absolute path in a text.
pub(super) fn replace(text: &str, roots: &[String]) -> String {
    let text = roots
        .iter()
        .fold(text.to_owned(), |text, root| without_root(&text, root));
    let Some(pattern) = IN_TEXT.as_ref().filter(|_| text.contains(['/', '\\'])) else {
        return text;
    };
    let replaced = pattern.replace_all(&text, |found: &Captures<'_>| {
        let group = |n| found.get(n).map_or("", |group| group.as_str());
        let path = unified(group(2));
        format!("{}{}", group(1), shorten(&path, roots).unwrap_or(path))
    });
    replaced.into_owned()
}

/// Path in portable form: `file:///C:\\a\b` becomes `C:/a/b`.
fn unified(path: &str) -> String {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let path = path.strip_prefix(r"\\?\").unwrap_or(path).replace('\\', "/");
    let path = match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => path.trim_start_matches('/').to_owned(),
        _ => path,
    };
    match path.contains("//") {
        true => path.split('/').filter(|part| !part.is_empty()).fold(
            String::from(if path.starts_with('/') { "/" } else { "" }),
            |joined, part| match joined.is_empty() || joined.ends_with('/') {
                true => joined + part,
                false => joined + "/" + part,
            },
        ),
        false => path,
    }
}

/// Removes a root where it is a whole path or the start of one. Only this way finds paths with spaces.
fn without_root(text: &str, root: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(root) {
        let opens = before
            .chars()
            .next_back()
            .or(kept.chars().next_back())
            .is_none_or(is_boundary)
            || before.ends_with("file://");
        let close = after.chars().next();
        let inside = close.is_some_and(|c| matches!(c, '/' | '\\'));
        kept.push_str(before);
        match opens {
            true if inside => rest = after.trim_start_matches(['/', '\\']),
            true if close.is_none_or(|c| is_boundary(c) || matches!(c, ')' | ']' | '>' | '.')) => {
                kept.push_str("<root>");
                rest = after;
            }
            _ => {
                kept.push_str(root);
                rest = after;
            }
        }
    }
    kept + rest
}

fn is_boundary(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '\'' | '"' | '`' | '(' | '[' | '{' | '<' | '=' | ',' | ';' | '|' | '@' | ':'
        )
}

/// Shortened path, or `None` if it stays unchanged.
pub(super) fn shorten(path: &str, roots: &[String]) -> Option<String> {
    let absolute = path.starts_with('/') || path.as_bytes().get(1) == Some(&b':');
    if !absolute {
        // The number of steps up to another folder depends on the location of the checkout.
        let outside = path.starts_with("../").then(|| path.rsplit('/').next()).flatten();
        return in_library(&format!("/{path}")).or_else(|| outside.map(str::to_owned));
    }
    let inside = roots.iter().find_map(|root| below(path, root));
    let library = inside.unwrap_or(path);
    let library = match library.starts_with('/') {
        true => library.to_owned(),
        false => format!("/{library}"),
    };
    in_library(&library)
        .or_else(|| inside.map(|rest| if rest.is_empty() { "<root>" } else { rest }.to_owned()))
        .or_else(|| without_folders(path))
}

/// Part of a path after a root, empty for the root itself.
fn below<'p>(path: &'p str, root: &str) -> Option<&'p str> {
    let root = root.replace('\\', "/");
    match path.strip_prefix(root.as_str())? {
        "" => Some(""),
        rest => rest.strip_prefix('/').map(|rest| rest.trim_start_matches('/')),
    }
}

fn in_library(path: &str) -> Option<String> {
    let last = |(pattern, prefix): &(Regex, &str)| {
        let end = pattern.find_iter(path).last()?.end();
        Some((end, format!("{prefix}{}", path.get(end..)?)))
    };
    LIBRARY_PATTERNS
        .iter()
        .filter_map(last)
        .max_by_key(|(end, _)| *end)
        .map(|(_, rest)| rest)
}

/// File name of a path, or a mark for a folder whose location differs between machines.
fn without_folders(path: &str) -> Option<String> {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let (top, last) = (parts.next()?, parts.next_back());
    let name = last.unwrap_or(top);
    if RANDOM_NAME.as_ref().is_some_and(|pattern| pattern.is_match(name)) {
        return Some("<tmp>".to_owned());
    }
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_file = extension.len() < 10
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.chars().all(|c| c.is_ascii_alphanumeric());
    match is_file {
        true => Some(name.to_owned()),
        false if last.is_some() && (TOP_FOLDERS.contains(&top) || top.ends_with(':')) => {
            Some("<path>".to_owned())
        }
        false => None,
    }
}

/// Path without line and column.
pub(super) fn without_place(path: &str) -> &str {
    let found = LINE_AND_COLUMN.as_ref().and_then(|pattern| pattern.find(path));
    found.and_then(|place| path.get(..place.start())).unwrap_or(path)
}

#[cfg(test)]
pub(super) fn every_pattern_compiles() {
    assert_eq!(LIBRARY_PATTERNS.len(), LIBRARIES.len());
    assert!(IN_TEXT.is_some() && RANDOM_NAME.is_some() && LINE_AND_COLUMN.is_some());
}
