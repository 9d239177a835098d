//! Submissions, accepted or not.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::to_json;
use crate::entity;
use crate::import::IMPORT_NOTE;
use crate::model::{AttemptId, Claim, JobId, StepId};

/// A submission for a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Attempt {
    pub attempt_id: AttemptId,
    pub step_id: StepId,
    /// Time of the submission.
    pub at: Timestamp,
    /// Claim of the submission.
    pub model_claim: Claim,
    /// True if the submission was accepted.
    pub accepted: bool,
    /// Commit with the changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_hash: Option<String>,
    /// Token in place of a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_commit_token: Option<String>,
    /// Line for the devlog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devlog_line: Option<String>,
    /// Summary of the work.
    pub summary: String,
    /// Explanation of the verdict.
    pub feedback: String,
    /// Reasons for a rejection.
    #[serde(default)]
    pub rejection_reasons: Vec<String>,
    /// Evidence by key.
    pub evidence: Map<String, Value>,
    /// Commands that gates ran, with their results.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, String>,
    /// Observations that did not cause a rejection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Attempt {
    /// Checks whether a bundle brought the submission, so that no gate was checked here.
    pub(crate) fn is_judged_elsewhere(&self) -> bool {
        self.notes.iter().any(|note| note == IMPORT_NOTE)
    }
}

from_row! {
    Attempt {
        attempt_id, step_id, at, model_claim, accepted, commit_hash, batch_commit_token, devlog_line, summary,
        feedback, rejection_reasons: json, evidence: json, commands: json, notes: json,
    }
}

const COLUMNS: &str = "id, step_id, at, model_claim, accepted, commit_hash, batch_commit_token, devlog_line, summary, \
    feedback, rejection_reasons_json, evidence_json, commands_json, notes_json";

/// Stores a submission.
pub(crate) fn insert(db: &Db<'_>, job: &JobId, attempt: &Attempt) -> Result<(), DbError> {
    entity::of_step(job, attempt.step_id.as_str(), attempt.attempt_id.as_str());
    db.execute(
        "INSERT INTO conductor_attempts (job_id, id, step_id, at, model_claim, accepted, commit_hash, \
         batch_commit_token, devlog_line, summary, feedback, rejection_reasons_json, evidence_json, \
         commands_json, notes_json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        params![
            job,
            attempt.attempt_id,
            attempt.step_id,
            attempt.at,
            attempt.model_claim,
            attempt.accepted,
            attempt.commit_hash,
            attempt.batch_commit_token,
            attempt.devlog_line,
            attempt.summary,
            attempt.feedback,
            to_json(&attempt.rejection_reasons)?,
            to_json(&attempt.evidence)?,
            to_json(&attempt.commands)?,
            to_json(&attempt.notes)?,
        ],
    )?;
    Ok(())
}

/// Latest submissions of a job, oldest first, and whether there are more.
pub(crate) fn latest(
    db: &Db<'_>,
    job: &JobId,
    step: Option<&StepId>,
    limit: u32,
) -> Result<(Vec<Attempt>, bool), DbError> {
    let mut rows: Vec<Attempt> = db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM conductor_attempts WHERE job_id = ?1 AND (?2 IS NULL OR step_id = ?2) \
             ORDER BY number DESC LIMIT ?3"
        ),
        params![job, step, limit.saturating_add(1)],
    )?;
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    rows.reverse();
    Ok((rows, more))
}

/// All submissions of a job, oldest first.
pub(crate) fn all(db: &Db<'_>, job: &JobId) -> Result<Vec<Attempt>, DbError> {
    super::in_pages(|offset, limit| {
        db.query_as(
            &format!(
                "SELECT {COLUMNS} FROM conductor_attempts WHERE job_id = ?1 ORDER BY number LIMIT ?2 OFFSET ?3"
            ),
            params![job, limit, offset],
        )
    })
}

/// Commits that other steps were accepted with, and the steps.
pub(crate) fn commits(db: &Db<'_>, job: &JobId, but: &StepId) -> Result<Vec<(String, String)>, DbError> {
    db.query(
        "SELECT commit_hash, step_id FROM conductor_attempts \
         WHERE job_id = ?1 AND accepted = ?3 AND commit_hash IS NOT NULL AND step_id <> ?2 ORDER BY number",
        params![job, but, true],
    )?
    .iter()
    .map(|row| Ok((row.get(0)?, row.get(1)?)))
    .collect()
}

/// Steps of a job that a bundle brought as accepted.
pub(crate) fn accepted_elsewhere(db: &Db<'_>, job: &JobId) -> Result<BTreeSet<StepId>, DbError> {
    let begin = format!("[\"{IMPORT_NOTE}");
    let length = u32::try_from(begin.chars().count()).unwrap_or(u32::MAX);
    db.query(
        "SELECT DISTINCT step_id FROM conductor_attempts \
         WHERE job_id = ?1 AND accepted = ?2 AND substr(notes_json, 1, ?3) = ?4",
        params![job, true, length, begin],
    )?
    .iter()
    .map(|row| row.get(0))
    .collect()
}

/// Job and step on the same repository that a commit was accepted for before, if there is one.
pub(crate) fn used_elsewhere(
    db: &Db<'_>,
    job: &JobId,
    repo_root: Option<&str>,
    commit: &str,
) -> Result<Option<(String, String)>, DbError> {
    let row = db.query_row(
        "SELECT a.job_id, a.step_id FROM conductor_attempts a JOIN conductor_jobs j ON j.id = a.job_id \
         WHERE j.repo_root = ?1 AND j.id <> ?2 AND a.accepted = ?3 \
         AND substr(lower(a.commit_hash), 1, ?5) = ?4 ORDER BY a.number LIMIT 1",
        params![
            repo_root,
            job,
            true,
            commit.to_lowercase(),
            u32::try_from(commit.len()).unwrap_or(u32::MAX)
        ],
    )?;
    row.map(|row| Ok((row.get(0)?, row.get(1)?))).transpose()
}

/// Latest submission for a step.
pub(crate) fn last(db: &Db<'_>, job: &JobId, step: &StepId) -> Result<Option<Attempt>, DbError> {
    Ok(latest(db, job, Some(step), 1)?.0.pop())
}

/// Notes in the evidence of the accepted submission of a step.
pub(crate) fn notes(db: &Db<'_>, job: &JobId, step: &StepId) -> Result<Option<String>, DbError> {
    let found = last(db, job, step)?.filter(|last| last.accepted);
    let notes = found.and_then(|attempt| Some(attempt.evidence.get("notes")?.as_str()?.trim().to_owned()));
    Ok(notes.filter(|notes| !notes.is_empty()))
}

/// Accepted submissions of a job, oldest first: step, summary and commit.
pub(crate) fn accepted(db: &Db<'_>, job: &JobId) -> Result<Vec<(StepId, String, Option<String>)>, DbError> {
    super::in_pages(|offset, limit| {
        let rows = db.query(
            "SELECT step_id, summary, commit_hash FROM conductor_attempts WHERE job_id = ?1 AND accepted = 1 \
             ORDER BY number LIMIT ?2 OFFSET ?3",
            params![job, limit, offset],
        )?;
        rows.iter()
            .map(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .collect()
    })
}

/// Steps with submissions, including removed steps.
pub(crate) fn steps(db: &Db<'_>, job: &JobId) -> Result<Vec<StepId>, DbError> {
    db.query(
        "SELECT DISTINCT step_id FROM conductor_attempts WHERE job_id = ?1",
        params![job],
    )?
    .iter()
    .map(|row| row.get(0))
    .collect()
}

/// Checks whether a submission belongs to this job.
pub(crate) fn is_of(db: &Db<'_>, job: &JobId, id: &AttemptId) -> Result<bool, DbError> {
    let row = db.query_row(
        "SELECT id FROM conductor_attempts WHERE id = ?1 AND job_id = ?2",
        params![id, job],
    )?;
    Ok(row.is_some())
}

/// Checks whether an id is taken.
pub(crate) fn exists(db: &Db<'_>, id: &AttemptId) -> Result<bool, DbError> {
    let row = db.query_row("SELECT id FROM conductor_attempts WHERE id = ?1", params![id])?;
    Ok(row.is_some())
}
