//! Process rules: findings of research about working well, in a few lines.

use crate::arguments::clip_to;
use crate::store::context::Block;

/// Maximum number of rules, and of characters in one.
const MAX_RULES: usize = 12;
const MAX_RULE_CHARS: usize = 200;

/// Tags of research about the process rather than the subject.
const PROCESS_TAGS: &[&str] = &[
    "best-practice",
    "best-practices",
    "process",
    "rules",
    "process-rules",
];

/// Bullets of research blocks with a process tag. Research of the subject is not a process rule. Each bullet occurs
/// once, the oldest first. A block without bullets gives its first sentence.
pub(crate) fn distil(blocks: &[Block]) -> Vec<String> {
    let about_process = |block: &&Block| block.tags.iter().any(|tag| PROCESS_TAGS.contains(&tag.as_str()));
    let chosen = blocks.iter().filter(about_process);
    let mut rules: Vec<String> = Vec::new();
    for block in chosen {
        let found: Vec<String> = block.content.lines().filter_map(bullet).collect();
        let found = match found.is_empty() {
            true => first_sentence(&block.content).into_iter().collect(),
            false => found,
        };
        for rule in found {
            if rules.len() < MAX_RULES && !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    rules
}

/// Text of a line that is a list item.
fn bullet(line: &str) -> Option<String> {
    let line = line.trim();
    let unnumbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = (unnumbered.len() < line.len()).then_some(unnumbered);
    let text = ["- ", "* ", "+ "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .or_else(|| numbered.and_then(|rest| rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))))?;
    let text = text.trim();
    (!text.is_empty()).then(|| clip_to(text, MAX_RULE_CHARS))
}

fn first_sentence(text: &str) -> Option<String> {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first);
    Some(clip_to(sentence, MAX_RULE_CHARS))
}
