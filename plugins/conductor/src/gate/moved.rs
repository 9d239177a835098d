//! Changes of a work tree while the commands of gates ran, and states for later steps.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Gate;
use crate::git::look::Look;
use crate::store::job::Baseline;

/// Baseline of the next step that limits changes, if this step does not: what changes in it counts then.
pub(super) fn guard(since: Option<&Baseline>, gates: &[Gate], next: &Baseline) -> Option<Box<Baseline>> {
    if super::judge_changes(gates) {
        return None;
    }
    let since = since?;
    Some(Box::new(state_of(since.guard.as_deref().unwrap_or(since), next)))
}

/// State of a work tree without anything else, for a look over several steps.
pub(super) fn state_of(since: &Baseline, next: &Baseline) -> Baseline {
    Baseline {
        guard: None,
        judged: None,
        planned: BTreeMap::new(),
        owing: BTreeSet::new(),
        tests: BTreeMap::new(),
        commands: BTreeMap::new(),
        runs: BTreeMap::new(),
        named: BTreeMap::new(),
        rewritten: BTreeSet::new(),
        droppings: next.droppings.clone(),
        dropped: next.dropped.clone(),
        ..since.clone()
    }
}

/// Changes between two looks.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// Paths that no command of a gate may change.
    pub unsteady: Vec<String>,
    /// Files that were rewritten with identical content.
    pub touched: BTreeSet<String>,
    /// Untracked files that appeared, or that earlier gates left and these wrote anew.
    pub written: BTreeMap<String, String>,
}

/// Compares the looks before and after the commands of the gates.
pub(super) fn moved(
    since: Option<&Baseline>,
    first: &Look,
    second: &Look,
    evidence: &Map<String, Value>,
) -> Moved {
    let mut moved = Moved::default();
    if first.commit != second.commit {
        moved.unsteady.push("HEAD".to_owned());
    }
    let claimed: BTreeSet<&str> = evidence
        .get("changed_files")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|path| path.strip_prefix("./").unwrap_or(path))
        .collect();
    let paths: BTreeSet<&String> = first.hashes.keys().chain(second.hashes.keys()).collect();
    for path in paths {
        let (before, after) = (first.hashes.get(path), second.hashes.get(path));
        let is_untracked =
            |look: &Look, hash: Option<&String>| hash.is_none() || look.untracked.contains(path);
        let untracked = is_untracked(first, before) && is_untracked(second, after);
        match (before, after) {
            _ if before == after => {}
            _ if !untracked || claimed.contains(path.as_str()) => moved.unsteady.push(path.clone()),
            (None, Some(after)) => {
                moved.written.insert(path.clone(), after.clone());
            }
            (Some(before), Some(after))
                if since.is_some_and(|since| since.is_dropping(path, Some(before))) =>
            {
                moved.written.insert(path.clone(), after.clone());
            }
            _ => {}
        }
    }
    let same = first.times.iter().filter(|(path, time)| {
        let is_same = first.hashes.get(*path) == second.hashes.get(*path);
        is_same && second.times.get(*path).is_some_and(|after| after != *time)
    });
    let own = |path: &String| {
        since.is_some_and(|since| since.rewritten.contains(path) || since.droppings.contains(path))
    };
    moved.touched = same
        .map(|(path, _)| path.clone())
        .filter(|path| !own(path))
        .collect();
    moved
}

/// Untracked files of commands, of this submission and earlier ones, as far as they are still untracked and nobody
/// else wrote them since.
pub(super) fn droppings(
    since: Option<&Baseline>,
    first: &Look,
    second: &Look,
    written: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_left =
        |path: &&String| since.is_some_and(|since| since.is_dropping(path, first.hashes.get(*path)));
    let earlier = since.into_iter().flat_map(|baseline| &baseline.droppings);
    let all = earlier.filter(is_left).chain(written.keys());
    let all = all.filter(|path| second.untracked.contains(*path));
    all.filter_map(|path| Some((path.clone(), second.hashes.get(path)?.clone())))
        .collect()
}
