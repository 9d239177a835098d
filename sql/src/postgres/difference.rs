//! Reasons for which a statement has different meanings on the two engines.

use thiserror::Error;

use super::Kind;

/// Part of a statement that has different meanings on the two engines.
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
    /// A kind that is not accepted in its position.
    #[error("{what} takes {wanted}, not {found}")]
    Takes {
        /// Operator, function or clause.
        what: String,
        /// Kinds that are accepted.
        wanted: &'static str,
        /// Kind of the given expression.
        found: &'static str,
    },
    /// A conversion whose result differs.
    #[error("engines convert {from} to {to} differently; convert it in the component")]
    Cast {
        /// Kind of the value.
        from: &'static str,
        /// Requested kind.
        to: &'static str,
    },
    /// A parameter whose kind cannot be inferred.
    #[error("the type of ?{0} is not known here; write CAST(?{0} AS TEXT), or another type")]
    Parameter(u16),
    /// A parameter that would need two kinds.
    #[error("?{number} is {one} in one place and {other} in another; use two parameters")]
    ParameterKinds {
        /// Number of the parameter.
        number: u16,
        /// One kind.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A table that does not exist at this point.
    #[error("there is no table `{0}`")]
    NoTable(String),
    /// A column that does not exist, or not where it is used.
    #[error("there is no column `{0}` here")]
    NoColumn(String),
    /// A column that several tables have.
    #[error("the column `{0}` is ambiguous")]
    Ambiguous(String),
    /// A column next to aggregates.
    #[error(
        "`{0}` is beside an aggregate and not in GROUP BY, so its value depends on the engine; add it to GROUP BY"
    )]
    Bare(String),
    /// Any other difference, with what to do instead.
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

/// Error with [`Difference::Other`].
pub(super) fn other<T>(reason: impl Into<String>) -> Result<T> {
    Err(Difference::Other(reason.into()))
}
