//! Snapshots of jobs' repositories.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::to_json;
use crate::entity;
use crate::model::{JobId, SnapshotId};

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SnapshotRecord {
    pub snapshot_id: SnapshotId,
    /// Number of the snapshot; the job's first is 1.
    pub sequence: u32,
    /// Repository that was read.
    pub repo_root: String,
    /// Time of the snapshot.
    pub taken_at: Timestamp,
    /// Number of files.
    pub files: u32,
    /// Size of the files in bytes.
    pub bytes: i64,
    /// Changes since the previous snapshot; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
    /// Files to read first: manifests and introductions.
    pub key_files: Vec<String>,
    /// Note of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Directories with their numbers of files.
    pub file_tree: String,
}

/// Numbers of changed files between two snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Changes {
    /// Number of added files.
    pub added: usize,
    /// Number of removed files.
    pub removed: usize,
    /// Number of files with other content.
    pub modified: usize,
    /// Number of files that were renamed without a change of content.
    pub renamed: usize,
    /// Number of unchanged files.
    pub unchanged: usize,
}

const COLUMNS: &str =
    "id, sequence, repo_root, taken_at, files, bytes, changes_json, key_files_json, notes, file_tree";

from_row! {
    SnapshotRecord {
        snapshot_id, sequence, repo_root, taken_at, files, bytes, changes: optional_json, key_files: json, notes,
        file_tree,
    }
}

/// Stores a snapshot.
pub(crate) fn insert(db: &Db<'_>, job: &JobId, taken: &SnapshotRecord) -> Result<(), DbError> {
    entity::part(job, taken.snapshot_id.as_str());
    db.execute(
        "INSERT INTO conductor_snapshots (job_id, id, sequence, repo_root, taken_at, files, bytes, changes_json, \
         key_files_json, notes, file_tree) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            job,
            taken.snapshot_id,
            taken.sequence,
            taken.repo_root,
            taken.taken_at,
            taken.files,
            taken.bytes,
            taken.changes.as_ref().map(to_json).transpose()?,
            to_json(&taken.key_files)?,
            taken.notes,
            taken.file_tree,
        ],
    )?;
    Ok(())
}

/// Latest snapshot of a job.
pub(crate) fn latest(db: &Db<'_>, job: &JobId) -> Result<Option<SnapshotRecord>, DbError> {
    db.query_one(
        &format!(
            "SELECT {COLUMNS} FROM conductor_snapshots WHERE job_id = ?1 ORDER BY sequence DESC LIMIT 1"
        ),
        params![job],
    )
}

/// All snapshots of a job, oldest first.
pub(crate) fn all(db: &Db<'_>, job: &JobId) -> Result<Vec<SnapshotRecord>, DbError> {
    super::in_pages(|offset, limit| {
        db.query_as(
            &format!(
                "SELECT {COLUMNS} FROM conductor_snapshots WHERE job_id = ?1 ORDER BY sequence LIMIT ?2 OFFSET ?3"
            ),
            params![job, limit, offset],
        )
    })
}

/// Checks whether an id is taken.
pub(crate) fn exists(db: &Db<'_>, id: &SnapshotId) -> Result<bool, DbError> {
    let row = db.query_row("SELECT id FROM conductor_snapshots WHERE id = ?1", params![id])?;
    Ok(row.is_some())
}
