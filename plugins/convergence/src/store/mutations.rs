//! Recorded states of work trees.

use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::{Scope, forget};
use crate::cycle::{Cycle, MAX_PERIOD};

/// The fingerprints of the newest states, the newest first.
pub(crate) fn newest_mutations(db: &Db<'_>, scope: &Scope) -> Result<Vec<String>, DbError> {
    let rows = db.query(
        "SELECT fingerprint FROM convergence_mutations WHERE envelope_id = ?1 AND workspace = ?2
         ORDER BY id DESC LIMIT ?3",
        params![
            scope.envelope,
            scope.workspace,
            u32::try_from(MAX_PERIOD).unwrap_or(u32::MAX)
        ],
    )?;
    rows.iter().map(|row| row.get(0)).collect()
}

/// Stores a state of the work tree.
pub(crate) fn add_mutation(
    db: &Db<'_>,
    scope: &Scope,
    fingerprint: &str,
    cycle: Cycle,
    edits: Option<u64>,
    now: Timestamp,
) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO convergence_mutations (envelope_id, workspace, fingerprint, no_op, period, at, edits)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            scope.envelope,
            scope.workspace,
            fingerprint,
            cycle.no_op,
            cycle.oscillation.unwrap_or(0),
            now,
            edits.map(|edits| i64::try_from(edits).unwrap_or(i64::MAX))
        ],
    )?;
    forget(db, "convergence_mutations", scope, now)
}

/// Edits of the work tree by the newest recorded state of a scope, if the host saw it then.
pub(crate) fn last_recorded_edits(db: &Db<'_>, scope: &Scope) -> Result<Option<u64>, DbError> {
    let row = db.query_row(
        "SELECT edits FROM convergence_mutations WHERE envelope_id = ?1 AND workspace = ?2 ORDER BY id DESC LIMIT 1",
        params![scope.envelope, scope.workspace],
    )?;
    Ok(row.map(|row| row.get(0)).transpose()?.flatten())
}

/// Counts of a scope's recorded states.
#[derive(Debug, Clone, Default)]
pub(crate) struct MutationCounts {
    pub all: u64,
    pub no_ops: u64,
    pub oscillations: u64,
}

from_row! {
    MutationCounts { all, no_ops, oscillations }
}

/// Counts the recorded states of a scope.
pub(crate) fn mutation_counts(db: &Db<'_>, scope: &Scope) -> Result<MutationCounts, DbError> {
    let counts = db.query_one(
        "SELECT count(*), coalesce(sum(no_op), 0), coalesce(sum(CASE WHEN period > 0 THEN 1 ELSE 0 END), 0)
         FROM convergence_mutations WHERE envelope_id = ?1 AND workspace = ?2",
        params![scope.envelope, scope.workspace],
    )?;
    Ok(counts.unwrap_or_default())
}

/// The newest state: fingerprint, no-op flag and period.
#[derive(Debug, Clone)]
pub(crate) struct LastMutation {
    pub fingerprint: String,
    pub no_op: bool,
    pub period: u32,
}

from_row! {
    LastMutation { fingerprint, no_op, period }
}

/// The newest recorded state of a scope.
pub(crate) fn last_mutation(db: &Db<'_>, scope: &Scope) -> Result<Option<LastMutation>, DbError> {
    db.query_one(
        "SELECT fingerprint, no_op, period FROM convergence_mutations WHERE envelope_id = ?1 AND workspace = ?2
         ORDER BY id DESC LIMIT 1",
        params![scope.envelope, scope.workspace],
    )
}
