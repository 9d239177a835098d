//! Objects in the database that should not exist, or that were changed.

use std::fmt;

use serde::Serialize;
use tollgate_core::text;

/// An object in the database that should not exist, or that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misplaced {
    /// `table`, `index`, `trigger` or `view`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Problem of the object.
    pub why: String,
    /// True if the object concerns the host's own tables, and the ledger with them.
    pub concerns_core: bool,
    #[serde(skip)]
    pub(in crate::storage) cure: Cure,
}

/// Remedy of a [`Misplaced`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) enum Cure {
    /// Dropping it.
    Drop,
    /// Recreating it as the host defines it.
    Restore,
    /// No remedy that keeps the rows.
    None,
}

impl Misplaced {
    /// True if [`Database::repair`](crate::storage::Database::repair) can fix the object.
    pub fn is_curable(&self) -> bool {
        self.cure != Cure::None
    }
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = text::clean(text::cut(&self.name, 100));
        write!(f, "{} {name} {}", self.kind, self.why)
    }
}
