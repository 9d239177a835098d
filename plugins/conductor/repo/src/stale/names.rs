//! Names of disused files.

use std::borrow::Cow;

use super::Reason;
use crate::path;

const BACKUP_EXTENSIONS: [&str; 9] = ["bak", "backup", "orig", "rej", "old", "save", "swp", "swo", "tmp"];

const OLD_WORDS: [&str; 9] = [
    "old",
    "bak",
    "backup",
    "deprecated",
    "obsolete",
    "unused",
    "legacy",
    "tmp",
    "temp",
];

const COPY_WORDS: [&str; 3] = ["copy", "kopie", "duplicate"];

const OLD_FOLDERS: [&str; 7] = [
    "old",
    "backup",
    "backups",
    "deprecated",
    "obsolete",
    "unused",
    "_archive",
];

/// Reason that a path's name gives, if any.
pub(super) fn judge(path: &str) -> Option<Reason> {
    let name = path::name(path);
    if name.ends_with('~') && name.len() > 1 {
        return Some(Reason::Backup { part: "~".to_owned() });
    }
    let extension = lower(path::extension(path));
    if BACKUP_EXTENSIONS.contains(&extension.as_ref()) {
        let part = format!(".{extension}");
        return Some(Reason::Backup { part });
    }
    let part = aside(&lower(path::stem(path))).or_else(|| folder(path))?;
    Some(Reason::Named { part })
}

fn lower(name: &str) -> Cow<'_, str> {
    let is_lower = name
        .bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(name.to_lowercase())
    }
}

/// Marks at either end of a name: `old_x`, `x_old`, `x copy`, `Copy of x`, `x (1)`. In `copy_file` the word
/// describes the code.
fn aside(stem: &str) -> Option<String> {
    let is_break = |c: char| matches!(c, '_' | '-' | '.' | ' ');
    // A name for use inside the package: `_old_client`.
    let stem = stem.trim_start_matches('_');
    let first = stem.split(is_break).next().unwrap_or_default();
    let last = stem.rsplit(is_break).next().unwrap_or_default();
    if first == last {
        return None;
    }
    if OLD_WORDS.contains(&first) {
        return Some(first.to_owned());
    }
    if OLD_WORDS.contains(&last) || COPY_WORDS.contains(&last) || is_numbered(last) {
        return Some(last.to_owned());
    }
    stem.starts_with("copy of ").then(|| "copy of".to_owned())
}

/// Checks for `(1)`, as downloads and desktops number copies.
fn is_numbered(part: &str) -> bool {
    let inside = part.strip_prefix('(').and_then(|part| part.strip_suffix(')'));
    inside.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn folder(path: &str) -> Option<String> {
    let mut parts = path::parent(path).split('/');
    parts
        .find(|part| OLD_FOLDERS.contains(part))
        .map(|part| format!("{part}/"))
}
