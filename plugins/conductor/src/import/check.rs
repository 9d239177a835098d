//! Checks that a bundle holds a job that the tools could have made.

use std::collections::BTreeSet;

use conductor_repo::describe::MAX_DESCRIPTION;
use serde_json::Value;
use tollgate_sdk::{Id, ToolError};

use crate::arguments::{
    MAX_BLOCK_BYTES, MAX_CONTEXT_BYTES, MAX_ENTRY_CHARS, MAX_EVIDENCE_BYTES, MAX_PATH_CHARS, MAX_STEPS,
    MAX_TITLE_CHARS, clip,
};
use crate::error::{Reason, Refusals};
use crate::export::Bundle;
use crate::model::{
    AttemptId, BatchId, Claim, ContextId, JobId, LogId, MistakeId, SnapshotId, StepId, StepStatus,
};
use crate::ready::{Readiness, gaps};
use crate::root::Root;
use crate::state::Status;
use crate::step::StepSpec;
use crate::store::attempt::Attempt;
use crate::store::job::Baseline;
use crate::submission::is_hash;

/// Refuses a bundle that would create a job no tool could have made.
pub(super) fn check(bundle: &Bundle) -> Result<(), ToolError> {
    let mut refusals = Refusals::default();
    check_job(bundle, &mut refusals);
    check_steps(bundle, &mut refusals);
    check_acceptance(bundle, &mut refusals);
    check_readiness(bundle, &mut refusals);
    check_ids(bundle, &mut refusals);
    check_records(bundle, &mut refusals);
    check_repository(bundle, &mut refusals);
    refusals.finish()
}

fn check_job(bundle: &Bundle, refusals: &mut Refusals) {
    let job = &bundle.job;
    if !is_id(JobId::PREFIX, job.id.as_str()) {
        refusals.add(Reason::Bundle(format!(
            "{} is not a job id",
            clip(job.id.as_str())
        )));
    }
    refusals.text("bundle.job.title", &job.title, MAX_TITLE_CHARS);
    refusals.text("bundle.job.goal", &job.goal, MAX_ENTRY_CHARS);
    refusals.tags("bundle.job.tags", &job.tags);
    job.plan.check("bundle.job.plan.", refusals);
    job.plan.check_size(refusals);
    job.policies.check("bundle.job.policies", refusals);
    let root = job.repo_root.as_deref();
    if root.is_some_and(|root| Root::parse(root).is_none()) {
        refusals.add(Reason::argument("bundle.job.repo_root", "leaves its workspace"));
    }
    // The hash is passed to Git.
    let commits = job.baseline.as_ref().map(Baseline::commits).unwrap_or_default();
    if commits.iter().any(|commit| !is_hash(commit)) {
        refusals.add(Reason::argument(
            "bundle.job.baseline.commit",
            "is not a commit hash",
        ));
    }
}

/// The chain must be one that the job's status allows.
fn check_steps(bundle: &Bundle, refusals: &mut Refusals) {
    let steps = &bundle.steps;
    refusals.at_most("bundle.steps", steps.len(), MAX_STEPS, "steps");
    let ids: BTreeSet<&str> = steps.iter().map(|step| step.step_id.as_str()).collect();
    if ids.len() < steps.len() || steps.iter().any(|step| !is_step(&step.step_id)) {
        refusals.add(Reason::Bundle(
            "the step ids must have the form S1, S2, … and be unique".to_owned(),
        ));
    }
    for (place, step) in steps.iter().enumerate() {
        step.spec.check(&format!("bundle.steps[{place}]"), refusals);
        if let Some(approval) = &step.approval {
            let field = format!("bundle.steps[{place}].approval");
            refusals.text(
                &format!("{field}.approved_by"),
                &approval.approved_by,
                MAX_TITLE_CHARS,
            );
            refusals.optional_text(
                &format!("{field}.note"),
                approval.note.as_deref(),
                MAX_ENTRY_CHARS,
            );
        }
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
            "the steps' statuses do not match a job that is {}",
            bundle.job.status
        );
        refusals.add(Reason::Bundle(fault));
    }
}

/// Checks that exactly the steps that are done have an accepted submission, one each.
fn check_acceptance(bundle: &Bundle, refusals: &mut Refusals) {
    let all = bundle.attempts.iter().filter(|attempt| attempt.accepted);
    let all: Vec<&Attempt> = all.collect();
    let accepted: BTreeSet<&str> = all.iter().map(|attempt| attempt.step_id.as_str()).collect();
    let done = bundle.steps.iter().filter(|step| step.status == StepStatus::Done);
    let done: BTreeSet<&str> = done.map(|step| step.step_id.as_str()).collect();
    if accepted != done {
        refusals.add(Reason::Bundle(
            "each step with status DONE needs an accepted submission, and no other step may have one"
                .to_owned(),
        ));
    }
    if accepted.len() < all.len() {
        refusals.add(Reason::Bundle("a step was accepted more than once".to_owned()));
    }
    if all.iter().any(|attempt| attempt.model_claim != Claim::Met) {
        refusals.add(Reason::Bundle(
            "an accepted submission has a model_claim other than MET".to_owned(),
        ));
    }
    let mut covered = bundle.batches.iter().flat_map(|batch| &batch.steps);
    if covered.any(|step| !done.contains(step.as_str())) {
        refusals.add(Reason::Bundle(
            "a batch covers a step that is not done".to_owned(),
        ));
    }
}

/// Checks that a job past the ready gate still meets the gate's requirements on its plan.
fn check_readiness(bundle: &Bundle, refusals: &mut Refusals) {
    let job = &bundle.job;
    if matches!(job.status, Status::Planning | Status::Failed | Status::Archived) {
        return;
    }
    let blocks: BTreeSet<&str> = bundle
        .context
        .iter()
        .map(|block| block.context_id.as_str())
        .collect();
    let mut missing: Vec<(StepId, String)> = Vec::new();
    for step in bundle.steps.iter().filter(|step| step.status != StepStatus::Done) {
        let refs = step.spec.context_refs.iter();
        let gone = refs.filter(|named| !blocks.contains(named.as_str()));
        missing.extend(gone.map(|named| (step.step_id.clone(), named.clone())));
    }
    let steps: Vec<(StepId, &StepSpec)> = bundle
        .steps
        .iter()
        .map(|step| (step.step_id.clone(), &step.spec))
        .collect();
    let found = gaps(&Readiness {
        job: &job.id,
        goal: &job.goal,
        repo_root: job.repo_root.as_deref(),
        plan: &job.plan,
        steps: &steps,
        // Policies may have changed since.
        wants_baseline: false,
        wants_faults: false,
        has_baseline: false,
        missing_contexts: &missing,
        long_prompts: &[],
    });
    for gap in found {
        let fault = format!("the job is {}, but {}", job.status, gap.reason);
        refusals.add(Reason::Bundle(fault));
    }
}

/// Checks that ids have the form that the pack makes, because archives name files after them.
fn check_ids(bundle: &Bundle, refusals: &mut Refusals) {
    let attempts = bundle.attempts.iter().map(|attempt| attempt.attempt_id.as_str());
    ids(AttemptId::PREFIX, attempts, refusals);
    let blocks = bundle.context.iter().map(|block| block.context_id.as_str());
    ids(ContextId::PREFIX, blocks, refusals);
    ids(
        LogId::PREFIX,
        bundle.log.iter().map(|entry| entry.log_id.as_str()),
        refusals,
    );
    let mistakes = bundle.mistakes.iter().map(|mistake| mistake.mistake_id.as_str());
    ids(MistakeId::PREFIX, mistakes, refusals);
    let batches = bundle.batches.iter().map(|batch| batch.token.as_str());
    ids(BatchId::PREFIX, batches, refusals);
    let snapshots = bundle.repository.snapshots.iter();
    ids(
        SnapshotId::PREFIX,
        snapshots.map(|taken| taken.snapshot_id.as_str()),
        refusals,
    );
    // Records may refer to steps that were removed since.
    let attempts = bundle.attempts.iter().map(|attempt| &attempt.step_id);
    let entries = bundle.log.iter().filter_map(|entry| entry.step_id.as_ref());
    let mistakes = bundle.mistakes.iter();
    let mistakes = mistakes.filter_map(|mistake| mistake.related_step_id.as_ref());
    let mut named = attempts.chain(entries).chain(mistakes);
    if let Some(bad) = named.find(|id| !is_step(id)) {
        let fault = format!(
            "a record refers to {}, which is not a step id",
            clip(bad.as_str())
        );
        refusals.add(Reason::Bundle(fault));
    }
}

/// Requires unique ids of one kind. Reports the first that is not.
fn ids<'a>(prefix: &str, all: impl Iterator<Item = &'a str>, refusals: &mut Refusals) {
    let mut seen = BTreeSet::new();
    for id in all {
        let fault = match is_id(prefix, id) {
            false => format!("{} is not {prefix}- and a few letters and digits", clip(id)),
            true if seen.insert(id) => continue,
            true => format!("{id} occurs twice"),
        };
        refusals.add(Reason::Bundle(fault));
        return;
    }
}

/// Checks whether text is an id with a prefix, for example `JOB-7F2A`.
fn is_id(prefix: &str, text: &str) -> bool {
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    let rest = text.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|rest| (4..=26).contains(&rest.len()) && rest.chars().all(plain))
}

/// Checks whether an id is `S` and a number without leading zeros.
fn is_step(id: &StepId) -> bool {
    const MAX_NUMBER: usize = 99_999;
    let number = id.number().filter(|number| (1..=MAX_NUMBER).contains(number));
    number.is_some_and(|number| StepId::nth(number) == *id)
}

fn check_records(bundle: &Bundle, refusals: &mut Refusals) {
    for (place, attempt) in bundle.attempts.iter().enumerate() {
        let field = format!("bundle.attempts[{place}]");
        refusals.text(&format!("{field}.summary"), &attempt.summary, MAX_ENTRY_CHARS);
        let evidence = Value::Object(attempt.evidence.clone());
        refusals.json(&format!("{field}.evidence"), &evidence, MAX_EVIDENCE_BYTES);
        let looked_up = serde_json::json!([attempt.commands, attempt.notes]);
        refusals.json(&format!("{field}.commands"), &looked_up, MAX_EVIDENCE_BYTES);
    }
    for (place, mistake) in bundle.mistakes.iter().enumerate() {
        let field = format!("bundle.mistakes[{place}]");
        refusals.text(&format!("{field}.title"), &mistake.title, MAX_TITLE_CHARS);
        refusals.text(
            &format!("{field}.avoid_next_time"),
            &mistake.avoid_next_time,
            MAX_ENTRY_CHARS,
        );
        refusals.tags(&format!("{field}.tags"), &mistake.tags);
    }
    let mut total = 0_usize;
    for (place, block) in bundle.context.iter().enumerate() {
        let field = format!("bundle.context[{place}]");
        refusals.at_most(
            &format!("{field}.content"),
            block.content.len(),
            MAX_BLOCK_BYTES,
            "bytes",
        );
        refusals.tags(&format!("{field}.tags"), &block.tags);
        total = total.saturating_add(block.content.len());
    }
    refusals.at_most("bundle.context", total, MAX_CONTEXT_BYTES, "bytes");
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
            "the snapshot numbers must be at least 1 and unique".to_owned(),
        ));
    }
    for (path, text) in &repository.descriptions {
        let length = text.chars().count();
        if length == 0 || length > MAX_DESCRIPTION || text.contains('\n') || path.len() > MAX_PATH_CHARS {
            let fault = format!("the description of {} is not one short line", clip(path));
            refusals.add(Reason::Bundle(fault));
        }
    }
    let map = repository.map.as_ref().map_or(0, String::len);
    refusals.at_most("bundle.repository.map", map, MAX_BLOCK_BYTES, "bytes");
}
