//! Jobs.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, Value, params};

use super::{baseline, gone, to_json};
use crate::entity;
use crate::import::IMPORT_LOG_PREFIX;
use crate::model::{JobId, StepId};
use crate::plan::Plan;
use crate::policy::{Policies, PolicyChanges};
use crate::state::Status;

/// A job without its steps.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Job {
    pub id: JobId,
    /// Title of the job.
    pub title: String,
    /// Goal of the job in one sentence.
    pub goal: String,
    /// Status of the job.
    pub status: Status,
    /// Reason for the pause, failure or archiving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// Workspace of the repository, or a path inside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_root: Option<String>,
    /// Labels of the job.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Policies that differ from the defaults.
    #[serde(default)]
    pub policies: PolicyChanges,
    /// Answers of the interview.
    pub plan: Plan,
    /// Git's state when the current step began, or before the start when the plan was agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// Highest number that a step of the job ever had.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_step: u32,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change to the job or its records.
    pub updated_at: Timestamp,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Git's state when a step began, the baseline of the step's changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Baseline {
    /// Commit of HEAD; `None` before the first commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Uncommitted files with the hash of their content; the hash of a deleted file is empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dirty: BTreeMap<String, String>,
    /// Paths whose changes the index hid from Git.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub flagged: BTreeSet<String>,
    /// Blob of each path that the index held in place of HEAD's; empty for a path that was gone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub staged: BTreeMap<String, String>,
    /// Untracked files that commands of gates wrote. They do not count as changes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub droppings: BTreeSet<String>,
    /// Hash of each of these files as the commands left it. Records of earlier versions have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, String>,
    /// Tracked files that the tests themselves write without changing them, as seen when the job started.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rewritten: BTreeSet<String>,
    /// State when the last step ended whose gates look at changes, if steps without such gates came since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Box<Baseline>>,
    /// State when the last step ended whose gates judge tests, if steps without such gates came since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Box<Baseline>>,
    /// Files that such steps changed as the plan says, with the hash of their content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub planned: BTreeMap<String, String>,
    /// Tests that such steps changed although no text asks for that.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub owing: BTreeSet<String>,
    /// True if `dirty` also has the files that Git does not show. False in records of earlier versions.
    #[serde(default)]
    pub whole: bool,
    /// True if `dirty` also has the tracked files whose bytes are not those of the index. False as above.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// True in the column of a job whose baseline is in pieces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_pieces: bool,
    /// Words of each registered command when the plan was agreed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, Vec<String>>,
    /// Last run of each test command, by its words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tests: BTreeMap<String, Tally>,
    /// States that each test command passed and failed on, by its words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<String, Runs>,
    /// Commit when the job began. Records of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<String>,
    /// Names of the tests in each uncommitted file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub named: BTreeMap<String, Vec<String>>,
}

/// States of the work tree that a test command ran on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Runs {
    /// State of the last run that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<Box<Baseline>>,
    /// State of the last run that failed, if none passed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Box<Baseline>>,
}

/// Numbers of a test run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Tally {
    /// True if the run succeeded.
    pub passed: bool,
    /// True if tests ran and some failed.
    pub failed: bool,
    /// Number of tests, if the output states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Number of tests that were skipped or ignored, if the output states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
}

impl Baseline {
    /// True if Git's state is known, and not only numbers of tests.
    pub(crate) fn is_of_git(&self) -> bool {
        self.whole || self.commit.is_some() || !self.dirty.is_empty()
    }
}

impl Baseline {
    /// Commits of the baseline and of those inside of it.
    pub(crate) fn commits(&self) -> Vec<&str> {
        let runs = self.runs.values();
        let runs = runs.flat_map(|runs| [&runs.passed, &runs.failed]);
        let inner = runs.chain([&self.guard, &self.judged]).flatten();
        let inner = inner.flat_map(|baseline| baseline.commits());
        self.commit.as_deref().into_iter().chain(inner).collect()
    }

    /// Checks whether a file is as commands of gates left it.
    pub(crate) fn is_dropping(&self, path: &str, hash: Option<&String>) -> bool {
        self.droppings.contains(path) && self.dropped.get(path).is_none_or(|left| hash == Some(left))
    }
}

impl Tally {
    /// These numbers after earlier ones: a run that failed may have ended early, so its numbers are no measure.
    pub(crate) fn after(self, before: Option<Tally>) -> Tally {
        match before {
            Some(before) if !self.passed => Tally {
                total: before.total.max(self.total),
                skipped: before.skipped.or(self.skipped),
                ..self
            },
            _ => self,
        }
    }
}

const COLUMNS: &str = "id, title, goal, status, status_reason, repo_root, tags_json, policies_json, plan_json, \
    baseline_json, created_at, updated_at, last_step";

from_row! {
    Job {
        id, title, goal, status, status_reason, repo_root, tags: json, policies: json, plan: json,
        baseline: optional_json, created_at, updated_at, last_step,
    }
}

impl Job {
    /// Counts steps that the job has or had, so that no number is given twice.
    pub(crate) fn count<'s>(&mut self, steps: impl IntoIterator<Item = &'s StepId>) {
        let numbers = steps.into_iter().filter_map(StepId::number);
        let highest = numbers.filter_map(|number| u32::try_from(number).ok()).max();
        self.last_step = self.last_step.max(highest.unwrap_or_default());
    }

    /// Policies in force.
    pub(crate) fn effective(&self) -> Policies {
        self.policies.over(&Policies::default())
    }
}

/// Reads a job by id.
pub(crate) fn get(db: &Db<'_>, id: &JobId) -> Result<Option<Job>, DbError> {
    let found: Option<Job> = db.query_one(
        &format!("SELECT {COLUMNS} FROM conductor_jobs WHERE id = ?1"),
        params![id],
    )?;
    let Some(mut job) = found else {
        return Ok(None);
    };
    job.baseline = baseline::whole(db, id, job.baseline)?;
    Ok(Some(job))
}

/// Checks whether an id is taken, or was.
pub(crate) fn exists(db: &Db<'_>, id: &JobId) -> Result<bool, DbError> {
    let row = db.query_row("SELECT id FROM conductor_jobs WHERE id = ?1", params![id])?;
    Ok(row.is_some() || gone::has(db, id.as_str())?)
}

/// Repository of a job, whose memory it shares; `None` for a job without one.
pub(crate) fn place(db: &Db<'_>, id: &JobId) -> Result<Option<String>, DbError> {
    let row = db.query_row("SELECT repo_root FROM conductor_jobs WHERE id = ?1", params![id])?;
    Ok(row.map(|row| row.get(0)).transpose()?.flatten())
}

/// Other job with the same repository that has a map, the latest first.
pub(crate) fn neighbour_with_map(db: &Db<'_>, id: &JobId) -> Result<Option<JobId>, DbError> {
    let row = db.query_row(
        "SELECT j.id FROM conductor_jobs j WHERE j.id <> ?1 \
         AND j.repo_root = (SELECT repo_root FROM conductor_jobs WHERE id = ?1) \
         AND EXISTS (SELECT 1 FROM conductor_parts p WHERE p.job_id = j.id AND p.kind = 'facts') \
         ORDER BY j.updated_at DESC, j.id LIMIT 1",
        params![id],
    )?;
    row.map(|row| row.get(0)).transpose()
}

/// Tables whose rows belong to a job.
const JOB_TABLES: [&str; 9] = [
    "conductor_steps",
    "conductor_attempts",
    "conductor_contexts",
    "conductor_logs",
    "conductor_batches",
    "conductor_snapshots",
    "conductor_baselines",
    "conductor_parts",
    "conductor_runs",
];

/// Deletes a job with everything that belongs to it alone. The memory of its repository stays.
pub(crate) fn delete(db: &Db<'_>, id: &JobId) -> Result<(), DbError> {
    entity::job(id);
    gone::keep(db, id.as_str())?;
    db.execute(
        "INSERT INTO conductor_gone (id) SELECT id FROM conductor_contexts WHERE job_id = ?1 \
         ON CONFLICT (id) DO NOTHING",
        params![id],
    )?;
    for table in JOB_TABLES {
        db.execute(&format!("DELETE FROM {table} WHERE job_id = ?1"), params![id])?;
    }
    for table in ["conductor_lessons", "conductor_file_notes"] {
        db.execute(&format!("DELETE FROM {table} WHERE place = ?1"), params![id])?;
    }
    db.execute("DELETE FROM conductor_jobs WHERE id = ?1", params![id])?;
    Ok(())
}

/// Stores a new job.
pub(crate) fn insert(db: &Db<'_>, job: &Job) -> Result<(), DbError> {
    entity::job(&job.id);
    db.execute(
        "INSERT INTO conductor_jobs (id, title, goal, status, status_reason, repo_root, tags_json, policies_json, \
         plan_json, baseline_json, created_at, updated_at, last_step) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        &columns(job)?,
    )?;
    baseline::keep(db, &job.id, job.baseline.as_ref())
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
        job.baseline.as_ref().map(baseline::column).transpose()?,
        job.created_at,
        job.updated_at,
        job.last_step,
    ];
    Ok(values.to_vec())
}

/// Replaces everything but the id of a job whose status is still the one that was read. Returns `false` if the
/// status has changed since.
pub(crate) fn update(db: &Db<'_>, seen: Status, job: &Job) -> Result<bool, DbError> {
    entity::job(&job.id);
    let mut values = columns(job)?;
    values.push(Value::Text(seen.as_str().to_owned()));
    let changed = db.execute(
        "UPDATE conductor_jobs SET title = ?2, goal = ?3, status = ?4, status_reason = ?5, repo_root = ?6, \
         tags_json = ?7, policies_json = ?8, plan_json = ?9, baseline_json = ?10, created_at = ?11, \
         updated_at = ?12, last_step = ?13 WHERE id = ?1 AND status = ?14",
        &values,
    )?;
    if changed == 1 {
        baseline::keep(db, &job.id, job.baseline.as_ref())?;
    }
    Ok(changed == 1)
}

/// Sets the time of the last change.
pub(crate) fn touch(db: &Db<'_>, id: &JobId, now: Timestamp) -> Result<(), DbError> {
    entity::job(id);
    db.execute(
        "UPDATE conductor_jobs SET updated_at = ?2 WHERE id = ?1",
        params![id, now],
    )?;
    Ok(())
}

/// A job in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct JobLine {
    pub job_id: JobId,
    /// Title of the job.
    pub title: String,
    /// Status of the job.
    pub status: Status,
    /// Number of steps.
    pub steps: u32,
    /// Number of steps that are done.
    pub steps_done: u32,
    /// Labels of the job.
    pub tags: Vec<String>,
    /// True if the job came from a bundle, so that its history was not made here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// Time of the last change to the job or its records.
    pub updated_at: Timestamp,
}

from_row! {
    JobLine {
        job_id, title, status, steps, steps_done, tags: json, updated_at, imported = |imports: u32| imports > 0,
    }
}

/// Lists up to `limit` jobs after the first `offset`, most recently changed first. Archived jobs are listed
/// only when their status is requested.
pub(crate) fn list(
    db: &Db<'_>,
    status: Option<Status>,
    after: Option<(&str, &str)>,
    offset: u32,
    limit: u32,
) -> Result<Vec<JobLine>, DbError> {
    let (time, id) = after.unzip();
    let condition = match status {
        Some(_) => "j.status = ?1",
        None => "j.status <> 'ARCHIVED' AND ?1 IS NULL",
    };
    db.query_as(
        &format!(
            "SELECT j.id, j.title, j.status, \
             (SELECT count(*) FROM conductor_steps s WHERE s.job_id = j.id), \
             (SELECT count(*) FROM conductor_steps s WHERE s.job_id = j.id AND s.status = 'DONE'), \
             j.tags_json, j.updated_at, \
             (SELECT count(*) FROM conductor_logs l WHERE l.job_id = j.id AND l.log_type = 'SYSTEM' \
             AND substr(l.content, 1, ?6) = ?7) FROM conductor_jobs j WHERE {condition} \
             AND (?4 IS NULL OR j.updated_at < ?4 OR (j.updated_at = ?4 AND j.id < ?5)) \
             ORDER BY j.updated_at DESC, j.id DESC LIMIT ?2 OFFSET ?3"
        ),
        params![
            status,
            limit,
            offset,
            time,
            id,
            u32::try_from(IMPORT_LOG_PREFIX.chars().count()).unwrap_or(u32::MAX),
            IMPORT_LOG_PREFIX,
        ],
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::JOB_TABLES;

    #[test]
    fn a_job_is_deleted_from_every_table_that_refers_to_it() {
        let mut tables = BTreeSet::new();
        for migration in crate::PACK.migrations {
            let mut table = "";
            for line in migration.sql.lines() {
                let mut words = line.split_whitespace();
                match (words.next(), words.next(), words.next()) {
                    (Some("CREATE"), Some("TABLE"), Some(name)) => table = name,
                    (Some("DROP"), Some("TABLE"), Some(name)) => {
                        tables.remove(name.trim_end_matches(';'));
                    }
                    _ if line.contains("REFERENCES conductor_jobs") => {
                        tables.insert(table);
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(tables, BTreeSet::from(JOB_TABLES));
    }
}
