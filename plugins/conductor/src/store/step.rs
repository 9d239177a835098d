//! Steps of jobs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tollgate_sdk::{Db, DbError, Row, Timestamp, params};

use super::to_json;
use crate::entity;
use crate::model::{JobId, StepId, StepStatus};
use crate::step::StepSpec;

/// A step of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub step_id: StepId,
    /// Status of the step.
    pub status: StepStatus,
    /// Number of rejected submissions since the job last started or resumed.
    #[serde(default)]
    pub rejections: u32,
    /// Approval by a person, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Step as the plan describes it.
    #[serde(flatten)]
    pub spec: StepSpec,
    /// Agreed version of the step, from the freeze of the plan or from a later change by a person, if others have
    /// edited its texts since.
    #[serde(skip)]
    pub agreed: Option<Box<StepSpec>>,
}

/// Key of the agreed step in the column of the spec.
const AGREED_KEY: &str = "agreed";

/// A person's approval of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Approval {
    /// Name of the approver, as given.
    pub approved_by: String,
    /// Identity of the approver, if the transport proved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Comment of the approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Time of the approval.
    pub at: Timestamp,
}

impl Step {
    /// A newly planned step.
    pub(crate) fn new(step_id: StepId, spec: StepSpec) -> Step {
        Step {
            step_id,
            status: StepStatus::Pending,
            rejections: 0,
            approval: None,
            spec,
            agreed: None,
        }
    }

    /// Step whose texts say which files a gate about tests lets pass. Nobody but a person adds to them after the start.
    pub(crate) fn agreed(&self) -> &StepSpec {
        self.agreed.as_deref().unwrap_or(&self.spec)
    }

    /// Text of the column of the spec.
    fn column(&self) -> Result<String, DbError> {
        let Some(agreed) = &self.agreed else {
            return to_json(&self.spec);
        };
        let internal = |_| DbError::Internal;
        let mut all = serde_json::to_value(&self.spec).map_err(internal)?;
        let agreed = serde_json::to_value(agreed).map_err(internal)?;
        if let Some(all) = all.as_object_mut() {
            all.insert(AGREED_KEY.to_owned(), agreed);
        }
        to_json(&all)
    }
}

impl TryFrom<Row> for Step {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Step, DbError> {
        let mut column: Map<String, Value> = row.json(4)?;
        let read = |value: Value| serde_json::from_value(value).map_err(|_| DbError::Internal);
        let agreed = column.remove(AGREED_KEY).map(read).transpose()?;
        let approval = row.get::<Option<String>>(3)?.map(|_| row.json(3)).transpose()?;
        Ok(Step {
            agreed: agreed.map(Box::new),
            step_id: row.get(0)?,
            status: row.get(1)?,
            rejections: row.get(2)?,
            approval,
            spec: read(Value::Object(column))?,
        })
    }
}

/// Steps of a job, in order.
pub(crate) fn all(db: &Db<'_>, job: &JobId) -> Result<Vec<Step>, DbError> {
    db.query_as(
        "SELECT step_id, status, rejections, approval_json, spec_json FROM conductor_steps \
         WHERE job_id = ?1 ORDER BY position",
        params![job],
    )
}

/// Replaces the job's steps by these, in this order.
pub(crate) fn replace(db: &Db<'_>, job: &JobId, steps: &[Step]) -> Result<(), DbError> {
    let before = all(db, job)?;
    let other = |step: &Step, steps: &[Step]| !steps.contains(step);
    let changed = steps.iter().filter(|step| other(step, &before));
    let gone = before.iter().filter(|step| other(step, steps));
    for step in changed.chain(gone) {
        entity::part(job, step.step_id.as_str());
    }
    db.execute("DELETE FROM conductor_steps WHERE job_id = ?1", params![job])?;
    for (position, step) in (0_u32..).zip(steps) {
        db.execute(
            "INSERT INTO conductor_steps (job_id, step_id, position, status, rejections, approval_json, spec_json) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                job,
                step.step_id,
                position,
                step.status,
                step.rejections,
                step.approval.as_ref().map(to_json).transpose()?,
                step.column()?,
            ],
        )?;
    }
    Ok(())
}

/// Stores a step unless its status has changed since it was read. Returns `false` if it has.
pub(crate) fn update(db: &Db<'_>, job: &JobId, seen: StepStatus, step: &Step) -> Result<bool, DbError> {
    entity::part(job, step.step_id.as_str());
    let changed = db.execute(
        "UPDATE conductor_steps SET status = ?3, rejections = ?4, approval_json = ?5 \
         WHERE job_id = ?1 AND step_id = ?2 AND status = ?6",
        params![
            job,
            step.step_id,
            step.status,
            step.rejections,
            step.approval.as_ref().map(to_json).transpose()?,
            seen,
        ],
    )?;
    Ok(changed == 1)
}

/// Resets the rejection counts of a job's open steps.
pub(crate) fn forgive(db: &Db<'_>, job: &JobId) -> Result<(), DbError> {
    entity::job(job);
    db.execute(
        "UPDATE conductor_steps SET rejections = 0 WHERE job_id = ?1 AND status <> 'DONE'",
        params![job],
    )?;
    Ok(())
}
