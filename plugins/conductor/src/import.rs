//! Taking in a bundle: everything about it is checked before anything is stored.

use std::collections::BTreeSet;

use conductor_repo::describe::MAX_DESCRIPTION;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tollgate_sdk::{Cx, DbError, ToolError};

use crate::arguments::{BLOCK, BLOCKS, ENTRY, EVIDENCE, PATH, STEPS, TITLE, clip};
use crate::error::{Reason, Refusals};
use crate::export::{Bundle, FORMAT, VERSION};
use crate::model::{BlockType, JobId, StepStatus};
use crate::root::Root;
use crate::state::Status;
use crate::store::{attempt, batch, context, description, job, log, mistake, short_id, snapshot, step};

/// A job that was imported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Imported {
    /// The job's id here.
    job_id: JobId,
    /// Its id in the bundle, if that was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<JobId>,
    /// Where it stands.
    status: Status,
    /// How many steps it has.
    steps: usize,
    /// How many submissions came with it.
    attempts: usize,
}

/// Stores a bundle as a job.
pub(crate) fn import(cx: &Cx<'_>, bundle: Map<String, Value>) -> Result<Imported, ToolError> {
    let mut bundle = read(bundle)?;
    check(&bundle)?;
    let db = &cx.db;
    let given = bundle.job.id.clone();
    let renamed = job::exists(db, &given)?;
    if renamed {
        bundle.job.id = short_id(cx, |id| job::exists(db, id))?;
    }
    rename_records(cx, &mut bundle)?;
    keep_map(cx, &mut bundle)?;
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
    for mistake in &bundle.mistakes {
        mistake::insert(db, &id, mistake)?;
    }
    for batch in &bundle.batches {
        batch::insert(db, &id, batch)?;
    }
    for taken in &bundle.repository.snapshots {
        snapshot::insert(db, &id, taken)?;
    }
    for (path, text) in &bundle.repository.descriptions {
        description::set(db, &id, path, text, cx.now())?;
    }
    Ok(Imported {
        renamed_from: renamed.then_some(given),
        status: bundle.job.status,
        steps: bundle.steps.len(),
        attempts: bundle.attempts.len(),
        job_id: id,
    })
}

/// The bundle, if it is one of this version.
fn read(bundle: Map<String, Value>) -> Result<Bundle, ToolError> {
    let format = bundle.get("format").and_then(Value::as_str);
    if format != Some(FORMAT) {
        let fault = format!(
            "the bundle's format is {}, not {FORMAT}",
            clip(format.unwrap_or("missing"))
        );
        return Err(Reason::Bundle(fault).into());
    }
    let version = bundle.get("version").and_then(Value::as_u64);
    if version != Some(u64::from(VERSION)) {
        let said = version.map_or("missing".to_owned(), |version| version.to_string());
        let fault = format!("the bundle's version is {said}; this pack reads version {VERSION}");
        return Err(Reason::Bundle(fault).into());
    }
    serde_json::from_value(Value::Object(bundle))
        .map_err(|err| Reason::Bundle(format!("the bundle does not fit: {err}")).into())
}

/// Everything that would leave a job no tool could have made.
fn check(bundle: &Bundle) -> Result<(), ToolError> {
    let mut refusals = Refusals::default();
    let job = &bundle.job;
    let id = job.id.as_str();
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    if !id
        .strip_prefix("JOB-")
        .is_some_and(|rest| (4..=26).contains(&rest.len()) && rest.chars().all(plain))
    {
        refusals.add(Reason::Bundle(format!("{} is no job id", clip(id))));
    }
    refusals.text("bundle.job.title", &job.title, TITLE);
    refusals.text("bundle.job.goal", &job.goal, ENTRY);
    refusals.tags("bundle.job.tags", &job.tags);
    job.plan.check("bundle.job.plan.", &mut refusals);
    job.plan.check_size(&mut refusals);
    job.policies.check("bundle.job.policies", &mut refusals);
    if job
        .repo_root
        .as_deref()
        .is_some_and(|root| Root::parse(root).is_none())
    {
        refusals.add(Reason::argument(
            "bundle.job.repo_root",
            "leads out of its workspace",
        ));
    }
    check_steps(bundle, &mut refusals);
    check_acceptance(bundle, &mut refusals);
    check_records(bundle, &mut refusals);
    refusals.finish()
}

/// The chain has to be one that the job's status allows.
fn check_steps(bundle: &Bundle, refusals: &mut Refusals) {
    let steps = &bundle.steps;
    refusals.at_most("bundle.steps", steps.len(), STEPS, "steps");
    let ids: BTreeSet<&str> = steps.iter().map(|step| step.step_id.as_str()).collect();
    if ids.len() < steps.len() || steps.iter().any(|step| step.step_id.number().is_none()) {
        refusals.add(Reason::Bundle(
            "the step ids are not S1, S2, … each once".to_owned(),
        ));
    }
    for (place, step) in steps.iter().enumerate() {
        step.spec.check(&format!("bundle.steps[{place}]"), refusals);
    }
    let done = steps
        .iter()
        .take_while(|step| step.status == StepStatus::Done)
        .count();
    let rest: Vec<StepStatus> = steps.iter().skip(done).map(|step| step.status).collect();
    let in_order = rest.iter().skip(1).all(|status| *status == StepStatus::Pending)
        && rest.first().is_none_or(|status| *status != StepStatus::Done);
    let active = rest.contains(&StepStatus::Active);
    let fits = match bundle.job.status {
        Status::Planning | Status::Ready => done == 0 && !active,
        Status::Executing | Status::Paused => !rest.is_empty(),
        Status::Complete => rest.is_empty() && !steps.is_empty(),
        Status::Failed | Status::Archived => true,
    };
    let startable = bundle.job.status != Status::Ready || !steps.is_empty();
    if !in_order || !fits || !startable {
        let fault = format!(
            "the steps' statuses do not fit a job that is {}",
            bundle.job.status
        );
        refusals.add(Reason::Bundle(fault));
    }
}

/// Every step that is done has its accepted submission, and no other has one.
fn check_acceptance(bundle: &Bundle, refusals: &mut Refusals) {
    let accepted = bundle.attempts.iter().filter(|attempt| attempt.accepted);
    let accepted: BTreeSet<&str> = accepted.map(|attempt| attempt.step_id.as_str()).collect();
    let done = bundle.steps.iter().filter(|step| step.status == StepStatus::Done);
    let done: BTreeSet<&str> = done.map(|step| step.step_id.as_str()).collect();
    if accepted != done {
        refusals.add(Reason::Bundle(
            "the steps that are done are not those with an accepted submission".to_owned(),
        ));
    }
}

fn check_records(bundle: &Bundle, refusals: &mut Refusals) {
    for (place, attempt) in bundle.attempts.iter().enumerate() {
        let evidence = Value::Object(attempt.evidence.clone());
        refusals.json(&format!("bundle.attempts[{place}].evidence"), &evidence, EVIDENCE);
    }
    let mut total = 0_usize;
    for (place, block) in bundle.context.iter().enumerate() {
        let field = format!("bundle.context[{place}].content");
        refusals.at_most(&field, block.content.len(), BLOCK, "bytes");
        total = total.saturating_add(block.content.len());
    }
    refusals.at_most("bundle.context", total, BLOCKS, "bytes");
    check_repository(bundle, refusals);
    let open = bundle
        .batches
        .iter()
        .filter(|batch| batch.settled_by.is_none())
        .count();
    refusals.at_most("bundle.batches", open, 1, "open batches");
}

fn check_repository(bundle: &Bundle, refusals: &mut Refusals) {
    let repository = &bundle.repository;
    let numbers: BTreeSet<u32> = repository.snapshots.iter().map(|taken| taken.sequence).collect();
    if numbers.len() < repository.snapshots.len() || numbers.contains(&0) {
        refusals.add(Reason::Bundle(
            "the snapshots are not numbered from 1, each once".to_owned(),
        ));
    }
    for (path, text) in &repository.descriptions {
        let length = text.chars().count();
        if length == 0 || length > MAX_DESCRIPTION || text.contains('\n') || path.len() > PATH {
            let fault = format!("the description of {} is not one short line", clip(path));
            refusals.add(Reason::Bundle(fault));
        }
    }
    let map = repository.map.as_ref().map_or(0, String::len);
    refusals.at_most("bundle.repository.map", map, BLOCK, "bytes");
}

/// A map is made of files that are elsewhere: what was exported of it becomes a context block.
fn keep_map(cx: &Cx<'_>, bundle: &mut Bundle) -> Result<(), DbError> {
    if let Some(map) = bundle.repository.map.take() {
        bundle.context.push(context::Block {
            context_id: short_id(cx, |id| context::exists(&cx.db, id))?,
            block_type: BlockType::RepoMap,
            tags: vec!["imported".to_owned()],
            created_at: bundle.exported_at,
            updated_at: bundle.exported_at,
            content: map,
        });
    }
    Ok(())
}

/// Gives records whose id is taken here a new one, and follows it where others name it.
fn rename_records(cx: &Cx<'_>, bundle: &mut Bundle) -> Result<(), DbError> {
    let db = &cx.db;
    let mut seen = BTreeSet::new();
    for attempt in &mut bundle.attempts {
        let old = attempt.attempt_id.clone();
        if attempt::exists(db, &old)? || !seen.insert(old.to_string()) {
            attempt.attempt_id = short_id(cx, |id| attempt::exists(db, id))?;
            let named = bundle
                .mistakes
                .iter_mut()
                .filter(|mistake| mistake.attempt_id.as_ref() == Some(&old));
            named.for_each(|mistake| mistake.attempt_id = Some(attempt.attempt_id.clone()));
        }
    }
    for block in &mut bundle.context {
        let old = block.context_id.to_string();
        if context::exists(db, &block.context_id)? || !seen.insert(old.clone()) {
            block.context_id = short_id(cx, |id| context::exists(db, id))?;
            let refs = bundle
                .steps
                .iter_mut()
                .flat_map(|step| &mut step.spec.context_refs);
            refs.filter(|named| **named == old)
                .for_each(|named| *named = block.context_id.to_string());
        }
    }
    for entry in &mut bundle.log {
        if log::exists(db, &entry.log_id)? || !seen.insert(entry.log_id.to_string()) {
            entry.log_id = short_id(cx, |id| log::exists(db, id))?;
        }
    }
    for mistake in &mut bundle.mistakes {
        if mistake::exists(db, &mistake.mistake_id)? || !seen.insert(mistake.mistake_id.to_string()) {
            mistake.mistake_id = short_id(cx, |id| mistake::exists(db, id))?;
        }
    }
    for taken in &mut bundle.repository.snapshots {
        if snapshot::exists(db, &taken.snapshot_id)? || !seen.insert(taken.snapshot_id.to_string()) {
            taken.snapshot_id = short_id(cx, |id| snapshot::exists(db, id))?;
        }
    }
    for batch in &mut bundle.batches {
        if batch::exists(db, &batch.token)? || !seen.insert(batch.token.to_string()) {
            batch.token = short_id(cx, |id| batch::exists(db, id))?;
        }
    }
    Ok(())
}
