//! States of work trees as calls found them, by envelope and workspace. A state that no call made is an edit.

use rusqlite::{OptionalExtension, params};

use super::error::StoreResult;
use super::handles::WorkTrees;
use super::schema::exactly_one;

/// Most edits back that an oscillation is searched for.
const MAX_PERIOD: i64 = 8;
/// Most states back that tell of a file.
const MAX_BACK: i64 = 200;

/// A work tree as one look found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Name of the workspace.
    pub workspace: String,
    /// SHA-256 over the workspace's name, and path, mode and content of each file that Git does not ignore.
    pub state: String,
    /// The same over the files that Git tracks. Not stored.
    pub tracked: String,
    /// The commit it is at.
    pub git_head: Option<String>,
    /// Differences from that commit: a JSON object of files by path, with modes and hashes, and the number of others.
    pub differs: Option<String>,
    /// When the look began, by the clock that counts from the machine's start.
    pub looked_boot_ms: i64,
}

/// Why a work tree is in another state than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// State at the opening of its envelope.
    Opened,
    /// No call did it.
    Observed,
    /// A call did it.
    Call,
    /// A test run did it, which is no edit.
    TestRun,
}

impl Cause {
    /// Cause as a row has it. The first look of a call is like the opening.
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
    /// The newest state.
    pub state: String,
    /// The commit of that state.
    pub git_head: Option<String>,
    /// Edits by calls and by others. What test runs leave behind is none.
    pub edits: u64,
    /// Edits among them that no call made.
    pub observed_edits: u64,
    /// True if the state at the opening of the envelope is known.
    pub has_baseline: bool,
    /// Edits since the newest state was there before, if others came in between.
    pub oscillation: Option<u32>,
}

/// State of a work tree, as readers of an envelope's history see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeState {
    /// Name of the workspace.
    pub workspace: String,
    /// SHA-256 of the state.
    pub state: String,
    /// opened, first, observed, call or test_run.
    pub cause: String,
    /// The operation that found it.
    pub op_id: String,
    /// Time of the look.
    pub seen_at: String,
}

/// The newest known state.
struct Newest {
    id: i64,
    state: String,
    looked_boot_ms: i64,
}

impl WorkTrees<'_> {
    /// Number of edits between the newest known state of an envelope's work tree and a look at it: 0 or 1. A look that
    /// began before the newest known one shows nothing new.
    pub fn edits_until(self, envelope: &str, seen: &Sighting) -> StoreResult<i64> {
        let newest = self.newest_state(envelope, &seen.workspace)?;
        let is_edit = newest
            .is_some_and(|newest| newest.state != seen.state && newest.looked_boot_ms <= seen.looked_boot_ms);
        Ok(i64::from(is_edit))
    }

    /// Stores a state, unless it is the newest known one. Wants a write transaction.
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

    /// Notes a look at the work tree before an envelope is closed, and counts the edit that it finds. Returns false, and
    /// notes nothing, if the limit of edits leaves no room for it. The newest known state of the workspace stays, so that
    /// time windows count the edit with the next call.
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
        self.0
            .db
            .prepare_cached("UPDATE core_envelopes SET edit_count = ?2 WHERE id = ?1")?
            .execute((envelope, next.edits))
            .and_then(exactly_one)?;
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
                return Ok(self
                    .0
                    .db
                    .prepare_cached("UPDATE core_work_tree_states SET looked_boot_ms = ?2 WHERE id = ?1")?
                    .execute((newest.id, seen.looked_boot_ms))
                    .and_then(exactly_one)?);
            }
            _ => {}
        }
        let cause = match (&newest, cause) {
            (None, Cause::Observed | Cause::Call | Cause::TestRun) => "first",
            (_, cause) => cause.as_str(),
        };
        Ok(self
            .0.db
            .prepare_cached(
                "INSERT INTO core_work_tree_states (envelope_id, workspace, state, git_head, differs, cause, op_id,
                     seen_at, looked_boot_ms)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE EXISTS (SELECT 1 FROM core_envelopes WHERE id = ?1)",
            )?
            .execute(params![
                envelope,
                seen.workspace,
                seen.state,
                seen.git_head,
                seen.differs,
                cause,
                op_id,
                now,
                seen.looked_boot_ms
            ])
            .map(drop)?)
    }

    /// Stores what a call left behind, for its envelope and those around it.
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

    /// Stores the state in which an envelope was opened, and its number as the envelope's.
    pub fn note_baseline(
        self,
        envelope: &str,
        seen: &Sighting,
        op_id: &str,
        now: &str,
    ) -> StoreResult<Option<i64>> {
        self.note_sighting(envelope, seen, Cause::Opened, op_id, now)?;
        // Envelopes around it that know nothing of the workspace begin to count here as well.
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
        self.0
            .db
            .prepare_cached("UPDATE core_envelopes SET index_version = ?2 WHERE id = ?1")?
            .execute((envelope, newest))
            .and_then(exactly_one)?;
        Ok(newest)
    }

    /// Edits of a workspace in an envelope. `None` if nobody looked at it yet.
    pub fn progress(self, envelope: &str, workspace: &str) -> StoreResult<Option<WorkTreeProgress>> {
        let Some(newest) = self.newest_state(envelope, workspace)? else {
            return Ok(None);
        };
        let (edits, observed_edits, has_baseline, git_head): (i64, i64, bool, Option<String>) = self
            .0.db
            .prepare_cached(
                "SELECT coalesce(sum(cause IN ('observed', 'call')), 0), coalesce(sum(cause = 'observed'), 0),
                     coalesce(sum(cause = 'opened'), 0) > 0,
                     (SELECT git_head FROM core_work_tree_states WHERE id = ?3)
                 FROM core_work_tree_states WHERE envelope_id = ?1 AND workspace = ?2",
            )?
            .query_row(params![envelope, workspace, newest.id], |row| {
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

    /// Workspaces that calls of an envelope looked at.
    pub fn seen_workspaces(self, envelope: &str) -> StoreResult<Vec<String>> {
        Ok(self
            .0.db
            .prepare_cached(
                "SELECT DISTINCT workspace FROM core_work_tree_states WHERE envelope_id = ?1 ORDER BY workspace",
            )?
            .query_map([envelope], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?)
    }

    /// Workspaces that calls of an envelope looked at, the one of the newest look first, whether that found a change or
    /// not.
    pub fn last_seen_workspaces(self, envelope: &str) -> StoreResult<Vec<String>> {
        Ok(self
            .0
            .db
            .prepare_cached(
                "SELECT workspace FROM core_work_tree_states WHERE envelope_id = ?1
                 GROUP BY workspace ORDER BY max(looked_boot_ms) DESC, max(id) DESC",
            )?
            .query_map([envelope], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?)
    }

    /// States of an envelope's work trees, the oldest first.
    pub fn states(self, envelope: &str, limit: u32) -> StoreResult<Vec<TreeState>> {
        Ok(self
            .0
            .db
            .prepare_cached(
                "SELECT workspace, state, cause, op_id, seen_at FROM core_work_tree_states
                 WHERE envelope_id = ?1 ORDER BY id LIMIT ?2",
            )?
            .query_map(params![envelope, limit], |row| {
                Ok(TreeState {
                    workspace: row.get(0)?,
                    state: row.get(1)?,
                    cause: row.get(2)?,
                    op_id: row.get(3)?,
                    seen_at: row.get(4)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?)
    }

    /// Tells of the newest states of an envelope's work tree, the newest first, until `hear` has heard enough.
    pub fn each_state_back(
        self,
        envelope: &str,
        workspace: &str,
        mut hear: impl FnMut(Cause, Option<&str>) -> bool,
    ) -> StoreResult<()> {
        let mut statement = self.0.db.prepare_cached(
            "SELECT cause, differs FROM core_work_tree_states
             WHERE envelope_id = ?1 AND workspace = ?2 ORDER BY id DESC LIMIT ?3",
        )?;
        let mut rows = statement.query(params![envelope, workspace, MAX_BACK])?;
        while let Some(row) = rows.next()? {
            let (cause, differs): (String, Option<String>) = (row.get(0)?, row.get(1)?);
            if !hear(Cause::read(&cause), differs.as_deref()) {
                break;
            }
        }
        Ok(())
    }

    /// The workspace in which an envelope's work tree was in a state. States of two workspaces are never the same.
    pub fn workspace_of_state(self, envelope: &str, state: &str) -> StoreResult<Option<String>> {
        Ok(self
            .0
            .db
            .prepare_cached(
                "SELECT workspace FROM core_work_tree_states WHERE envelope_id = ?1 AND state = ?2 LIMIT 1",
            )?
            .query_row((envelope, state), |row| row.get(0))
            .optional()?)
    }

    /// Edits since the newest state was there before. A state that a test run left is none to come back to.
    fn oscillation(self, envelope: &str, workspace: &str, newest: &Newest) -> StoreResult<Option<u32>> {
        let before: Option<i64> = self
            .0
            .db
            .prepare_cached(
                "SELECT max(id) FROM core_work_tree_states
                 WHERE envelope_id = ?1 AND workspace = ?2 AND state = ?3 AND id < ?4",
            )?
            .query_row(params![envelope, workspace, newest.state, newest.id], |row| {
                row.get(0)
            })?;
        let Some(before) = before else {
            return Ok(None);
        };
        let period: i64 = self
            .0
            .db
            .prepare_cached(
                "SELECT count(*) FROM core_work_tree_states
                 WHERE envelope_id = ?1 AND workspace = ?2 AND id > ?3 AND cause IN ('observed', 'call')",
            )?
            .query_row(params![envelope, workspace, before], |row| row.get(0))?;
        Ok(u32::try_from(period)
            .ok()
            .filter(|_| (1..=MAX_PERIOD).contains(&period)))
    }

    /// The newest known state of a work tree in an envelope.
    pub fn newest_sighting(self, envelope: &str, workspace: &str) -> StoreResult<Option<Sighting>> {
        self.sighting_before(envelope, workspace, i64::MAX)
    }

    fn sighting_before(self, envelope: &str, workspace: &str, id: i64) -> StoreResult<Option<Sighting>> {
        Ok(self
            .0
            .db
            .prepare_cached(
                "SELECT state, git_head, differs, looked_boot_ms FROM core_work_tree_states
                 WHERE envelope_id = ?1 AND workspace = ?2 AND id < ?3 ORDER BY id DESC LIMIT 1",
            )?
            .query_row((envelope, workspace, id), |row| {
                Ok(Sighting {
                    workspace: workspace.to_owned(),
                    state: row.get(0)?,
                    tracked: String::new(),
                    git_head: row.get(1)?,
                    differs: row.get(2)?,
                    looked_boot_ms: row.get(3)?,
                })
            })
            .optional()?)
    }

    /// The newest known state after a number of edits in an envelope.
    pub fn state_after_edits(
        self,
        envelope: &str,
        workspace: &str,
        edits: u64,
    ) -> StoreResult<Option<Sighting>> {
        let next: Option<i64> = self
            .0
            .db
            .prepare_cached(
                "SELECT id FROM core_work_tree_states
                 WHERE envelope_id = ?1 AND workspace = ?2 AND cause IN ('observed', 'call')
                 ORDER BY id LIMIT 1 OFFSET ?3",
            )?
            .query_row(
                params![envelope, workspace, i64::try_from(edits).unwrap_or(i64::MAX)],
                |row| row.get(0),
            )
            .optional()?;
        self.sighting_before(envelope, workspace, next.unwrap_or(i64::MAX))
    }

    fn newest_state(self, envelope: &str, workspace: &str) -> StoreResult<Option<Newest>> {
        Ok(self
            .0
            .db
            .prepare_cached(
                "SELECT id, state, looked_boot_ms FROM core_work_tree_states
                 WHERE envelope_id = ?1 AND workspace = ?2 ORDER BY id DESC LIMIT 1",
            )?
            .query_row((envelope, workspace), |row| {
                Ok(Newest {
                    id: row.get(0)?,
                    state: row.get(1)?,
                    looked_boot_ms: row.get(2)?,
                })
            })
            .optional()?)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::envelope::{Charge, Refusal, State};

    use super::super::fixture::{NOW, envelope};
    use super::super::session::Session;
    use super::super::{Admission, Database};
    use super::*;

    fn seen(workspace: &str, state: &str, looked_boot_ms: i64) -> Sighting {
        Sighting {
            workspace: workspace.to_owned(),
            state: format!("{workspace}-{state}"),
            looked_boot_ms,
            ..Sighting::default()
        }
    }

    fn session(max_edits: Option<i64>) -> (tempfile::TempDir, Session) {
        let place = tempfile::tempdir().unwrap();
        let session = Database::open(&place.path().join("t.db"))
            .unwrap()
            .write_session()
            .unwrap();
        session.begin_write().unwrap();
        let around = envelope("env_around", None);
        session.envelopes().open(&around).unwrap();
        let mut inner = envelope("env_in", None);
        inner.parent = Some("env_around".to_owned());
        inner.standing.limits.max_edits = max_edits;
        session.envelopes().open(&inner).unwrap();
        (place, session)
    }

    fn admit(session: &Session, sighting: &Sighting) -> Result<i64, Refusal> {
        let admission = session
            .envelopes()
            .admit_seeing("env_in", Charge::TestRun, 0, NOW, Some((sighting, "op_1")))
            .unwrap();
        match admission {
            Admission::Admitted(admitted) => Ok(admitted.standing.edits),
            Admission::Refused { refusal, .. } => Err(refusal),
            Admission::Unknown => unreachable!(),
        }
    }

    #[test]
    fn states_that_no_call_made_are_edits_by_workspace() {
        let (_place, session) = session(None);
        session
            .work_trees()
            .note_baseline("env_in", &seen("one", "A", 1), "op_0", NOW)
            .unwrap();
        let mut counted = Vec::new();
        for (workspace, state, at) in [
            ("one", "A", 2),
            ("one", "B", 3),
            ("other", "X", 4),
            ("one", "B", 5),
            // It began before the last one, and says nothing.
            ("one", "A", 4),
            ("other", "Y", 6),
            ("one", "A", 7),
        ] {
            counted.push(admit(&session, &seen(workspace, state, at)).unwrap());
        }
        assert_eq!(counted, [0, 1, 1, 1, 1, 2, 3]);
        let one = session.work_trees().progress("env_in", "one").unwrap().unwrap();
        assert_eq!((one.edits, one.observed_edits, one.oscillation), (2, 2, Some(2)));
        assert!(one.has_baseline);
        let other = session.work_trees().progress("env_in", "other").unwrap().unwrap();
        assert_eq!(
            (other.edits, other.oscillation, other.has_baseline),
            (1, None, false)
        );
        assert_eq!(session.work_trees().progress("env_in", "third").unwrap(), None);
        let around = session.envelopes().get("env_around").unwrap().unwrap();
        assert_eq!(
            around.standing.edits, 3,
            "its baseline is the first call of the part"
        );
        let opened = session.envelopes().get("env_in").unwrap().unwrap();
        assert_eq!(opened.index_version, Some(1));
    }

    #[test]
    fn a_look_at_closing_counts_within_the_limit_and_leaves_the_edit_to_windows() {
        let (_place, session) = session(Some(1));
        session
            .work_trees()
            .note_baseline("env_in", &seen("one", "A", 1), "op_0", NOW)
            .unwrap();
        let close = |state: &str, at: i64| {
            let found = session
                .work_trees()
                .see_at_closing("env_in", &seen("one", state, at), "op_9", NOW);
            let edits = session.envelopes().standing("env_in").unwrap().unwrap().edits;
            (found.unwrap(), edits)
        };
        assert_eq!(close("A", 2), (true, 0));
        assert_eq!(close("B", 3), (true, 1));
        assert_eq!(close("C", 4), (false, 1), "one more than the limit is not noted");
        assert_eq!(
            session
                .work_trees()
                .edits_over_envelopes(&seen("one", "B", 5))
                .unwrap(),
            1
        );
    }

    #[test]
    fn changes_by_calls_and_by_test_runs_are_not_observed() {
        let (_place, session) = session(None);
        admit(&session, &seen("one", "A", 1)).unwrap();
        for (state, cause, at) in [("B", Cause::TestRun, 2), ("C", Cause::Call, 3)] {
            let after = seen("one", state, at);
            session
                .work_trees()
                .note_sighting_around("env_in", &after, cause, "op_2", NOW)
                .unwrap();
            assert_eq!(admit(&session, &after), Ok(0));
        }
        let progress = session
            .work_trees()
            .progress("env_around", "one")
            .unwrap()
            .unwrap();
        assert_eq!((progress.edits, progress.observed_edits), (1, 0));
    }

    #[test]
    fn the_edit_past_the_limit_closes_the_envelope_and_does_not_count() {
        let (_place, session) = session(Some(2));
        for (state, at) in [("A", 1), ("B", 2), ("C", 3)] {
            admit(&session, &seen("one", state, at)).unwrap();
        }
        assert_eq!(
            admit(&session, &seen("one", "D", 4)),
            Err(Refusal::Edits { limit: 2 })
        );
        let closed = session.envelopes().get("env_in").unwrap().unwrap();
        assert_eq!(closed.standing.state, State::ClosedFailed);
        assert_eq!(closed.standing.edits, 2);
        assert_eq!(closed.closed_by.as_deref(), Some("EDIT_BUDGET_EXHAUSTED"));
        assert_eq!(
            admit(&session, &seen("one", "D", 5)),
            Err(Refusal::Closed(State::ClosedFailed))
        );
    }
}
