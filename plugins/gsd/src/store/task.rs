//! Tasks.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use tollgate_sdk::{Db, DbError, Row, params};

use super::milestone::{closed, reopen};
use super::{Closed, Closing, Reopen, Result, change_one, in_pages, list};
use crate::model::{MilestoneId, SliceId, SlicePath, Status, TaskId, TaskPath};

/// Planned fields of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    pub title: String,
    pub description: String,
    pub estimate: String,
    pub files: Vec<String>,
    pub verify: String,
    pub inputs: Vec<String>,
    pub expected_output: Vec<String>,
}

/// A task without its large fields.
#[derive(Debug, Clone)]
pub(crate) struct TaskHead {
    pub slice: SliceId,
    pub id: TaskId,
    pub title: String,
    pub estimate: String,
    pub status: Status,
    pub started_by: Option<String>,
    pub closed: Option<Closed>,
    pub reopen: Option<Reopen>,
    /// Number of reopenings after a completion.
    pub reopened: u32,
}

/// A task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub head: TaskHead,
    pub plan: Plan,
    pub summary: Option<Json>,
}

/// A task as its slice's plan shows it.
#[derive(Debug, Clone)]
pub(crate) struct PlannedTask {
    pub head: TaskHead,
    pub description: String,
    pub files: Vec<String>,
    pub verify: String,
}

const HEAD_COLUMNS: &str =
    "slice_id, id, title, estimate, status, started_by, closed_by, closed_hash, reopen_json, reopened";
const PLAN_COLUMNS: &str = "description, files_json, verify";
const OTHER_COLUMNS: &str =
    "description, files_json, verify, inputs_json, expected_output_json, summary_json";

impl TryFrom<Row> for TaskHead {
    type Error = DbError;

    fn try_from(row: Row) -> Result<TaskHead> {
        TaskHead::read(&row)
    }
}

impl TaskHead {
    fn read(row: &Row) -> Result<TaskHead> {
        Ok(TaskHead {
            slice: row.get(0)?,
            id: row.get(1)?,
            title: row.get(2)?,
            estimate: row.get(3)?,
            status: row.get(4)?,
            started_by: row.get(5)?,
            closed: closed(row, 6)?,
            reopen: reopen(row, 8)?,
            reopened: row.get(9)?,
        })
    }
}

impl TryFrom<Row> for PlannedTask {
    type Error = DbError;

    fn try_from(row: Row) -> Result<PlannedTask> {
        Ok(PlannedTask {
            head: TaskHead::read(&row)?,
            description: row.get(10)?,
            files: row.json(11)?,
            verify: row.get(12)?,
        })
    }
}

impl TryFrom<Row> for Task {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Task> {
        let head = TaskHead::read(&row)?;
        Ok(Task {
            plan: Plan {
                title: head.title.clone(),
                estimate: head.estimate.clone(),
                description: row.get(10)?,
                files: row.json(11)?,
                verify: row.get(12)?,
                inputs: row.json(13)?,
                expected_output: row.json(14)?,
            },
            head,
            summary: row.get(15)?,
        })
    }
}

/// Reads a task.
pub(crate) fn get(db: &Db<'_>, workspace: &str, at: TaskPath<'_>) -> Result<Option<Task>> {
    db.query_one(
        &format!(
            "SELECT {HEAD_COLUMNS}, {OTHER_COLUMNS} FROM gsd_tasks \
             WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3 AND id = ?4"
        ),
        params![workspace, at.milestone, at.slice, at.task],
    )
}

/// Every task of a slice, by number, without large fields.
pub(crate) fn heads(db: &Db<'_>, workspace: &str, at: SlicePath<'_>) -> Result<Vec<TaskHead>> {
    let sql = format!(
        "SELECT {HEAD_COLUMNS} FROM gsd_tasks WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3 AND ordinal > ?4 \
         ORDER BY ordinal LIMIT ?5"
    );
    in_pages(
        100,
        |head: &TaskHead| head.id.ordinal(),
        |after, most| db.query_as(&sql, params![workspace, at.milestone, at.slice, after, most]),
    )
}

/// Open tasks of a milestone, whatever their slice, at most `limit`.
pub(crate) fn open(
    db: &Db<'_>,
    workspace: &str,
    milestone: &MilestoneId,
    limit: u32,
) -> Result<Vec<TaskHead>> {
    db.query_as(
        &format!(
            "SELECT {HEAD_COLUMNS} FROM gsd_tasks WHERE workspace = ?1 AND milestone_id = ?2 \
             AND status IN ('pending', 'in_progress') ORDER BY slice_id, ordinal LIMIT ?3"
        ),
        params![workspace, milestone, limit],
    )
}

/// Number of tasks and of closed tasks of each slice.
pub(crate) fn counts(
    db: &Db<'_>,
    workspace: &str,
    milestone: &MilestoneId,
) -> Result<BTreeMap<SliceId, (u32, u32)>> {
    db.query(
        "SELECT slice_id, count(id), sum(CASE WHEN status IN ('complete', 'skipped') THEN 1 ELSE 0 END) \
         FROM gsd_tasks WHERE workspace = ?1 AND milestone_id = ?2 GROUP BY slice_id",
        params![workspace, milestone],
    )?
    .iter()
    .map(|row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))
    .collect()
}

/// Number of characters in the plans of a slice's tasks.
pub(crate) fn bulk(db: &Db<'_>, workspace: &str, at: SlicePath<'_>) -> Result<usize> {
    let sum = db.query_row(
        "SELECT coalesce(sum(length(title) + length(description) + length(files_json) + length(verify)), 0) \
         FROM gsd_tasks WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3",
        params![workspace, at.milestone, at.slice],
    )?;
    sum.ok_or(DbError::Internal)?.get(0)
}

/// Every task of a slice, by number, as the slice's plan shows them.
pub(crate) fn planned(db: &Db<'_>, workspace: &str, at: SlicePath<'_>) -> Result<Vec<PlannedTask>> {
    let sql = format!(
        "SELECT {HEAD_COLUMNS}, {PLAN_COLUMNS} FROM gsd_tasks WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3 \
         AND ordinal > ?4 ORDER BY ordinal LIMIT ?5"
    );
    in_pages(
        10,
        |task: &PlannedTask| task.head.id.ordinal(),
        |after, most| db.query_as(&sql, params![workspace, at.milestone, at.slice, after, most]),
    )
}

/// Stores a new task, or the new plan of an existing one.
pub(crate) fn plan(db: &Db<'_>, workspace: &str, at: TaskPath<'_>, plan: &Plan) -> Result<()> {
    db.execute(
        "INSERT INTO gsd_tasks (workspace, milestone_id, slice_id, id, ordinal, title, description, estimate, \
         files_json, verify, inputs_json, expected_output_json, status, reopened) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'pending', 0) \
         ON CONFLICT (workspace, milestone_id, slice_id, id) DO UPDATE SET title = excluded.title, \
         description = excluded.description, estimate = excluded.estimate, files_json = excluded.files_json, \
         verify = excluded.verify, inputs_json = excluded.inputs_json, \
         expected_output_json = excluded.expected_output_json",
        params![
            workspace,
            at.milestone,
            at.slice,
            at.task,
            at.task.ordinal(),
            plan.title,
            plan.description,
            plan.estimate,
            list(&plan.files),
            plan.verify,
            list(&plan.inputs),
            list(&plan.expected_output),
        ],
    )?;
    Ok(())
}

/// Removes an open task.
pub(crate) fn remove(db: &Db<'_>, workspace: &str, at: TaskPath<'_>) -> Result<()> {
    db.execute(
        "DELETE FROM gsd_tasks WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3 AND id = ?4 \
         AND status IN ('pending', 'in_progress')",
        params![workspace, at.milestone, at.slice, at.task],
    )?;
    Ok(())
}

/// Marks an open task as in progress. Fails if it is already closed.
pub(crate) fn start(db: &Db<'_>, workspace: &str, at: TaskPath<'_>, by: &str) -> Result<()> {
    change_one(
        db,
        "UPDATE gsd_tasks SET status = 'in_progress', started_by = ?5 \
         WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3 AND id = ?4 \
         AND status IN ('pending', 'in_progress')",
        params![workspace, at.milestone, at.slice, at.task, by],
    )
}

/// Completes an open task. Fails if it is already closed.
pub(crate) fn complete(db: &Db<'_>, workspace: &str, at: TaskPath<'_>, closing: &Closing<'_>) -> Result<()> {
    change_one(
        db,
        "UPDATE gsd_tasks SET status = 'complete', summary_json = ?5, closed_by = ?6, closed_hash = ?7, \
         reopen_json = NULL WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3 AND id = ?4 \
         AND status IN ('pending', 'in_progress')",
        params![
            workspace,
            at.milestone,
            at.slice,
            at.task,
            closing.summary,
            closing.by,
            closing.hash
        ],
    )
}

/// Skips every open task of a slice.
pub(crate) fn skip_open(
    db: &Db<'_>,
    workspace: &str,
    at: SlicePath<'_>,
    closing: &Closing<'_>,
) -> Result<()> {
    db.execute(
        "UPDATE gsd_tasks SET status = 'skipped', closed_by = ?4, closed_hash = ?5, reopen_json = NULL \
         WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3 AND status IN ('pending', 'in_progress')",
        params![workspace, at.milestone, at.slice, closing.by, closing.hash],
    )?;
    Ok(())
}

/// Makes a closed task pending again. Fails if it is open.
pub(crate) fn reopen_one(db: &Db<'_>, workspace: &str, at: TaskPath<'_>, reopen: &Reopen) -> Result<()> {
    change_one(
        db,
        "UPDATE gsd_tasks SET status = 'pending', started_by = NULL, summary_json = NULL, closed_by = NULL, \
         closed_hash = NULL, reopen_json = ?5, reopened = reopened + CASE status WHEN 'complete' THEN 1 ELSE 0 END \
         WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3 AND id = ?4 AND status IN ('complete', 'skipped')",
        params![workspace, at.milestone, at.slice, at.task, reopen],
    )
}

/// Makes every task of a slice pending.
pub(crate) fn reopen_all(db: &Db<'_>, workspace: &str, at: SlicePath<'_>, reopen: &Reopen) -> Result<()> {
    db.execute(
        "UPDATE gsd_tasks SET status = 'pending', started_by = NULL, summary_json = NULL, closed_by = NULL, \
         closed_hash = NULL, reopen_json = ?4, reopened = reopened + CASE status WHEN 'complete' THEN 1 ELSE 0 END \
         WHERE workspace = ?1 AND milestone_id = ?2 AND slice_id = ?3",
        params![workspace, at.milestone, at.slice, reopen],
    )?;
    Ok(())
}
