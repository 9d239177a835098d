//! All SQL of the pack: one file per table.

pub(crate) mod body;
pub(crate) mod envelope;
pub(crate) mod event;
pub(crate) mod operation;
pub(crate) mod record;
pub(crate) mod root;
pub(crate) mod search;
pub(crate) mod workspace;

use tollgate_sdk::text_enum;

text_enum! {
    /// Kind of a record.
    pub(crate) enum Kind {
        Plan = "plan",
        Task = "task",
        Step = "step",
        Node = "node",
        Evidence = "evidence",
        Note = "note",
        Lease = "lease",
        Template = "template",
    }
}

/// Columns of a record's row beside the JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    pub id: String,
    /// Plan or task whose revision covers the record; empty if none.
    pub root: String,
    pub parent: String,
    pub position: i64,
    pub status: &'static str,
}

impl Columns {
    pub(crate) fn new(id: &str, root: &str, parent: &str, position: i64, status: &'static str) -> Columns {
        Columns {
            id: id.to_owned(),
            root: root.to_owned(),
            parent: parent.to_owned(),
            position,
            status,
        }
    }
}

/// A limit as the parameter of `LIMIT`.
fn rows(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
