//! Runs of registered tests by the gates of a job.

use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use crate::entity;
use crate::model::{JobId, StepId};

/// Most earlier sightings of a failure that a run is compared with.
const MAX_SIGHTINGS: u32 = 200;

/// A run of a registered test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// Words of the gate's command.
    pub command: String,
    /// Fingerprint of the failure; `None` if the tests passed.
    pub failure: Option<String>,
    /// Fingerprint of the failure's messages.
    pub detail: Option<String>,
    /// State of the work tree; `None` if Git cannot be read.
    pub state: Option<String>,
}

from_row! {
    Run { command, failure, detail, state }
}

/// Stores a run.
pub(crate) fn insert(
    db: &Db<'_>,
    job: &JobId,
    step: Option<&StepId>,
    run: &Run,
    at: Timestamp,
) -> Result<(), DbError> {
    match step {
        Some(step) => entity::part(job, step.as_str()),
        None => entity::job(job),
    }
    db.execute(
        "INSERT INTO conductor_runs (job_id, step_id, command, failure_fingerprint, detail_fingerprint, state, at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![job, step, run.command, run.failure, run.detail, run.state, at],
    )?;
    Ok(())
}

/// Newest run of a command, if there is one.
pub(crate) fn last(db: &Db<'_>, job: &JobId, command: &str) -> Result<Option<Run>, DbError> {
    db.query_one(
        "SELECT command, failure_fingerprint, detail_fingerprint, state FROM conductor_runs \
         WHERE job_id = ?1 AND command = ?2 ORDER BY number DESC LIMIT 1",
        params![job, command],
    )
}

/// Earlier runs of a command with the same failure, the newest first.
pub(crate) fn sightings(db: &Db<'_>, job: &JobId, command: &str, failure: &str) -> Result<Vec<Run>, DbError> {
    db.query_as(
        "SELECT command, failure_fingerprint, detail_fingerprint, state FROM conductor_runs \
         WHERE job_id = ?1 AND command = ?2 AND failure_fingerprint = ?3 ORDER BY number DESC LIMIT ?4",
        params![job, command, failure, MAX_SIGHTINGS],
    )
}
