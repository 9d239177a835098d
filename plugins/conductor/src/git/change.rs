//! Changes since the beginning of a step.

use std::collections::BTreeMap;

use tollgate_kit::git::{RepoPath, parse_name_status, parse_numstat};

use super::Git;
use super::history::Held;
use super::look::Look;
use crate::error::GitFault;
use crate::gate::known::{Change, GitFacts};
use crate::store::job::Baseline;

/// Options of a diff that shows every change as text, whatever attributes say.
const DIFF_OPTIONS: [&str; 6] = [
    "--no-renames",
    "--text",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "-z",
];

impl Git<'_> {
    /// Changes since a baseline, committed or not. Without a baseline, everything uncommitted counts.
    pub(crate) fn facts(&self, since: Option<&Baseline>, wants_lines: bool) -> Result<GitFacts, GitFault> {
        self.facts_of(since, &self.look_since(since)?, wants_lines)
    }

    /// Like [`Git::facts`], for a look that was taken before.
    pub(crate) fn facts_of(
        &self,
        since: Option<&Baseline>,
        look: &Look,
        wants_lines: bool,
    ) -> Result<GitFacts, GitFault> {
        let base = match since {
            Some(baseline) => baseline.commit.as_deref(),
            None => look.commit.as_deref(),
        };
        let mut names = self.names(base)?;
        let is_dropping =
            |path: &String| since.is_some_and(|baseline| baseline.is_dropping(path, look.hashes.get(path)));
        let untracked = look.untracked.iter().filter(|path| !is_dropping(path));
        names.extend(untracked.map(|path| (path.clone(), true)));
        let is_whole = since.is_some_and(|baseline| baseline.whole);
        if !is_whole {
            names.retain(|path, _| !look.hidden.contains(path));
        }
        if let Some(baseline) = since {
            self.without_known(baseline, look, &mut names)?;
            names.extend(self.unveiled(baseline, look)?);
        }
        let held = match since {
            Some(since) => self.held(since, look)?,
            None => Held::default(),
        };
        let changed = self.with_lines(names, &held, base.filter(|_| wants_lines), wants_lines)?;
        let flags = look.flagged.iter();
        Ok(GitFacts {
            changed,
            uncommitted: look.uncommitted(since),
            hides: match since.filter(|baseline| baseline.whole) {
                Some(baseline) => flags
                    .filter(|path| !baseline.flagged.contains(*path))
                    .cloned()
                    .collect(),
                None => Vec::new(),
            },
            ..GitFacts::default()
        })
    }

    /// Changes of the work tree, and those that only commits or the index hold, with their lines.
    fn with_lines(
        &self,
        names: BTreeMap<String, bool>,
        held: &Held,
        base: Option<&str>,
        wants_lines: bool,
    ) -> Result<Vec<Change>, GitFault> {
        let (counts, most) = match base {
            Some(base) => (self.counts(&[base], None)?, self.held_lines(base, held)?),
            None => (BTreeMap::new(), BTreeMap::new()),
        };
        let mut changed: Vec<Change> = names
            .into_iter()
            .map(|(path, new)| Change {
                lines: match counts.get(&path) {
                    Some(lines) => *lines,
                    None if wants_lines => self.lines_of(&path).max(1),
                    None => 0,
                },
                path,
                new,
                ..Change::default()
            })
            .collect();
        for (path, new) in &held.paths {
            if !changed.iter().any(|change| change.path == *path) {
                changed.push(Change {
                    path: path.clone(),
                    new: *new,
                    undone: true,
                    ..Change::default()
                });
            }
        }
        for change in &mut changed {
            let held = held.paths.contains_key(&change.path);
            let lines = most.get(&change.path).copied().filter(|_| held);
            change.most = change.lines.max(lines.unwrap_or_default());
        }
        changed.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(changed)
    }

    /// Every tracked path that differs between a commit and the work tree, and whether it is new.
    fn names(&self, base: Option<&str>) -> Result<BTreeMap<String, bool>, GitFault> {
        let mut names = BTreeMap::new();
        match base {
            Some(base) => {
                let arguments = [&["diff", "--name-status"], DIFF_OPTIONS.as_slice(), &[base]].concat();
                for page in self.pages(&arguments, &["HEAD", base])? {
                    for entry in parse_name_status(&page).entries {
                        if let Some(path) = self.inside(&entry.path) {
                            names.insert(path, entry.letter == 'A');
                        }
                    }
                }
            }
            // Before the first commit every file is new.
            None => {
                let tracked = self.paths(&["ls-files", "-z", "--cached", "--full-name"])?;
                names.extend(tracked.into_iter().map(|path| (path, true)));
            }
        }
        Ok(names)
    }

    /// Compares paths that the baseline knows with their content then: what stayed as it was is no change, and
    /// what went back to the commit or vanished is one.
    fn without_known(
        &self,
        baseline: &Baseline,
        look: &Look,
        names: &mut BTreeMap<String, bool>,
    ) -> Result<(), GitFault> {
        let unseen = baseline
            .dirty
            .keys()
            .filter(|path| !look.hashes.contains_key(*path));
        let unseen = self.hashes(unseen)?;
        let dirty = baseline.dirty.iter();
        for (path, then) in dirty.filter(|(path, _)| !baseline.droppings.contains(*path)) {
            let now = look.hashes.get(path).or_else(|| unseen.get(path));
            match now == Some(then) {
                true => names.remove(path),
                false => names.insert(path.clone(), false),
            };
        }
        let nested = look.hashes.iter().filter(|(path, _)| path.ends_with('/'));
        for (path, _) in nested
            .filter(|(path, hash)| baseline.whole && !hash.is_empty() && !baseline.dirty.contains_key(*path))
        {
            names.insert(path.clone(), true);
        }
        Ok(())
    }

    /// Lines added and removed of each path between two sides of a diff. `after` is the commit of the second, or empty for the index; `None` for the work tree.
    pub(super) fn counts(
        &self,
        sides: &[&str],
        after: Option<&str>,
    ) -> Result<BTreeMap<String, u64>, GitFault> {
        let mut counts = BTreeMap::new();
        let revisions: Vec<&str> = sides
            .iter()
            .copied()
            .filter(|side| !side.starts_with('-'))
            .collect();
        let base = revisions.first().copied().unwrap_or("HEAD");
        let arguments = [&["diff", "--numstat"], DIFF_OPTIONS.as_slice(), sides].concat();
        for page in self.pages(&arguments, &[&["HEAD"], revisions.as_slice()].concat())? {
            for entry in parse_numstat(&page).entries {
                let Some(path) = self.inside(&entry.path) else {
                    continue;
                };
                let lines = match entry.lines {
                    Some((added, removed)) => {
                        let told = added.saturating_add(removed);
                        let own = after
                            .is_none()
                            .then(|| self.lines_by_cr(base, &entry.path, &path));
                        told.max(own.flatten().unwrap_or_default())
                    }
                    // Git counts no lines of what it takes for binary: all of them count, old and new.
                    None => {
                        let old = self.lines_in(base, &entry.path);
                        old.saturating_add(match after {
                            Some(after) => self.lines_in(after, &entry.path),
                            None => self.lines_of(&path),
                        })
                    }
                };
                counts.insert(path, lines);
            }
        }
        Ok(counts)
    }

    /// Lines added and removed in a file whose lines end with a carriage return alone, which Git takes for one line.
    fn lines_by_cr(&self, base: &str, path: &RepoPath, inside: &str) -> Option<u64> {
        let new = self.text_now(inside).unwrap_or_default();
        if !ends(new.as_bytes()).1 {
            return None;
        }
        let name = format!("{base}:{}", String::from(path.clone()));
        let old = self
            .beginning_of_text(&["cat-file", "-p", &name])
            .unwrap_or_default();
        Some(lines_apart(&String::from_utf8_lossy(&old), &new))
    }

    /// Ends of lines of a file in a commit, or in the index if its name is empty.
    fn lines_in(&self, revision: &str, path: &RepoPath) -> u64 {
        let name = format!("{revision}:{}", String::from(path.clone()));
        let text = self
            .beginning_of_text(&["cat-file", "-p", &name])
            .unwrap_or_default();
        ends(&text).0
    }
}

/// Number of ends of lines in a text: LF, CR, or both together; and whether there is a CR alone.
pub(super) fn ends(text: &[u8]) -> (u64, bool) {
    let followed = text.iter().zip(text.iter().skip(1).chain([&b' ']));
    let alone = followed
        .filter(|(byte, next)| **byte == b'\r' && **next != b'\n')
        .count();
    let plain = text.iter().filter(|byte| **byte == b'\n').count();
    (plain.saturating_add(alone) as u64, alone > 0)
}

/// Number of lines that only one of two texts has.
fn lines_apart(old: &str, new: &str) -> u64 {
    let lines = |text: &str| -> Vec<String> {
        let text = text.replace("\r\n", "\n");
        text.split(['\n', '\r']).map(str::to_owned).collect()
    };
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for (text, by) in [(old, -1), (new, 1)] {
        for line in lines(text) {
            *counts.entry(line).or_default() += by;
        }
    }
    counts.values().map(|count| count.unsigned_abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_alone_ends_a_line() {
        assert_eq!(ends(b"a\rb\r\nc\n"), (3, true));
        assert_eq!(ends(b"a\r\nb\n"), (2, false));
        assert_eq!(ends(b"a\r"), (1, true));
        assert_eq!(lines_apart("a\nb\n", "a\nb\nc\rd\re\n"), 3);
    }
}
