//! Git's output as the tools of the pack show it.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_kit::git::{self, Head, Kind, StatusEntry};

/// `HEAD` and the paths that differ from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub head: Head,
    pub entries: Vec<Entry>,
}

/// A path that differs from HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// The path. If it is not UTF-8: `bytes:` and the path with its other bytes as \xNN.
    pub path: String,
    /// Status in the index: a letter such as M, A or D, or `.`.
    pub staged: char,
    /// Status in the working tree: a letter such as M or D, `?` for untracked, `U` for a conflict, or `.`.
    pub unstaged: char,
}

/// Reads `git status --porcelain=v2 -z --branch --no-renames`, as far as paths are below a folder.
pub(crate) fn status(printed: &[u8], folder: &[u8]) -> Status {
    let (head, listing) = git::parse_status(printed);
    let entries = listing.entries.into_iter();
    Status {
        head,
        entries: entries.filter_map(|entry| Entry::of(entry, folder)).collect(),
    }
}

impl Entry {
    fn of(entry: StatusEntry, folder: &[u8]) -> Option<Entry> {
        let (staged, unstaged) = match entry.kind {
            Kind::Unmerged => ('U', 'U'),
            _ => (entry.staged, entry.unstaged),
        };
        Some(Entry {
            path: entry.path.below(folder)?.into(),
            staged,
            unstaged,
        })
    }
}

/// The filters that a repository's own configuration names programs for, from a list of scopes and names.
pub(crate) fn own_filters(printed: &[u8]) -> Vec<String> {
    let listed: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
    let mut filters: Vec<String> = listed
        .chunks_exact(2)
        .filter_map(|pair| match pair {
            [b"local" | b"worktree", name] => name.strip_prefix(b"filter."),
            _ => None,
        })
        .filter_map(|filter| {
            let dot = filter.iter().rposition(|byte| *byte == b'.')?;
            filter.split_at_checked(dot)
        })
        .filter(|(_, what)| matches!(*what, b".clean" | b".smudge" | b".process"))
        .map(|(filter, _)| git::text(filter))
        .collect();
    filters.sort();
    filters.dedup();
    filters
}

/// Checks whether a list of scopes and names has a name and an address of who commits.
pub(crate) fn names_committer(printed: &[u8]) -> bool {
    let has = |wanted: [&[u8]; 2]| {
        printed
            .split(|byte| *byte == 0)
            .any(|name| wanted.contains(&name))
    };
    has([b"user.name", b"committer.name"]) && has([b"user.email", b"committer.email"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_stay_apart() {
        let printed = b"# branch.oid (initial)\0# branch.head main\0\
            1 .M N... 100644 100644 100644 aa bb in/a file\0\
            u UU N... 1 2 3 4 a b c in/both\0? in/new\nline\0? in/\xff\\\0? in/\\xff\0? out\0";
        let status = status(printed, b"in/");
        assert_eq!(
            (status.head.branch.as_deref(), status.head.commit),
            (Some("main"), None)
        );
        let shown: Vec<String> = status
            .entries
            .iter()
            .map(|entry| format!("{}{} {}", entry.staged, entry.unstaged, entry.path))
            .collect();
        assert_eq!(
            shown,
            [
                ".M a file",
                "UU both",
                ".? new\nline",
                ".? bytes:\\xff\\\\",
                ".? \\xff"
            ]
        );
    }

    #[test]
    fn a_committer_has_a_name_and_an_address() {
        assert!(names_committer(b"global\0user.name\0local\0committer.email\0"));
        assert!(!names_committer(b"global\0user.name\0local\0core.bare\0"));
        assert!(!names_committer(b"global\0user.useconfigonly\0"));
    }

    #[test]
    fn only_the_repositorys_own_filters_count() {
        let config = b"global\0filter.lfs.clean\0local\0core.bare\0local\0filter.a.b.process\0\
            worktree\0filter.c.smudge\0local\0filter.c.clean\0local\0filter.d.required\0local\0filter.\xff.clean\0";
        assert_eq!(own_filters(config), ["a.b", "bytes:\\xff", "c"]);
    }
}
