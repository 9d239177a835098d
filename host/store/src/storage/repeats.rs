//! Repetitions among an envelope's operations: changes that were there before, failures that stay.

use super::engine::{Dialects, sql};
use super::error::StoreResult;
use super::handles::Evidence;

/// Verdicts on the newest test run of each workspace, as their component wrote them into the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SaidOfTests {
    /// A failure persists that edits did not change.
    pub non_progress: bool,
    /// The same work tree passes and fails.
    pub flaky: bool,
    /// A test fails that passed before.
    pub regression: bool,
}

/// Number of times a failure was seen in an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedFailure {
    /// Number of operations that failed in this way.
    pub seen: i64,
    /// Mutations from the first of them to the last.
    pub mutations: i64,
    /// No test run since went differently.
    pub stands: bool,
}

/// Test runs of an envelope that count, each with the states of work trees that it began in.
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
    /// Distance to an equal fingerprint among the newest mutations of an envelope, 1 being
    /// the one before. What changed rows is compared with what changed rows, and what changed
    /// files, which `run` calls report, with what changed files.
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

    /// Distance from the newest mutation of an envelope to an equal earlier one. Where calls looked at a work tree, its
    /// states say so, whoever edited it.
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

    /// Verdicts on the newest test run of each workspace that calls of an envelope looked at. `None` without such a
    /// run. A run that the caller reports as passed tells nothing where the host ran tests itself.
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

    /// Number of an envelope's operations that failed in this way.
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
            AND op_type = 'mutation' AND coalesce(failure_class, '') <> 'refused'";
        let mutations = self.0.engine.one(sql, sql![id, first, last], |row| row.get(0))?;
        // A run that the caller reports as passed settles only what the caller reported.
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

    /// Edits of the work tree that the second of two operations of an envelope looked at, from one operation to the other.
    /// `None` if it looked at none.
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

    /// The workspace that the newest operation with a failure looked at.
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

    /// Edits of a workspace that were found after one operation and until another.
    fn edits_between(self, id: &str, workspace: &str, first: i64, last: i64) -> StoreResult<i64> {
        let sql = "SELECT count(*) FROM core_work_tree_states s JOIN core_operations o ON o.op_id = s.op_id
            WHERE s.envelope_id = ?1 AND s.workspace = ?2 AND s.cause IN ('observed', 'call')
              AND o.seq > ?3 AND o.seq <= ?4";
        self.0
            .engine
            .one(sql, sql![id, workspace, first, last], |row| row.get(0))
    }
}

/// Types of the events by which components say what repeats.
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
