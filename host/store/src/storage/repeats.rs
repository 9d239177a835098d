//! Repetitions among an envelope's operations: repeated changes and persistent failures.

use super::engine::{Dialects, sql};
use super::error::StoreResult;
use super::handles::Evidence;

/// Conclusions about the newest test run of each workspace, as components recorded them in the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SaidOfTests {
    /// A failure persists after edits.
    pub non_progress: bool,
    /// The same work tree passes and fails.
    pub flaky: bool,
    /// A test fails that passed before.
    pub regression: bool,
}

/// Occurrences of a failure in an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedFailure {
    /// Number of operations that failed in this way.
    pub seen: i64,
    /// Number of mutations from the first occurrence to the last.
    pub mutations: i64,
    /// True if no later test run had another result.
    pub stands: bool,
}

/// Relevant test runs of an envelope, each with the states of work trees in which it began.
macro_rules! newest_runs {
    () => {
        "core_operations o
            JOIN core_work_tree_states s ON s.envelope_id = o.envelope_id AND s.state = o.repo_before_hash
            WHERE o.envelope_id = ?1 AND (o.op_type = 'test_run' OR o.outcome IS NOT NULL) AND o.success = 1
              AND (o.effect = 'run' OR o.failure_fingerprint IS NOT NULL OR NOT EXISTS (
                  SELECT 1 FROM core_operations r
                  JOIN core_work_tree_states t ON t.envelope_id = r.envelope_id AND t.state = r.repo_before_hash
                  WHERE r.envelope_id = ?1 AND r.effect = 'run' AND r.outcome IS NOT NULL
                    AND t.workspace = s.workspace))"
    };
}

impl Evidence<'_> {
    /// Distance to an equal fingerprint among the newest mutations of an envelope. 1 means the previous one.
    /// Mutations of rows are compared with mutations of rows, and mutations of files, which `run` calls report, with
    /// mutations of files.
    pub fn repeated_mutation(
        self,
        id: &str,
        fingerprint: &str,
        effect: &str,
        before: Option<i64>,
    ) -> StoreResult<Option<usize>> {
        let sql = "SELECT mutation_fingerprint FROM core_operations
            WHERE envelope_id = ?1 AND seq < ?2 AND mutation_fingerprint IS NOT NULL AND effect = ?3
            ORDER BY seq DESC LIMIT 8";
        let newest: Vec<String> =
            self.0
                .engine
                .all(sql, sql![id, before.unwrap_or(i64::MAX), effect], |row| {
                    row.get(0)
                })?;
        Ok(newest
            .iter()
            .position(|earlier| earlier == fingerprint)
            .map(|at| at + 1))
    }

    /// Distance from the newest mutation of an envelope to an equal earlier one. If calls scanned a work tree, its
    /// states decide, whoever made the edits.
    pub fn newest_mutation_repeated(self, id: &str) -> StoreResult<Option<usize>> {
        let mut oscillation = None;
        for workspace in self.0.work_trees().seen_workspaces(id)? {
            let progress = self.0.work_trees().progress(id, &workspace)?;
            oscillation = oscillation.max(progress.and_then(|progress| progress.oscillation));
        }
        let sql = "SELECT seq, mutation_fingerprint, effect, events, repo_before_hash IS NOT NULL FROM core_operations
            WHERE envelope_id = ?1 AND mutation_fingerprint IS NOT NULL ORDER BY seq DESC LIMIT 1";
        let newest: Option<(i64, String, String, Option<String>, bool)> =
            self.0.engine.maybe(sql, sql![id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })?;
        match newest {
            Some((_, _, _, events, true)) if has_event(events.as_deref(), NO_OP) => Ok(Some(1)),
            Some((_, _, _, _, true)) | None => {
                Ok(oscillation.and_then(|period| usize::try_from(period).ok()))
            }
            Some((seq, fingerprint, effect, _, false)) => {
                self.repeated_mutation(id, &fingerprint, &effect, Some(seq))
            }
        }
    }

    /// Newest test result in each workspace of an envelope. `None` if no call of the envelope scanned a workspace for
    /// a test run. A passing run that the caller reports does not count if the host ran tests itself.
    pub fn said_of_tests(self, id: &str) -> StoreResult<Option<SaidOfTests>> {
        let mut said: Option<SaidOfTests> = None;
        let newest = Dialects {
            sqlite: concat!(
                "SELECT max(o.seq), o.events FROM ",
                newest_runs!(),
                " GROUP BY s.workspace"
            ),
            postgres: concat!(
                "SELECT DISTINCT ON (s.workspace) o.seq, o.events FROM ",
                newest_runs!(),
                " ORDER BY s.workspace, o.seq DESC"
            ),
        };
        let sql = self.0.engine.text(newest);
        self.0.engine.each(sql, sql![id], |row| {
            let events: Option<String> = row.get(1)?;
            let said = said.get_or_insert_default();
            said.non_progress |= has_event(events.as_deref(), NON_PROGRESS);
            said.flaky |= has_event(events.as_deref(), FLAKY);
            said.regression |= has_event(events.as_deref(), REGRESSION);
            Ok(())
        })?;
        Ok(said)
    }

    /// Occurrences of a failure among an envelope's operations.
    pub fn repeated_failure(self, id: &str, fingerprint: &str) -> StoreResult<Option<RepeatedFailure>> {
        let workspace = self.workspace_of_failure(id, fingerprint)?;
        let sql = "SELECT count(*), min(seq), max(seq) FROM core_operations o
            WHERE failure_fingerprint = ?1 AND envelope_id = ?2 AND (CAST(?3 AS TEXT) IS NULL OR EXISTS (
                SELECT 1 FROM core_work_tree_states s
                WHERE s.envelope_id = ?2 AND s.state = o.repo_before_hash AND s.workspace = ?3))";
        let (seen, first, last): (i64, Option<i64>, Option<i64>) =
            self.0.engine.one(sql, sql![fingerprint, id, workspace], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(None);
        };
        if let Some(workspace) = workspace {
            return Ok(Some(RepeatedFailure {
                seen,
                mutations: self.edits_between(id, &workspace, first, last)?,
                stands: true,
            }));
        }
        let sql = "SELECT count(*) FROM core_operations WHERE envelope_id = ?1 AND seq > ?2 AND seq < ?3
            AND op_type = 'mutation' AND (coalesce(failure_class, '') <> 'refused' OR counters IS NOT NULL)";
        let mutations = self.0.engine.one(sql, sql![id, first, last], |row| row.get(0))?;
        // A passing run that the caller reports settles only failures that the caller reported.
        let sql = "SELECT EXISTS (SELECT 1 FROM core_operations
            WHERE envelope_id = ?1 AND seq > ?2 AND (op_type = 'test_run' OR outcome IS NOT NULL) AND success = 1
              AND (effect = 'run' OR failure_fingerprint IS NOT NULL
                OR (SELECT effect FROM core_operations WHERE seq = ?2) <> 'run'))";
        let later: bool = self.0.engine.one(sql, sql![id, last], |row| row.get(0))?;
        Ok(Some(RepeatedFailure {
            seen,
            mutations,
            stands: !later,
        }))
    }

    /// Edits of the work tree that the second of two operations of an envelope scanned, from one operation to the
    /// other. `None` if it scanned none.
    pub fn edits_over_rows(self, id: &str, first: i64, last: i64) -> StoreResult<Option<i64>> {
        let state: Option<Option<String>> = self.0.engine.maybe(
            "SELECT repo_before_hash FROM core_operations WHERE seq = ?1",
            sql![last],
            |row| row.get(0),
        )?;
        let workspace = match state.flatten() {
            Some(state) => self.0.work_trees().workspace_of_state(id, &state)?,
            None => None,
        };
        workspace
            .map(|workspace| self.edits_between(id, &workspace, first, last))
            .transpose()
    }

    /// Workspace that the newest operation with a failure scanned.
    fn workspace_of_failure(self, id: &str, fingerprint: &str) -> StoreResult<Option<String>> {
        let sql = "SELECT repo_before_hash FROM core_operations
            WHERE failure_fingerprint = ?1 AND envelope_id = ?2 ORDER BY seq DESC LIMIT 1";
        let state: Option<Option<String>> = self
            .0
            .engine
            .maybe(sql, sql![fingerprint, id], |row| row.get(0))?;
        match state.flatten() {
            Some(state) => self.0.work_trees().workspace_of_state(id, &state),
            None => Ok(None),
        }
    }

    /// Number of edits of a workspace that were found after one operation and up to another.
    fn edits_between(self, id: &str, workspace: &str, first: i64, last: i64) -> StoreResult<i64> {
        let sql = "SELECT count(*) FROM core_work_tree_states s JOIN core_operations o ON o.op_id = s.op_id
            WHERE s.envelope_id = ?1 AND s.workspace = ?2 AND s.cause IN ('observed', 'call')
              AND o.seq > ?3 AND o.seq <= ?4";
        self.0
            .engine
            .one(sql, sql![id, workspace, first, last], |row| row.get(0))
    }
}

/// Event types in which components report repetitions.
const NO_OP: &str = "mutation.no_op";
const NON_PROGRESS: &str = "test.non_progress";
const FLAKY: &str = "test.flaky";
const REGRESSION: &str = "test.regression";

/// True if a row has an event of this type.
fn has_event(events: Option<&str>, wanted: &str) -> bool {
    let events: Vec<serde_json::Value> = events
        .and_then(|events| serde_json::from_str(events).ok())
        .unwrap_or_default();
    events
        .iter()
        .any(|event| event.get("type").and_then(serde_json::Value::as_str) == Some(wanted))
}
