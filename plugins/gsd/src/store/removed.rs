//! Units that were removed and had a file. No pack can delete a file, so the file says that its unit is gone.

use tollgate_kit::from_row;
use tollgate_sdk::{Db, Timestamp, params};

use super::Result;
use crate::model::{MilestoneId, Unit};

/// Removal of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Key of the unit.
    pub unit: String,
    pub title: String,
    pub at: Timestamp,
    pub by: String,
    pub reason: String,
}

const COLUMNS: &str = "unit, title, removed_at, removed_by, reason";

from_row! {
    Removed { unit, title, at, by, reason }
}

/// Stores a removal, replacing an earlier one of the same unit.
pub(crate) fn put(db: &Db<'_>, workspace: &str, milestone: &MilestoneId, removed: &Removed) -> Result<()> {
    db.execute(
        "INSERT INTO gsd_removed (workspace, milestone_id, unit, title, removed_at, removed_by, reason) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (workspace, unit) DO UPDATE SET title = excluded.title, \
         removed_at = excluded.removed_at, removed_by = excluded.removed_by, reason = excluded.reason",
        params![
            workspace,
            milestone,
            removed.unit,
            removed.title,
            removed.at,
            removed.by,
            removed.reason,
        ],
    )?;
    Ok(())
}

/// The removal of a unit, also if a unit with the same key was planned since.
pub(crate) fn get(db: &Db<'_>, workspace: &str, unit: &Unit) -> Result<Option<Removed>> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM gsd_removed WHERE workspace = ?1 AND unit = ?2"),
        params![workspace, unit.to_string()],
    )
}

/// The removals in a milestone, by key.
pub(crate) fn in_milestone(db: &Db<'_>, workspace: &str, milestone: &MilestoneId) -> Result<Vec<Removed>> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM gsd_removed WHERE workspace = ?1 AND milestone_id = ?2 ORDER BY unit"
        ),
        params![workspace, milestone],
    )
}
