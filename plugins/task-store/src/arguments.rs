//! How long arguments may be, and the checks that schemas cannot make.

use std::ops::RangeInclusive;

use serde_json::Value;

use crate::error::{Reason, Refusals};

/// Characters of an actor, a reviewer, a worker or another reference.
pub(crate) const REFERENCE: usize = 200;
/// Characters of a title or of what an approval is asked for.
pub(crate) const TITLE: usize = 500;
/// Characters of a workspace, a path or a URI.
pub(crate) const PATH: usize = 2_000;
/// Characters of a reason, a summary or a note.
pub(crate) const TEXT: usize = 8_192;
/// Bytes of a spec in Markdown.
pub(crate) const MARKDOWN: usize = 262_144;
/// Bytes of the JSON of a payload, of findings, or of a structured spec.
pub(crate) const JSON: usize = 65_536;
/// Labels of one task.
pub(crate) const LABELS: usize = 32;
/// Characters of one label or of a kind.
pub(crate) const LABEL: usize = 64;
/// Findings of one review.
pub(crate) const FINDINGS: usize = 200;
/// Characters of one finding or of one entry of a spec's list.
pub(crate) const ENTRY: usize = 2_000;
/// Entries of one list of a spec.
pub(crate) const ENTRIES: usize = 100;

impl Refusals {
    /// Wants text that is neither blank nor too long.
    pub(crate) fn text(&mut self, field: &str, text: &str, max: usize) {
        self.not_blank(field, text);
        self.at_most(field, text.chars().count(), max, "characters");
    }

    /// Wants text that is not blank.
    pub(crate) fn not_blank(&mut self, field: &str, text: &str) {
        if text.trim().is_empty() {
            self.add(Reason::argument(field, "is blank"));
        }
    }

    /// Wants text, if there is some, that is neither blank nor too long.
    pub(crate) fn optional_text(&mut self, field: &str, text: Option<&str>, max: usize) {
        if let Some(text) = text {
            self.text(field, text, max);
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

    /// Wants a number within a range.
    pub(crate) fn limit(&mut self, field: &str, limit: u32, range: RangeInclusive<u32>) {
        if !range.contains(&limit) {
            let (least, most) = range.into_inner();
            self.add(Reason::argument(
                field,
                format!("is {limit}, not within {least} to {most}"),
            ));
        }
    }

    /// Wants JSON that is not too large.
    pub(crate) fn json(&mut self, field: &str, json: &Value) {
        self.at_most(field, json.to_string().len(), JSON, "bytes");
    }
}

/// An identifier or name from the caller, short enough to be repeated in a message.
pub(crate) fn clip(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
