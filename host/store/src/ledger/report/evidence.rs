//! Evidence for a success: the newest run of each test command in each workspace, and edits after the last that passed.
//!
//! A run by the host outweighs a report of the caller, who may claim anything.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::storage::{Envelope, Outcome, Session, StoreResult, TestRow};

/// Newest run of a test command in a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NewestRun {
    /// Its place in the ledger.
    pub seq: i64,
    /// The workspace, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Name of the registered test command. Absent if the caller reported the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// True if the caller reported the run, so that nobody else saw it.
    pub is_claim: bool,
    /// True if tests ran and all passed.
    pub passed: bool,
    /// Outcome, such as `failed 2 of 14: AssertionError`.
    pub outcome: String,
    /// The part of the envelope in which it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

/// Edits of a workspace that no test run followed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Untested {
    /// The workspace.
    pub workspace: String,
    /// Number of edits that no call made.
    pub edits: i64,
    /// The row of the last run that passed before them. Absent if no test ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_seq: Option<i64>,
}

/// A part of an envelope.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Part {
    /// Its id.
    pub envelope_id: String,
    /// Its owner's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// OPEN or how it was closed.
    pub state: String,
    /// Reason of closing, if not by its owner.
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

/// Command that a run is compared by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Command {
    /// A registered test.
    Named(String),
    /// Tests that nobody knows the name of, as in rows of earlier versions and of calls whose host died.
    Unnamed,
    /// Tests that the caller reports.
    Claimed,
}

/// Newest runs of an envelope and its parts, from rows in the order of the ledger.
pub(super) fn newest_runs(envelope: &str, rows: &[TestRow]) -> Vec<NewestRun> {
    let mut newest: BTreeMap<(Option<String>, Command), NewestRun> = BTreeMap::new();
    for row in rows {
        for (workspace, command, passed, outcome) in runs_of(row) {
            if passed && command != Command::Claimed {
                // The host saw the workspace pass, whatever was said of it or had no name.
                newest.retain(|(other, weaker), _| {
                    let is_same = other.is_none() || *other == workspace;
                    !is_same || matches!(weaker, Command::Named(_)) || *weaker == command
                });
            }
            let run = NewestRun {
                seq: row.seq,
                workspace: workspace.clone(),
                test: match &command {
                    Command::Named(test) => Some(test.clone()),
                    Command::Unnamed | Command::Claimed => None,
                },
                is_claim: command == Command::Claimed,
                passed,
                outcome,
                part: (row.envelope_id != envelope).then(|| row.envelope_id.clone()),
            };
            newest.insert((workspace, command), run);
        }
    }
    let mut newest: Vec<NewestRun> = newest.into_values().collect();
    newest.sort_by_key(|run| run.seq);
    newest
}

/// Runs of one row: workspace, command, if it passed, and the outcome in words.
fn runs_of(row: &TestRow) -> Vec<(Option<String>, Command, bool, String)> {
    let Some(outcome) = &row.outcome else {
        let unknown = "outcome unknown".to_owned();
        return vec![(row.workspace.clone(), Command::Unnamed, false, unknown)];
    };
    let told = |outcome: &Outcome| (!outcome.is_failure(), outcome.in_words());
    if outcome.runs.is_empty() {
        let command = if row.is_run {
            Command::Unnamed
        } else {
            Command::Claimed
        };
        let (passed, words) = told(outcome);
        return vec![(row.workspace.clone(), command, passed, words)];
    }
    let is_only = outcome.runs.len() == 1;
    let runs = outcome.runs.iter().map(|run| {
        let of_run = Outcome {
            result: run.result,
            ..Outcome::default()
        };
        let (passed, words) = told(if is_only { outcome } else { &of_run });
        let command = Command::Named(run.test.clone());
        (Some(run.workspace.clone()), command, passed, words)
    });
    runs.collect()
}

/// Workspaces of an envelope that were edited after the last run that passed in them, or without any run.
pub(super) fn untested(session: &Session, envelope: &str, runs: &[NewestRun]) -> StoreResult<Vec<Untested>> {
    let mut found = Vec::new();
    for workspace in session.seen_workspaces(envelope)? {
        let is_here = |run: &&NewestRun| {
            let here = run.workspace.as_deref();
            here.is_none_or(|here| here == workspace)
        };
        let here: Vec<&NewestRun> = runs.iter().filter(is_here).collect();
        let passed_seq = here.iter().filter(|run| run.passed).map(|run| run.seq).max();
        if passed_seq.is_none() && !here.is_empty() {
            continue;
        }
        let edits = session.observed_edits_after(envelope, &workspace, passed_seq.unwrap_or(0))?;
        if edits > 0 {
            found.push(Untested {
                workspace,
                edits,
                passed_seq,
            });
        }
    }
    Ok(found)
}

/// Reasons to doubt that the work is done, a clause each.
pub(super) fn doubts(runs: &[NewestRun], untested: &[Untested]) -> Vec<String> {
    let clean = tollgate_core::text::clean;
    let failing: Vec<&NewestRun> = runs.iter().filter(|run| !run.passed).collect();
    let mut doubts: Vec<String> = failing
        .iter()
        .map(|run| {
            let place = match &run.workspace {
                Some(workspace) => format!(" in {}", clean(workspace)),
                None => String::new(),
            };
            let what = match &run.test {
                Some(test) => format!("the newest run of test {}{place}", clean(test)),
                None if run.is_claim => format!("the newest reported test run{place}"),
                None => format!("the newest test run{place}"),
            };
            let part = run.part.iter().map(|part| format!(", in its part {part}"));
            let later = runs.iter().find(|later| {
                let is_here = later.workspace == run.workspace;
                later.is_claim && later.passed && is_here && later.seq > run.seq
            });
            let claim = match later {
                Some(later) => format!("; only the caller reports that tests pass (#{})", later.seq),
                None => String::new(),
            };
            format!(
                "{what} (#{}{}) did not pass: {}{claim}",
                run.seq,
                part.collect::<String>(),
                clean(&run.outcome).trim_end_matches('.')
            )
        })
        .collect();
    let failing: BTreeSet<&str> = failing
        .iter()
        .filter_map(|run| run.workspace.as_deref())
        .collect();
    for one in untested
        .iter()
        .filter(|one| !failing.contains(one.workspace.as_str()))
    {
        let workspace = clean(&one.workspace);
        let edits = match one.edits {
            1 => "1 edit".to_owned(),
            many => format!("{many} edits"),
        };
        doubts.push(match one.passed_seq {
            Some(seq) => {
                format!("no test ran after {edits} of {workspace}, whose tests last passed in #{seq}")
            }
            None => format!("no test ran in {workspace}, although its work tree was edited"),
        });
    }
    doubts
}
