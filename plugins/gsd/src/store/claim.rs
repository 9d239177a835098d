//! Claims on units.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_kit::from_row;
use tollgate_sdk::{Db, Timestamp, params};

use super::Result;
use crate::model::Unit;

/// Claim on a unit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Claim {
    /// Name of the workspace.
    pub workspace: String,
    /// Key of the unit, for example M01/S01 or M01/S01/T01.
    pub unit: String,
    /// Name of the owner.
    pub owner: String,
    /// Time of the claim.
    pub claimed_at: Timestamp,
    /// Expiry of the claim, absent if it lasts until released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

const COLUMNS: &str = "workspace, unit, owner, claimed_at, expires_at";

from_row! {
    Claim { workspace, unit, owner, claimed_at, expires_at }
}

/// The unexpired claim on exactly this unit.
pub(crate) fn get(db: &Db<'_>, workspace: &str, unit: &Unit, now: Timestamp) -> Result<Option<Claim>> {
    db.query_one(
        &format!(
            "SELECT {COLUMNS} FROM gsd_claims WHERE workspace = ?1 AND unit = ?2 \
             AND (expires_at IS NULL OR expires_at > ?3)"
        ),
        params![workspace, unit.to_string(), now],
    )
}

/// The unexpired claim that covers a unit: its own, or that on its slice. With the claimed unit.
pub(crate) fn covering(
    db: &Db<'_>,
    workspace: &str,
    unit: &Unit,
    now: Timestamp,
) -> Result<Option<(Unit, Claim)>> {
    for unit in [Some(unit.clone()), unit.parent_slice()].into_iter().flatten() {
        if let Some(claim) = get(db, workspace, &unit, now)? {
            return Ok(Some((unit, claim)));
        }
    }
    Ok(None)
}

/// Unexpired claims on units whose key starts with a prefix, of one workspace or of all, after a workspace and
/// key.
pub(crate) fn list(
    db: &Db<'_>,
    workspace: Option<&str>,
    prefix: &str,
    now: Timestamp,
    after: (&str, &str),
    limit: u32,
) -> Result<Vec<Claim>> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM gsd_claims WHERE (?1 IS NULL OR workspace = ?1) AND substr(unit, 1, ?2) = ?3 \
             AND (expires_at IS NULL OR expires_at > ?4) AND (workspace, unit) > (?5, ?6) \
             ORDER BY workspace, unit LIMIT ?7"
        ),
        params![
            workspace,
            i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX),
            prefix,
            now,
            after.0,
            after.1,
            limit,
        ],
    )
}

/// Stores a claim, replacing an earlier one.
pub(crate) fn put(db: &Db<'_>, claim: &Claim) -> Result<()> {
    db.execute(
        "INSERT INTO gsd_claims (workspace, unit, owner, claimed_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (workspace, unit) DO UPDATE SET owner = excluded.owner, claimed_at = excluded.claimed_at, \
         expires_at = excluded.expires_at",
        params![claim.workspace, claim.unit, claim.owner, claim.claimed_at, claim.expires_at],
    )?;
    Ok(())
}

/// Releases a unit. `false` if it was not claimed.
pub(crate) fn release(db: &Db<'_>, workspace: &str, unit: &Unit) -> Result<bool> {
    let changed = db.execute(
        "DELETE FROM gsd_claims WHERE workspace = ?1 AND unit = ?2",
        params![workspace, unit.to_string()],
    )?;
    Ok(changed == 1)
}

/// Removes the expired claims of a workspace. `false` if there are none.
pub(crate) fn purge(db: &Db<'_>, workspace: &str, now: Timestamp) -> Result<bool> {
    let removed = db.execute(
        "DELETE FROM gsd_claims WHERE workspace = ?1 AND expires_at <= ?2",
        params![workspace, now],
    )?;
    Ok(removed > 0)
}

/// Releases a slice and every task in it.
pub(crate) fn release_within(db: &Db<'_>, workspace: &str, slice: &str) -> Result<()> {
    let below = format!("{slice}/");
    db.execute(
        "DELETE FROM gsd_claims WHERE workspace = ?1 AND (unit = ?2 OR substr(unit, 1, ?3) = ?4)",
        params![
            workspace,
            slice,
            i64::try_from(below.len()).unwrap_or(i64::MAX),
            below,
        ],
    )?;
    Ok(())
}
