//! Context blocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::{gone, to_json};
use crate::entity;
use crate::model::{BlockType, ContextId, JobId};

/// A block of notes, research, code or output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Block {
    pub context_id: ContextId,
    /// Kind of content.
    pub block_type: BlockType,
    /// Labels of the block.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Time of the last change after the plan was agreed, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<Timestamp>,
    /// Text of the block.
    pub content: String,
}

from_row! {
    Block { context_id, block_type, tags: json, created_at, updated_at, content, changed_at }
}

const COLUMNS: &str = "id, block_type, tags_json, created_at, updated_at, content, changed_at";

/// Stores a new block.
pub(crate) fn insert(db: &Db<'_>, job: &JobId, block: &Block) -> Result<(), DbError> {
    entity::part(job, block.context_id.as_str());
    db.execute(
        "INSERT INTO conductor_contexts (job_id, id, block_type, tags_json, created_at, updated_at, content, changed_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            job,
            block.context_id,
            block.block_type,
            to_json(&block.tags)?,
            block.created_at,
            block.updated_at,
            block.content,
            block.changed_at,
        ],
    )?;
    Ok(())
}

/// Replaces a block.
pub(crate) fn update(db: &Db<'_>, job: &JobId, block: &Block) -> Result<(), DbError> {
    entity::part(job, block.context_id.as_str());
    db.execute(
        "UPDATE conductor_contexts SET block_type = ?3, tags_json = ?4, updated_at = ?5, content = ?6, \
         changed_at = ?7 WHERE job_id = ?1 AND id = ?2",
        params![
            job,
            block.context_id,
            block.block_type,
            to_json(&block.tags)?,
            block.updated_at,
            block.content,
            block.changed_at,
        ],
    )?;
    Ok(())
}

/// Takes all blocks of a job as they are for those of its agreed plan.
pub(crate) fn agree(db: &Db<'_>, job: &JobId) -> Result<(), DbError> {
    db.execute(
        "UPDATE conductor_contexts SET changed_at = NULL WHERE job_id = ?1 AND changed_at IS NOT NULL",
        params![job],
    )?;
    Ok(())
}

/// Removes a block, whose id is not given again.
pub(crate) fn delete(db: &Db<'_>, job: &JobId, id: &ContextId) -> Result<(), DbError> {
    entity::part(job, id.as_str());
    gone::keep(db, id.as_str())?;
    db.execute(
        "DELETE FROM conductor_contexts WHERE job_id = ?1 AND id = ?2",
        params![job, id],
    )?;
    Ok(())
}

/// A block of a job.
pub(crate) fn get(db: &Db<'_>, job: &JobId, id: &str) -> Result<Option<Block>, DbError> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM conductor_contexts WHERE job_id = ?1 AND id = ?2"),
        params![job, id],
    )
}

/// Ids and types of a job's blocks, oldest first.
pub(crate) fn ids(db: &Db<'_>, job: &JobId) -> Result<Vec<(String, BlockType)>, DbError> {
    db.query(
        "SELECT id, block_type FROM conductor_contexts WHERE job_id = ?1 ORDER BY number",
        params![job],
    )?
    .iter()
    .map(|row| Ok((row.get(0)?, row.get(1)?)))
    .collect()
}

/// Visits the blocks of a job one after the other, oldest first, because each may be large.
pub(crate) fn each(db: &Db<'_>, job: &JobId, mut visit: impl FnMut(Block)) -> Result<(), DbError> {
    for (id, _) in ids(db, job)? {
        if let Some(block) = get(db, job, &id)? {
            visit(block);
        }
    }
    Ok(())
}

/// Blocks of one type, oldest first, at most `limit`.
pub(crate) fn of_type(db: &Db<'_>, job: &JobId, kind: BlockType, limit: u32) -> Result<Vec<Block>, DbError> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM conductor_contexts WHERE job_id = ?1 AND block_type = ?2 ORDER BY number LIMIT ?3"
        ),
        params![job, kind, limit],
    )
}

/// Total size of a job's blocks, counted in characters, so at least that many bytes.
pub(crate) fn total(db: &Db<'_>, job: &JobId) -> Result<usize, DbError> {
    let row = db.query_row(
        "SELECT coalesce(sum(length(content)), 0) FROM conductor_contexts WHERE job_id = ?1",
        params![job],
    )?;
    row.map_or(Ok(0), |row| row.get(0))
}

/// Checks whether an id is taken, or was.
pub(crate) fn exists(db: &Db<'_>, id: &ContextId) -> Result<bool, DbError> {
    let row = db.query_row("SELECT id FROM conductor_contexts WHERE id = ?1", params![id])?;
    Ok(row.is_some() || gone::has(db, id.as_str())?)
}
