//! Milestones.

use serde_json::Value as Json;
use tollgate_sdk::{Db, DbError, Row, Timestamp, params};

use super::{Closed, Closing, Reopen, Result, change_one, in_pages, list};
use crate::guard::Validation;
use crate::model::{MilestoneId, MilestoneStatus, Verdict};

/// Planned fields of a milestone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Plan {
    pub title: String,
    pub vision: String,
    pub depends_on: Vec<MilestoneId>,
    pub success_criteria: Vec<String>,
    pub key_risks: Vec<String>,
    pub definition_of_done: Vec<String>,
}

/// A milestone.
#[derive(Debug, Clone)]
pub(crate) struct Milestone {
    pub id: MilestoneId,
    pub status: MilestoneStatus,
    pub plan: Plan,
    pub summary: Option<Json>,
    pub closed: Option<Closed>,
    pub reopen: Option<Reopen>,
    pub validation: Validation,
}

/// A milestone without its large fields.
#[derive(Debug, Clone)]
pub(crate) struct MilestoneHead {
    pub id: MilestoneId,
    pub status: MilestoneStatus,
    pub title: String,
    pub depends_on: Vec<MilestoneId>,
    pub reopen: Option<Reopen>,
    pub validation: Validation,
}

const HEAD_COLUMNS: &str =
    "id, status, title, depends_on_json, reopen_json, changed_event, verdict, validation_event";

impl TryFrom<Row> for MilestoneHead {
    type Error = DbError;

    fn try_from(row: Row) -> Result<MilestoneHead> {
        Ok(MilestoneHead {
            id: row.get(0)?,
            status: row.get(1)?,
            title: row.get(2)?,
            depends_on: depends_on(&row, 3)?,
            reopen: reopen(&row, 4)?,
            validation: validation(&row, 5)?,
        })
    }
}

const COLUMNS: &str = "id, status, title, vision, depends_on_json, success_criteria_json, key_risks_json, \
    definition_of_done_json, summary_json, closed_by, closed_hash, reopen_json, changed_event, verdict, validation_event";

impl TryFrom<Row> for Milestone {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Milestone> {
        Ok(Milestone {
            id: row.get(0)?,
            status: row.get(1)?,
            plan: Plan {
                title: row.get(2)?,
                vision: row.get(3)?,
                depends_on: depends_on(&row, 4)?,
                success_criteria: row.json(5)?,
                key_risks: row.json(6)?,
                definition_of_done: row.json(7)?,
            },
            summary: row.get(8)?,
            closed: closed(&row, 9)?,
            reopen: reopen(&row, 11)?,
            validation: validation(&row, 12)?,
        })
    }
}

fn depends_on(row: &Row, column: usize) -> Result<Vec<MilestoneId>> {
    let ids: Vec<String> = row.json(column)?;
    Ok(ids.iter().filter_map(|id| MilestoneId::parse(id)).collect())
}

/// Reads last change, verdict and event of the verdict from three columns.
fn validation(row: &Row, column: usize) -> Result<Validation> {
    let (verdict, at): (Option<Verdict>, Option<i64>) = (row.get(column + 1)?, row.get(column + 2)?);
    Ok(Validation {
        changed: row.get(column)?,
        verdict: verdict.zip(at),
    })
}

/// Reads actor and hash of a closing from two columns.
pub(super) fn closed(row: &Row, column: usize) -> Result<Option<Closed>> {
    let (by, hash): (Option<String>, Option<String>) = (row.get(column)?, row.get(column + 1)?);
    Ok(by.zip(hash).map(|(by, hash)| Closed { by, hash }))
}

/// Reads a reopening from a nullable column.
pub(super) fn reopen(row: &Row, column: usize) -> Result<Option<Reopen>> {
    match row.get::<Option<String>>(column)? {
        Some(_) => row.json(column).map(Some),
        None => Ok(None),
    }
}

/// Reads a milestone.
pub(crate) fn get(db: &Db<'_>, workspace: &str, id: &MilestoneId) -> Result<Option<Milestone>> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM gsd_milestones WHERE workspace = ?1 AND id = ?2"),
        params![workspace, id],
    )
}

/// Every milestone of a workspace, by number, without large fields.
pub(crate) fn heads(db: &Db<'_>, workspace: &str) -> Result<Vec<MilestoneHead>> {
    let sql = format!(
        "SELECT {HEAD_COLUMNS} FROM gsd_milestones WHERE workspace = ?1 AND ordinal > ?2 ORDER BY ordinal LIMIT ?3"
    );
    in_pages(
        100,
        |head: &MilestoneHead| head.id.ordinal(),
        |after, most| db.query_as(&sql, params![workspace, after, most]),
    )
}

/// Stores a new milestone, or the new plan of an existing one.
pub(crate) fn plan(
    db: &Db<'_>,
    workspace: &str,
    id: &MilestoneId,
    plan: &Plan,
    now: Timestamp,
) -> Result<()> {
    db.execute(
        "INSERT INTO gsd_milestones (workspace, id, ordinal, title, vision, status, depends_on_json, \
         success_criteria_json, key_risks_json, definition_of_done_json, changed_event, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, 'active', ?6, ?7, ?8, ?9, 0, ?10) \
         ON CONFLICT (workspace, id) DO UPDATE SET title = excluded.title, vision = excluded.vision, \
         depends_on_json = excluded.depends_on_json, success_criteria_json = excluded.success_criteria_json, \
         key_risks_json = excluded.key_risks_json, definition_of_done_json = excluded.definition_of_done_json",
        params![
            workspace,
            id,
            id.ordinal(),
            plan.title,
            plan.vision,
            list(&plan.depends_on),
            list(&plan.success_criteria),
            list(&plan.key_risks),
            list(&plan.definition_of_done),
            now,
        ],
    )?;
    Ok(())
}

/// Parks or unparks a milestone, unless it is complete.
pub(crate) fn set_parked(db: &Db<'_>, workspace: &str, id: &MilestoneId, parked: bool) -> Result<()> {
    let status = if parked {
        MilestoneStatus::Parked
    } else {
        MilestoneStatus::Active
    };
    db.execute(
        "UPDATE gsd_milestones SET status = ?3 WHERE workspace = ?1 AND id = ?2 AND status <> 'complete'",
        params![workspace, id, status],
    )?;
    Ok(())
}

/// Completes an active milestone. Fails if it is no longer active.
pub(crate) fn complete(db: &Db<'_>, workspace: &str, id: &MilestoneId, closing: &Closing<'_>) -> Result<()> {
    change_one(
        db,
        "UPDATE gsd_milestones SET status = 'complete', summary_json = ?3, closed_by = ?4, closed_hash = ?5, \
         reopen_json = NULL WHERE workspace = ?1 AND id = ?2 AND status = 'active'",
        params![workspace, id, closing.summary, closing.by, closing.hash],
    )
}

/// Makes a complete or parked milestone active again. Fails if it is active.
pub(crate) fn reopen_one(db: &Db<'_>, workspace: &str, id: &MilestoneId, reopen: &Reopen) -> Result<()> {
    change_one(
        db,
        "UPDATE gsd_milestones SET status = 'active', summary_json = NULL, closed_by = NULL, closed_hash = NULL, \
         reopen_json = ?3 WHERE workspace = ?1 AND id = ?2 AND status <> 'active'",
        params![workspace, id, reopen],
    )
}

/// Stores the event of the last change in a milestone.
pub(crate) fn touch(db: &Db<'_>, workspace: &str, id: &MilestoneId, event: i64) -> Result<()> {
    db.execute(
        "UPDATE gsd_milestones SET changed_event = ?3 WHERE workspace = ?1 AND id = ?2",
        params![workspace, id, event],
    )?;
    Ok(())
}

/// Stores the verdict of a validation and its event.
pub(crate) fn validate(
    db: &Db<'_>,
    workspace: &str,
    id: &MilestoneId,
    verdict: Verdict,
    event: i64,
) -> Result<()> {
    db.execute(
        "UPDATE gsd_milestones SET verdict = ?3, validation_event = ?4 WHERE workspace = ?1 AND id = ?2",
        params![workspace, id, verdict, event],
    )?;
    Ok(())
}
