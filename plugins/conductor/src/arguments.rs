//! Limits of arguments, and the checks that only this pack makes.

pub(crate) use tollgate_kit::text::{clip, clip_to, counted};

use crate::error::Refusals;

/// Characters of a title or a tag's owner.
pub(crate) const MAX_TITLE_CHARS: usize = 200;
/// Characters of one entry of a list of the plan.
pub(crate) const MAX_ENTRY_CHARS: usize = 2_000;
/// Entries of one list of the plan.
pub(crate) const MAX_ENTRIES: usize = 100;
/// Characters of a prompt, a summary or a log entry.
pub(crate) const MAX_TEXT_CHARS: usize = 16_000;
/// Bytes of a context block.
pub(crate) const MAX_BLOCK_BYTES: usize = 256 << 10;
/// Bytes of all context blocks of a job.
pub(crate) const MAX_CONTEXT_BYTES: usize = 2 << 20;
/// Bytes of the plan of a job, and of one step, as JSON.
pub(crate) const MAX_PLAN_BYTES: usize = 256 << 10;
pub(crate) const MAX_STEP_BYTES: usize = 32 << 10;
/// Bytes of the evidence of one submission.
pub(crate) const MAX_EVIDENCE_BYTES: usize = 48 << 10;
/// Steps of one job.
pub(crate) const MAX_STEPS: usize = 100;
/// Tags of one thing.
pub(crate) const MAX_TAGS: usize = 32;
/// Characters of one tag or key.
pub(crate) const MAX_TAG_CHARS: usize = 64;
/// Characters of a path or a workspace.
pub(crate) const MAX_PATH_CHARS: usize = 1_000;

impl Refusals {
    /// Checks a list of free texts.
    pub(crate) fn texts(&mut self, field: &str, texts: &[String], max: usize) {
        tollgate_kit::Refusals::texts(self, field, texts, MAX_ENTRIES, max);
    }

    /// Checks a short list of short tags.
    pub(crate) fn tags(&mut self, field: &str, tags: &[String]) {
        tollgate_kit::Refusals::texts(self, field, tags, MAX_TAGS, MAX_TAG_CHARS);
    }

    /// The limit of a list, 1 to 200.
    pub(crate) fn limit(&mut self, limit: Option<u32>, default: u32) -> u32 {
        let limit = limit.unwrap_or(default);
        self.within("limit", limit, 1..=200);
        limit
    }
}

/// Text such as `<one deliverable>`, which ready calls carry where somebody has to think.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    text.len() > 2
        && text.starts_with('<')
        && text.ends_with('>')
        && !text.contains('\n')
        && text.contains(' ')
}

/// Command line as a person types it in a shell.
pub(crate) fn shell(words: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./=:@%+,".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Tags without blanks around them and without repetition, in the order given.
pub(crate) fn tidy_tags(tags: Vec<String>) -> Vec<String> {
    let mut tidy: Vec<String> = Vec::with_capacity(tags.len());
    for tag in tags {
        let tag = tag.trim().to_lowercase();
        if !tidy.contains(&tag) {
            tidy.push(tag);
        }
    }
    tidy
}
