//! Evidence of success: the newest run of each test command in each workspace, and edits after the last passing run.
//! A run in the present state of the work tree outweighs newer runs in other states.
//!
//! A run by the host outweighs a report of the caller, who may claim anything. A passing run that only the caller
//! reports does not settle a failure.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::storage::{Envelope, Ran, Session, StoreResult, StoredTestOutcome, TestRow};

/// Newest run of a test command in a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NewestRun {
    /// Sequence number of the run in the ledger.
    pub seq: i64,
    /// The workspace, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Name of the registered test command. Absent if the caller reported the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// True if only the caller reported the run; the host did not run these tests.
    pub is_claim: bool,
    /// True if tests ran and all passed.
    pub passed: bool,
    /// Outcome, such as `failed 2 of 14: AssertionError`.
    pub outcome: String,
    /// Child envelope in which the run took place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The work tree as the run found and left it, beside its present state.
    #[serde(skip)]
    pub tree: Tree,
}

/// The work tree of a run, compared with its newest known state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// State in which the run began.
    before: Option<String>,
    /// State that the run left, with all that changed while it ran.
    after: Option<String>,
    /// True if there is a newer run of the command, in another state.
    is_back: bool,
    /// Newest known state.
    now: Option<String>,
}

impl Tree {
    /// True if the outcome of a run applies to the newest known state. A run that passed while files changed says
    /// nothing about the state in which it began.
    fn is_now(&self, passed: bool) -> bool {
        let began = self.before == self.now;
        let left = self.after == self.now;
        let is_steady = self.after.is_none() || self.before == self.after;
        self.now.is_some() && (left || (began && (is_steady || !passed)))
    }

    /// States before and after the run, if files changed while it ran and were restored since.
    fn put_back(&self) -> Option<(&str, &str)> {
        let states = self.before.as_deref().zip(self.after.as_deref());
        states.filter(|(before, after)| before != after && self.now.as_deref() == Some(*before))
    }

    /// States before and after the run, if files changed while it ran and nothing changed since.
    fn changed_in_run(&self) -> Option<(&str, &str)> {
        let states = self.before.as_deref().zip(self.after.as_deref());
        states.filter(|(before, after)| before != after && self.now.as_deref() == Some(*after))
    }
}

/// Edits of a workspace since the last passing test that the host ran there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Untested {
    /// Name of the workspace.
    pub workspace: String,
    /// Name of the registered test command that did not run after the edits. Absent if the host ran no test, or if the
    /// name is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// Number of edits that no call made.
    pub edits: i64,
    /// Row of the command's last run before the edits, which passed. Absent if the host ran no test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_seq: Option<i64>,
    /// Paths that changed during that run, at most 3, if nothing changed since. Absent for edits after the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_run: Option<Vec<String>>,
}

/// Most paths that are named.
const MAX_PATHS: usize = 3;

/// A child envelope.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Part {
    /// Id of the envelope, for other calls.
    pub envelope_id: String,
    /// Label that the owner gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// OPEN or how it was closed.
    pub state: String,
    /// Reason for closing, if not by its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<String>,
    /// Used mutations.
    pub mutations: i64,
    /// Used test runs.
    pub test_runs: i64,
    /// Edits that no call made.
    pub observed_edits: i64,
}

impl Part {
    pub(super) fn of(envelope: Envelope) -> Part {
        let standing = envelope.standing;
        Part {
            envelope_id: envelope.id,
            label: envelope.label,
            state: standing.state.as_str().to_owned(),
            closed_by: envelope.closed_by,
            mutations: standing.mutations,
            test_runs: standing.test_runs,
            observed_edits: standing.edits,
        }
    }
}

/// Test command, for comparing runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Command {
    /// A registered test.
    Named(String),
    /// Unknown test name, as in rows of earlier versions and of calls whose host died.
    Unnamed,
    /// A passing run that the caller reports.
    ClaimedPass,
    /// A failing run that the caller reports. Only a run by the host can settle it.
    ClaimedFailure,
}

impl Command {
    const fn is_claim(&self) -> bool {
        matches!(self, Command::ClaimedPass | Command::ClaimedFailure)
    }
}

/// Relevant runs of an envelope and its parts, from rows in ledger order: for each command and workspace the newest
/// run in the state that the work tree has `now`, or else the newest run.
pub(super) fn newest_runs(
    envelope: &str,
    rows: &[TestRow],
    now: &BTreeMap<String, String>,
) -> Vec<NewestRun> {
    let mut newest: BTreeMap<(Option<String>, Command), NewestRun> = BTreeMap::new();
    for row in rows {
        for (workspace, command, passed, outcome) in runs_of(row) {
            if passed && !command.is_claim() {
                // The host saw the workspace pass, which settles claims and unnamed runs.
                newest.retain(|(other, weaker), _| {
                    let is_same = other.is_none() || *other == workspace;
                    !is_same || matches!(weaker, Command::Named(_)) || *weaker == command
                });
            }
            let is_named = matches!(command, Command::Named(_));
            // The scan of a call is of the workspace that its row names.
            let state = workspace.as_ref().and_then(|workspace| now.get(workspace));
            let looked = state.filter(|_| is_named && row.workspace == workspace);
            let tree = looked.map_or_else(Tree::default, |state| Tree {
                before: row.before.clone(),
                after: row.after.clone(),
                is_back: false,
                now: Some(state.clone()),
            });
            let run = NewestRun {
                seq: row.seq,
                workspace: workspace.clone(),
                test: match &command {
                    Command::Named(test) => Some(test.clone()),
                    Command::Unnamed | Command::ClaimedPass | Command::ClaimedFailure => None,
                },
                is_claim: command.is_claim(),
                passed,
                outcome,
                part: (row.envelope_id != envelope).then(|| row.envelope_id.clone()),
                tree,
            };
            match newest.get_mut(&(workspace.clone(), command.clone())) {
                // A run in an earlier state says nothing about a state that was restored.
                Some(older) if older.tree.is_now(older.passed) && !run.tree.is_now(run.passed) => {
                    older.tree.is_back = true;
                }
                _ => drop(newest.insert((workspace, command), run)),
            }
        }
    }
    let mut newest: Vec<NewestRun> = newest.into_values().collect();
    newest.sort_by_key(|run| run.seq);
    newest
}

/// Runs in one row: workspace, command, whether it passed, and the outcome in words.
fn runs_of(row: &TestRow) -> Vec<(Option<String>, Command, bool, String)> {
    let Some(outcome) = &row.outcome else {
        let unknown = "outcome unknown".to_owned();
        let command = row.started.clone().map_or(Command::Unnamed, Command::Named);
        return vec![(row.workspace.clone(), command, false, unknown)];
    };
    if outcome.runs.is_empty() {
        let passed = !outcome.is_failure();
        let command = match (row.is_run, passed) {
            (true, _) => Command::Unnamed,
            (false, true) => Command::ClaimedPass,
            (false, false) => Command::ClaimedFailure,
        };
        return vec![(row.workspace.clone(), command, passed, outcome.in_words())];
    }
    // A gate may run one test under two command names.
    let mut commands: BTreeMap<(&str, &str), Ran> = BTreeMap::new();
    for run in &outcome.runs {
        let result = commands.entry((&run.workspace, &run.test)).or_insert(run.result);
        if *result == Ran::Passed {
            *result = run.result;
        }
    }
    let failed = commands.values().filter(|result| **result != Ran::Passed).count();
    let is_only = commands.len() == 1;
    let runs = commands.into_iter().map(|((workspace, test), result)| {
        let is_failure = result != Ran::Passed || (is_only && outcome.is_failure());
        // The row describes the run that failed, with the counts of all.
        let words = match is_failure == outcome.is_failure() {
            true if is_only => outcome.in_words(),
            true if failed == 1 && is_failure => StoredTestOutcome {
                result,
                total: None,
                ..outcome.clone()
            }
            .in_words(),
            _ => result.in_words().to_owned(),
        };
        let command = Command::Named(test.to_owned());
        (Some(workspace.to_owned()), command, !is_failure, words)
    });
    runs.collect()
}

/// Edits of each workspace of an envelope after the last passing run, for each test command, or edits without any run
/// by the host. A command whose newest run failed is reported as that.
pub(super) fn untested(session: &Session, envelope: &str, runs: &[NewestRun]) -> StoreResult<Vec<Untested>> {
    let mut found = Vec::new();
    for workspace in session.work_trees().seen_workspaces(envelope)? {
        let is_here = |run: &&NewestRun| {
            let here = run.workspace.as_deref();
            !run.is_claim && here.is_none_or(|here| here == workspace)
        };
        let here: Vec<&NewestRun> = runs.iter().filter(is_here).collect();
        let after = |passed: Option<&NewestRun>| -> StoreResult<Option<Untested>> {
            let edits =
                session
                    .evidence()
                    .observed_edits_after(envelope, &workspace, passed.map(|run| run.seq))?;
            Ok((edits > 0).then(|| Untested {
                workspace: workspace.clone(),
                test: passed.and_then(|run| run.test.clone()),
                edits,
                passed_seq: passed.map(|run| run.seq),
                in_run: None,
            }))
        };
        if here.is_empty() {
            found.extend(after(None)?);
        }
        for run in here.into_iter().filter(|run| run.passed) {
            let Some(edits) = after(Some(run))? else { continue };
            if let Some((before, left)) = run.tree.put_back() {
                let mut paths = session
                    .evidence()
                    .paths_between(envelope, &workspace, (before, left))?;
                paths.truncate(MAX_PATHS);
                found.push(Untested {
                    in_run: Some(paths),
                    ..edits
                });
            } else if !run.tree.is_now(run.passed) {
                found.push(edits);
            } else if let Some((before, left)) = run.tree.changed_in_run() {
                match session
                    .evidence()
                    .found_before(envelope, &workspace, (left, run.seq))?
                {
                    (true, _) => {}
                    // Files were edited while the test ran.
                    (false, true) => found.push(edits),
                    (false, false) => {
                        let mut paths =
                            session
                                .evidence()
                                .paths_between(envelope, &workspace, (before, left))?;
                        paths.truncate(MAX_PATHS);
                        found.push(Untested {
                            in_run: Some(paths),
                            ..edits
                        });
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Reasons to doubt that the work is done, one clause each: first those about the test `default` of the envelope's
/// workspace, then the newest.
pub(super) fn doubts(runs: &[NewestRun], untested: &[Untested], own: Option<&str>) -> Vec<String> {
    let is_main = |workspace: Option<&str>, test: Option<&str>| {
        own.is_none_or(|own| workspace.is_none_or(|workspace| workspace == own))
            && test.is_none_or(|test| test == DEFAULT_TEST)
    };
    let failing = runs.iter().filter(|run| !run.passed).map(|run| {
        let is_main = !run.is_claim && is_main(run.workspace.as_deref(), run.test.as_deref());
        (is_main, run.seq, failure(run, runs))
    });
    let edited = untested.iter().map(|one| {
        let is_main = is_main(Some(&one.workspace), one.test.as_deref());
        (is_main, one.passed_seq.unwrap_or(i64::MAX), edit(one, runs))
    });
    let mut doubts: Vec<(bool, i64, String)> = failing.chain(edited).collect();
    doubts.sort_by_key(|(is_main, seq, _)| (!is_main, Reverse(*seq)));
    doubts.into_iter().map(|(_, _, clause)| clause).collect()
}

/// Test command that runs if a call names none.
const DEFAULT_TEST: &str = "default";

/// A run that did not pass, as a clause.
fn failure(run: &NewestRun, runs: &[NewestRun]) -> String {
    let clean = tollgate_core::text::clean;
    let place = match &run.workspace {
        Some(workspace) => format!(" in {}", clean(workspace)),
        None => String::new(),
    };
    let part = run.part.iter().map(|part| format!(", in child envelope {part}"));
    let seq = format!("(#{}{})", run.seq, part.collect::<String>());
    let what = match &run.test {
        Some(test) if run.tree.is_back => format!(
            "test {} did not pass in its last run on the current state of the work tree{} {seq}",
            clean(test),
            place.replacen(" in ", " of ", 1)
        ),
        Some(test) => format!("the newest run of test {}{place} {seq} did not pass", clean(test)),
        None if run.is_claim => {
            format!(
                "no test that the host ran{place} has passed since the caller reported a failing test run {seq}"
            )
        }
        None => format!("the newest test run{place} {seq} did not pass"),
    };
    format!(
        "{what}: {}{}",
        clean(&run.outcome).trim_end_matches('.'),
        claim(runs, run.workspace.as_deref(), run.seq)
    )
}

/// Edits without a later test run, as a clause.
fn edit(one: &Untested, runs: &[NewestRun]) -> String {
    let clean = tollgate_core::text::clean;
    let workspace = clean(&one.workspace);
    let edits = match one.edits {
        1 => "1 edit".to_owned(),
        many => format!("{many} edits"),
    };
    let claim = claim(runs, Some(&one.workspace), one.passed_seq.unwrap_or(0));
    match (&one.test, one.passed_seq) {
        (Some(test), Some(seq)) if one.in_run.is_some() => {
            let paths = one.in_run.iter().flatten().map(|path| clean(path));
            let paths: Vec<String> = paths.collect();
            let paths = match paths.is_empty() {
                true => String::new(),
                false => format!(": {}", paths.join(", ")),
            };
            format!(
                "files of {workspace} changed while test {} ran (#{seq}){paths}; let Git ignore files that tests \
                 write, or have the tests restore them{claim}",
                clean(test)
            )
        }
        (Some(test), Some(seq)) => {
            let test = clean(test);
            format!(
                "test {test} was not run again after {edits} of {workspace}; its last run (#{seq}), before these edits, \
                 passed{claim}"
            )
        }
        (None, Some(seq)) => {
            format!("no test ran after {edits} of {workspace}, whose tests last passed in #{seq}{claim}")
        }
        (_, None) if !claim.is_empty() => {
            format!("the host ran no test in {workspace}, although its work tree was edited{claim}")
        }
        (_, None) => format!("no test ran in {workspace}, although its work tree was edited"),
    }
}

/// Clause about a passing run that the caller reports in a workspace after a row.
fn claim(runs: &[NewestRun], workspace: Option<&str>, seq: i64) -> String {
    let claimed = runs.iter().find(|run| {
        let is_here = run.workspace.is_none() || run.workspace.as_deref() == workspace;
        run.is_claim && run.passed && is_here && run.seq > seq
    });
    match claimed {
        Some(run) => format!("; a passing run (#{}) was only reported by the caller", run.seq),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
