//! Directories of registered workspaces. Only a tool that runs programs can ask Git for them, so they are kept.

use std::collections::BTreeMap;

use tollgate_sdk::{Db, DbError, params};

/// Maximum number of workspaces whose directories are kept.
pub(crate) const MAX_WORKSPACES: usize = 50;

/// Directory of each workspace, by name.
pub(crate) fn paths(db: &Db<'_>) -> Result<BTreeMap<String, String>, DbError> {
    let rows = db.query(
        "SELECT name, path FROM conductor_workspaces ORDER BY name LIMIT ?1",
        params![u32::try_from(MAX_WORKSPACES).unwrap_or(u32::MAX)],
    )?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// Replaces all directories.
pub(crate) fn replace(db: &Db<'_>, paths: &BTreeMap<String, String>) -> Result<(), DbError> {
    db.execute("DELETE FROM conductor_workspaces", params![])?;
    for (name, path) in paths.iter().take(MAX_WORKSPACES) {
        db.execute(
            "INSERT INTO conductor_workspaces (name, path) VALUES (?1, ?2)",
            params![name, path],
        )?;
    }
    Ok(())
}
