//! Deliverables of a job that are paths, and what is there at its end.

use tollgate_sdk::workspace::MAX_ENTRIES;
use tollgate_sdk::{Cx, FileKind};

use super::known::Presence;
use super::learn::presence;
use crate::access::{self, Access};
use crate::evidence;
use crate::model::EvidenceMode;
use crate::store::job::Job;

/// Mark of a deliverable that may be an empty file.
const MAY_BE_EMPTY: &str = "allow_empty";
/// Maximum bytes of a file that are searched for content.
const MAX_SEARCHED_BYTES: u32 = 64 << 10;
/// Maximum entries of a directory that are searched for a file with content.
const MAX_SEARCHED_ENTRIES: usize = 2_000;
/// Names that look like files.
const PRODUCT_NAMES: &[&str] = &[
    "node.js",
    "next.js",
    "nuxt.js",
    "vue.js",
    "three.js",
    "d3.js",
    "express.js",
    "socket.io",
    "asp.net",
    "e.g",
    "i.e",
];

/// Paths among the deliverables of a job, each with what is there.
pub(crate) fn found(cx: &Cx<'_>, job: &Job) -> Vec<(String, Presence)> {
    let Ok(access) = access::open(cx, job.repo_root.as_deref()) else {
        return Vec::new();
    };
    let is_strict = job.effective().evidence_schema_mode == EvidenceMode::Strict;
    let texts = job.plan.deliverables.iter().flatten();
    let known = texts.flat_map(|text| {
        let may_be_empty = text.contains(MAY_BE_EMPTY);
        paths(text).into_iter().map(move |path| (path, may_be_empty))
    });
    known
        .filter_map(|(path, may_be_empty)| {
            let there = look(&access, path, may_be_empty)?;
            let there = match there {
                Presence::File if is_strict && !may_be_empty && is_mute_file(&access, path) => {
                    Presence::Empty
                }
                there => there,
            };
            Some((path.to_owned(), there))
        })
        .collect()
}

/// Content at a path, as far as it can be read.
fn look(access: &Access<'_>, path: &str, may_be_empty: bool) -> Option<Presence> {
    let plain = path.trim_end_matches('/');
    Some(match presence(access, plain).ok()? {
        Presence::File | Presence::Empty if path.ends_with('/') => Presence::Other,
        Presence::File | Presence::Empty if may_be_empty => Presence::File,
        Presence::File if is_blank_file(access, plain) => Presence::Empty,
        Presence::Directory if !path.ends_with('/') => Presence::Directory,
        Presence::Directory if may_be_empty || has_content(access, plain) => Presence::File,
        Presence::Directory => Presence::Empty,
        other => other,
    })
}

/// Checks whether a file of a job's repository has nothing but blanks and comments.
pub(super) fn is_blank_file(access: &Access<'_>, path: &str) -> bool {
    let read = access
        .workspace
        .read_at(&access.root.join(path), 0, MAX_SEARCHED_BYTES);
    // A longer file than this has content, unless its beginning is all comments.
    read.is_ok_and(|bytes| is_blank(path, &String::from_utf8_lossy(&bytes)))
}

/// Checks whether a file has no letter and no digit.
fn is_mute_file(access: &Access<'_>, path: &str) -> bool {
    let read = access
        .workspace
        .read_at(&access.root.join(path), 0, MAX_SEARCHED_BYTES);
    read.is_ok_and(|bytes| !evidence::says_something(&String::from_utf8_lossy(&bytes)))
}

/// Checks whether a directory has a file with content, at any depth.
fn has_content(access: &Access<'_>, directory: &str) -> bool {
    let mut directories = vec![access.root.join(directory)];
    let mut seen = 0_usize;
    while let Some(directory) = directories.pop() {
        let Ok(listed) = access.workspace.list(&directory, None, MAX_ENTRIES) else {
            continue;
        };
        for entry in listed {
            seen = seen.saturating_add(1);
            match entry.kind {
                FileKind::File if entry.size > 0 => return true,
                FileKind::Directory if seen < MAX_SEARCHED_ENTRIES => directories.push(entry.path),
                _ => {}
            }
        }
    }
    false
}

/// Paths that a deliverable names: the text itself, what it begins with, what is quoted, and what has a slash.
pub(crate) fn paths(text: &str) -> Vec<&str> {
    let text = text.trim();
    if is_path(text) {
        return vec![text];
    }
    let quotes = ['`', '"', '\''];
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')'));
    let mut found = Vec::new();
    for (place, word) in words.filter(|word| !word.is_empty()).enumerate() {
        let is_quoted = word.starts_with(quotes);
        let word = word
            .trim_matches(quotes)
            .trim_end_matches(['.', ':'])
            .trim_matches(quotes);
        let is_sure = place == 0 || is_quoted || word.contains('/');
        let is_product = PRODUCT_NAMES.contains(&word.to_lowercase().as_str());
        if is_sure && !is_product && is_path(word) && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

/// Checks whether a text is a path, rather than a sentence or an endpoint: it ends with `/`, or with a name that has an
/// extension.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '@' | '+');
    let name = text.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let has_extension = extension.len() <= 10 && extension.starts_with(|c: char| c.is_ascii_alphabetic());
    text.chars().all(plain) && crate::root::stays_inside(text) && (text.ends_with('/') || has_extension)
}

/// Marks of comments in files of an extension: those up to the end of a line, and pairs.
pub(super) type Comments = (&'static [&'static str], &'static [(&'static str, &'static str)]);

/// Marks of comments, by the extension of a path.
pub(super) fn comments(path: &str) -> Comments {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "py" | "pyi" => (&["#"], &[("\"\"\"", "\"\"\""), ("'''", "'''")]),
        "sh" | "bash" | "rb" | "pl" | "yaml" | "yml" | "toml" | "r" | "jl" | "ex" | "exs" => (&["#"], &[]),
        "rs" | "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "go" | "java" | "kt" | "scala" | "c" | "h"
        | "cc" | "cpp" | "hpp" | "cs" | "swift" | "dart" | "zig" | "php" | "scss" | "less" => {
            (&["//"], &[("/*", "*/")])
        }
        "css" => (&[], &[("/*", "*/")]),
        "html" | "xml" | "svg" | "vue" | "md" | "svelte" => (&[], &[("<!--", "-->")]),
        "sql" | "lua" | "hs" | "elm" => (&["--"], &[("/*", "*/"), ("{-", "-}")]),
        _ => (&[], &[]),
    }
}

/// Checks whether a text has nothing but blanks, comments and, in Python, statements without effect.
fn is_blank(path: &str, text: &str) -> bool {
    let (lines, pairs) = comments(path);
    let text: String = text.chars().filter(|c| !evidence::is_invisible(*c)).collect();
    let mut rest = text.trim_start();
    'text: while !rest.is_empty() {
        for (begin, end) in pairs {
            if let Some(inner) = rest.strip_prefix(begin) {
                rest = inner.split_once(end).map_or("", |(_, after)| after).trim_start();
                continue 'text;
            }
        }
        let line = rest.lines().next().unwrap_or_default();
        let is_idle = path.ends_with(".py") && matches!(line.trim(), "pass" | "...");
        if !is_idle && !lines.iter().any(|mark| line.starts_with(mark)) {
            return false;
        }
        rest = rest.get(line.len()..).unwrap_or_default().trim_start();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_sentences_and_endpoints() {
        for path in [
            "export.py",
            "docs/api.md",
            ".github/workflows/ci.yml",
            "assets/",
            "a-b/c_d.tar.gz",
        ] {
            assert!(is_path(path), "{path}");
        }
        for other in [
            "it exports",
            "/api/users",
            "GET /x",
            "v1.0",
            "api/users",
            "../up.py",
            "the file a.py",
            "*.py",
            "",
        ] {
            assert!(!is_path(other), "{other}");
        }
    }

    #[test]
    fn sentences_name_paths_as_well() {
        for (text, expected) in [
            ("export.py: writes CSV", vec!["export.py"]),
            (
                "the exporter in src/export.py, with docs/export.md.",
                vec!["src/export.py", "docs/export.md"],
            ),
            ("a command `report.sh`", vec!["report.sh"]),
            ("README.md (updated)", vec!["README.md"]),
            ("pkg/py.typed (allow_empty)", vec!["pkg/py.typed"]),
            ("Next.js pages for Node.js", vec![]),
            ("GET /reports.csv answers", vec![]),
            ("it follows e.g. the style guide", vec![]),
            ("a short README", vec![]),
        ] {
            assert_eq!(paths(text), expected, "{text}");
        }
    }

    #[test]
    fn comments_and_blanks_are_no_content() {
        for (path, text) in [
            ("a.py", " \n# later\n"),
            ("a.py", "\"\"\"The exporter.\"\"\"\n\npass\n"),
            ("a.rs", "// todo\n/* more\n lines */\n"),
            ("a.html", "<!-- later -->\n"),
            ("a.csv", "\n \n"),
            ("a.sql", "-- later"),
            ("a.csv", "\u{200b}\u{3164}\n\u{2060}"),
        ] {
            assert!(is_blank(path, text), "{path} {text:?}");
        }
        for (path, text) in [
            ("a.py", "# export\nx = 1\n"),
            ("a.md", "# Title\n"),
            ("a.csv", "# a,b\n"),
            ("a.rs", "/* x */ fn main() {}\n"),
            ("a.json", "{}"),
        ] {
            assert!(!is_blank(path, text), "{path} {text:?}");
        }
    }
}
