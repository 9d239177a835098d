//! Prompt of a step: seven sections in a fixed order. The same state gives the same bytes.

mod result;

use std::fmt::Write as _;

use crate::arguments::clip_to;
use crate::briefing::Briefing;
use crate::checkpoint::is_inserted;
use crate::listed::how_to_call;
use crate::plan::Plan;
use crate::policy::Policies;
use crate::step::StepSpec;
use result::{commit, criteria, evidence_format, files};

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

/// Maximum characters of one reason of the last rejection.
const MAX_REASON_CHARS: usize = 3_500;
/// Maximum characters of the process rules.
const MAX_RULES_CHARS: usize = 1_500;

/// Advice from a recorded mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Advice {
    pub avoid: String,
    pub instead: String,
}

impl Advice {
    /// The advice in one line.
    pub(crate) fn line(&self) -> String {
        match self.instead.is_empty() {
            true => format!("Avoid: {}", self.avoid),
            false => format!("Avoid: {} / Instead: {}", self.avoid, self.instead),
        }
    }
}

/// Material of a prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Material<'a> {
    pub job_id: &'a str,
    pub job_title: &'a str,
    pub goal: &'a str,
    pub repo_root: Option<&'a str>,
    pub plan: &'a Plan,
    pub policies: &'a Policies,
    pub step_id: &'a str,
    pub step: &'a StepSpec,
    /// Number of the step, from 1, and number of steps.
    pub place: (usize, usize),
    pub briefing: &'a Briefing,
    /// Context blocks of the step: id, type and content.
    pub contexts: &'a [(String, String, String)],
    /// Process rules distilled from research.
    pub rules: &'a [String],
    /// Advice from relevant mistakes, newest first.
    pub mistakes: &'a [Advice],
    /// Open batch token, and the number of steps for which it is valid.
    pub batch: Option<(&'a str, u32)>,
    /// Reasons of the last rejection, if the step's last submission was rejected.
    pub rejection: &'a [String],
    /// Limits of a later step for which the changes of this one count as well.
    pub later: &'a [String],
    /// Number of submissions that may still be made before the job pauses or fails.
    pub attempts_left: u32,
}

/// Space for the sections that may be shortened.
#[derive(Clone, Copy)]
struct SectionLimits {
    context: usize,
    rules: usize,
    mistakes: usize,
    facts: bool,
    instruction: usize,
}

/// Builds the prompt within `prompt_max_chars`. Context is shortened first, then process rules, then mistakes, then
/// the facts about the job, and last the instruction, which then says where it was cut.
pub(crate) fn build(material: &Material<'_>) -> String {
    let limit = material.policies.prompt_max_chars as usize;
    let all = SectionLimits {
        context: usize::MAX,
        rules: MAX_RULES_CHARS,
        mistakes: 3,
        facts: true,
        instruction: usize::MAX,
    };
    let whole = compose(material, all);
    if length(&whole) <= limit {
        return whole;
    }
    let bare = |limits: SectionLimits| length(&compose(material, SectionLimits { context: 0, ..limits }));
    let mut limits = all;
    for (rules, mistakes, facts) in [
        (MAX_RULES_CHARS, 3, true),
        (0, 3, true),
        (0, 1, true),
        (0, 1, false),
        (0, 0, false),
    ] {
        limits = SectionLimits {
            rules,
            mistakes,
            facts,
            ..all
        };
        if bare(limits) <= limit {
            // Headings of blocks and marks of cuts take space, too.
            let overhead = material.contexts.len().saturating_mul(CONTEXT_OVERHEAD);
            let context = limit.saturating_sub(bare(limits)).saturating_sub(overhead);
            return compose(material, SectionLimits { context, ..limits });
        }
    }
    cut_instruction(material, limits, limit)
}

/// Last resort: cuts the instruction and says so.
fn cut_instruction(material: &Material<'_>, limits: SectionLimits, limit: usize) -> String {
    let bare = length(&compose(material, SectionLimits { context: 0, ..limits }));
    let instruction = length(&material.step.instruction_prompt)
        .saturating_sub(bare.saturating_sub(limit))
        .saturating_sub(200);
    let cut = compose(
        material,
        SectionLimits {
            context: 0,
            instruction,
            ..limits
        },
    );
    clip_to(&cut, limit.saturating_sub(1))
}

/// Length of the prompt without anything that may be shortened.
pub(crate) fn least_length(material: &Material<'_>) -> usize {
    let least = SectionLimits {
        context: 0,
        rules: 0,
        mistakes: 0,
        facts: false,
        instruction: usize::MAX,
    };
    length(&compose(material, least))
}

/// Maximum characters around the content of one context block.
const CONTEXT_OVERHEAD: usize = 120;

fn length(text: &str) -> usize {
    text.chars().count()
}

/// All sections that have content, under their headings.
fn compose(material: &Material<'_>, limits: SectionLimits) -> String {
    let sections = [
        objective(material, limits),
        invariants(material),
        produce(material),
        criteria(material),
        evidence_format(material),
        mistakes(material, limits),
        stuck(material),
    ];
    let (place, count) = material.place;
    let mut prompt = format!(
        "# {} {} ({place} of {count}): {}\n",
        material.job_id, material.step_id, material.step.title
    );
    let filled = HEADINGS
        .iter()
        .zip(sections)
        .filter(|(_, body)| !body.trim().is_empty());
    for (heading, body) in filled {
        let _ = write!(prompt, "\n## {heading}\n{}\n", body.trim_end());
    }
    if let Some(how) = how_to_call(&prompt) {
        let _ = writeln!(prompt, "{how}");
    }
    prompt
}

fn objective(material: &Material<'_>, limits: SectionLimits) -> String {
    let step = material.step;
    let mut text = String::new();
    if length(&step.instruction_prompt) <= limits.instruction {
        text += &step.instruction_prompt;
    } else {
        text += &clip_to(&step.instruction_prompt, limits.instruction);
        text += "\n[cut: job_get with step_id shows the whole instruction]";
    }
    text.push('\n');
    if step.checkpoint && !is_inserted(step) {
        text += "This is a checkpoint: review, do not build.\n";
    }
    let _ = write!(text, "\nJob: {}. Goal: {}\n", material.job_title, material.goal);
    if limits.facts {
        let (place, count) = material.place;
        let whole = place == 1 || place == count || step.checkpoint;
        text += &material.briefing.facts(material.plan, material.repo_root, whole);
        let done = material.briefing.done();
        if !done.is_empty() {
            let _ = write!(text, "\nDone so far:\n{done}");
        }
        if !material.later.is_empty() {
            let later = bullets(material.later);
            let _ = write!(text, "\nLater steps check the changes of this step:\n{later}");
        }
        let shown: Vec<&str> = material.contexts.iter().map(|(id, ..)| id.as_str()).collect();
        if let Some(blocks) = material.briefing.other_blocks(&shown) {
            let _ = write!(text, "\nAlso stored, for context_get_block: {blocks}\n");
        }
    }
    let rules = clip_list(material.rules, limits.rules);
    if !rules.is_empty() {
        let _ = write!(text, "\n### Process Rules\n{}", bullets(&rules));
    }
    text + &contexts(material, limits.context)
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
    let constraints = material.plan.constraints.as_deref().unwrap_or_default();
    let repeat =
        material.policies.inject_invariants_every_step || material.place.0 == 1 || material.step.checkpoint;
    if !(repeat || invariants.is_empty() && constraints.is_empty()) {
        return "The invariants of the first prompt apply; job_get lists them.\n".to_owned();
    }
    let mut text = bullets(invariants);
    if !constraints.is_empty() {
        let _ = write!(text, "\nAlso follow:\n{}", bullets(constraints));
    }
    text
}

fn produce(material: &Material<'_>) -> String {
    let (step, policies) = (material.step, material.policies);
    let mut items = step.expected_outputs.clone();
    items.extend(files(step));
    if policies.require_devlog_per_step {
        items.push("a devlog_line: one line on what changed and why".to_owned());
    }
    items.extend(commit(material));
    if policies.require_file_descriptions {
        items.push("file_descriptions: one line for each new file".to_owned());
    }
    bullets(&items)
}

fn mistakes(material: &Material<'_>, limits: SectionLimits) -> String {
    let mut text = String::new();
    if !material.rejection.is_empty() {
        text += "The last submission of this step was rejected:\n";
        let reasons: Vec<String> = material
            .rejection
            .iter()
            .map(|why| clip_to(why, MAX_REASON_CHARS))
            .collect();
        text += &bullets(&reasons);
        if limits.mistakes > 0 && !material.mistakes.is_empty() {
            text += "\nEarlier mistakes:\n";
        }
    }
    for advice in material.mistakes.iter().take(limits.mistakes) {
        let _ = writeln!(text, "- {}", advice.line());
    }
    text
}

fn stuck(material: &Material<'_>) -> String {
    let mut text = match material.step.remediation_prompt.as_str() {
        "" => "Narrow the change to the smallest part that fails, undo what is unrelated, and run the checks again.",
        prompt => prompt,
    }
    .to_owned();
    text += "\nIf you are unsure, say so in notes; do not guess.\n";
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
