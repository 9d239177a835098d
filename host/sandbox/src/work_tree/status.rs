//! Parser of `git status --porcelain=v2 -z`, for differences from the last commit.

use crate::looked::File;

/// A path that differs from the last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// Path below the top of the repository.
    pub(super) path: Vec<u8>,
    /// File in the last commit, if it exists there.
    pub(super) before: Option<File>,
    /// File in the work tree, if it exists. An untracked file has no mode yet.
    pub(super) now: Option<File>,
    /// True if Git does not track it.
    pub(super) is_untracked: bool,
}

/// Parses the differences that Git lists. Entries without a difference are left out.
pub(super) fn parse(output: &[u8]) -> Vec<Difference> {
    let entries = output.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    entries.filter_map(difference).collect()
}

/// Parses the paths that Git lists as ignored. Folders end with a slash.
pub(super) fn ignored(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output
        .split(|byte| *byte == 0)
        .filter_map(|entry| entry.strip_prefix(b"! "))
}

fn difference(entry: &[u8]) -> Option<Difference> {
    match entry.first()? {
        // `1 XY sub mH mI mW hH hI path`
        b'1' => {
            let (
                [
                    _,
                    state,
                    _,
                    mode_head,
                    mode_index,
                    mode_now,
                    hash_head,
                    hash_index,
                ],
                path,
            ) = fields::<8>(entry)?;
            let is_as_index = state.as_bytes().get(1) == Some(&b'.');
            let now = match is_as_index {
                true => file(mode_index, Some(hash_index)),
                false => file(mode_now, None),
            };
            Some(Difference {
                path,
                before: file(mode_head, Some(hash_head)),
                now: now.filter(|_| mode_now != ABSENT_MODE),
                is_untracked: false,
            })
        }
        // `u XY sub m1 m2 m3 mW h1 h2 h3 path`: the second is that of the last commit.
        b'u' => {
            let ([_, _, _, _, mode_head, _, mode_now, _, hash_head, _], path) = fields::<10>(entry)?;
            Some(Difference {
                path,
                before: file(mode_head, Some(hash_head)),
                now: file(mode_now, None),
                is_untracked: false,
            })
        }
        b'?' => Some(Difference {
            path: entry.get(2..)?.to_owned(),
            before: None,
            now: Some(File {
                mode: String::new(),
                hash: None,
            }),
            is_untracked: true,
        }),
        _ => None,
    }
}

/// Mode of a file that does not exist.
const ABSENT_MODE: &str = "000000";

fn file(mode: &str, hash: Option<&str>) -> Option<File> {
    (mode != ABSENT_MODE).then(|| File {
        mode: mode.to_owned(),
        hash: hash.map(str::to_owned),
    })
}

/// First words of an entry, and the path after them.
fn fields<const N: usize>(entry: &[u8]) -> Option<([&str; N], Vec<u8>)> {
    let mut rest = entry;
    let mut words = [""; N];
    for word in &mut words {
        let end = rest.iter().position(|byte| *byte == b' ')?;
        *word = std::str::from_utf8(rest.get(..end)?).ok()?;
        rest = rest.get(end + 1..)?;
    }
    Some((words, rest.to_owned()))
}

/// Parses the entries of `git ls-tree -r -z`: mode, hash and path.
pub(super) fn parse_tree(output: &[u8]) -> impl Iterator<Item = (&str, &str, &[u8])> {
    let entries = output.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    entries.filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let mut words = std::str::from_utf8(entry.get(..tab)?).ok()?.split(' ');
        let (mode, _kind, hash) = (words.next()?, words.next()?, words.next()?);
        Some((mode, hash, entry.get(tab + 1..)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: &str) -> Vec<String> {
        let file = |file: &Option<File>| match file {
            Some(file) => format!("{} {}", file.mode, file.hash.as_deref().unwrap_or("?")),
            None => "-".to_owned(),
        };
        parse(output.as_bytes())
            .iter()
            .map(|found| {
                let path = String::from_utf8_lossy(&found.path);
                format!("{path}: {} -> {}", file(&found.before), file(&found.now))
            })
            .collect()
    }

    #[test]
    fn every_kind_of_entry_is_read() {
        let output = "1 .M N... 100644 100644 100755 aa aa a file\0\
            1 M. N... 100644 100644 100644 aa bb staged\0\
            1 A. N... 000000 100644 100644 00 cc added\0\
            1 .D N... 100644 100644 000000 dd dd gone\0\
            1 D. N... 100644 000000 000000 ee 00 unstaged\0\
            u UU N... 100644 100644 100644 100644 11 22 33 conflict\0\
            ? new\nline\0# branch.oid 1\0! ignored\0";
        let hidden: Vec<&[u8]> = ignored(output.as_bytes()).collect();
        assert_eq!(hidden, [b"ignored"]);
        assert_eq!(
            shown(output),
            [
                "a file: 100644 aa -> 100755 ?",
                "staged: 100644 aa -> 100644 bb",
                "added: - -> 100644 cc",
                "gone: 100644 dd -> -",
                "unstaged: 100644 ee -> -",
                "conflict: 100644 22 -> 100644 ?",
                "new\nline: - ->  ?",
            ]
        );
    }

    #[test]
    fn cut_and_strange_entries_are_left_out() {
        for output in ["", "\0\0", "1 .M N...", "1", "?", "x y", "u UU N... 1 2 3"] {
            assert!(parse(output.as_bytes()).is_empty(), "{output:?}");
        }
        let tree = b"100644 blob aa\ta b\0bad\x00160000 commit bb\tsub\0";
        let found: Vec<_> = parse_tree(tree).collect();
        assert_eq!(
            found,
            [("100644", "aa", &b"a b"[..]), ("160000", "bb", &b"sub"[..])]
        );
    }
}
