//! Rows that show whether the work in an envelope is done: test outcomes in it and its parts, later edits, and the
//! parts.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::engine::sql;
use super::envelopes::Envelope;
use super::error::StoreResult;
use super::handles::Evidence;
use super::outcome::StoredTestOutcome;

/// Most parts of an envelope that are reported.
const MAX_PARTS: u32 = 50;
/// Most envelopes whose tests count for the enclosing one.
const MAX_ENVELOPES: usize = 500;
/// Type of the event with the test of a call whose host died.
const STARTED: &str = "test.started";
/// Most states of work trees that are compared.
const MAX_STATES: u32 = 10_000;

/// Row of a call that ran tests or reported a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestRow {
    /// Its place in the ledger.
    pub seq: i64,
    /// Envelope of the call.
    pub envelope_id: String,
    /// Workspace that the call was about.
    pub workspace: Option<String>,
    /// Outcome. `None` if it is unknown.
    pub outcome: Option<StoredTestOutcome>,
    /// True if the call could start programs.
    pub is_run: bool,
    /// Name of the registered test that the call started. Known for calls whose host died.
    pub started: Option<String>,
    /// State of the work tree before the call.
    pub before: Option<String>,
    /// State of the work tree after the call.
    pub after: Option<String>,
}

/// Event for the row of a call that starts a registered test, in case the end is never known.
pub fn started(test: &str) -> Value {
    json!({"type": STARTED, "test": test})
}

/// Test in such an event.
fn test_of(events: &str) -> Option<String> {
    let events: Vec<Value> = serde_json::from_str(events).ok()?;
    let started = events
        .iter()
        .find(|event| event.get("type").and_then(Value::as_str) == Some(STARTED))?;
    Some(started.get("test")?.as_str()?.to_owned())
}

/// Row of a state: its hash, its commit, and the differences from that commit.
type State = (String, Option<String>, Option<String>);

/// Files of a state that differ from its commit.
#[derive(Deserialize)]
struct Differing {
    files: BTreeMap<String, Value>,
}

/// Edits of a work tree that restored an earlier state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Name of the workspace.
    pub workspace: String,
    /// Number of times.
    pub count: i64,
    /// Number of edits from the earlier state back to it, the last time.
    pub period: i64,
}

impl Evidence<'_> {
    /// Calls of an envelope and its parts that ran tests or reported a run, oldest first.
    pub fn test_rows(self, envelope: &str) -> StoreResult<Vec<TestRow>> {
        // Not a recursive statement, because its inner table would count as a foreign one.
        let mut inside = vec![envelope.to_owned()];
        let mut at = 0;
        while let Some(id) = inside.get(at).cloned() {
            let parts = self.parts_of(&id)?.into_iter().map(|part| part.id);
            inside.extend(parts.take(MAX_ENVELOPES.saturating_sub(inside.len())));
            at += 1;
        }
        let mut rows = Vec::new();
        for id in &inside {
            rows.extend(self.own_test_rows(id)?);
        }
        rows.sort_by_key(|row: &TestRow| row.seq);
        Ok(rows)
    }

    fn own_test_rows(self, envelope: &str) -> StoreResult<Vec<TestRow>> {
        let sql =
            "SELECT seq, envelope_id, workspace, outcome, effect = 'run', repo_before_hash, repo_after_hash,
                CASE WHEN outcome IS NULL THEN events END
            FROM core_operations
            WHERE envelope_id = ?1
              AND (outcome IS NOT NULL OR (op_type = 'test_run' AND success IS NULL)) ORDER BY seq";
        self.0.engine.all(sql, sql![envelope], |row| {
            let (outcome, events): (Option<String>, Option<String>) = (row.get(3)?, row.get(7)?);
            Ok(TestRow {
                seq: row.get(0)?,
                envelope_id: row.get(1)?,
                workspace: row.get(2)?,
                outcome: outcome.and_then(|outcome| serde_json::from_str(&outcome).ok()),
                is_run: row.get(4)?,
                before: row.get(5)?,
                after: row.get(6)?,
                started: events.as_deref().and_then(test_of),
            })
        })
    }

    /// Number of edits of a workspace in an envelope that no call made, found after the state in which a row found
    /// the work tree. An edit that another call found during the row's call is later. `None` counts all edits.
    pub fn observed_edits_after(self, envelope: &str, workspace: &str, seq: Option<i64>) -> StoreResult<i64> {
        let sql = "SELECT max(s.id) FROM core_operations r
            JOIN core_work_tree_states s ON s.state = r.repo_before_hash
            JOIN core_operations o ON o.op_id = s.op_id
            WHERE r.seq = ?3 AND s.envelope_id = ?1 AND s.workspace = ?2 AND o.seq <= ?3";
        let looked: Option<i64> = self
            .0
            .engine
            .one(sql, sql![envelope, workspace, seq], |row| row.get(0))?;
        // For a row without a scan only its place is known. A call without a row yet is later than all rows.
        let sql =
            "SELECT count(*) FROM core_work_tree_states s LEFT JOIN core_operations o ON o.op_id = s.op_id
            WHERE s.envelope_id = ?1 AND s.workspace = ?2 AND s.cause = 'observed'
              AND CASE WHEN CAST(?4 AS BIGINT) IS NULL THEN o.seq IS NULL OR o.seq > ?3 ELSE s.id > ?4 END";
        let seq = seq.unwrap_or(0);
        let values = sql![envelope, workspace, seq, looked];
        self.0.engine.one(sql, values, |row| row.get(0))
    }

    /// Newest known state of each work tree of an envelope, by workspace.
    pub fn newest_states(self, envelope: &str) -> StoreResult<BTreeMap<String, String>> {
        let mut states = BTreeMap::new();
        for workspace in self.0.work_trees().seen_workspaces(envelope)? {
            if let Some(newest) = self.0.work_trees().newest_sighting(envelope, &workspace)? {
                states.insert(workspace, newest.state);
            }
        }
        Ok(states)
    }

    /// Returns whether a test run left the given state without an edit, and whether another call found the state
    /// before the row of a run.
    pub fn found_before(
        self,
        envelope: &str,
        workspace: &str,
        (state, seq): (&str, i64),
    ) -> StoreResult<(bool, bool)> {
        let sql = "SELECT coalesce(max(CASE WHEN s.cause = 'test_run' THEN 1 ELSE 0 END), 0),
                coalesce(max(CASE WHEN o.seq < ?4 THEN 1 ELSE 0 END), 0)
            FROM core_work_tree_states s LEFT JOIN core_operations o ON o.op_id = s.op_id
            WHERE s.envelope_id = ?1 AND s.workspace = ?2 AND s.state = ?3";
        self.0
            .engine
            .one(sql, sql![envelope, workspace, state, seq], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
    }

    /// Paths of a work tree that differ between two states, if both are at the same commit.
    pub fn paths_between(
        self,
        envelope: &str,
        workspace: &str,
        states: (&str, &str),
    ) -> StoreResult<Vec<String>> {
        let state = |state: &str| -> StoreResult<Option<State>> {
            let sql = "SELECT state, git_head, differs FROM core_work_tree_states
                WHERE envelope_id = ?1 AND workspace = ?2 AND state = ?3 ORDER BY id DESC LIMIT 1";
            self.0.engine.maybe(sql, sql![envelope, workspace, state], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
        };
        let (Some((_, old_head, old)), Some((_, head, new))) = (state(states.0)?, state(states.1)?) else {
            return Ok(Vec::new());
        };
        if old_head != head {
            return Ok(Vec::new());
        }
        let files = |differs: Option<String>| -> BTreeMap<String, Value> {
            let differs = differs.and_then(|differs| serde_json::from_str::<Differing>(&differs).ok());
            differs.map(|differs| differs.files).unwrap_or_default()
        };
        let (old, new) = (files(old), files(new));
        let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let other = paths.into_iter().filter(|path| old.get(*path) != new.get(*path));
        Ok(other.cloned().collect())
    }

    /// Parts of an envelope, oldest first.
    pub fn parts_of(self, envelope: &str) -> StoreResult<Vec<Envelope>> {
        let sql = "SELECT id FROM core_envelopes WHERE parent = ?1 ORDER BY opened_at, id LIMIT ?2";
        let ids: Vec<String> = self
            .0
            .engine
            .all(sql, sql![envelope, MAX_PARTS], |row| row.get(0))?;
        let parts = ids.iter().map(|id| self.0.envelopes().get(id));
        Ok(parts
            .collect::<StoreResult<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// Workspaces whose edits in an envelope restored earlier states, with other states in between.
    pub fn restored_states(self, envelope: &str) -> StoreResult<Vec<Restored>> {
        let states = self.0.work_trees().states(envelope, MAX_STATES)?;
        let mut found = Vec::new();
        for workspace in self.0.work_trees().seen_workspaces(envelope)? {
            let of_edits = states.iter().filter(|state| state.workspace == workspace);
            // A state left by a test run is not an edit, and not a state to return to.
            let edited: Vec<&str> = of_edits
                .filter(|state| state.cause != "test_run")
                .map(|state| state.state.as_str())
                .collect();
            let mut restored = Restored {
                workspace,
                ..Restored::default()
            };
            for (at, state) in edited.iter().enumerate() {
                let before = edited.iter().take(at).rev();
                let distance = before.take(MAX_PERIOD).position(|before| before == state);
                if let Some(distance) = distance.filter(|distance| *distance > 0) {
                    restored.count += 1;
                    restored.period = i64::try_from(distance).unwrap_or_default() + 1;
                }
            }
            found.extend(Some(restored).filter(|restored| restored.count > 0));
        }
        Ok(found)
    }
}

/// Most edits back in the search for an equal earlier state.
const MAX_PERIOD: usize = 8;
