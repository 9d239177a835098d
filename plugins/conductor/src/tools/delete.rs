//! Tool that deletes a job for good.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Event as Record, Hints, Tool, ToolError};

use super::{after, find_job};
use crate::arguments::{MAX_ENTRY_CHARS, clip, counted};
use crate::error::Refusals;
use crate::model::JobId;
use crate::state::{Event, Status};
use crate::store::{attempt, job, step};

/// Delete a job with its steps, submissions, logs and context. Fails if the job is EXECUTING or PAUSED. The mistakes
/// and file descriptions of its repository stay, and the ledger keeps a line about the job. To keep a copy, call
/// job_export_bundle first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct JobDelete {
    job_id: JobId,
    /// Reason for deleting, kept in the ledger. Default none.
    reason: Option<String>,
}

/// A deleted job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeletedJob {
    /// Id of the deleted job.
    deleted: JobId,
    /// Title of the job.
    title: String,
    /// Status of the job before the call.
    from: Status,
    /// Number of steps that were deleted.
    steps: usize,
    /// Number of submissions that were deleted.
    attempts: usize,
}

impl Tool for JobDelete {
    const NAME: &'static str = "job_delete";
    const TITLE: &'static str = "Delete a job";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::DESTRUCTIVE;
    type Output = DeletedJob;

    fn run(self, cx: &Cx<'_>) -> Result<DeletedJob, ToolError> {
        let mut refusals = Refusals::default();
        refusals.optional_text("reason", self.reason.as_deref(), MAX_ENTRY_CHARS);
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        after(&job, Event::Delete)?;
        let deleted = DeletedJob {
            steps: step::all(&cx.db, &job.id)?.len(),
            attempts: attempt::all(&cx.db, &job.id)?.len(),
            from: job.status,
            title: job.title,
            deleted: job.id,
        };
        job::delete(&cx.db, &deleted.deleted)?;
        cx.approvals().withdraw(deleted.deleted.as_str())?;
        let why = self.reason.map(|reason| format!(": {}", clip(&reason)));
        let note = format!(
            "{} {:?} ({}, {}, {}) deleted{}",
            deleted.deleted,
            clip(&deleted.title),
            deleted.from,
            counted(deleted.steps, "step"),
            counted(deleted.attempts, "submission"),
            why.unwrap_or_default()
        );
        let record = Record::new("job.deleted");
        cx.ledger().append(&record.note(&note))?;
        Ok(deleted)
    }
}
