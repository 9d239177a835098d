//! Limits of arguments.

pub(crate) use tollgate_kit::text::clip;

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
/// Levels of lists and objects in one part of a spec.
pub(crate) const DEPTH: usize = 16;
/// Tasks, approvals or events of one page.
pub(crate) const PAGE: u32 = 100;
