//! Roadmap assessments and replanning records. Each cause has one record; sending it again replaces it.

use serde_json::Value as Json;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use crate::model::{MilestoneId, SliceId, TaskId};

/// Assessment after a completed slice.
#[derive(Debug)]
pub(crate) struct Assessment<'a> {
    pub milestone: &'a MilestoneId,
    pub completed_slice: &'a SliceId,
    pub verdict: &'a str,
    pub assessment: &'a str,
    pub slice_changes: Json,
}

/// Stores an assessment, replacing an earlier one. `true` if there was none.
pub(crate) fn assess(
    db: &Db<'_>,
    workspace: &str,
    assessment: &Assessment<'_>,
    now: Timestamp,
) -> Result<bool, DbError> {
    let known = db.query_row(
        "SELECT assessed_at FROM gsd_assessments \
         WHERE workspace = ?1 AND milestone_id = ?2 AND completed_slice_id = ?3",
        params![workspace, assessment.milestone, assessment.completed_slice],
    )?;
    db.execute(
        "INSERT INTO gsd_assessments (workspace, milestone_id, completed_slice_id, verdict, assessment, \
         slice_changes_json, assessed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
         ON CONFLICT (workspace, milestone_id, completed_slice_id) DO UPDATE SET verdict = excluded.verdict, \
         assessment = excluded.assessment, slice_changes_json = excluded.slice_changes_json, \
         assessed_at = excluded.assessed_at",
        params![
            workspace,
            assessment.milestone,
            assessment.completed_slice,
            assessment.verdict,
            assessment.assessment,
            assessment.slice_changes,
            now,
        ],
    )?;
    Ok(known.is_none())
}

/// Reason for replanning a slice.
#[derive(Debug)]
pub(crate) struct Replan<'a> {
    pub milestone: &'a MilestoneId,
    pub slice: &'a SliceId,
    pub blocker_task: &'a TaskId,
    pub blocker_description: &'a str,
    pub what_changed: &'a str,
}

/// Stores a replanning record, replacing an earlier one. `true` if there was none.
pub(crate) fn replan(
    db: &Db<'_>,
    workspace: &str,
    replan: &Replan<'_>,
    now: Timestamp,
) -> Result<bool, DbError> {
    let known = db.query_row(
        "SELECT replanned_at FROM gsd_replans \
         WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3 AND blocker_task_id = ?4",
        params![workspace, replan.milestone, replan.slice, replan.blocker_task],
    )?;
    db.execute(
        "INSERT INTO gsd_replans (workspace, milestone_id, slice_id, blocker_task_id, blocker_description, \
         what_changed, replanned_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
         ON CONFLICT (workspace, milestone_id, slice_id, blocker_task_id) DO UPDATE SET \
         blocker_description = excluded.blocker_description, what_changed = excluded.what_changed, \
         replanned_at = excluded.replanned_at",
        params![
            workspace,
            replan.milestone,
            replan.slice,
            replan.blocker_task,
            replan.blocker_description,
            replan.what_changed,
            now,
        ],
    )?;
    Ok(known.is_none())
}
