//! Files that Git does not list because of an uncommitted ignore rule: in `.git/info/exclude`, or in a `.gitignore`
//! that is new or changed. Such rules do not hide files from a scan. The user's own excludes, outside the repository,
//! do.

use std::collections::HashSet;

use tollgate_sdk::Ending;

use super::Look;
use super::status::Difference;
use crate::looked::{File, Memory};

/// Name of ignore files.
const IGNORE_FILE: &[u8] = b".gitignore";
/// Folders that test tools create with an ignore file inside.
const CACHE_FOLDERS: [&[u8]; 3] = [b".pytest_cache", b".mypy_cache", b".ruff_cache"];
/// Prefix of each path passed to Git: without it, a name that starts with a colon is a pattern.
const PATH_PREFIX: &[u8] = b"./";
/// Texts of ignore files that are kept.
const MAX_TEXTS: usize = 200;

impl Look<'_> {
    /// Adds ignored paths whose rule is uncommitted. Returns the folders among them.
    pub(super) fn add_hidden(
        &self,
        prefix: &str,
        ignored: &[Vec<u8>],
        head: Option<&str>,
        differences: &mut Vec<Difference>,
        memory: &mut Memory,
    ) -> Result<HashSet<Vec<u8>>, String> {
        let ignored: Vec<&Vec<u8>> = ignored.iter().filter(|path| !is_cache(path)).collect();
        let changed = differences.iter().map(|found| &found.path);
        let has_rules = changed
            .chain(ignored.iter().copied())
            .any(|path| name(path) == IGNORE_FILE);
        // Rules above the workspace may have changed, too.
        let is_certain = prefix.is_empty() && !has_rules && !self.workspace.has_git_excludes();
        let mut folders = HashSet::new();
        if is_certain || ignored.is_empty() {
            return Ok(folders);
        }
        let known: HashSet<Vec<u8>> = differences.iter().map(|found| found.path.clone()).collect();
        for path in self.hidden(prefix, &ignored, head, memory)? {
            if known.contains(&path) {
                continue;
            }
            if path.ends_with(b"/") {
                folders.insert(path.clone());
            }
            differences.push(Difference {
                path,
                before: None,
                now: Some(File {
                    mode: String::new(),
                    hash: None,
                }),
                is_untracked: true,
            });
        }
        Ok(folders)
    }

    /// Paths whose ignore rule is uncommitted.
    fn hidden(
        &self,
        prefix: &str,
        ignored: &[&Vec<u8>],
        head: Option<&str>,
        memory: &mut Memory,
    ) -> Result<Vec<Vec<u8>>, String> {
        let asked = ignored
            .iter()
            .flat_map(|path| [PATH_PREFIX, path.as_slice(), b"\0"].concat())
            .collect();
        // None of the paths is in the index, which can be long.
        let arguments = ["-v", "-z", "--no-index", "--stdin"];
        let (output, ending, _) = self.git("check-ignore", &arguments, asked)?;
        // Exit status 1 means that none of them is ignored any more.
        if !matches!(ending, Ending::Exited(0 | 1)) {
            return Err(format!(
                "git check-ignore failed in workspace {}",
                self.workspace.info.name
            ));
        }
        let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
        let mut hidden = Vec::new();
        for rule in fields.chunks_exact(4) {
            if let [source, _, pattern, path] = rule
                && !self.is_settled(prefix, (source, pattern), head, memory)?
            {
                hidden.push(path.strip_prefix(PATH_PREFIX).unwrap_or(path).to_owned());
            }
        }
        Ok(hidden)
    }

    /// True if a rule is committed, or outside the repository.
    fn is_settled(
        &self,
        prefix: &str,
        (source, pattern): (&[u8], &[u8]),
        head: Option<&str>,
        memory: &mut Memory,
    ) -> Result<bool, String> {
        let source = String::from_utf8_lossy(source).into_owned();
        if name(source.as_bytes()) != IGNORE_FILE || source.starts_with('/') {
            return Ok(!is_exclude_file(&source));
        }
        let Some(head) = head else { return Ok(false) };
        let key = (head.to_owned(), source);
        if !memory.rules.contains_key(&key) {
            let asked = format!("{head}:{}\n", key.1).into_bytes();
            let output = self.list("cat-file", &["--batch"], asked)?;
            if memory.rules.len() >= MAX_TEXTS {
                memory.rules.clear();
            }
            memory.rules.insert(key.clone(), text(&output));
        }
        let text = memory.rules.get(&key).map(Vec::as_slice).unwrap_or_default();
        Ok(has(text, pattern) && self.keeps_exceptions(prefix, &key.1, text))
    }

    /// True if an ignore file still has the exceptions of its committed text: without them, a rule would hide more.
    fn keeps_exceptions(&self, prefix: &str, source: &str, committed: &[u8]) -> bool {
        let exceptions = || lines(committed).filter(|line| line.starts_with(b"!"));
        let Some(source) = source
            .strip_prefix(prefix)
            .filter(|_| exceptions().next().is_some())
        else {
            return true;
        };
        let current = self.workspace.tree.dir().read(source).unwrap_or_default();
        exceptions().all(|line| has(&current, line))
    }
}

/// True for the exclude file of a repository. All others belong to the user.
fn is_exclude_file(source: &str) -> bool {
    source.ends_with("/info/exclude")
}

fn is_cache(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .any(|name| CACHE_FOLDERS.contains(&name))
}

fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Content of the only object that `git cat-file --batch` printed. Empty if it is missing.
fn text(output: &[u8]) -> Vec<u8> {
    let end = output.iter().position(|byte| *byte == b'\n').unwrap_or_default();
    let heading = String::from_utf8_lossy(output.get(..end).unwrap_or_default()).into_owned();
    let mut words = heading.rsplit(' ');
    let (size, kind) = (words.next(), words.next());
    let size = size.and_then(|size| size.parse::<usize>().ok());
    match (kind, size) {
        (Some("blob"), Some(size)) => output.get(end + 1..end + 1 + size).unwrap_or_default().to_owned(),
        _ => Vec::new(),
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end)
}

/// True if the text of an ignore file has a pattern.
fn has(text: &[u8], pattern: &[u8]) -> bool {
    lines(text).any(|line| line == pattern.trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_rules_are_read() {
        let output = b"aa11 blob 13\ntarget/\n*.log\n\n";
        assert_eq!(text(output), b"target/\n*.log");
        assert!(has(b"target/\n*.log ", b"*.log"));
        assert!(!has(b"target/\n*.log", b"*.py"));
        assert_eq!(text(b"abc:a b/.gitignore missing\n"), b"");
        assert_eq!(text(b""), b"");
    }

    #[test]
    fn excludes_of_the_user_are_not_those_of_the_repository() {
        assert!(is_exclude_file(".git/info/exclude"));
        assert!(is_exclude_file("/home/a/r/.git/worktrees/x/info/exclude"));
        assert!(!is_exclude_file("/home/a/.config/git/ignore"));
    }
}
