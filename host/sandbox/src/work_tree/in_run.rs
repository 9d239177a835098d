//! Files that changed while tests ran. Tests write files themselves, and the writing process cannot be identified. So
//! a file counts as edited only if it was edited before, and if no test run ever created or changed it.

use std::collections::BTreeMap;

use tollgate_store::storage::{Cause, Sighting};

use super::{Differs, Entry, remembered};
use crate::looked::OfTests;
use crate::workspaces::Workspace;

/// Most file names of test runs that are kept. With more, no change in a test run counts as an edit.
const MAX_OF_TESTS: usize = 20_000;
/// Prefix of the modes of regular files.
const REGULAR_FILE_PREFIX: &str = "100";

/// Untracked files that changed while tests ran, with what earlier states show about each.
#[derive(Debug, Default)]
pub struct ChangedInRun {
    files: BTreeMap<String, Told>,
    newer: Option<(Cause, Differs)>,
}

/// Facts about a file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Told {
    by_hand: bool,
    by_tests: bool,
}

impl ChangedInRun {
    /// Compares the scans before and after a run. Remembers the files that the run created.
    pub fn of(workspace: &Workspace, before: &Sighting, after: &Sighting) -> ChangedInRun {
        ChangedInRun::between(&mut remembered(workspace).of_tests, before, after)
    }

    fn between(of_tests: &mut OfTests, before: &Sighting, after: &Sighting) -> ChangedInRun {
        let (Some(old), Some(new)) = (parsed(before), parsed(after)) else {
            return ChangedInRun::default();
        };
        of_tests.extend(made(&old, &new).cloned());
        if of_tests.len() > MAX_OF_TESTS || before.git_head != after.git_head {
            return ChangedInRun::default();
        }
        let changed = changed(&old, &new).filter(|path| !of_tests.contains(*path));
        ChangedInRun {
            files: changed.map(|path| (path.clone(), Told::default())).collect(),
            newer: None,
        }
    }

    /// Takes earlier states of the work tree, newest first. Returns whether older ones can add anything.
    pub fn hear(&mut self, cause: Cause, differs: Option<&str>) -> bool {
        let Some(older) = differs.and_then(|differs| serde_json::from_str::<Differs>(differs).ok()) else {
            return false;
        };
        if let Some((cause, newer)) = &self.newer {
            for (path, told) in &mut self.files {
                if now(&older, path) != now(newer, path) {
                    told.by_hand |= *cause == Cause::Observed;
                    told.by_tests |= *cause == Cause::TestRun;
                }
            }
        }
        self.newer = Some((cause, older));
        self.can_be_edits()
    }

    /// True unless tests created or changed all of the files.
    pub fn can_be_edits(&self) -> bool {
        self.files.values().any(|told| !told.by_tests)
    }

    /// Returns whether one of the files was edited before, and never by tests. Remembers the others as files of
    /// tests.
    pub fn decide(self, workspace: &Workspace) -> bool {
        self.settle(&mut remembered(workspace).of_tests)
    }

    fn settle(self, of_tests: &mut OfTests) -> bool {
        let count = self.files.len();
        let others = self
            .files
            .into_iter()
            .filter(|(_, told)| !told.by_hand || told.by_tests);
        let others: Vec<String> = others.map(|(path, _)| path).collect();
        let has_edits = others.len() < count;
        of_tests.extend(others);
        has_edits
    }
}

fn parsed(seen: &Sighting) -> Option<Differs> {
    serde_json::from_str(seen.differs.as_deref()?).ok()
}

/// Mode and hash of a file in the work tree, if it differs from the commit.
fn now<'a>(differs: &'a Differs, path: &str) -> Option<&'a (String, String)> {
    differs.files.get(path)?.now.as_ref()
}

/// True for an entry of an untracked regular file. A folder that is hashed as a whole has no separate files.
fn is_untracked_file((path, entry): &(&String, &Entry)) -> bool {
    let is_regular = entry
        .now
        .as_ref()
        .is_some_and(|(mode, _)| mode.starts_with(REGULAR_FILE_PREFIX));
    entry.head.is_none() && is_regular && !path.ends_with('/')
}

/// Untracked files that exist after a run and did not before.
fn made<'a>(old: &'a Differs, new: &'a Differs) -> impl Iterator<Item = &'a String> {
    let (limit, _) = old.cut();
    let is_known = move |path: &String| limit.is_none_or(|limit| path <= limit);
    let files = new.files.iter().filter(is_untracked_file);
    files
        .map(|(path, _)| path)
        .filter(move |path| is_known(path) && now(old, path).is_none())
}

/// Untracked files that were replaced by a run, or removed.
fn changed<'a>(old: &'a Differs, new: &'a Differs) -> impl Iterator<Item = &'a String> {
    let (limit, _) = new.cut();
    let is_known = move |path: &String| limit.is_none_or(|limit| path <= limit);
    let files = old.files.iter().filter(is_untracked_file);
    files
        .map(|(path, _)| path)
        .filter(move |path| is_known(path) && now(old, path) != now(new, path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A state with these untracked files and contents.
    fn differs(files: &[(&str, &str)]) -> String {
        let entry = |content: &str| json!({"n": ["100644", content], "h": null});
        let files: BTreeMap<&str, serde_json::Value> = files
            .iter()
            .map(|(path, content)| (*path, entry(content)))
            .collect();
        json!({ "files": files }).to_string()
    }

    fn seen(files: &[(&str, &str)]) -> Sighting {
        Sighting {
            differs: Some(differs(files)),
            ..Sighting::default()
        }
    }

    type State<'a> = (Cause, &'a [(&'a str, &'a str)]);

    /// True if a change in a run counts as an edit, after states of which the newest comes first.
    fn counts(of_tests: &mut OfTests, after: &[(&str, &str)], states: &[State<'_>]) -> bool {
        let before = seen(states[0].1);
        let mut changed = ChangedInRun::between(of_tests, &before, &seen(after));
        for (cause, files) in states {
            if !changed.hear(*cause, Some(&differs(files))) {
                break;
            }
        }
        changed.settle(of_tests)
    }

    const OPENED: State<'_> = (Cause::Opened, &[]);
    const WRITTEN: State<'_> = (Cause::Observed, &[("new.py", "1")]);

    #[test]
    fn a_file_that_somebody_edited_before_is_edited_in_a_run() {
        let mut of_tests = OfTests::new();
        assert!(counts(&mut of_tests, &[("new.py", "2")], &[WRITTEN, OPENED]));
        assert!(counts(&mut of_tests, &[], &[WRITTEN, OPENED]), "removed");
        assert!(
            !counts(&mut of_tests, &[("new.py", "1")], &[WRITTEN, OPENED]),
            "as it was"
        );
        // The origin of files that existed at the opening is unknown.
        let there: State<'_> = (Cause::Opened, WRITTEN.1);
        assert!(!counts(&mut of_tests, &[("new.py", "2")], &[there]));
        let of_call: State<'_> = (Cause::Call, WRITTEN.1);
        assert!(!counts(&mut of_tests, &[("new.py", "2")], &[of_call, OPENED]));
    }

    #[test]
    fn what_tests_write_is_no_edit() {
        let mut of_tests = OfTests::new();
        let coverage: State<'_> = (Cause::TestRun, &[("new.py", "1"), (".coverage", "1")]);
        let after = [("new.py", "1"), (".coverage", "2")];
        assert!(!counts(&mut of_tests, &after, &[coverage, WRITTEN, OPENED]));
        // Not even after it was edited.
        let edited: State<'_> = (Cause::Observed, &[("new.py", "1"), (".coverage", "x")]);
        assert!(!counts(
            &mut of_tests,
            &after,
            &[edited, coverage, WRITTEN, OPENED]
        ));
        // Beside it, the file that was edited by hand counts.
        let both = [("new.py", "3"), (".coverage", "4")];
        assert!(counts(&mut of_tests, &both, &[coverage, WRITTEN, OPENED]));
    }

    #[test]
    fn a_file_that_a_run_made_is_no_edit_though_the_next_look_found_it() {
        let mut of_tests = OfTests::new();
        // The file of the tests appears in the run in which the other one is edited.
        let after = [("new.py", "2"), ("snapshot", "1")];
        assert!(counts(&mut of_tests, &after, &[WRITTEN, OPENED]));
        let found: State<'_> = (Cause::Observed, &after);
        let next = [("new.py", "2"), ("snapshot", "2")];
        assert!(!counts(&mut of_tests, &next, &[found, WRITTEN, OPENED]));
    }

    #[test]
    fn a_file_of_unknown_origin_that_changes_beside_an_edit_stays_a_file_of_tests() {
        let mut of_tests = OfTests::new();
        let opened: State<'_> = (Cause::Opened, &[(".coverage", "0")]);
        let written: State<'_> = (Cause::Observed, &[("new.py", "1"), (".coverage", "0")]);
        let after = [("new.py", "2"), (".coverage", "1")];
        assert!(counts(&mut of_tests, &after, &[written, opened]));
        let found: State<'_> = (Cause::Observed, &after);
        let next = [("new.py", "2"), (".coverage", "2")];
        assert!(!counts(&mut of_tests, &next, &[found, written, opened]));
    }

    #[test]
    fn folders_that_count_as_one_file_are_not_told_apart() {
        let folder = |hash: &str| json!({"files": {"lib/": {"n": ["040000", hash], "h": null}}}).to_string();
        let seen = |hash: &str| Sighting {
            differs: Some(folder(hash)),
            ..Sighting::default()
        };
        let changed = ChangedInRun::between(&mut OfTests::new(), &seen("1"), &seen("2"));
        assert!(!changed.can_be_edits());
    }
}
