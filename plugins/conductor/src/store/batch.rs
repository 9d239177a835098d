//! Batches: permission to accept a few steps before their changes are committed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::to_json;
use crate::entity;
use crate::model::{BatchId, JobId};

/// A batch of steps whose changes are committed together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Batch {
    pub token: BatchId,
    /// Reason for deferring the commit.
    pub reason: String,
    /// Number of further steps for which the token is valid.
    pub steps_left: u32,
    /// Steps that were accepted with the token.
    pub steps: Vec<String>,
    /// Commit that closed the batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<String>,
    /// Time of opening.
    pub created_at: Timestamp,
}

from_row! {
    Batch { token, reason, steps_left, steps: json, settled_by, created_at }
}

/// Stores a batch.
pub(crate) fn insert(db: &Db<'_>, job: &JobId, batch: &Batch) -> Result<(), DbError> {
    entity::part(job, batch.token.as_str());
    db.execute(
        "INSERT INTO conductor_batches (job_id, id, reason, steps_left, steps_json, settled_by, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            job,
            batch.token,
            batch.reason,
            batch.steps_left,
            to_json(&batch.steps)?,
            batch.settled_by,
            batch.created_at,
        ],
    )?;
    Ok(())
}

/// Batch that is not committed yet.
pub(crate) fn open(db: &Db<'_>, job: &JobId) -> Result<Option<Batch>, DbError> {
    db.query_one(
        "SELECT id, reason, steps_left, steps_json, settled_by, created_at FROM conductor_batches \
         WHERE job_id = ?1 AND settled_by IS NULL",
        params![job],
    )
}

/// All batches of a job, oldest first.
pub(crate) fn all(db: &Db<'_>, job: &JobId) -> Result<Vec<Batch>, DbError> {
    db.query_as(
        "SELECT id, reason, steps_left, steps_json, settled_by, created_at FROM conductor_batches \
         WHERE job_id = ?1 ORDER BY created_at, id",
        params![job],
    )
}

/// Uses a token for one more step.
pub(crate) fn spend(db: &Db<'_>, batch: &Batch) -> Result<(), DbError> {
    db.execute(
        "UPDATE conductor_batches SET steps_left = ?2, steps_json = ?3 WHERE id = ?1",
        params![batch.token, batch.steps_left, to_json(&batch.steps)?],
    )?;
    Ok(())
}

/// Closes the open batch of a job with a commit. `true` if there was one.
pub(crate) fn settle(db: &Db<'_>, job: &JobId, commit: &str) -> Result<bool, DbError> {
    let changed = db.execute(
        "UPDATE conductor_batches SET settled_by = ?2 WHERE job_id = ?1 AND settled_by IS NULL",
        params![job, commit],
    )?;
    Ok(changed == 1)
}

/// Checks whether an id is taken.
pub(crate) fn exists(db: &Db<'_>, id: &BatchId) -> Result<bool, DbError> {
    let row = db.query_row("SELECT id FROM conductor_batches WHERE id = ?1", params![id])?;
    Ok(row.is_some())
}
