//! Limits of arguments, and the checks that only this pack makes.

use serde_json::{Map, Value as Json};
pub(crate) use tollgate_kit::json_bytes;
pub(crate) use tollgate_kit::text::clip_line as short;

use crate::error::Refusals;
use crate::model::Workspace;

/// Characters of a title.
pub(crate) const MAX_TITLE_CHARS: usize = 500;
/// Characters of a description, a note or another text.
pub(crate) const MAX_TEXT_CHARS: usize = 16_000;
/// Characters of a reason, a reference or an entry of a list.
pub(crate) const MAX_ENTRY_CHARS: usize = 2_000;
/// Characters of a name: an owner, a tag, an id.
pub(crate) const MAX_NAME_CHARS: usize = 200;
/// Entries of a list.
pub(crate) const MAX_ENTRIES: usize = 50;
/// Steps in one call.
pub(crate) const MAX_STEPS: usize = 500;
/// Entries of a plan's checklist.
pub(crate) const MAX_CHECKLIST: usize = 200;
/// Operations of a batch, or of a patch.
pub(crate) const MAX_OPERATIONS: usize = 50;
/// Bytes of structured data.
pub(crate) const MAX_JSON_BYTES: usize = 64_000;
/// Bytes of one record, whose states before and after share a row of the journal.
pub(crate) const MAX_RECORD_BYTES: usize = 400_000;

impl Refusals {
    /// Checks the name of a workspace.
    pub(crate) fn workspace(&mut self, workspace: &Workspace) {
        if !workspace.is_valid() {
            self.fault("workspace", format!("does not match {}", Workspace::PATTERN));
        }
    }

    /// Checks that structured data is not too large.
    pub(crate) fn data(&mut self, field: &str, data: Option<&Map<String, Json>>) {
        if let Some(data) = data {
            self.json(field, data, MAX_JSON_BYTES);
        }
    }
}
