//! Reading what git prints with `-z`: names are raw, separated by NUL.

use schemars::JsonSchema;
use serde::Serialize;

/// Bytes as text: what is not UTF-8 becomes `\xNN`, so that no two names become one.
pub(crate) fn lossless(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Branch and changed paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// None when HEAD is detached.
    pub branch: Option<String>,
    /// None before the first commit.
    pub head: Option<String>,
    pub entries: Vec<Entry>,
}

/// A path that differs from HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// The path; bytes that are not UTF-8 are written as \xNN.
    pub path: String,
    /// What the index says: a letter such as M, A or D, or `.`.
    pub staged: char,
    /// What the working tree says: a letter such as M or D, `?` for untracked, `U` for a conflict, or `.`.
    pub unstaged: char,
}

/// Reads `git status --porcelain=v2 -z --branch --no-renames`.
pub(crate) fn status(printed: &[u8]) -> Status {
    let mut status = Status::default();
    for record in printed.split(|byte| *byte == 0) {
        let record = lossless(record);
        if let Some(branch) = record.strip_prefix("# branch.head ") {
            status.branch = (branch != "(detached)").then(|| branch.to_owned());
        } else if let Some(head) = record.strip_prefix("# branch.oid ") {
            status.head = (head != "(initial)").then(|| head.to_owned());
        } else if let Some(path) = record.strip_prefix("? ") {
            status.entries.push(Entry {
                path: path.to_owned(),
                staged: '.',
                unstaged: '?',
            });
        } else {
            status.entries.extend(changed(&record));
        }
    }
    status
}

/// `1 XY sub mH mI mW hH hI path` or `u XY sub m1 m2 m3 mW h1 h2 h3 path`.
fn changed(record: &str) -> Option<Entry> {
    let fields = match record.get(..2)? {
        "1 " => 9,
        "u " => 11,
        _ => return None,
    };
    let mut parts = record.splitn(fields, ' ');
    let mut letters = parts.nth(1)?.chars();
    let (staged, unstaged) = (letters.next()?, letters.next()?);
    let path = parts.last()?.to_owned();
    Some(match fields {
        11 => Entry {
            path,
            staged: 'U',
            unstaged: 'U',
        },
        _ => Entry {
            path,
            staged,
            unstaged,
        },
    })
}

/// Reads `git diff --numstat -z --no-renames`: lines added, lines removed, path. Binary files have none.
pub(crate) fn numstat(printed: &[u8]) -> Vec<(String, u64, u64)> {
    printed
        .split(|byte| *byte == 0)
        .filter_map(|record| {
            let record = lossless(record);
            let mut parts = record.splitn(3, '\t');
            let (added, removed) = (parts.next()?, parts.next()?);
            let path = parts.next()?.to_owned();
            Some((path, added.parse().unwrap_or(0), removed.parse().unwrap_or(0)))
        })
        .collect()
}

/// Reads `git diff --name-status -z --no-renames`: a letter and a path by turns.
pub(crate) fn name_status(printed: &[u8]) -> Vec<(char, String)> {
    let mut fields = printed.split(|byte| *byte == 0).map(lossless);
    let mut all = Vec::new();
    while let (Some(letter), Some(path)) = (fields.next(), fields.next()) {
        all.extend(letter.chars().next().map(|letter| (letter, path)));
    }
    all
}

/// The filters that a repository's own configuration names programs for, from a list of scopes and names.
pub(crate) fn own_filters(printed: &[u8]) -> Vec<String> {
    let listed = names(printed);
    let mut filters: Vec<String> = listed
        .chunks_exact(2)
        .filter_map(|pair| match pair {
            [scope, name] if scope == "local" || scope == "worktree" => name.strip_prefix("filter."),
            _ => None,
        })
        .filter_map(|filter| filter.rsplit_once('.'))
        .filter(|(_, what)| matches!(*what, "clean" | "smudge" | "process"))
        .map(|(filter, _)| filter.to_owned())
        .collect();
    filters.sort();
    filters.dedup();
    filters
}

/// The names in a NUL-separated list.
pub(crate) fn names(printed: &[u8]) -> Vec<String> {
    let names = printed.split(|byte| *byte == 0);
    names.filter(|name| !name.is_empty()).map(lossless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_stay_apart() {
        let printed = b"# branch.oid (initial)\0# branch.head main\0\
            1 .M N... 100644 100644 100644 aa bb a file\0\
            u UU N... 1 2 3 4 a b c both\0? new\nline\0? \xff\xfe\0";
        let status = status(printed);
        assert_eq!((status.branch.as_deref(), status.head), (Some("main"), None));
        let shown: Vec<String> = status
            .entries
            .iter()
            .map(|entry| format!("{}{} {}", entry.staged, entry.unstaged, entry.path))
            .collect();
        assert_eq!(shown, [".M a file", "UU both", ".? new\nline", ".? \\xff\\xfe"]);
        assert_eq!(
            numstat(b"1\t2\ta\tb\0-\t-\tbin\0"),
            [("a\tb".to_owned(), 1, 2), ("bin".to_owned(), 0, 0)]
        );
        let config = b"global\0filter.lfs.clean\0local\0core.bare\0local\0filter.a.b.process\0\
            worktree\0filter.c.smudge\0local\0filter.c.clean\0local\0filter.d.required\0";
        assert_eq!(own_filters(config), ["a.b", "c"]);
        assert_eq!(
            name_status(b"A\0x\0D\0y\0"),
            [('A', "x".to_owned()), ('D', "y".to_owned())]
        );
    }
}
