//! How long arguments may be, and the checks that schemas cannot make.

use serde_json::Value;

use crate::error::{Reason, Refusals};

/// Characters of a title or a tag's owner.
pub(crate) const TITLE: usize = 200;
/// Characters of one entry of a list of the plan.
pub(crate) const ENTRY: usize = 2_000;
/// Entries of one list of the plan.
pub(crate) const ENTRIES: usize = 100;
/// Characters of a prompt, a summary or a log entry.
pub(crate) const TEXT: usize = 16_000;
/// Bytes of a context block.
pub(crate) const BLOCK: usize = 256 << 10;
/// Bytes of all context blocks of a job.
pub(crate) const BLOCKS: usize = 2 << 20;
/// Bytes of the plan of a job, and of one step, as JSON.
pub(crate) const PLAN: usize = 256 << 10;
pub(crate) const STEP: usize = 32 << 10;
/// Bytes of the evidence of one submission.
pub(crate) const EVIDENCE: usize = 48 << 10;
/// Steps of one job.
pub(crate) const STEPS: usize = 100;
/// Tags of one thing, and characters of one tag.
pub(crate) const TAGS: usize = 32;
/// Characters of one tag or key.
pub(crate) const TAG: usize = 64;
/// Characters of a path or a workspace.
pub(crate) const PATH: usize = 1_000;

impl Refusals {
    /// Wants text that is neither blank nor too long nor a placeholder.
    pub(crate) fn text(&mut self, field: &str, text: &str, max: usize) {
        if text.trim().is_empty() {
            self.add(Reason::argument(field, "is blank"));
        }
        if is_placeholder(text) {
            self.add(Reason::argument(
                field,
                "is still a placeholder; say what it stands for",
            ));
        }
        self.at_most(field, text.chars().count(), max, "characters");
    }

    /// Wants text, if there is some, like [`Refusals::text`].
    pub(crate) fn optional_text(&mut self, field: &str, text: Option<&str>, max: usize) {
        if let Some(text) = text {
            self.text(field, text, max);
        }
    }

    /// Wants a list of such texts.
    pub(crate) fn texts(&mut self, field: &str, texts: &[String], max: usize) {
        self.at_most(field, texts.len(), ENTRIES, "entries");
        for (place, text) in texts.iter().enumerate().take(ENTRIES) {
            self.text(&format!("{field}[{place}]"), text, max);
        }
    }

    /// Wants few short tags.
    pub(crate) fn tags(&mut self, field: &str, tags: &[String]) {
        self.at_most(field, tags.len(), TAGS, "tags");
        for (place, tag) in tags.iter().enumerate().take(TAGS) {
            self.text(&format!("{field}[{place}]"), tag, TAG);
        }
    }

    /// Wants at most so many of something.
    pub(crate) fn at_most(&mut self, field: &str, count: usize, max: usize, what: &str) {
        if count > max {
            self.add(Reason::argument(
                field,
                format!("has {count} {what}, at most {max} are allowed"),
            ));
        }
    }

    /// Wants JSON that is not too large.
    pub(crate) fn json(&mut self, field: &str, json: &Value, max: usize) {
        self.at_most(field, json.to_string().len(), max, "bytes");
    }

    /// The limit of a list, 1 to 200.
    pub(crate) fn limit(&mut self, limit: Option<u32>, default: u32) -> u32 {
        let limit = limit.unwrap_or(default);
        if !(1..=200).contains(&limit) {
            self.add(Reason::argument(
                "limit",
                format!("is {limit}, not within 1 to 200"),
            ));
        }
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

/// Text from the caller, short enough to be repeated in a message.
pub(crate) fn clip(text: &str) -> String {
    clip_to(text, 80)
}

/// The first characters of a text, with a mark if there were more.
pub(crate) fn clip_to(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
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
