//! Reasons why a statement means different things to the two engines.

use thiserror::Error;

use super::Kind;

/// Part of a statement that has no meaning which both engines share.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Difference {
    /// Values of two kinds meet.
    #[error(
        "{what} mixes {one} with {other}, which engines compare and store differently; convert one of them, for example with CAST(… AS {one})"
    )]
    Kinds {
        /// Operator or clause.
        what: String,
        /// One kind, as migrations name it.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A kind that a place does not take.
    #[error("{what} takes {wanted}, not {found}")]
    Takes {
        /// Operator, function or clause.
        what: String,
        /// Kinds that it takes.
        wanted: &'static str,
        /// Kind that was there.
        found: &'static str,
    },
    /// A conversion whose result differs.
    #[error("engines convert {from} to {to} differently; convert it in the component")]
    Cast {
        /// Kind of the value.
        from: &'static str,
        /// Kind that is asked for.
        to: &'static str,
    },
    /// A parameter whose kind nothing tells.
    #[error("the type of ?{0} is not known here; write CAST(?{0} AS TEXT), or another type")]
    Parameter(u16),
    /// A parameter that would have to be two things.
    #[error("?{number} is {one} in one place and {other} in another; use two parameters")]
    ParameterKinds {
        /// Number of the parameter.
        number: u16,
        /// One kind.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A table that is not there at this point.
    #[error("there is no table `{0}`")]
    NoTable(String),
    /// A column that is not there, or not where it is named.
    #[error("there is no column `{0}` here")]
    NoColumn(String),
    /// A column that several tables have.
    #[error("the column `{0}` is ambiguous")]
    Ambiguous(String),
    /// A column beside aggregates.
    #[error(
        "`{0}` is beside an aggregate and not in GROUP BY, so its value depends on the engine; add it to GROUP BY"
    )]
    Bare(String),
    /// Anything else, with what to do instead.
    #[error("{0}")]
    Other(String),
}

impl Difference {
    pub(super) fn kinds(what: &str, one: Kind, other: Kind) -> Difference {
        Difference::Kinds {
            what: what.to_owned(),
            one: one.said(),
            other: other.said(),
        }
    }

    pub(super) fn takes(what: &str, wanted: &'static str, found: Kind) -> Difference {
        Difference::Takes {
            what: what.to_owned(),
            wanted,
            found: found.said(),
        }
    }
}

pub(super) type Result<T> = std::result::Result<T, Difference>;

/// Shorthand for what no other variant says.
pub(super) fn other<T>(reason: impl Into<String>) -> Result<T> {
    Err(Difference::Other(reason.into()))
}
