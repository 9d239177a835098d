//! Jobs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Db, DbError, Row, Timestamp, Value, params};

use super::{json_column, optional_json, to_json};
use crate::model::JobId;
use crate::plan::Plan;
use crate::policy::{Policies, PolicyChanges};
use crate::state::Status;

/// A job without its steps.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Job {
    /// The job's id.
    pub id: JobId,
    /// What it is called.
    pub title: String,
    /// What is built, in one sentence.
    pub goal: String,
    /// Where it stands.
    pub status: Status,
    /// Why it was paused, failed or archived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// The workspace, or a path in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_root: Option<String>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What differs from the default policies.
    #[serde(default)]
    pub policies: PolicyChanges,
    /// What the interview found out.
    pub plan: Plan,
    /// What Git showed when the current step began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
}

/// What Git showed when a step began, which the step's changes are counted from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Baseline {
    /// HEAD; none before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Files that were not committed, with the hash of their content; empty if they were deleted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dirty: BTreeMap<String, String>,
}

const COLUMNS: &str = "id, title, goal, status, status_reason, repo_root, tags_json, policies_json, plan_json, \
    baseline_json, created_at, updated_at";

impl TryFrom<Row> for Job {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Job, DbError> {
        Ok(Job {
            id: row.get(0)?,
            title: row.get(1)?,
            goal: row.get(2)?,
            status: row.get(3)?,
            status_reason: row.get(4)?,
            repo_root: row.get(5)?,
            tags: json_column(&row, 6)?,
            policies: json_column(&row, 7)?,
            plan: json_column(&row, 8)?,
            baseline: optional_json(&row, 9)?,
            created_at: row.get(10)?,
            updated_at: row.get(11)?,
        })
    }
}

impl Job {
    /// The policies in force.
    pub(crate) fn effective(&self) -> Policies {
        self.policies.over(&Policies::default())
    }
}

/// A job, if it is there.
pub(crate) fn get(db: &Db<'_>, id: &JobId) -> Result<Option<Job>, DbError> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM conductor_jobs WHERE id = ?1"),
        params![id],
    )
}

/// Whether an id is taken.
pub(crate) fn exists(db: &Db<'_>, id: &JobId) -> Result<bool, DbError> {
    let row = db.query_row("SELECT id FROM conductor_jobs WHERE id = ?1", params![id])?;
    Ok(row.is_some())
}

/// Stores a new job.
pub(crate) fn insert(db: &Db<'_>, job: &Job) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO conductor_jobs (id, title, goal, status, status_reason, repo_root, tags_json, policies_json, \
         plan_json, baseline_json, created_at, updated_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        &columns(job)?,
    )?;
    Ok(())
}

fn columns(job: &Job) -> Result<Vec<Value>, DbError> {
    let values: &[Value] = params![
        job.id,
        job.title,
        job.goal,
        job.status,
        job.status_reason,
        job.repo_root,
        to_json(&job.tags)?,
        to_json(&job.policies)?,
        to_json(&job.plan)?,
        job.baseline.as_ref().map(to_json).transpose()?,
        job.created_at,
        job.updated_at,
    ];
    Ok(values.to_vec())
}

/// Replaces everything but the id of a job that is still in the status it was seen in. `false` if it
/// moved meanwhile.
pub(crate) fn update(db: &Db<'_>, seen: Status, job: &Job) -> Result<bool, DbError> {
    let mut values = columns(job)?;
    values.push(Value::Text(seen.as_str().to_owned()));
    let changed = db.execute(
        "UPDATE conductor_jobs SET title = ?2, goal = ?3, status = ?4, status_reason = ?5, repo_root = ?6, \
         tags_json = ?7, policies_json = ?8, plan_json = ?9, baseline_json = ?10, created_at = ?11, \
         updated_at = ?12 WHERE id = ?1 AND status = ?13",
        &values,
    )?;
    Ok(changed == 1)
}

/// Notes that something about a job was recorded.
pub(crate) fn touch(db: &Db<'_>, id: &JobId, now: Timestamp) -> Result<(), DbError> {
    db.execute(
        "UPDATE conductor_jobs SET updated_at = ?2 WHERE id = ?1",
        params![id, now],
    )?;
    Ok(())
}

/// A job in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct JobLine {
    /// The job's id.
    pub job_id: JobId,
    /// What it is called.
    pub title: String,
    /// Where it stands.
    pub status: Status,
    /// How many steps it has.
    pub steps: u32,
    /// How many of them are done.
    pub steps_done: u32,
    /// Its tags.
    pub tags: Vec<String>,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
}

impl TryFrom<Row> for JobLine {
    type Error = DbError;

    fn try_from(row: Row) -> Result<JobLine, DbError> {
        Ok(JobLine {
            job_id: row.get(0)?,
            title: row.get(1)?,
            status: row.get(2)?,
            steps: row.get(3)?,
            steps_done: row.get(4)?,
            tags: json_column(&row, 5)?,
            updated_at: row.get(6)?,
        })
    }
}

/// Up to `limit` jobs, the latest changed first, after the first `offset` of them. Archived ones come
/// only when asked for by status.
pub(crate) fn list(
    db: &Db<'_>,
    status: Option<Status>,
    offset: u32,
    limit: u32,
) -> Result<Vec<JobLine>, DbError> {
    let condition = match status {
        Some(_) => "j.status = ?1",
        None => "j.status <> 'ARCHIVED' AND ?1 IS NULL",
    };
    db.query_as(
        &format!(
            "SELECT j.id, j.title, j.status, \
             (SELECT count(*) FROM conductor_steps s WHERE s.job_id = j.id), \
             (SELECT count(*) FROM conductor_steps s WHERE s.job_id = j.id AND s.status = 'DONE'), \
             j.tags_json, j.updated_at FROM conductor_jobs j WHERE {condition} \
             ORDER BY j.updated_at DESC, j.id DESC LIMIT ?2 OFFSET ?3"
        ),
        params![status, limit, offset],
    )
}
