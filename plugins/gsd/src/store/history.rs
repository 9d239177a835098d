//! Roadmap assessments and replanning records. Each cause has one record; sending it again replaces it.

use serde_json::Value as Json;
use tollgate_kit::from_row;
use tollgate_sdk::{Db, Timestamp, params};

use super::Result;
use crate::model::{MilestoneId, SliceId, SlicePath, TaskId, TaskPath, Unit};

/// Assessment after a completed slice.
#[derive(Debug)]
pub(crate) struct Assessment<'a> {
    pub completed_slice: SlicePath<'a>,
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
) -> Result<bool> {
    let SlicePath { milestone, slice } = assessment.completed_slice;
    let is_first = assessments(db, workspace, milestone, Some(slice))?.is_empty();
    db.execute(
        "INSERT INTO gsd_assessments (workspace, milestone_id, completed_slice_id, verdict, assessment, \
         slice_changes_json, assessed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
         ON CONFLICT (workspace, milestone_id, completed_slice_id) DO UPDATE SET verdict = excluded.verdict, \
         assessment = excluded.assessment, slice_changes_json = excluded.slice_changes_json, \
         assessed_at = excluded.assessed_at",
        params![
            workspace,
            milestone,
            slice,
            assessment.verdict,
            assessment.assessment,
            assessment.slice_changes,
            now,
        ],
    )?;
    Ok(is_first)
}

/// Reason for replanning a slice.
#[derive(Debug)]
pub(crate) struct Replan<'a> {
    pub blocker: TaskPath<'a>,
    pub blocker_description: &'a str,
    pub what_changed: &'a str,
}

/// Stores a replanning record, replacing an earlier one.
pub(crate) fn replan(db: &Db<'_>, workspace: &str, replan: &Replan<'_>, now: Timestamp) -> Result<()> {
    let TaskPath {
        milestone,
        slice,
        task,
    } = replan.blocker;
    db.execute(
        "INSERT INTO gsd_replans (workspace, milestone_id, slice_id, blocker_task_id, blocker_description, \
         what_changed, replanned_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
         ON CONFLICT (workspace, milestone_id, slice_id, blocker_task_id) DO UPDATE SET \
         blocker_description = excluded.blocker_description, what_changed = excluded.what_changed, \
         replanned_at = excluded.replanned_at",
        params![
            workspace,
            milestone,
            slice,
            task,
            replan.blocker_description,
            replan.what_changed,
            now,
        ],
    )?;
    Ok(())
}

/// A stored assessment.
#[derive(Debug)]
pub(crate) struct Assessed {
    pub completed_slice: SliceId,
    pub verdict: String,
    pub assessment: String,
    pub slice_changes: Json,
    pub at: Timestamp,
}

from_row! {
    Assessed { completed_slice, verdict, assessment, slice_changes: json, at }
}

/// Assessments of a milestone, or the one after one of its slices, in the order of the slices.
pub(crate) fn assessments(
    db: &Db<'_>,
    workspace: &str,
    milestone: &MilestoneId,
    slice: Option<&SliceId>,
) -> Result<Vec<Assessed>> {
    db.query_as(
        "SELECT completed_slice_id, verdict, assessment, slice_changes_json, assessed_at FROM gsd_assessments \
         WHERE workspace = ?1 AND milestone_id = ?2 AND (?3 IS NULL OR completed_slice_id = ?3) \
         ORDER BY completed_slice_id LIMIT 100",
        params![workspace, milestone, slice.map(SliceId::as_str)],
    )
}

/// A stored replanning record.
#[derive(Debug)]
pub(crate) struct Replanned {
    pub slice: SliceId,
    pub blocker_task: TaskId,
    pub blocker_description: String,
    pub what_changed: String,
    pub at: Timestamp,
}

from_row! {
    Replanned { slice, blocker_task, blocker_description, what_changed, at }
}

/// Replanning records of a milestone, a slice, or a task that found a blocker.
pub(crate) fn replans(db: &Db<'_>, workspace: &str, unit: &Unit) -> Result<Vec<Replanned>> {
    db.query_as(
        "SELECT slice_id, blocker_task_id, blocker_description, what_changed, replanned_at FROM gsd_replans \
         WHERE workspace = ?1 AND milestone_id = ?2 AND (?3 IS NULL OR slice_id = ?3) \
         AND (?4 IS NULL OR blocker_task_id = ?4) ORDER BY slice_id, blocker_task_id LIMIT 100",
        params![
            workspace,
            unit.milestone,
            unit.slice.as_ref().map(SliceId::as_str),
            unit.task.as_ref().map(TaskId::as_str),
        ],
    )
}
