//! Readable document of a job.

use std::fmt::Write as _;

use conductor_repo::path::show;

use super::Bundle;
use super::files::PROMPT_NOTE;
use crate::arguments::counted;
use crate::gate::Gate;
use crate::import::IMPORT_LOG_PREFIX;
use crate::model::{BlockType, LogType};
use crate::step::StepSpec;
use crate::store::attempt::Attempt;
use crate::store::context::Block;
use crate::store::snapshot::SnapshotRecord;
use crate::store::step::Step;

/// Whole job as one document.
pub(crate) fn document(bundle: &Bundle) -> String {
    let mut text = overview(bundle);
    text += &deliverables(bundle);
    text += &plan(bundle);
    text += "\n## Steps\n";
    for step in &bundle.steps {
        text += &step_section(step, bundle);
    }
    text += &of_removed_steps(bundle);
    text += &batches(bundle);
    text += "\n## Decisions\n";
    text += &log_lines(bundle, &[LogType::Decision]);
    text += "\n## Devlog\n";
    text += &log_lines(
        bundle,
        &[LogType::Devlog, LogType::Checkpoint, LogType::Postmortem],
    );
    text += "\n## Mistakes\n";
    text += &mistakes(bundle);
    text += "\n## Repository map\n";
    text += &repo_map(bundle);
    text += "\n## Context\n";
    text += &contexts(bundle);
    text += "\n## Policies\n";
    text += &policies(bundle);
    text += "\n## Prompts\n";
    if !bundle.prompts.is_empty() {
        let _ = writeln!(text, "\n{PROMPT_NOTE}");
    }
    for (step, prompt) in bundle.steps.iter().zip(&bundle.prompts) {
        let _ = write!(text, "\n### Prompt of {}\n{}", step.step_id, fenced(prompt));
    }
    text += "\n## History\n";
    text += &log_lines(bundle, &[LogType::System]);
    text
}

fn overview(bundle: &Bundle) -> String {
    let job = &bundle.job;
    let mut text = format!("# {}: {}\n\n{}\n\n", job.id, job.title, job.goal);
    let _ = write!(text, "- Status: {}", job.status);
    if let Some(reason) = &job.status_reason {
        let _ = write!(text, " ({})", reason.lines().next().unwrap_or_default());
    }
    let done = bundle.attempts.iter().filter(|attempt| attempt.accepted).count();
    let _ = writeln!(
        text,
        "\n- Steps: {} of {} done, in {}",
        done,
        bundle.steps.len(),
        counted(bundle.attempts.len(), "submission")
    );
    let origin = bundle
        .log
        .iter()
        .rfind(|entry| entry.log_type == LogType::System && entry.content.starts_with(IMPORT_LOG_PREFIX));
    if let Some(origin) = origin {
        let _ = writeln!(text, "- Origin: {}", origin.content);
    }
    if let Some(root) = &job.repo_root {
        let _ = writeln!(text, "- Repository: {root}");
    }
    if !job.tags.is_empty() {
        let _ = writeln!(text, "- Tags: {}", job.tags.join(", "));
    }
    let _ = writeln!(
        text,
        "- Created: {}, last changed: {}",
        job.created_at, job.updated_at
    );
    text
}

/// Deliverables and accepted submissions.
fn deliverables(bundle: &Bundle) -> String {
    let plan = &bundle.job.plan;
    let mut text = "\n## Deliverables\n".to_owned();
    text += &bullets(plan.deliverables.as_deref().unwrap_or_default());
    text += "\n## Definition of done\n";
    text += &bullets(plan.definition_of_done.as_deref().unwrap_or_default());
    text += "\n## What was done\n";
    let accepted: Vec<String> = bundle
        .attempts
        .iter()
        .filter(|attempt| attempt.accepted)
        .map(|attempt| {
            let commit = attempt.commit_hash.as_ref().map(|hash| format!(" ({hash})"));
            let elsewhere = if attempt.is_judged_elsewhere() {
                " (not judged by this host)"
            } else {
                ""
            };
            format!(
                "{}: {}{}{elsewhere}",
                attempt.step_id,
                attempt.summary,
                commit.unwrap_or_default()
            )
        })
        .collect();
    text + &bullets(&accepted)
}

fn plan(bundle: &Bundle) -> String {
    let plan = &bundle.job.plan;
    let mut text = "\n## Plan\n".to_owned();
    for (name, list) in plan.lists() {
        if !matches!(name, "deliverables" | "definition_of_done")
            && let Some(list) = list
        {
            let _ = write!(text, "\n### {}\n{}", words(name), bullets(list));
        }
    }
    for (name, value) in [
        ("Target environment", &plan.target_environment),
        ("Priority", &plan.timeline_priority),
    ] {
        if let Some(value) = value {
            let _ = write!(text, "\n### {name}\n{value}\n");
        }
    }
    if let Some(risks) = &plan.risks {
        let lines: Vec<String> = risks
            .iter()
            .map(|risk| match &risk.mitigation {
                Some(mitigation) => format!("{}: {mitigation}", risk.risk),
                None => risk.risk.clone(),
            })
            .collect();
        let _ = write!(text, "\n### Risks\n{}", bullets(&lines));
    }
    text
}

fn step_section(step: &Step, bundle: &Bundle) -> String {
    let spec = &step.spec;
    let mut text = format!(
        "\n### {}: {}\n\n{}\n\n{}\n\nAcceptance criteria:\n",
        step.step_id, spec.title, step.status, spec.instruction_prompt
    );
    for (place, criterion) in spec.acceptance_criteria.iter().enumerate() {
        let _ = writeln!(text, "- c{}: {criterion}", place + 1);
    }
    text += &particulars(spec);
    if let Some(approval) = &step.approval {
        let by = &approval.approved_by;
        let identity = approval.identity.as_ref().map(|known| format!(" ({known})"));
        let note = approval.note.as_ref().map(|note| format!(" {note}"));
        let _ = writeln!(
            text,
            "\nApproved by {by}{} at {}.{}",
            identity.unwrap_or_default(),
            approval.at,
            note.unwrap_or_default()
        );
    }
    for attempt in bundle
        .attempts
        .iter()
        .filter(|attempt| attempt.step_id == step.step_id)
    {
        text += &attempt_section(attempt);
    }
    text
}

/// Fields of a step besides its instruction and its criteria.
fn particulars(spec: &StepSpec) -> String {
    let evidence = spec.required_evidence.iter();
    let evidence: Vec<String> = evidence.map(|(key, kind)| format!("{key}: {kind}")).collect();
    let gates: Vec<String> = spec.parsed_gates().iter().map(Gate::describe).collect();
    let mut rules = Vec::new();
    if spec.checkpoint {
        rules.push("this step is a checkpoint".to_owned());
    }
    if spec.strict_git {
        rules.push("this step needs its own commit".to_owned());
    }
    if let Some(most) = spec.max_attempts {
        rules.push(format!("maximum number of submissions: {most}"));
    }
    let mut text = String::new();
    for (name, list) in [
        ("Expected outputs", &spec.expected_outputs),
        ("Required evidence", &evidence),
        ("Gates", &gates),
        ("Rules", &rules),
        ("Context", &spec.context_refs),
        ("Tags", &spec.tags),
    ] {
        if !list.is_empty() {
            let _ = write!(text, "\n{name}:\n{}", bullets(list));
        }
    }
    if !spec.remediation_prompt.is_empty() {
        let _ = writeln!(text, "\nIf stuck: {}", spec.remediation_prompt);
    }
    text
}

fn attempt_section(attempt: &Attempt) -> String {
    let verdict = match attempt.accepted {
        true if attempt.is_judged_elsewhere() => "accepted elsewhere",
        true => "accepted",
        false => "rejected",
    };
    let mut text = format!(
        "\n#### {} {verdict} at {}, claim {}\n\n{}\n",
        attempt.attempt_id, attempt.at, attempt.model_claim, attempt.summary
    );
    if let Some(hash) = &attempt.commit_hash {
        let _ = writeln!(text, "\nCommit: {hash}");
    }
    if let Some(token) = &attempt.batch_commit_token {
        let _ = writeln!(text, "\nCommit deferred with: {token}");
    }
    if !attempt.rejection_reasons.is_empty() {
        let _ = write!(
            text,
            "\nReasons for the rejection:\n{}",
            bullets(&attempt.rejection_reasons)
        );
    }
    if !attempt.commands.is_empty() {
        let ended = attempt.commands.iter();
        let ended: Vec<String> = ended
            .map(|(command, ending)| format!("`{command}`: {ending}"))
            .collect();
        let _ = write!(text, "\nCommands that gates ran:\n{}", bullets(&ended));
    }
    if !attempt.notes.is_empty() {
        let _ = write!(text, "\nNoticed:\n{}", bullets(&attempt.notes));
    }
    let evidence = serde_json::to_string_pretty(&attempt.evidence).unwrap_or_default();
    let _ = write!(text, "\nEvidence:\n{}", fenced(&evidence));
    text
}

/// Submissions of steps that were removed from the chain.
fn of_removed_steps(bundle: &Bundle) -> String {
    let mut text = String::new();
    for attempt in &bundle.attempts {
        if !bundle.steps.iter().any(|step| step.step_id == attempt.step_id) {
            let _ = write!(
                text,
                "\n### {} was removed\n{}",
                attempt.step_id,
                attempt_section(attempt)
            );
        }
    }
    text
}

/// Deferred commits, if there are any.
fn batches(bundle: &Bundle) -> String {
    if bundle.batches.is_empty() {
        return String::new();
    }
    let lines = bundle.batches.iter().map(|batch| {
        let steps = match batch.steps.is_empty() {
            true => "no step".to_owned(),
            false => batch.steps.join(", "),
        };
        let end = match &batch.settled_by {
            Some(hash) => format!("committed as {hash}"),
            None => format!("open, valid for {}", counted(batch.steps_left, "more step")),
        };
        format!(
            "{} at {} for {steps}, {end}: {}",
            batch.token, batch.created_at, batch.reason
        )
    });
    let lines: Vec<String> = lines.collect();
    format!("\n## Deferred commits\n{}", bullets(&lines))
}

fn log_lines(bundle: &Bundle, kinds: &[LogType]) -> String {
    let entries = bundle.log.iter().filter(|entry| kinds.contains(&entry.log_type));
    let lines: Vec<String> = entries
        .map(|entry| {
            let step = entry.step_id.as_ref().map(|step| format!(" {step}"));
            let commit = entry.commit_hash.as_ref().map(|hash| format!(" ({hash})"));
            format!(
                "{}{}{}: {}",
                entry.at,
                step.unwrap_or_default(),
                commit.unwrap_or_default(),
                entry.content
            )
        })
        .collect();
    bullets(&lines)
}

/// Recorded mistakes.
pub(crate) fn mistakes(bundle: &Bundle) -> String {
    if bundle.mistakes.is_empty() {
        return "None.\n".to_owned();
    }
    let mut text = String::new();
    for mistake in &bundle.mistakes {
        let step = mistake.related_step_id.as_ref().map(|step| format!(" ({step})"));
        let _ = write!(
            text,
            "\n### {}{}\n\n- What happened: {}\n- Why: {}\n- Lesson: {}\n- Avoid: {}\n- Tags: {}\n",
            mistake.title,
            step.unwrap_or_default(),
            indented(&mistake.what_happened),
            indented(&mistake.why),
            indented(&mistake.lesson),
            indented(&mistake.avoid_next_time),
            mistake.tags.join(", ")
        );
    }
    text
}

/// Repository map, its snapshots, and notes written by hand.
fn repo_map(bundle: &Bundle) -> String {
    let repository = &bundle.repository;
    let mut text = String::new();
    if !repository.snapshots.is_empty() {
        text += "\n### Snapshots\n";
        let lines: Vec<String> = repository.snapshots.iter().map(snapshot).collect();
        text += &bullets(&lines);
    }
    if let Some(map) = &repository.map {
        // Headings of the map are moved below this one.
        let lines = map.lines().map(|line| match line.starts_with('#') {
            true => format!("##{line}\n"),
            false => format!("{line}\n"),
        });
        text.push('\n');
        text.extend(lines);
    } else if !repository.descriptions.is_empty() {
        text += "\n### Files\n";
        let said = repository.descriptions.iter();
        let lines: Vec<String> = said
            .map(|(path, said)| format!("`{}`: {said}", show(path)))
            .collect();
        text += &bullets(&lines);
    }
    let maps = bundle
        .context
        .iter()
        .filter(|block| block.block_type == BlockType::RepoMap);
    text.extend(maps.map(context));
    match text.is_empty() {
        true => "None was stored.\n".to_owned(),
        false => text,
    }
}

fn snapshot(taken: &SnapshotRecord) -> String {
    let mut line = format!(
        "{} at {}: {}",
        taken.snapshot_id,
        taken.taken_at,
        counted(taken.files, "file")
    );
    if let Some(changes) = taken.changes {
        let _ = write!(
            line,
            ", {} added, {} removed, {} modified, {} renamed",
            changes.added, changes.removed, changes.modified, changes.renamed
        );
    }
    if let Some(notes) = &taken.notes {
        let _ = write!(line, "; {notes}");
    }
    line
}

fn contexts(bundle: &Bundle) -> String {
    let others = bundle
        .context
        .iter()
        .filter(|block| block.block_type != BlockType::RepoMap);
    let text: String = others.map(context).collect();
    match text.is_empty() {
        true => "None.\n".to_owned(),
        false => text,
    }
}

/// Context block with its id, by which steps refer to it.
fn context(block: &Block) -> String {
    let tags = match block.tags.is_empty() {
        true => String::new(),
        false => format!(", {}", block.tags.join(", ")),
    };
    format!(
        "\n### {} ({}{tags})\n{}",
        block.context_id,
        block.block_type,
        fenced(&block.content)
    )
}

fn policies(bundle: &Bundle) -> String {
    let changed = bundle.job.policies.names();
    let policies = serde_json::to_value(&bundle.effective_policies).unwrap_or_default();
    let fields = policies.as_object().into_iter().flatten();
    fields
        .map(|(name, value)| {
            let mark = if changed.contains(&name.as_str()) {
                " (changed)"
            } else {
                ""
            };
            format!("- {name}: {value}{mark}\n")
        })
        .collect()
}

/// Text in a fence that is longer than any fence in it.
fn fenced(text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}

fn bullets(items: &[String]) -> String {
    match items.is_empty() {
        true => "None.\n".to_owned(),
        false => items
            .iter()
            .map(|item| format!("- {}\n", indented(item)))
            .collect(),
    }
}

fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}

fn words(name: &str) -> String {
    let mut words = name.replace('_', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}
