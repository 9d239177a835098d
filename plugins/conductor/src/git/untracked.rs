//! Files that Git does not track. Only a committed `.gitignore` may hide one: `.git/info/exclude`,
//! `core.excludesFile` and a `.gitignore` that is not committed are in the hands of whoever is checked.

use std::collections::BTreeSet;

use tollgate_kit::git::text;
use tollgate_sdk::Ending;

use super::Git;
use crate::error::GitFault;

/// Lists untracked files; the options say which are left out.
const OTHERS: [&str; 4] = ["ls-files", "-z", "--others", "--full-name"];
/// Leaves out what a `.gitignore` of the work tree ignores, and nothing else.
const BY_GITIGNORE: &str = "--exclude-per-directory=.gitignore";
/// Directories that test tools create with a `.gitignore` of their own.
const CACHES: [&str; 3] = [".pytest_cache", ".mypy_cache", ".ruff_cache"];

impl Git<'_> {
    /// Untracked files that no committed `.gitignore` ignores, and those of them that Git does not show.
    pub(super) fn untracked(&self) -> Result<(BTreeSet<String>, BTreeSet<String>), GitFault> {
        let shown = self.paths(&[OTHERS.as_slice(), &["--exclude-standard"]].concat())?;
        let shown: BTreeSet<String> = shown.into_iter().collect();
        let mut all: BTreeSet<String> = shown.clone();
        all.extend(self.paths(&[OTHERS.as_slice(), &[BY_GITIGNORE]].concat())?);
        all.extend(self.ignored_without_commit()?);
        let hidden = all.difference(&shown).cloned().collect();
        Ok((all, hidden))
    }

    /// Files that a `.gitignore` ignores which is not committed, or not in these words.
    fn ignored_without_commit(&self) -> Result<Vec<String>, GitFault> {
        let listed =
            self.paths(&[OTHERS.as_slice(), &["--ignored", "--directory", BY_GITIGNORE]].concat())?;
        let is_cache = |path: &String| path.split('/').any(|name| CACHES.contains(&name));
        let listed: Vec<String> = listed.into_iter().filter(|path| !is_cache(path)).collect();
        let mut files = Vec::new();
        let mut directories = Vec::new();
        for path in self.uncommitted_rule(&listed)? {
            match path.ends_with('/') {
                true => directories.push(self.pathspec(&path)),
                false => files.push(path),
            }
        }
        if !directories.is_empty() {
            let pages = self.pages_of(&OTHERS, &["HEAD"], directories)?;
            files.extend(self.listed(&pages));
        }
        Ok(files)
    }

    /// Ignored paths whose rule is not in a committed `.gitignore`.
    fn uncommitted_rule(&self, ignored: &[String]) -> Result<Vec<String>, GitFault> {
        let mut found = Vec::new();
        let mut rules = Rules::default();
        for chunk in ignored.chunks(2_000) {
            let mut asked = Vec::new();
            for path in chunk {
                asked.extend(self.pathspec(path).into_bytes());
                asked.push(0);
            }
            let outcome = self.raw(&["check-ignore", "-v", "-z", "--stdin"], &asked)?;
            let told = match outcome.ending {
                // 1 means that none of them is ignored.
                Ending::Exited(0 | 1) if !outcome.stdout.is_cut() => outcome.stdout.bytes,
                _ => Vec::new(),
            };
            let fields: Vec<&[u8]> = told.split(|byte| *byte == 0).collect();
            let mut committed = BTreeSet::new();
            for rule in fields.chunks_exact(4) {
                if let [source, _, pattern, path] = rule
                    && rules.has(self, &text(source), pattern)
                {
                    committed.insert(text(path));
                }
            }
            let is_open = |path: &&String| !committed.contains(&self.pathspec(path));
            found.extend(chunk.iter().filter(is_open).cloned());
        }
        Ok(found)
    }
}

/// Committed texts of `.gitignore` files, read once each.
#[derive(Default)]
struct Rules(std::collections::BTreeMap<String, Vec<u8>>);

impl Rules {
    /// Checks whether a pattern is in the committed text of a `.gitignore`.
    fn has(&mut self, git: &Git<'_>, source: &str, pattern: &[u8]) -> bool {
        if source.rsplit('/').next() != Some(".gitignore") {
            return false;
        }
        let text = self.0.entry(source.to_owned()).or_insert_with(|| {
            let name = format!("HEAD:{source}");
            git.beginning_of_text(&["cat-file", "-p", &name])
                .unwrap_or_default()
        });
        let mut lines = text.split(|byte| *byte == b'\n');
        lines.any(|line| line.trim_ascii_end() == pattern.trim_ascii_end())
    }
}
