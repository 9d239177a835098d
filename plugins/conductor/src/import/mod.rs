//! Import of a bundle: the whole bundle is checked before anything is stored.

mod check;
pub(crate) mod read;

use std::collections::BTreeSet;
use std::fmt::Display;

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::{Cx, Db, DbError, Id, ToolError};

use crate::arguments::{MAX_ENTRY_CHARS, clip_to};
use crate::digest::digest;
use crate::export::Bundle;
use crate::model::{BlockType, JobId, LogType, StepStatus};
use crate::person;
use crate::state::Status;
use crate::store::{attempt, batch, context, description, job, log, mistake, short_id, snapshot, step};

/// Beginning of the log entry of an imported job.
pub(crate) const IMPORT_LOG_PREFIX: &str = "imported from a bundle";
/// Note on submissions that a bundle has as accepted.
pub(crate) const IMPORT_NOTE: &str = "imported: this host did not judge this submission";
/// Maximum number of a step that a bundle may claim to have had.
const LAST_STEP: u32 = 90_000;

/// An imported job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Imported {
    /// Id of the imported job.
    job_id: JobId,
    /// Id in the bundle, if that was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<JobId>,
    /// Status of the job.
    status: Status,
    /// Number of steps.
    steps: usize,
    /// Number of imported submissions.
    attempts: usize,
}

/// Stores a bundle as a job.
pub(crate) fn import(cx: &Cx<'_>, mut bundle: Bundle) -> Result<Imported, ToolError> {
    check::check(&bundle)?;
    let db = &cx.db;
    let given = bundle.job.id.clone();
    let line = allowed(cx, &bundle, &given)?;
    let renamed = job::exists(db, &given)?;
    if renamed {
        bundle.job.id = short_id(cx, |id| job::exists(db, id))?;
    }
    forget_identities(&mut bundle);
    // So that steps to come have numbers that a bundle may have.
    bundle.job.last_step = bundle.job.last_step.min(LAST_STEP);
    if matches!(bundle.job.status, Status::Planning | Status::Ready) {
        // The repository here is another one than the plan was agreed on.
        bundle.job.baseline = None;
    }
    let origin = mark(&mut bundle, &given);
    let mut used = ids_of(&bundle);
    rename_records(cx, &mut bundle, &mut used)?;
    keep_map(cx, &mut bundle, &mut used)?;
    let id = bundle.job.id.clone();
    job::insert(db, &bundle.job)?;
    step::replace(db, &id, &bundle.steps)?;
    for attempt in &bundle.attempts {
        attempt::insert(db, &id, attempt)?;
    }
    for block in &bundle.context {
        context::insert(db, &id, block)?;
    }
    for entry in &bundle.log {
        log::insert(db, &id, entry)?;
    }
    log::append(cx, db, &id, LogType::System, None, None, &origin)?;
    if let Some(line) = line {
        log::append(cx, db, &id, LogType::System, None, None, &line)?;
    }
    for mistake in &bundle.mistakes {
        mistake::insert_own(db, &id, mistake)?;
    }
    for batch in &bundle.batches {
        batch::insert(db, &id, batch)?;
    }
    for taken in &bundle.repository.snapshots {
        snapshot::insert(db, &id, taken)?;
    }
    // A workspace of the same name may be another repository here, so the lines are not shared.
    description::set_own(db, &id, &bundle.repository.descriptions, cx.now())?;
    Ok(Imported {
        renamed_from: renamed.then_some(given),
        status: bundle.job.status,
        steps: bundle.steps.len(),
        attempts: bundle.attempts.len(),
        job_id: id,
    })
}

/// Marks the accepted submissions of a bundle as not judged here, and returns the log entry about the import: a bundle
/// is a file that anybody can write, with any history.
fn mark(bundle: &mut Bundle, given: &JobId) -> String {
    let accepted = bundle.attempts.iter_mut().filter(|attempt| attempt.accepted);
    let mut count = 0_usize;
    for attempt in accepted {
        count = count.saturating_add(1);
        attempt.notes.retain(|note| note != IMPORT_NOTE);
        attempt.notes.insert(0, IMPORT_NOTE.to_owned());
    }
    format!(
        "{IMPORT_LOG_PREFIX} as {}: the job's id in the bundle is {given}; this host did not judge its accepted submissions \
         ({count})",
        bundle.job.status
    )
}

/// Line for the log. A bundle is a file that anybody can edit, so a plan that is frozen already needs a person.
fn allowed(cx: &Cx<'_>, bundle: &Bundle, given: &JobId) -> Result<Option<String>, ToolError> {
    let status = bundle.job.status;
    if !matches!(status, Status::Executing | Status::Paused) {
        return Ok(None);
    }
    let text = serde_json::to_string(bundle).map_err(|_| DbError::Internal)?;
    let steps = bundle.steps.iter().map(|step| {
        let gates = step.spec.gates.iter().map(|gate| gate.gate.as_str());
        format!("{} [{}]", step.step_id, gates.collect::<Vec<_>>().join(", "))
    });
    let change = format!(
        "{given} is imported as {status}, with the steps and gates {}; bundle {}",
        steps.collect::<Vec<_>>().join(", "),
        digest(&text)
    );
    let who = person::allows(cx, &change, "job_import")?;
    Ok(Some(clip_to(
        &format!("plan changed by {who}: {change}"),
        MAX_ENTRY_CHARS,
    )))
}

/// Removes approvals of steps that are not done, and identities: a bundle is a file that anybody can write, and
/// another host proved identities to itself alone.
fn forget_identities(bundle: &mut Bundle) {
    for step in bundle
        .steps
        .iter_mut()
        .filter(|step| step.status != StepStatus::Done)
    {
        step.approval = None;
    }
    let approvals = bundle.steps.iter_mut().filter_map(|step| step.approval.as_mut());
    approvals.for_each(|approval| approval.identity = None);
}

/// Stores an exported map as a context block, because its files are elsewhere.
fn keep_map(cx: &Cx<'_>, bundle: &mut Bundle, used: &mut BTreeSet<String>) -> Result<(), DbError> {
    if let Some(map) = bundle.repository.map.take() {
        bundle.context.push(context::Block {
            context_id: fresh(cx, used, context::exists)?,
            block_type: BlockType::RepoMap,
            tags: vec!["imported".to_owned()],
            created_at: bundle.exported_at,
            updated_at: bundle.exported_at,
            changed_at: None,
            content: map,
        });
    }
    Ok(())
}

/// Ids of a bundle's records.
fn ids_of(bundle: &Bundle) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let attempts = bundle.attempts.iter();
    ids.extend(attempts.map(|attempt| attempt.attempt_id.to_string()));
    ids.extend(bundle.context.iter().map(|block| block.context_id.to_string()));
    ids.extend(bundle.log.iter().map(|entry| entry.log_id.to_string()));
    let mistakes = bundle.mistakes.iter();
    ids.extend(mistakes.map(|mistake| mistake.mistake_id.to_string()));
    ids.extend(bundle.batches.iter().map(|batch| batch.token.to_string()));
    let snapshots = bundle.repository.snapshots.iter();
    ids.extend(snapshots.map(|taken| taken.snapshot_id.to_string()));
    ids
}

/// A new id that is neither taken here nor used in the bundle. Short ids are few enough to collide.
fn fresh<I: Id + Display>(
    cx: &Cx<'_>,
    used: &mut BTreeSet<String>,
    exists: impl Fn(&Db<'_>, &I) -> Result<bool, DbError>,
) -> Result<I, DbError> {
    let id: I = short_id(cx, |id: &I| {
        Ok(used.contains(&id.to_string()) || exists(&cx.db, id)?)
    })?;
    used.insert(id.to_string());
    Ok(id)
}

/// Gives a new id to each record whose id is taken here, and updates the references to it.
fn rename_records(cx: &Cx<'_>, bundle: &mut Bundle, used: &mut BTreeSet<String>) -> Result<(), DbError> {
    let db = &cx.db;
    for attempt in &mut bundle.attempts {
        let old = attempt.attempt_id.clone();
        if attempt::exists(db, &old)? {
            attempt.attempt_id = fresh(cx, used, attempt::exists)?;
            let named = bundle
                .mistakes
                .iter_mut()
                .filter(|mistake| mistake.attempt_id.as_ref() == Some(&old));
            named.for_each(|mistake| mistake.attempt_id = Some(attempt.attempt_id.clone()));
        }
    }
    for block in &mut bundle.context {
        let old = block.context_id.to_string();
        if context::exists(db, &block.context_id)? {
            block.context_id = fresh(cx, used, context::exists)?;
            let refs = bundle
                .steps
                .iter_mut()
                .flat_map(|step| &mut step.spec.context_refs);
            refs.filter(|named| **named == old)
                .for_each(|named| *named = block.context_id.to_string());
        }
    }
    for entry in &mut bundle.log {
        if log::exists(db, &entry.log_id)? {
            entry.log_id = fresh(cx, used, log::exists)?;
        }
    }
    for mistake in &mut bundle.mistakes {
        if mistake::exists(db, &mistake.mistake_id)? {
            mistake.mistake_id = fresh(cx, used, mistake::exists)?;
        }
    }
    for taken in &mut bundle.repository.snapshots {
        if snapshot::exists(db, &taken.snapshot_id)? {
            taken.snapshot_id = fresh(cx, used, snapshot::exists)?;
        }
    }
    for batch in &mut bundle.batches {
        let old = batch.token.to_string();
        if batch::exists(db, &batch.token)? {
            batch.token = fresh(cx, used, batch::exists)?;
            let named = bundle
                .attempts
                .iter_mut()
                .filter(|attempt| attempt.batch_commit_token.as_ref() == Some(&old));
            named.for_each(|attempt| attempt.batch_commit_token = Some(batch.token.to_string()));
        }
    }
    Ok(())
}
