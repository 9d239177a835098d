//! Limits of arguments.

pub(crate) use tollgate_kit::text::clip;

/// Characters of an actor, a reviewer, a worker or another reference.
pub(crate) const MAX_REFERENCE_CHARS: usize = 200;
/// Characters of a title or of what an approval is asked for.
pub(crate) const MAX_TITLE_CHARS: usize = 500;
/// Characters of a workspace, a path or a URI.
pub(crate) const MAX_PATH_CHARS: usize = 2_000;
/// Characters of a reason, a summary or a note.
pub(crate) const MAX_TEXT_CHARS: usize = 8_192;
/// Bytes of a spec in Markdown.
pub(crate) const MAX_MARKDOWN_BYTES: usize = 262_144;
/// Bytes of the JSON of a payload, of findings, or of a structured spec.
pub(crate) const MAX_JSON_BYTES: usize = 65_536;
/// Labels of one task.
pub(crate) const MAX_LABELS: usize = 32;
/// Characters of one label or of a kind.
pub(crate) const MAX_LABEL_CHARS: usize = 64;
/// Findings of one review.
pub(crate) const MAX_FINDINGS: usize = 200;
/// Characters of one finding or of one entry of a spec's list.
pub(crate) const MAX_ENTRY_CHARS: usize = 2_000;
/// Entries of one list of a spec.
pub(crate) const MAX_ENTRIES: usize = 100;
/// Levels of lists and objects in one part of a spec.
pub(crate) const MAX_DEPTH: usize = 16;
/// Tasks, approvals or events of one page.
pub(crate) const MAX_PAGE_ROWS: u32 = 100;
