//! Reasons for which a text is not run.

use std::fmt;

use thiserror::Error;

/// Reason for which a statement is not run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Not in the subset, with what is allowed.
    #[error("{0}")]
    NotAllowed(String),
    /// A table of another owner. The message is the same as for a table that does not exist.
    #[error("no such table or no access")]
    Foreign {
        /// Name in the statement.
        name: String,
        /// Prefix of the component's names.
        prefix: String,
    },
    /// A change to rows of an append-only table.
    #[error(
        "`{table}` is append-only: its rows can be inserted and read, but not changed ({verb} is refused)"
    )]
    AppendOnly {
        /// The table.
        table: String,
        /// Verb of the statement.
        verb: &'static str,
    },
    /// Reuse of an append-only table's former name for another table.
    #[error(
        "the name `{table}` belonged to an append-only table, which is now `{now}`: another table with that name could \
         be mistaken for the log; choose another name"
    )]
    Retired {
        /// The name.
        table: String,
        /// Current name of the table.
        now: String,
    },
    /// More tables than a component may have.
    #[error("the component would have more than {limit} {what}; combine them or drop some")]
    SchemaTooLarge {
        /// Thing that exceeds its limit.
        what: &'static str,
        /// Limit.
        limit: usize,
    },
}

impl Refusal {
    /// Table that the refusal is about, if there is one.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        match self {
            Refusal::NotAllowed(_) | Refusal::SchemaTooLarge { .. } => None,
            Refusal::Foreign { name, .. } => Some(name),
            Refusal::AppendOnly { table, .. } | Refusal::Retired { table, .. } => Some(table),
        }
    }
}

/// Error with [`Refusal::NotAllowed`].
pub(crate) fn not_allowed<T>(reason: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::NotAllowed(reason.into()))
}

/// A refused statement of a migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Name of the step.
    pub step: String,
    /// Number of the statement in the step, from 1. `None` if the step could not be split into statements.
    pub statement: Option<usize>,
    /// First words of the statement.
    pub words: String,
    /// Table that it is about.
    pub table: Option<String>,
    /// Reason.
    pub refusal: Refusal,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}", self.step)?;
        if let Some(number) = self.statement {
            write!(f, ", statement {number} (`{}`)", self.words)?;
        }
        if let Some(table) = &self.table {
            write!(f, ", table `{table}`")?;
        }
        match &self.refusal {
            Refusal::Foreign { name, prefix } => {
                write!(
                    f,
                    ": `{name}` is not its own; its tables and indexes start with `{prefix}`"
                )
            }
            other => write!(f, ": {other}"),
        }
    }
}

/// Most problems that are shown in a message.
const SHOWN: usize = 50;

/// All problems of a component's migrations.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.0.iter().take(SHOWN).enumerate() {
            if place > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
