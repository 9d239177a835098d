//! Slices.

use serde_json::Value as Json;
use tollgate_sdk::{Db, DbError, Row, params};

use super::milestone::{closed, reopen};
use super::{Closed, Closing, Reopen, Result, change_one, in_pages, list};
use crate::model::{MilestoneId, Risk, SliceId, SlicePath, Status};

/// Planned fields of a slice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    pub title: String,
    pub risk: Risk,
    pub depends: Vec<SliceId>,
    pub demo: String,
    pub goal: String,
}

/// A slice.
#[derive(Debug, Clone)]
pub(crate) struct Slice {
    pub id: SliceId,
    pub status: Status,
    pub plan: Plan,
    pub summary: Option<Json>,
    pub closed: Option<Closed>,
    pub reopen: Option<Reopen>,
}

const COLUMNS: &str =
    "id, status, title, risk, depends_json, demo, goal, summary_json, closed_by, closed_hash, reopen_json";

impl TryFrom<Row> for Slice {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Slice> {
        let depends: Vec<String> = row.json(4)?;
        Ok(Slice {
            id: row.get(0)?,
            status: row.get(1)?,
            plan: Plan {
                title: row.get(2)?,
                risk: row.get(3)?,
                depends: depends.iter().filter_map(|id| SliceId::parse(id)).collect(),
                demo: row.get(5)?,
                goal: row.get(6)?,
            },
            summary: row.get(7)?,
            closed: closed(&row, 8)?,
            reopen: reopen(&row, 10)?,
        })
    }
}

/// Reads a slice.
pub(crate) fn get(db: &Db<'_>, workspace: &str, at: SlicePath<'_>) -> Result<Option<Slice>> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM gsd_slices WHERE workspace = ?1 AND milestone_id = ?2 AND id = ?3"),
        params![workspace, at.milestone, at.slice],
    )
}

/// Every slice of a milestone, by number.
pub(crate) fn all(db: &Db<'_>, workspace: &str, milestone: &MilestoneId) -> Result<Vec<Slice>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM gsd_slices WHERE workspace = ?1 AND milestone_id = ?2 AND ordinal > ?3 \
         ORDER BY ordinal LIMIT ?4"
    );
    in_pages(
        20,
        |slice: &Slice| slice.id.ordinal(),
        |after, most| db.query_as(&sql, params![workspace, milestone, after, most]),
    )
}

/// Stores a new slice, or the new plan of an existing one.
pub(crate) fn plan(db: &Db<'_>, workspace: &str, at: SlicePath<'_>, plan: &Plan) -> Result<()> {
    db.execute(
        "INSERT INTO gsd_slices (workspace, milestone_id, id, ordinal, title, risk, depends_json, demo, goal, status) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'pending') \
         ON CONFLICT (workspace, milestone_id, id) DO UPDATE SET title = excluded.title, risk = excluded.risk, \
         depends_json = excluded.depends_json, demo = excluded.demo, goal = excluded.goal",
        params![
            workspace,
            at.milestone,
            at.slice,
            at.slice.ordinal(),
            plan.title,
            plan.risk,
            list(&plan.depends),
            plan.demo,
            plan.goal,
        ],
    )?;
    Ok(())
}

/// Removes a slice without tasks.
pub(crate) fn remove(db: &Db<'_>, workspace: &str, at: SlicePath<'_>) -> Result<()> {
    db.execute(
        "DELETE FROM gsd_slices WHERE workspace = ?1 AND milestone_id = ?2 AND id = ?3",
        params![workspace, at.milestone, at.slice],
    )?;
    Ok(())
}

/// Moves a pending slice to in_progress when its first task starts.
pub(crate) fn begin(db: &Db<'_>, workspace: &str, at: SlicePath<'_>) -> Result<bool> {
    let changed = db.execute(
        "UPDATE gsd_slices SET status = 'in_progress' \
         WHERE workspace = ?1 AND milestone_id = ?2 AND id = ?3 AND status = 'pending'",
        params![workspace, at.milestone, at.slice],
    )?;
    Ok(changed == 1)
}

/// Closes an open slice. Fails if it is already closed.
pub(crate) fn close(
    db: &Db<'_>,
    workspace: &str,
    at: SlicePath<'_>,
    status: Status,
    closing: &Closing<'_>,
) -> Result<()> {
    change_one(
        db,
        "UPDATE gsd_slices SET status = ?4, summary_json = ?5, closed_by = ?6, closed_hash = ?7, reopen_json = NULL \
         WHERE workspace = ?1 AND milestone_id = ?2 AND id = ?3 AND status IN ('pending', 'in_progress')",
        params![
            workspace,
            at.milestone,
            at.slice,
            status,
            closing.summary,
            closing.by,
            closing.hash
        ],
    )
}

/// Moves a closed slice back to in_progress. Fails if it is open.
pub(crate) fn reopen_one(db: &Db<'_>, workspace: &str, at: SlicePath<'_>, reopen: &Reopen) -> Result<()> {
    change_one(
        db,
        "UPDATE gsd_slices SET status = 'in_progress', summary_json = NULL, closed_by = NULL, closed_hash = NULL, \
         reopen_json = ?4 WHERE workspace = ?1 AND milestone_id = ?2 AND id = ?3 AND status IN ('complete', 'skipped')",
        params![workspace, at.milestone, at.slice, reopen],
    )
}
