//! Relative paths with `/`, as text: splitting, joining, and showing names with any characters.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Path before the last `/`; the root's parent is the root.
pub fn parent(path: &str) -> &str {
    split_last(path, b'/').map_or("", |(parent, _)| parent)
}

/// Part after the last `/`.
pub fn name(path: &str) -> &str {
    split_last(path, b'/').map_or(path, |(_, name)| name)
}

/// Name without its last extension: `a.tar` of `x/a.tar.gz`.
pub(crate) fn stem(path: &str) -> &str {
    let name = name(path);
    match split_last(name, b'.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

/// Last extension, in the case as written.
pub(crate) fn extension(path: &str) -> &str {
    match split_last(name(path), b'.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => "",
    }
}

/// Splits at the last mark. Names are short: a loop over their bytes is faster than a search for long texts.
fn split_last(path: &str, mark: u8) -> Option<(&str, &str)> {
    let at = path.bytes().rposition(|byte| byte == mark)?;
    Some((path.get(..at)?, path.get(at + 1..)?))
}

/// Joins a path to a directory and resolves `.` and `..`. `None` if the result leaves the root.
pub(crate) fn join(directory: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Path of a name directly below a directory.
pub fn below(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}

/// Checks whether a file is below a directory with one of these names.
pub(crate) fn is_below_any(path: &str, names: &[&str]) -> bool {
    parent(path).split('/').any(|folder| names.contains(&folder))
}

/// A path and the directories that contain it, nearest first, the root last.
pub(crate) fn with_ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::once(path).chain(ancestors(path))
}

/// Directories that contain a path, nearest first, the root last.
pub(crate) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = (!path.is_empty()).then_some(path);
    std::iter::from_fn(move || {
        let here = parent(rest?);
        rest = (!here.is_empty()).then_some(here);
        Some(here)
    })
}

/// Path relative to a directory, if it is below the directory.
pub(crate) fn relative<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if directory.is_empty() {
        return Some(path);
    }
    path.strip_prefix(directory)?.strip_prefix('/')
}

/// A path in one line of text: unchanged, or quoted as Git does.
///
/// ```
/// use conductor_repo::path::show;
/// assert_eq!(show("src/größe.rs"), "src/größe.rs");
/// assert_eq!(show("a\nb"), r#""a\nb""#);
/// ```
pub fn show(path: &str) -> Cow<'_, str> {
    let hides = |c: char| c.is_control() || c == '"' || c == '\\' || is_invisible(c);
    if !path.contains(hides) {
        return Cow::Borrowed(path);
    }
    let mut quoted = String::from("\"");
    for c in path.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(quoted, "\\u{{{:x}}}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    Cow::Owned(quoted)
}

/// Characters that change the direction of text or have no width: a name with them reads as another.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Returns a name as text. A name that is not UTF-8 is an error that shows each invalid byte as `\xff`.
pub fn from_bytes(name: &[u8]) -> Result<String, String> {
    let mut escaped = String::new();
    let mut whole = true;
    for chunk in name.utf8_chunks() {
        escaped.push_str(chunk.valid());
        for byte in chunk.invalid() {
            whole = false;
            let _ = write!(escaped, "\\x{byte:02x}");
        }
    }
    if whole { Ok(escaped) } else { Err(escaped) }
}

#[cfg(test)]
mod tests {
    use super::{ancestors, extension, from_bytes, join, relative, show, stem};

    #[test]
    fn paths_are_taken_apart_and_put_together() {
        assert_eq!(join("a/b", "../c/./d").as_deref(), Some("a/c/d"));
        assert_eq!(join("a", "../.."), None);
        assert_eq!(ancestors("a/b/c").collect::<Vec<_>>(), ["a/b", "a", ""]);
        assert_eq!(ancestors("").count(), 0);
        assert_eq!((stem("x/.env"), extension("x/.env")), (".env", ""));
        assert_eq!((stem("a.tar.gz"), extension("a.tar.gz")), ("a.tar", "gz"));
        assert_eq!(relative("ab/c", "a"), None);
    }

    #[test]
    fn names_that_hide_something_are_quoted() {
        assert_eq!(show("a\u{202e}b\u{1b}"), r#""a\u{202e}b\u{1b}""#);
        assert_eq!(from_bytes(b"a\xffb"), Err("a\\xffb".to_owned()));
        assert_eq!(from_bytes("ä".as_bytes()), Ok("ä".to_owned()));
    }
}
