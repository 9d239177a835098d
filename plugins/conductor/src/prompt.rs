//! Prompt of a step: seven sections in a fixed order. The same state gives the same bytes.

use std::fmt::Write as _;

use serde_json::Value;

use crate::arguments::clip_to;
use crate::evidence;
use crate::model::{EvidenceMode, EvidenceType};
use crate::plan::Plan;
use crate::policy::Policies;
use crate::step::StepSpec;

/// Headings of the sections, in order.
pub(crate) const HEADINGS: [&str; 7] = [
    "Step Objective",
    "Non-Negotiable Invariants",
    "What to Produce",
    "Acceptance Criteria",
    "Required Evidence Format",
    "Reminder of Relevant Mistakes",
    "If Stuck",
];

/// Maximum characters of the process rules.
const RULES: usize = 1_500;

/// Material of a prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Material<'a> {
    pub job_id: &'a str,
    pub job_title: &'a str,
    pub goal: &'a str,
    pub plan: &'a Plan,
    pub policies: &'a Policies,
    pub step_id: &'a str,
    pub step: &'a StepSpec,
    /// Number of the step, from 1, and number of steps.
    pub place: (usize, usize),
    /// Context blocks of the step: id, type and content.
    pub contexts: &'a [(String, String, String)],
    /// Process rules distilled from research.
    pub rules: &'a [String],
    /// Relevant mistakes, newest first: title and advice.
    pub mistakes: &'a [(String, String)],
    /// Open batch token, and the number of steps for which it is valid.
    pub batch: Option<(&'a str, u32)>,
    pub rejections: u32,
}

/// Space for the sections that may be shortened.
#[derive(Clone, Copy)]
struct Room {
    context: usize,
    rules: usize,
    mistakes: usize,
    instruction: usize,
}

/// Builds the prompt within `prompt_max_chars`. Context is shortened first, then process rules, then mistakes,
/// and last the instruction, which then says where it was cut.
pub(crate) fn build(material: &Material<'_>) -> String {
    let limit = material.policies.prompt_max_chars as usize;
    let all = Room {
        context: usize::MAX,
        rules: RULES,
        mistakes: 3,
        instruction: usize::MAX,
    };
    let whole = compose(material, all);
    if length(&whole) <= limit {
        return whole;
    }
    let bare = |room: Room| length(&compose(material, Room { context: 0, ..room }));
    let mut room = all;
    for (rules, mistakes) in [(RULES, 3), (0, 3), (0, 1), (0, 0)] {
        room = Room {
            rules,
            mistakes,
            ..all
        };
        if bare(room) <= limit {
            // Headings of blocks and marks of cuts take space, too.
            let overhead = material.contexts.len().saturating_mul(CONTEXT_OVERHEAD);
            let context = limit.saturating_sub(bare(room)).saturating_sub(overhead);
            return compose(material, Room { context, ..room });
        }
    }
    cut_instruction(material, room, limit)
}

/// Last resort: cuts the instruction and says so.
fn cut_instruction(material: &Material<'_>, room: Room, limit: usize) -> String {
    let bare = length(&compose(material, Room { context: 0, ..room }));
    let instruction = length(&material.step.instruction_prompt)
        .saturating_sub(bare.saturating_sub(limit))
        .saturating_sub(200);
    let cut = compose(
        material,
        Room {
            context: 0,
            instruction,
            ..room
        },
    );
    clip_to(&cut, limit.saturating_sub(1))
}

/// Length of the prompt without anything that may be shortened.
pub(crate) fn least_length(material: &Material<'_>) -> usize {
    let least = Room {
        context: 0,
        rules: 0,
        mistakes: 0,
        instruction: usize::MAX,
    };
    length(&compose(material, least))
}

/// Maximum characters around the content of one context block.
const CONTEXT_OVERHEAD: usize = 120;

fn length(text: &str) -> usize {
    text.chars().count()
}

fn compose(material: &Material<'_>, room: Room) -> String {
    let sections = [
        objective(material, room),
        invariants(material),
        produce(material),
        criteria(material.step),
        evidence_format(material),
        mistakes(material, room),
        stuck(material),
    ];
    let (place, count) = material.place;
    let mut prompt = format!(
        "# {} {} ({place} of {count}): {}\n",
        material.job_id, material.step_id, material.step.title
    );
    for (heading, body) in HEADINGS.iter().zip(sections) {
        let _ = write!(prompt, "\n## {heading}\n{}\n", body.trim_end());
    }
    prompt
}

fn objective(material: &Material<'_>, room: Room) -> String {
    let step = material.step;
    let mut text = format!("Job: {}. Goal: {}\n\n", material.job_title, material.goal);
    if length(&step.instruction_prompt) <= room.instruction {
        text += &step.instruction_prompt;
    } else {
        text += &clip_to(&step.instruction_prompt, room.instruction);
        text += "\n[cut: job_get with the step has the whole instruction]";
    }
    text.push('\n');
    if step.checkpoint {
        text += "\nThis is a checkpoint: review, do not build.\n";
    }
    let rules = clip_list(material.rules, room.rules);
    if !rules.is_empty() {
        let _ = write!(text, "\n### Process Rules\n{}", bullets(&rules));
    }
    text + &contexts(material, room.context)
}

/// Context blocks within the space; short ones leave more to long ones.
fn contexts(material: &Material<'_>, room: usize) -> String {
    let mut sizes: Vec<usize> = material
        .contexts
        .iter()
        .map(|(_, _, content)| length(content))
        .collect();
    sizes.sort_unstable();
    let (mut left, mut share) = (room, usize::MAX);
    for (place, size) in sizes.iter().enumerate() {
        let even = left / (sizes.len() - place);
        if *size > even {
            share = even;
            break;
        }
        left -= size;
    }
    let mut text = String::new();
    for (id, kind, content) in material.contexts {
        if share < 40 {
            let _ = write!(
                text,
                "\n### Context {id} ({kind})\n[omitted: read it with context_get_block]\n"
            );
        } else if length(content) <= share {
            let _ = write!(text, "\n### Context {id} ({kind})\n{}\n", content.trim_end());
        } else {
            let start = clip_to(content, share);
            let _ = write!(
                text,
                "\n### Context {id} ({kind})\n{start}\n[cut: read the rest with context_get_block]\n"
            );
        }
    }
    text
}

fn invariants(material: &Material<'_>) -> String {
    let invariants = material.plan.invariants.as_deref().unwrap_or_default();
    let repeat =
        material.policies.inject_invariants_every_step || material.place.0 == 1 || material.step.checkpoint;
    let mut text = match (invariants.is_empty(), repeat) {
        (true, _) => "None were set.\n".to_owned(),
        (false, true) => bullets(invariants),
        (false, false) => "The invariants of the first prompt apply; job_get lists them.\n".to_owned(),
    };
    let constraints = material.plan.constraints.as_deref().unwrap_or_default();
    if !constraints.is_empty() && repeat {
        let _ = write!(text, "\nAlso follow:\n{}", bullets(constraints));
    }
    text
}

fn produce(material: &Material<'_>) -> String {
    let (step, policies) = (material.step, material.policies);
    let mut items = step.expected_outputs.clone();
    if items.is_empty() {
        items.push("what the objective asks for, and nothing else".to_owned());
    }
    if policies.require_devlog_per_step {
        items.push("a devlog_line: one line on what changed and why".to_owned());
    }
    let commit = step.strict_git || policies.require_commit_per_step;
    match material.batch {
        Some((token, left)) if left > 0 && !step.strict_git && material.place.0 < material.place.1 => items
            .push(format!(
                "a commit_hash, or batch_commit_token {token}, which is valid for {left} more"
            )),
        Some(_) => items.push("a commit_hash: the open batch must be committed now".to_owned()),
        None if commit && policies.allow_batch_commits && !step.strict_git => {
            items.push("a commit_hash, or a batch_commit_token from git_commit with defer_reason".to_owned());
        }
        None if commit => items.push("a commit_hash".to_owned()),
        None => {}
    }
    if policies.require_file_descriptions {
        items.push("file_descriptions: one line for each new file".to_owned());
    }
    bullets(&items)
}

fn criteria(step: &StepSpec) -> String {
    let mut text = String::new();
    for (place, criterion) in step.acceptance_criteria.iter().enumerate() {
        let _ = writeln!(text, "- c{}: {criterion}", place + 1);
    }
    let gates = step.parsed_gates();
    if !gates.is_empty() {
        text += "\nChecked when you submit, whatever you claim:\n";
        for gate in gates {
            let _ = writeln!(text, "- {}", gate.describe());
        }
    }
    text
}

fn evidence_format(material: &Material<'_>) -> String {
    let policies = material.policies;
    let mut required = evidence::required(&material.step.required_evidence, policies, material.plan);
    // Not required of every submission, but read whenever given.
    required.insert("criteria_checklist".to_owned(), EvidenceType::Object);
    if policies.require_file_descriptions {
        required.insert("file_descriptions".to_owned(), EvidenceType::Object);
    }
    if material
        .plan
        .invariants
        .as_ref()
        .is_some_and(|all| !all.is_empty())
    {
        required.insert("invariants_checked".to_owned(), EvidenceType::Boolean);
    }
    let template = evidence::template(&required, material.step.acceptance_criteria.len());
    let mut call = serde_json::Map::new();
    let mut add = |key: &str, value: Value| call.insert(key.to_owned(), value);
    add("job_id", material.job_id.into());
    add("step_id", material.step_id.into());
    add("model_claim", "MET, NOT_MET or PARTIAL".into());
    add("summary", "what you did".into());
    if policies.require_devlog_per_step {
        add("devlog_line", "one line".into());
    }
    if material.step.strict_git || policies.require_commit_per_step || material.batch.is_some() {
        add("commit_hash", "hash".into());
    }
    add("evidence", template);
    let json = serde_json::to_string_pretty(&Value::Object(call)).unwrap_or_default();
    let strict = match policies.evidence_schema_mode {
        EvidenceMode::Strict => " Evidence is strict: describe what was done, not only that it was done.",
        EvidenceMode::Loose => "",
    };
    format!(
        "Call job_submit_step_result with:\n```json\n{json}\n```\nBefore submitting, go through the criteria one by one. \
         If any does not hold, do not claim MET: fix it first, or claim NOT_MET and say what fails.{strict}\n"
    )
}

fn mistakes(material: &Material<'_>, room: Room) -> String {
    let shown = material.mistakes.iter().take(room.mistakes);
    let lines: Vec<String> = shown.map(|(title, avoid)| format!("{title}: {avoid}")).collect();
    match lines.is_empty() {
        true => "None.\n".to_owned(),
        false => bullets(&lines),
    }
}

fn stuck(material: &Material<'_>) -> String {
    let mut text = match material.step.remediation_prompt.as_str() {
        "" => "Narrow the change to the smallest part that fails, undo what is unrelated, and run the checks again.",
        prompt => prompt,
    }
    .to_owned();
    text.push('\n');
    if material.rejections > 0 {
        let _ = writeln!(
            text,
            "This step was rejected {} times; job_get has the reasons.",
            material.rejections
        );
    }
    text += "Record what went wrong with mistake_record. If you are unsure, say so in notes; do not guess.\n";
    text
}

fn bullets(items: &[String]) -> String {
    items.iter().map(|item| format!("- {item}\n")).collect()
}

/// As many entries as fit into the space.
fn clip_list(items: &[String], room: usize) -> Vec<String> {
    let mut left = room;
    let mut kept = Vec::new();
    for item in items {
        let size = length(item) + 3;
        if size > left {
            break;
        }
        left -= size;
        kept.push(item.clone());
    }
    kept
}
