//! Logs of jobs: devlog, decisions and other entries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_kit::from_row;
use tollgate_sdk::{Cx, Db, DbError, Timestamp, params};

use crate::entity;
use crate::model::{JobId, LogId, LogType, StepId};

/// An entry of a job's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LogEntry {
    pub log_id: LogId,
    /// Type of the entry.
    pub log_type: LogType,
    /// Step that the entry is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    /// Commit that the entry is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_hash: Option<String>,
    /// Time of the entry.
    pub at: Timestamp,
    /// Text of the entry.
    pub content: String,
}

from_row! {
    LogEntry { log_id, log_type, step_id, commit_hash, at, content }
}

/// Appends an entry with a new id.
pub(crate) fn append(
    cx: &Cx<'_>,
    db: &Db<'_>,
    job: &JobId,
    log_type: LogType,
    step: Option<&StepId>,
    commit: Option<&str>,
    content: &str,
) -> Result<LogEntry, DbError> {
    let entry = LogEntry {
        log_id: super::short_id(cx, |id| exists(db, id))?,
        log_type,
        step_id: step.cloned(),
        commit_hash: commit.map(str::to_owned),
        at: cx.now(),
        content: content.trim().to_owned(),
    };
    insert(db, job, &entry)?;
    Ok(entry)
}

/// Stores an entry.
pub(crate) fn insert(db: &Db<'_>, job: &JobId, entry: &LogEntry) -> Result<(), DbError> {
    entity::part(job, entry.log_id.as_str());
    db.execute(
        "INSERT INTO conductor_logs (job_id, id, log_type, step_id, commit_hash, at, content) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            job,
            entry.log_id,
            entry.log_type,
            entry.step_id,
            entry.commit_hash,
            entry.at,
            entry.content,
        ],
    )?;
    Ok(())
}

/// Entries to read. Absent fields do not restrict.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Filter<'a> {
    pub log_type: Option<LogType>,
    pub step: Option<&'a StepId>,
    /// Only entries older than this one.
    pub before: Option<&'a LogId>,
}

impl Filter<'_> {
    /// All entries of one type.
    pub(crate) fn of_type(log_type: LogType) -> Filter<'static> {
        Filter {
            log_type: Some(log_type),
            ..Filter::default()
        }
    }
}

/// Latest entries of a job, oldest first, and whether there are more.
pub(crate) fn latest(
    db: &Db<'_>,
    job: &JobId,
    of: Filter<'_>,
    limit: u32,
) -> Result<(Vec<LogEntry>, bool), DbError> {
    let mut rows: Vec<LogEntry> = db.query_as(
        "SELECT id, log_type, step_id, commit_hash, at, content FROM conductor_logs \
         WHERE job_id = ?1 AND (?2 IS NULL OR log_type = ?2) AND (?3 IS NULL OR step_id = ?3) \
         AND (?4 IS NULL OR number < (SELECT number FROM conductor_logs WHERE id = ?4)) \
         ORDER BY number DESC LIMIT ?5",
        params![job, of.log_type, of.step, of.before, limit.saturating_add(1)],
    )?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    rows.reverse();
    Ok((rows, more))
}

/// Latest entries of the pack's own that begin with a text, oldest first.
pub(crate) fn own(db: &Db<'_>, job: &JobId, begin: &str, limit: u32) -> Result<Vec<String>, DbError> {
    let length = u32::try_from(begin.chars().count()).unwrap_or(u32::MAX);
    let rows = db.query(
        "SELECT content FROM conductor_logs WHERE job_id = ?1 AND log_type = ?2 AND substr(content, 1, ?3) = ?4 \
         ORDER BY number DESC LIMIT ?5",
        params![job, LogType::System, length, begin, limit],
    )?;
    rows.iter().rev().map(|row| row.get(0)).collect()
}

/// All entries of a job, oldest first.
pub(crate) fn all(db: &Db<'_>, job: &JobId) -> Result<Vec<LogEntry>, DbError> {
    super::in_pages(|offset, limit| {
        db.query_as(
            "SELECT id, log_type, step_id, commit_hash, at, content FROM conductor_logs \
             WHERE job_id = ?1 ORDER BY number LIMIT ?2 OFFSET ?3",
            params![job, limit, offset],
        )
    })
}

/// Checks whether an id is taken.
pub(crate) fn exists(db: &Db<'_>, id: &LogId) -> Result<bool, DbError> {
    let row = db.query_row("SELECT id FROM conductor_logs WHERE id = ?1", params![id])?;
    Ok(row.is_some())
}
