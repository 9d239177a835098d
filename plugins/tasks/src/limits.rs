//! How long arguments may be, and the checks that schemas cannot make.

use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::error::{Reason, Refusals};
use crate::model::Workspace;

/// Characters of a title.
pub(crate) const TITLE: usize = 500;
/// Characters of a description, a note or another text.
pub(crate) const TEXT: usize = 16_000;
/// Characters of a reason, a reference or an entry of a list.
pub(crate) const ENTRY: usize = 2_000;
/// Characters of a name: an owner, a tag, an id.
pub(crate) const NAME: usize = 200;
/// Entries of a list.
pub(crate) const ENTRIES: usize = 50;
/// Steps in one call.
pub(crate) const STEPS: usize = 500;
/// Entries of a plan's checklist.
pub(crate) const CHECKLIST: usize = 200;
/// Operations of a batch, or of a patch.
pub(crate) const OPERATIONS: usize = 50;
/// Bytes of structured data.
pub(crate) const JSON: usize = 64_000;
/// Bytes of one record, whose states before and after share a row of the journal.
pub(crate) const RECORD: usize = 400_000;

impl Refusals {
    /// Wants the name of a workspace.
    pub(crate) fn workspace(&mut self, workspace: &Workspace) {
        if !workspace.is_valid() {
            self.add(Reason::input(
                "workspace",
                format!("does not match {}", Workspace::PATTERN),
            ));
        }
    }

    /// Wants text that is neither blank, too long, nor full of control characters.
    pub(crate) fn text(&mut self, field: &str, text: &str, max: usize) {
        if text.trim().is_empty() {
            self.add(Reason::input(field, "is blank"));
        }
        let characters = text.chars().count();
        if characters > max {
            self.add(Reason::input(
                field,
                format!("has {characters} characters, at most {max} are taken"),
            ));
        }
        if let Some(control) = text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
        {
            let code = u32::from(control);
            self.add(Reason::input(
                field,
                format!("holds the control character U+{code:04X}"),
            ));
        }
    }

    /// Wants text, if there is some.
    pub(crate) fn optional(&mut self, field: &str, text: Option<&str>, max: usize) {
        if let Some(text) = text {
            self.text(field, text, max);
        }
    }

    /// Wants a list of texts that is not too long.
    pub(crate) fn entries(&mut self, field: &str, entries: &[String], most: usize, max: usize) {
        self.at_most(field, entries.len(), most);
        for (place, entry) in entries.iter().take(most).enumerate() {
            self.text(&format!("{field}[{place}]"), entry, max);
        }
    }

    /// Wants at most so many of something.
    pub(crate) fn at_most(&mut self, field: &str, count: usize, most: usize) {
        if count > most {
            self.add(Reason::input(
                field,
                format!("has {count} entries, at most {most} are taken"),
            ));
        }
    }

    /// Wants a number within bounds.
    pub(crate) fn within(&mut self, field: &str, number: i64, least: i64, most: i64) {
        if !(least..=most).contains(&number) {
            self.add(Reason::input(
                field,
                format!("is {number}, not within {least} to {most}"),
            ));
        }
    }

    /// Wants structured data that is not too large.
    pub(crate) fn data(&mut self, field: &str, data: Option<&Map<String, Json>>) {
        let bytes = data.map_or(0, json_bytes);
        if bytes > JSON {
            self.add(Reason::input(
                field,
                format!("has {bytes} bytes, at most {JSON} are taken"),
            ));
        }
    }
}

/// The first characters of a text, with a mark if there are more.
pub(crate) fn short(text: &str, most: usize) -> String {
    let line = text.split(['\n', '\r']).next().unwrap_or_default();
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None if line.len() < text.len() => format!("{line}…"),
        None => line.to_owned(),
    }
}

/// How many bytes a value has as JSON.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        // What cannot be written has no size that would fit anywhere.
        Err(_) => usize::MAX,
    }
}
