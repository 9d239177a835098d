//! Files that Git does not track. Only a `.gitignore` that was committed when the step began may hide one:
//! `.git/info/exclude`, `core.excludesFile` and a `.gitignore` that changed since are in the hands of whoever is checked.
//!
//! If the gates of no step looked at what changed before, the rules of that time are new as well. And a file that may take part in
//! runs of tests is hidden only by a rule from before the job.

use std::collections::BTreeSet;

use tollgate_kit::git::text;
use tollgate_sdk::Ending;

use super::Git;
use crate::error::GitFault;
use crate::gate::newcomers::{may_take_part, names_plugin};
use crate::store::job::Baseline;

/// Lists untracked files; the options say which are left out.
const LIST_UNTRACKED: [&str; 4] = ["ls-files", "-z", "--others", "--full-name"];
/// Leaves out what a `.gitignore` of the work tree ignores, and nothing else.
const BY_GITIGNORE: &str = "--exclude-per-directory=.gitignore";
/// Directories that test tools create with a `.gitignore` of their own.
const CACHE_FOLDERS: [&str; 3] = [".pytest_cache", ".mypy_cache", ".ruff_cache"];
/// Names of what builds and tools create. A step may begin to ignore these, as every project does that is set up.
const PRODUCT_NAMES: [&str; 24] = [
    ".cache",
    ".coverage",
    ".DS_Store",
    ".eggs",
    ".gradle",
    ".idea",
    ".next",
    ".nox",
    ".nuxt",
    ".nyc_output",
    ".tox",
    ".turbo",
    ".venv",
    ".vscode",
    "__pycache__",
    "build",
    "coverage",
    "dist",
    "env",
    "htmlcov",
    "node_modules",
    "out",
    "target",
    "venv",
];
/// Maximum files of a directory that are listed, if a step began to ignore the directory. A larger one is one path.
const MAX_LISTED_FILES: usize = 1_000;

/// Files that Git does not track.
#[derive(Debug, Default)]
pub(super) struct Untracked {
    /// All but those that a `.gitignore` ignores which was committed when the step began.
    pub all: BTreeSet<String>,
    /// Paths that Git does not show.
    pub hidden: BTreeSet<String>,
    /// Paths that a `.gitignore` ignores which was committed since.
    pub late: BTreeSet<String>,
}

impl Git<'_> {
    /// Untracked files, by the ignore rules at HEAD and those when the step began.
    pub(super) fn untracked(&self, since: Option<&Baseline>) -> Result<Untracked, GitFault> {
        let shown = self.paths(&[LIST_UNTRACKED.as_slice(), &["--exclude-standard"]].concat())?;
        let shown: BTreeSet<String> = shown.into_iter().collect();
        let mut all: BTreeSet<String> = shown.clone();
        all.extend(self.paths(&[LIST_UNTRACKED.as_slice(), &[BY_GITIGNORE]].concat())?);
        let (open, late) = self.ignored_without_commit(since)?;
        let late: BTreeSet<String> = late.into_iter().filter(|path| !all.contains(path)).collect();
        all.extend(open);
        all.extend(late.iter().cloned());
        let hidden = all.difference(&shown).cloned().collect();
        Ok(Untracked { all, hidden, late })
    }

    /// Files that a `.gitignore` ignores which is not committed, or not in these words, and files that one ignores which
    /// was committed since the step began.
    fn ignored_without_commit(
        &self,
        since: Option<&Baseline>,
    ) -> Result<(Vec<String>, Vec<String>), GitFault> {
        let listed = self.paths(
            &[
                LIST_UNTRACKED.as_slice(),
                &["--ignored", "--directory", BY_GITIGNORE],
            ]
            .concat(),
        )?;
        let is_cache = |path: &String| path.split('/').any(|name| CACHE_FOLDERS.contains(&name));
        let listed: Vec<String> = listed.into_iter().filter(|path| !is_cache(path)).collect();
        let (mut open, mut late) = (Vec::new(), Vec::new());
        let [without, mut of_step, mut of_job] = self.uncommitted_rules(&listed, since)?;
        let (directories, files): (Vec<String>, Vec<String>) =
            without.into_iter().partition(|path| path.ends_with('/'));
        open.extend(files);
        if !directories.is_empty() {
            let directories = directories.iter().map(|path| self.pathspec(path)).collect();
            let pages = self.pages_of(&LIST_UNTRACKED, &["HEAD"], directories)?;
            // A rule such as `*.pyc` ignores all files of a directory, and not the directory.
            let [without, step, job] = self.uncommitted_rules(&self.listed(&pages), since)?;
            open.extend(without);
            of_step.extend(step);
            of_job.extend(job);
        }
        for path in of_step {
            let files = self.listed_in(&path)?;
            match files.len() > MAX_LISTED_FILES {
                true => late.push(path),
                false => late.extend(files.into_iter().filter(|path| !self.is_of_install(path))),
            }
        }
        for path in of_job {
            let files = self.listed_in(&path)?.into_iter();
            late.extend(files.filter(|path| may_take_part(path) && !self.is_of_install(path)));
        }
        Ok((open, late))
    }

    /// Checks whether a file is metadata that an installation writes, and names no plugin of a test runner.
    fn is_of_install(&self, path: &str) -> bool {
        path.contains(".egg-info/") && !names_plugin(self, path)
    }

    /// Untracked files at a path, which may be a directory.
    fn listed_in(&self, path: &str) -> Result<Vec<String>, GitFault> {
        if !path.ends_with('/') {
            return Ok(vec![path.to_owned()]);
        }
        let pages = self.pages_of(&LIST_UNTRACKED, &["HEAD"], vec![self.pathspec(path)])?;
        Ok(self.listed(&pages))
    }

    /// Ignored paths whose rule is not in a committed `.gitignore`, those whose rule was committed since the step began,
    /// and the others whose rule was committed since the job began.
    fn uncommitted_rules(
        &self,
        ignored: &[String],
        since: Option<&Baseline>,
    ) -> Result<[Vec<String>; 3], GitFault> {
        let (mut open, mut late, mut of_job) = (Vec::new(), Vec::new(), Vec::new());
        let mut rules = Rules::default();
        let since = since.filter(|since| since.whole);
        let head = self.head()?;
        // Nobody looked at the rules of steps before whose gates limit nothing.
        let step = since.map(|since| since.guard.as_deref().unwrap_or(since).commit.as_deref());
        let then = step.filter(|commit| *commit != head.as_deref());
        let begun = since.and_then(|since| since.begun.as_deref());
        let begun = begun.filter(|commit| Some(*commit) != head.as_deref());
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
            let (mut committed, mut new, mut young) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            for rule in fields.chunks_exact(4) {
                let [source, _, pattern, path] = rule else {
                    continue;
                };
                let (source, path) = (text(source), text(path));
                if !rules.has(self, Some("HEAD"), &source, pattern) {
                    continue;
                }
                if then.is_some_and(|then| !rules.has(self, then, &source, pattern)) {
                    new.insert(path.clone());
                } else if begun.is_some_and(|begun| !rules.has(self, Some(begun), &source, pattern)) {
                    young.insert(path.clone());
                }
                committed.insert(path);
            }
            let is_open = |path: &&String| !committed.contains(&self.pathspec(path));
            open.extend(chunk.iter().filter(is_open).cloned());
            let is_late = |path: &&String| new.contains(&self.pathspec(path)) && !is_built(path);
            late.extend(chunk.iter().filter(is_late).cloned());
            let is_young = |path: &&String| young.contains(&self.pathspec(path)) && !is_built(path);
            of_job.extend(chunk.iter().filter(is_young).cloned());
        }
        Ok([open, late, of_job])
    }
}

/// Checks whether a path is what a build or a tool creates. Python loads a compiled module outside of `__pycache__` like
/// its source.
pub(crate) fn is_built(path: &str) -> bool {
    path.ends_with(".log") || path.split('/').any(|name| PRODUCT_NAMES.contains(&name))
}

/// Committed texts of `.gitignore` files, read once each.
#[derive(Default)]
struct Rules(std::collections::BTreeMap<(String, String), Vec<u8>>);

impl Rules {
    /// Checks whether a pattern is in the text that a `.gitignore` has in a commit.
    fn has(&mut self, git: &Git<'_>, commit: Option<&str>, source: &str, pattern: &[u8]) -> bool {
        if source.rsplit('/').next() != Some(".gitignore") {
            return false;
        }
        let Some(commit) = commit else { return false };
        let key = (commit.to_owned(), source.to_owned());
        let text = self.0.entry(key).or_insert_with(|| {
            let name = format!("{commit}:{source}");
            git.beginning_of_text(&["cat-file", "-p", &name])
                .unwrap_or_default()
        });
        let mut lines = text.split(|byte| *byte == b'\n');
        lines.any(|line| line.trim_ascii_end() == pattern.trim_ascii_end())
    }
}
