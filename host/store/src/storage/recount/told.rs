//! Statements about envelopes in rows, and their comparison with the stored envelopes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use tollgate_core::budget::Budget;
use tollgate_core::envelope::{Limits, State};

use super::super::envelopes::Envelope;

/// Statements in the rows about one envelope.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Place of the opening row, and the limits in it.
    pub(super) opened: Option<(i64, Opened)>,
    /// Place of the row of the end, and its content.
    pub(super) closed: Option<(i64, Closed)>,
    pub(super) mutations: i64,
    pub(super) test_runs: i64,
    pub(super) edits: i64,
    /// Number of edits at the end, including the one that the scan before the end found.
    pub(super) edits_at_end: Option<i64>,
    /// Number of work trees that were scanned for the end.
    pub(super) looks_at_end: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Opened {
    limits: Limits,
    parent: Option<String>,
    workspace: Option<String>,
    label: Option<String>,
    detached_until_ms: Option<i64>,
    identity: Option<String>,
    /// Absent in rows of versions that recorded neither this nor the identity nor budgets.
    opened_boot_ms: Option<i64>,
    /// Absent in rows of versions that recorded neither this nor the fields that are compared with it.
    opened_at: Option<String>,
    git_head: Option<String>,
    #[serde(default)]
    budgets: BTreeMap<String, i64>,
}

#[derive(Debug)]
pub(super) struct Closed {
    state: State,
    /// Used units of named budgets. Absent in rows of versions that did not record them.
    used: Option<BTreeMap<String, i64>>,
    /// Facts about the end, in rows of versions that record its time.
    told: Option<Ended>,
}

/// Facts about the end of an envelope.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Ended {
    closed_at: String,
    closed_by: Option<String>,
    actor: Option<String>,
    note: Option<String>,
    git_head: Option<String>,
}

impl Opened {
    /// Takes the time that applies after a copy to another database.
    pub(super) fn move_to(&mut self, event: &Map<String, Value>) {
        if self.opened_boot_ms.is_some() {
            self.opened_boot_ms = event.get("opened_boot_ms").and_then(Value::as_i64);
        }
    }
}

impl Ended {
    fn of(envelope: &Envelope) -> Option<Ended> {
        Some(Ended {
            closed_at: envelope.closed_at.clone()?,
            closed_by: envelope.closed_by.clone(),
            actor: envelope.closed_actor.clone(),
            note: envelope.note.clone(),
            git_head: envelope.closed_git_head.clone(),
        })
    }
}

impl Closed {
    pub(super) fn read(event: &Map<String, Value>) -> Option<Closed> {
        let used = event.get("budgets_used");
        Some(Closed {
            state: State::parse(event.get("state")?.as_str()?)?,
            used: used.and_then(|used| serde_json::from_value(used.clone()).ok()),
            told: serde_json::from_value(Value::Object(event.clone())).ok(),
        })
    }
}

/// Counters as stored in a row.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Counters {
    pub(super) mutations: i64,
    pub(super) test_runs: i64,
    #[serde(default)]
    pub(super) edits: i64,
    #[serde(default)]
    pub(super) around: BTreeMap<String, Counters>,
}

impl Told {
    /// Merges counters. Counters only rise, whatever the order of the rows.
    pub(super) fn count(&mut self, counters: &Counters) {
        self.mutations = self.mutations.max(counters.mutations);
        self.test_runs = self.test_runs.max(counters.test_runs);
        self.edits = self.edits.max(counters.edits);
    }

    /// Number of edits: those in the rows of calls, and those found by the scans at the closing, at most one each.
    fn edits(&self) -> i64 {
        let most = self.edits.saturating_add(self.looks_at_end.unwrap_or(1).max(1));
        self.edits_at_end
            .filter(|at_end| (self.edits..=most).contains(at_end))
            .unwrap_or(self.edits)
    }

    pub(super) fn compare(
        &self,
        envelope: &Envelope,
        budgets: &BTreeMap<String, Budget>,
        is_busy: bool,
        faults: &mut Vec<String>,
    ) {
        let Some((seq, opened)) = &self.opened else {
            return;
        };
        let id = &envelope.id;
        for (what, is_same) in opened.compare(envelope, budgets) {
            if !is_same {
                faults.push(format!(
                    "{what} of envelope {id} differ from row {seq}, which opened it"
                ));
            }
        }
        let standing = &envelope.standing;
        for (what, found, counted) in [
            ("mutations", standing.mutations, self.mutations),
            ("test runs", standing.test_runs, self.test_runs),
            ("edits", standing.edits, self.edits()),
        ] {
            let is_right = found == counted || (is_busy && found > counted);
            if !is_right {
                faults.push(format!(
                    "the number of {what} of envelope {id} is {found}, but its ledger rows add up to {counted}"
                ));
            }
        }
        match &self.closed {
            Some((seq, closed)) => {
                if closed.state != standing.state {
                    faults.push(format!(
                        "envelope {id} is {}, but row {seq} made it {}",
                        standing.state.as_str(),
                        closed.state.as_str()
                    ));
                }
                if closed.told.is_some() && closed.told != Ended::of(envelope) {
                    faults.push(format!(
                        "the end of envelope {id} differs from row {seq}, which closed it"
                    ));
                }
                for (name, used) in closed.used.iter().flatten() {
                    let found = budgets.get(name).map_or(0, |budget| budget.used);
                    if found < *used {
                        faults.push(format!(
                            "envelope {id} records {found} as used of budget {name}, but row {seq}, which closed it, \
                             records {used}"
                        ));
                    }
                }
            }
            None if standing.state != State::Open => faults.push(format!(
                "envelope {id} is {}, but no row closed it",
                standing.state.as_str()
            )),
            None => {}
        }
    }
}

impl Opened {
    /// Compares the immutable facts of an envelope with those in the row.
    fn compare(&self, envelope: &Envelope, budgets: &BTreeMap<String, Budget>) -> Vec<(&'static str, bool)> {
        let standing = &envelope.standing;
        let mut facts = vec![
            (
                "the limits",
                self.limits == standing.limits
                    && self.parent == envelope.parent
                    && self.detached_until_ms == envelope.detached_until_ms,
            ),
            (
                "the label and workspace",
                self.workspace == envelope.workspace && self.label == envelope.label,
            ),
        ];
        if let Some(opened_boot_ms) = self.opened_boot_ms {
            let limits = budgets.iter().map(|(name, budget)| (name, &budget.limit));
            facts.extend([
                ("the time and identity", {
                    opened_boot_ms == standing.opened_boot_ms && self.identity == envelope.identity
                }),
                ("the time and commit", {
                    self.opened_at.as_ref().is_none_or(|opened_at| {
                        *opened_at == envelope.opened_at && self.git_head == envelope.git_head
                    })
                }),
                ("the named budgets", self.budgets.iter().eq(limits)),
            ]);
        }
        facts
    }
}
