//! Repetitions among an envelope's operations: changes that were there before, failures that stay.

use super::error::StoreResult;
use rusqlite::{OptionalExtension, params};

use super::session::Session;

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

impl Session {
    /// Distance to an equal fingerprint among the newest mutations of an envelope, 1 being
    /// the one before. What changed rows is compared with what changed rows, and what changed
    /// files, which `run` calls report, with what changed files.
    pub fn repeated_mutation(
        &self,
        id: &str,
        fingerprint: &str,
        effect: &str,
        before: Option<i64>,
    ) -> StoreResult<Option<usize>> {
        let newest: Vec<String> = self
            .db
            .prepare_cached(
                "SELECT mutation_fingerprint FROM core_operations
                 WHERE envelope_id = ?1 AND seq < ?2 AND mutation_fingerprint IS NOT NULL AND effect = ?3
                 ORDER BY seq DESC LIMIT 8",
            )?
            .query_map(params![id, before.unwrap_or(i64::MAX), effect], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(newest
            .iter()
            .position(|earlier| earlier == fingerprint)
            .map(|at| at + 1))
    }

    /// Distance from the newest mutation of an envelope to an equal earlier one.
    pub fn newest_mutation_repeated(&self, id: &str) -> StoreResult<Option<usize>> {
        let newest: Option<(i64, String, String)> = self
            .db
            .prepare_cached(
                "SELECT seq, mutation_fingerprint, effect FROM core_operations
                 WHERE envelope_id = ?1 AND mutation_fingerprint IS NOT NULL ORDER BY seq DESC LIMIT 1",
            )?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        match newest {
            Some((seq, fingerprint, effect)) => self.repeated_mutation(id, &fingerprint, &effect, Some(seq)),
            None => Ok(None),
        }
    }

    /// Number of an envelope's operations that failed in this way.
    pub fn repeated_failure(&self, id: &str, fingerprint: &str) -> StoreResult<Option<RepeatedFailure>> {
        let (seen, first, last): (i64, Option<i64>, Option<i64>) = self
            .db
            .prepare_cached(
                "SELECT count(*), min(seq), max(seq) FROM core_operations
                 WHERE failure_fingerprint = ?1 AND envelope_id = ?2",
            )?
            .query_row([fingerprint, id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        let (Some(first), Some(last)) = (first, last) else {
            return Ok(None);
        };
        let mutations = self
            .db
            .prepare_cached(
                "SELECT count(*) FROM core_operations WHERE envelope_id = ?1 AND seq > ?2 AND seq < ?3
                   AND op_type = 'mutation' AND coalesce(failure_class, '') <> 'refused'",
            )?
            .query_row(params![id, first, last], |row| row.get(0))?;
        let later: bool = self
            .db
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM core_operations
                     WHERE envelope_id = ?1 AND seq > ?2 AND op_type = 'test_run' AND success = 1)",
            )?
            .query_row(params![id, last], |row| row.get(0))?;
        Ok(Some(RepeatedFailure {
            seen,
            mutations,
            stands: !later,
        }))
    }
}
