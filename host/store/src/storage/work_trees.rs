//! States of work trees as calls found them, by envelope and workspace. A state that no call made counts as an edit.

use std::ops::ControlFlow;

use super::engine::sql;
use super::error::StoreResult;
use super::handles::WorkTrees;

/// Most edits back in the search for an oscillation.
const MAX_PERIOD: i64 = 8;
/// Most earlier states that are searched for a file.
const MAX_BACK: i64 = 200;

/// Result of one scan of a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Name of the workspace.
    pub workspace: String,
    /// SHA-256 over the workspace's name, and over path, mode and content of each file that Git does not ignore.
    pub state: String,
    /// The same hash over the files that Git tracks. Not stored.
    pub tracked: String,
    /// Commit of the work tree.
    pub git_head: Option<String>,
    /// Differences from that commit: a JSON object of files by path, with modes and hashes, and the number of others.
    pub differs: Option<String>,
    /// Start of the scan, in milliseconds since the machine's boot.
    pub looked_boot_ms: i64,
}

/// Cause of a changed work tree state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// State at the opening of its envelope.
    Opened,
    /// An edit outside any call.
    Observed,
    /// A call.
    Call,
    /// A test run, which does not count as an edit.
    TestRun,
}

impl Cause {
    /// Cause from its stored form. The first scan of a call counts like the opening.
    fn read(text: &str) -> Cause {
        match text {
            "observed" => Cause::Observed,
            "call" => Cause::Call,
            "test_run" => Cause::TestRun,
            _ => Cause::Opened,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Cause::Opened => "opened",
            Cause::Observed => "observed",
            Cause::Call => "call",
            Cause::TestRun => "test_run",
        }
    }
}

/// Edits of one workspace in one envelope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkTreeProgress {
    /// Newest state.
    pub state: String,
    /// Commit of that state.
    pub git_head: Option<String>,
    /// Number of edits by calls and by others. Changes left by test runs do not count.
    pub edits: u64,
    /// Number of those edits that no call made.
    pub observed_edits: u64,
    /// True if the state at the opening of the envelope is known.
    pub has_baseline: bool,
    /// Number of edits since the newest state occurred before, with other states in between.
    pub oscillation: Option<u32>,
}

/// State of a work tree in an envelope's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeState {
    /// Name of the workspace.
    pub workspace: String,
    /// SHA-256 of the state.
    pub state: String,
    /// opened, first, observed, call or test_run.
    pub cause: String,
    /// Operation that found it.
    pub op_id: String,
    /// Time of the scan.
    pub seen_at: String,
}

/// Newest known state.
struct Newest {
    id: i64,
    state: String,
    looked_boot_ms: i64,
}

impl WorkTrees<'_> {
    /// Number of edits between the newest known state of an envelope's work tree and a scan of it: 0 or 1. A scan
    /// that began before the newest known one shows nothing new.
    pub fn edits_until(self, envelope: &str, seen: &Sighting) -> StoreResult<i64> {
        let newest = self.newest_state(envelope, &seen.workspace)?;
        let is_edit = newest
            .is_some_and(|newest| newest.state != seen.state && newest.looked_boot_ms <= seen.looked_boot_ms);
        Ok(i64::from(is_edit))
    }

    /// Stores a state, unless it is the newest known one. Requires a write transaction.
    pub fn note_sighting(
        self,
        envelope: &str,
        seen: &Sighting,
        cause: Cause,
        op_id: &str,
        now: &str,
    ) -> StoreResult<()> {
        self.note_newest(seen, cause)?;
        self.note_state(envelope, seen, cause, op_id, now)
    }

    /// Records a scan of the work tree before an envelope is closed, and counts the edit that it finds. If the edit
    /// limit leaves no room for it, returns false and records nothing. The newest known state of the workspace is
    /// unchanged, so that time windows count the edit with the next call.
    pub fn see_at_closing(
        self,
        envelope: &str,
        seen: &Sighting,
        op_id: &str,
        now: &str,
    ) -> StoreResult<bool> {
        let edits = self.edits_until(envelope, seen)?;
        let Some(standing) = self.0.envelopes().standing(envelope)? else {
            return Ok(true);
        };
        let Ok(next) = standing.see(edits) else {
            return Ok(false);
        };
        self.0.engine.change_one(
            "UPDATE core_envelopes SET edit_count = ?2 WHERE id = ?1",
            sql![envelope, next.edits],
        )?;
        self.note_state(envelope, seen, Cause::Observed, op_id, now)?;
        Ok(true)
    }

    /// Stores a state of an envelope, unless it is the newest known one.
    fn note_state(
        self,
        envelope: &str,
        seen: &Sighting,
        cause: Cause,
        op_id: &str,
        now: &str,
    ) -> StoreResult<()> {
        let newest = self.newest_state(envelope, &seen.workspace)?;
        match &newest {
            Some(newest) if newest.looked_boot_ms > seen.looked_boot_ms => return Ok(()),
            Some(newest) if newest.state == seen.state => {
                return self.0.engine.change_one(
                    "UPDATE core_work_tree_states SET looked_boot_ms = ?2 WHERE id = ?1",
                    sql![newest.id, seen.looked_boot_ms],
                );
            }
            _ => {}
        }
        let cause = match (&newest, cause) {
            (None, Cause::Observed | Cause::Call | Cause::TestRun) => "first",
            (_, cause) => cause.as_str(),
        };
        let sql = "INSERT INTO core_work_tree_states (envelope_id, workspace, state, git_head, differs, cause, op_id,
                seen_at, looked_boot_ms)
            SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE EXISTS (SELECT 1 FROM core_envelopes WHERE id = ?1)";
        self.0.add_state();
        self.0
            .engine
            .run(
                sql,
                sql![
                    envelope,
                    seen.workspace,
                    seen.state,
                    seen.git_head,
                    seen.differs,
                    cause,
                    op_id,
                    now,
                    seen.looked_boot_ms
                ],
            )
            .map(drop)
    }

    /// Stores the state that a call left, for its envelope and enclosing ones.
    pub fn note_sighting_around(
        self,
        envelope: &str,
        seen: &Sighting,
        cause: Cause,
        op_id: &str,
        now: &str,
    ) -> StoreResult<()> {
        let mut at = Some(envelope.to_owned());
        for _ in 0..=super::MAX_DEPTH {
            let Some(id) = at.take() else { break };
            self.note_sighting(&id, seen, cause, op_id, now)?;
            at = self.0.envelopes().get(&id)?.and_then(|envelope| envelope.parent);
        }
        Ok(())
    }

    /// Stores the state in which an envelope was opened, and its number in the envelope.
    pub fn note_baseline(
        self,
        envelope: &str,
        seen: &Sighting,
        op_id: &str,
        now: &str,
    ) -> StoreResult<Option<i64>> {
        self.note_sighting(envelope, seen, Cause::Opened, op_id, now)?;
        // Enclosing envelopes without a state of the workspace begin to count here as well.
        let mut at = self
            .0
            .envelopes()
            .get(envelope)?
            .and_then(|envelope| envelope.parent);
        for _ in 0..=super::MAX_DEPTH {
            let Some(id) = at.take() else { break };
            if self.newest_state(&id, &seen.workspace)?.is_none() {
                self.note_sighting(&id, seen, Cause::Observed, op_id, now)?;
            }
            at = self.0.envelopes().get(&id)?.and_then(|envelope| envelope.parent);
        }
        let newest = self
            .newest_state(envelope, &seen.workspace)?
            .map(|newest| newest.id);
        self.0.engine.change_one(
            "UPDATE core_envelopes SET index_version = ?2 WHERE id = ?1",
            sql![envelope, newest],
        )?;
        Ok(newest)
    }

    /// Edits of a workspace in an envelope. `None` if it was never scanned.
    pub fn progress(self, envelope: &str, workspace: &str) -> StoreResult<Option<WorkTreeProgress>> {
        let Some(newest) = self.newest_state(envelope, workspace)? else {
            return Ok(None);
        };
        let sql = "SELECT coalesce(sum(CASE WHEN cause IN ('observed', 'call') THEN 1 ELSE 0 END), 0),
                coalesce(sum(CASE WHEN cause = 'observed' THEN 1 ELSE 0 END), 0),
                coalesce(sum(CASE WHEN cause = 'opened' THEN 1 ELSE 0 END), 0) > 0,
                (SELECT git_head FROM core_work_tree_states WHERE id = ?3)
            FROM core_work_tree_states WHERE envelope_id = ?1 AND workspace = ?2";
        let (edits, observed_edits, has_baseline, git_head): (i64, i64, bool, Option<String>) = self
            .0
            .engine
            .one(sql, sql![envelope, workspace, newest.id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
        Ok(Some(WorkTreeProgress {
            git_head,
            edits: u64::try_from(edits).unwrap_or_default(),
            observed_edits: u64::try_from(observed_edits).unwrap_or_default(),
            has_baseline,
            oscillation: self.oscillation(envelope, workspace, &newest)?,
            state: newest.state,
        }))
    }

    /// Workspaces that calls of an envelope scanned.
    pub fn seen_workspaces(self, envelope: &str) -> StoreResult<Vec<String>> {
        let sql =
            "SELECT DISTINCT workspace FROM core_work_tree_states WHERE envelope_id = ?1 ORDER BY workspace";
        self.0.engine.all(sql, sql![envelope], |row| row.get(0))
    }

    /// Workspaces that calls of an envelope scanned, most recently scanned first, whether the scan found a change or
    /// not.
    pub fn last_seen_workspaces(self, envelope: &str) -> StoreResult<Vec<String>> {
        let sql = "SELECT workspace FROM core_work_tree_states WHERE envelope_id = ?1
            GROUP BY workspace ORDER BY max(looked_boot_ms) DESC, max(id) DESC";
        self.0.engine.all(sql, sql![envelope], |row| row.get(0))
    }

    /// States of an envelope's work trees, oldest first.
    pub fn states(self, envelope: &str, limit: u32) -> StoreResult<Vec<TreeState>> {
        let sql = "SELECT workspace, state, cause, op_id, seen_at FROM core_work_tree_states
            WHERE envelope_id = ?1 ORDER BY id LIMIT ?2";
        self.0.engine.all(sql, sql![envelope, limit], |row| {
            Ok(TreeState {
                workspace: row.get(0)?,
                state: row.get(1)?,
                cause: row.get(2)?,
                op_id: row.get(3)?,
                seen_at: row.get(4)?,
            })
        })
    }

    /// Passes the states of an envelope's work tree to `hear`, newest first, until it returns false.
    pub fn each_state_back(
        self,
        envelope: &str,
        workspace: &str,
        mut hear: impl FnMut(Cause, Option<&str>) -> bool,
    ) -> StoreResult<()> {
        let sql = "SELECT cause, differs FROM core_work_tree_states
            WHERE envelope_id = ?1 AND workspace = ?2 ORDER BY id DESC LIMIT ?3";
        self.0
            .engine
            .each_until(sql, sql![envelope, workspace, MAX_BACK], |row| {
                let (cause, differs): (String, Option<String>) = (row.get(0)?, row.get(1)?);
                Ok(match hear(Cause::read(&cause), differs.as_deref()) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            })
    }

    /// Workspace in which an envelope's work tree was in a state. States of two workspaces are never equal.
    pub fn workspace_of_state(self, envelope: &str, state: &str) -> StoreResult<Option<String>> {
        let sql = "SELECT workspace FROM core_work_tree_states WHERE envelope_id = ?1 AND state = ?2 LIMIT 1";
        self.0.engine.maybe(sql, sql![envelope, state], |row| row.get(0))
    }

    /// Number of edits since the newest state occurred before. A state left by a test run does not count as a return.
    fn oscillation(self, envelope: &str, workspace: &str, newest: &Newest) -> StoreResult<Option<u32>> {
        let sql = "SELECT max(id) FROM core_work_tree_states
            WHERE envelope_id = ?1 AND workspace = ?2 AND state = ?3 AND id < ?4";
        let before: Option<i64> =
            self.0
                .engine
                .one(sql, sql![envelope, workspace, newest.state, newest.id], |row| {
                    row.get(0)
                })?;
        let Some(before) = before else {
            return Ok(None);
        };
        let sql = "SELECT count(*) FROM core_work_tree_states
            WHERE envelope_id = ?1 AND workspace = ?2 AND id > ?3 AND cause IN ('observed', 'call')";
        let period: i64 = self
            .0
            .engine
            .one(sql, sql![envelope, workspace, before], |row| row.get(0))?;
        Ok(u32::try_from(period)
            .ok()
            .filter(|_| (1..=MAX_PERIOD).contains(&period)))
    }

    /// Newest known state of a work tree in an envelope.
    pub fn newest_sighting(self, envelope: &str, workspace: &str) -> StoreResult<Option<Sighting>> {
        self.sighting_before(envelope, workspace, i64::MAX)
    }

    fn sighting_before(self, envelope: &str, workspace: &str, id: i64) -> StoreResult<Option<Sighting>> {
        let sql = "SELECT state, git_head, differs, looked_boot_ms FROM core_work_tree_states
            WHERE envelope_id = ?1 AND workspace = ?2 AND id < ?3 ORDER BY id DESC LIMIT 1";
        self.0.engine.maybe(sql, sql![envelope, workspace, id], |row| {
            Ok(Sighting {
                workspace: workspace.to_owned(),
                state: row.get(0)?,
                tracked: String::new(),
                git_head: row.get(1)?,
                differs: row.get(2)?,
                looked_boot_ms: row.get(3)?,
            })
        })
    }

    /// Newest known state after a number of edits in an envelope.
    pub fn state_after_edits(
        self,
        envelope: &str,
        workspace: &str,
        edits: u64,
    ) -> StoreResult<Option<Sighting>> {
        let sql = "SELECT id FROM core_work_tree_states
            WHERE envelope_id = ?1 AND workspace = ?2 AND cause IN ('observed', 'call')
            ORDER BY id LIMIT 1 OFFSET ?3";
        let next: Option<i64> = self.0.engine.maybe(
            sql,
            sql![envelope, workspace, i64::try_from(edits).unwrap_or(i64::MAX)],
            |row| row.get(0),
        )?;
        self.sighting_before(envelope, workspace, next.unwrap_or(i64::MAX))
    }

    fn newest_state(self, envelope: &str, workspace: &str) -> StoreResult<Option<Newest>> {
        let sql = "SELECT id, state, looked_boot_ms FROM core_work_tree_states
            WHERE envelope_id = ?1 AND workspace = ?2 ORDER BY id DESC LIMIT 1";
        self.0.engine.maybe(sql, sql![envelope, workspace], |row| {
            Ok(Newest {
                id: row.get(0)?,
                state: row.get(1)?,
                looked_boot_ms: row.get(2)?,
            })
        })
    }
}

#[cfg(test)]
mod tests;
