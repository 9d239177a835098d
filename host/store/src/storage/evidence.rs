//! Rows that tell if the work in an envelope is done: outcomes of tests in it and its parts, edits after them, parts.

use rusqlite::params;

use super::envelopes::Envelope;
use super::error::StoreResult;
use super::outcome::Outcome;
use super::session::Session;

/// Most parts of an envelope that are told.
const MAX_PARTS: u32 = 50;
/// Most envelopes whose tests count for the one around them.
const MAX_ENVELOPES: usize = 500;
/// Most states of work trees that are compared.
const MAX_STATES: u32 = 10_000;

/// Row of a call that ran tests, or reported a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestRow {
    /// Its place in the ledger.
    pub seq: i64,
    /// The envelope it belongs to.
    pub envelope_id: String,
    /// The workspace that the call was about.
    pub workspace: Option<String>,
    /// Outcome. `None` if nobody can know it.
    pub outcome: Option<Outcome>,
    /// True if the call could start programs.
    pub is_run: bool,
}

/// Edits of a work tree that restored an earlier state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Name of the workspace.
    pub workspace: String,
    /// Number of times.
    pub count: i64,
    /// Edits from the earlier state to the same one, the last time.
    pub period: i64,
}

impl Session {
    /// Calls of an envelope and of its parts that ran tests, or reported a run, oldest first.
    pub fn test_rows(&self, envelope: &str) -> StoreResult<Vec<TestRow>> {
        // Without a recursive statement, whose inner table would count as one that somebody else made.
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

    fn own_test_rows(&self, envelope: &str) -> StoreResult<Vec<TestRow>> {
        Ok(self
            .db
            .prepare_cached(
                "SELECT seq, envelope_id, workspace, outcome, effect = 'run' FROM core_operations
                 WHERE envelope_id = ?1
                   AND (outcome IS NOT NULL OR (op_type = 'test_run' AND success IS NULL)) ORDER BY seq",
            )?
            .query_map([envelope], |row| {
                let outcome: Option<String> = row.get(3)?;
                Ok(TestRow {
                    seq: row.get(0)?,
                    envelope_id: row.get(1)?,
                    workspace: row.get(2)?,
                    outcome: outcome.and_then(|outcome| serde_json::from_str(&outcome).ok()),
                    is_run: row.get(4)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?)
    }

    /// Edits of a workspace in an envelope that no call made, found after the state in which a row found the work tree. An
    /// edit that another call found while the row's call ran is later. `None` counts all edits.
    pub fn observed_edits_after(
        &self,
        envelope: &str,
        workspace: &str,
        seq: Option<i64>,
    ) -> StoreResult<i64> {
        let looked: Option<i64> = self
            .db
            .prepare_cached(
                "SELECT max(s.id) FROM core_operations r
                 JOIN core_work_tree_states s ON s.state = r.repo_before_hash
                 JOIN core_operations o ON o.op_id = s.op_id
                 WHERE r.seq = ?3 AND s.envelope_id = ?1 AND s.workspace = ?2 AND o.seq <= ?3",
            )?
            .query_row(params![envelope, workspace, seq], |row| row.get(0))?;
        // Of a row that looked at nothing only its place is known. A call without a row yet is later than all rows.
        Ok(self
            .db
            .prepare_cached(
                "SELECT count(*) FROM core_work_tree_states s LEFT JOIN core_operations o ON o.op_id = s.op_id
                 WHERE s.envelope_id = ?1 AND s.workspace = ?2 AND s.cause = 'observed'
                   AND CASE WHEN ?4 IS NULL THEN o.seq IS NULL OR o.seq > ?3 ELSE s.id > ?4 END",
            )?
            .query_row(params![envelope, workspace, seq.unwrap_or(0), looked], |row| row.get(0))?)
    }

    /// Parts of an envelope, oldest first.
    pub fn parts_of(&self, envelope: &str) -> StoreResult<Vec<Envelope>> {
        let ids: Vec<String> = self
            .db
            .prepare_cached(
                "SELECT id FROM core_envelopes WHERE parent = ?1 ORDER BY opened_at, id LIMIT ?2",
            )?
            .query_map(params![envelope, MAX_PARTS], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let parts = ids.iter().map(|id| self.envelope(id));
        Ok(parts
            .collect::<StoreResult<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// Workspaces whose edits in an envelope restored earlier states, with other states in between.
    pub fn restored_states(&self, envelope: &str) -> StoreResult<Vec<Restored>> {
        let states = self.work_tree_states(envelope, MAX_STATES)?;
        let mut found = Vec::new();
        for workspace in self.seen_workspaces(envelope)? {
            let of_edits = states.iter().filter(|state| state.workspace == workspace);
            // What test runs leave behind is no edit, and no state to come back to.
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

/// Most edits back that an earlier state is searched for.
const MAX_PERIOD: usize = 8;
