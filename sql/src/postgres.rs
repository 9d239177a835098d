//! Prints the tree for PostgreSQL 15 and later, with the meaning that it has for SQLite.
//!
//! PostgreSQL types expressions where SQLite types values. So every expression gets one of four kinds here, derived
//! from the columns that the migrations created. A statement whose meaning would depend on the value of a row is
//! refused with a [`Difference`]. Parameters get the kind of the expression that they are used with.
//!
//! Tables get generated names (`s1`, `w1`, `c1`), and each column is qualified with the name of its table, so that
//! PostgreSQL has nothing to resolve. Some functions are created once in each database: [`FUNCTIONS`].

mod catalog;
mod change;
mod column;
mod define;
mod difference;
mod differences;
mod expr;
mod function;
mod predicate;
mod printer;
mod query;
mod relation;
mod scope;
mod source;
mod translator;
mod value;
mod window;
mod with;
mod write;

pub use catalog::{Catalog, Field, Relation};
pub use define::{Migrated, Unfit, migrations};
pub use difference::Difference;
pub use differences::{Finding, Place, differences};
pub use translator::{Translator, Unsaid, Untranslated};
pub use value::{Datum, MAX_VALUE, Misfit, bind};

use crate::{stack, tree};
use printer::Printer;

/// Definition of the schema `tollgate` with the functions that translated statements call. Created once in each
/// database, by its owner. Every role may use the schema and call the functions.
pub const FUNCTIONS: &str = include_str!("postgres/functions.sql");

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Integer,
    Real,
    Text,
    Blob,
}

impl Kind {
    /// Name of the type in PostgreSQL.
    #[must_use]
    pub fn sql(self) -> &'static str {
        match self {
            Kind::Integer => "bigint",
            Kind::Real => "double precision",
            Kind::Text => "text",
            Kind::Blob => "bytea",
        }
    }

    /// Name of the type in migrations.
    #[must_use]
    pub fn said(self) -> &'static str {
        match self {
            Kind::Integer => "BIGINT",
            Kind::Real => "DOUBLE",
            Kind::Text => "TEXT",
            Kind::Blob => "BLOB",
        }
    }

    fn of(kind: tree::Type) -> Kind {
        match kind {
            tree::Type::Text => Kind::Text,
            tree::Type::BigInt | tree::Type::Integer | tree::Type::Int => Kind::Integer,
            tree::Type::Double => Kind::Real,
            tree::Type::Blob => Kind::Blob,
        }
    }
}

/// Parameter of a translated statement. The first is `$1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Number in the component's text: 1 for `?1`.
    pub number: u16,
    /// Kind in which it is sent. `None` if it is only compared with NULL, and sent as text.
    pub kind: Option<Kind>,
    /// True if its position does not accept NULL.
    pub required: bool,
}

/// A translated statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub sql: String,
    /// Parameters in the order of `$1`, `$2` and so on.
    pub parameters: Vec<Parameter>,
    /// Kinds of the result columns. Empty if there are none.
    pub columns: Vec<Kind>,
    /// Change that it makes, unless it only reads.
    pub changes: Option<Change>,
}

/// Change that a statement makes in one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub verb: Verb,
    /// Name in lower case.
    pub table: String,
    /// SQL for RETURNING that is true for an inserted row, if the INSERT updates conflicting rows.
    pub is_new: Option<String>,
}

/// Verb of a statement that changes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Insert,
    Update,
    Delete,
}

impl Catalog {
    /// Translates the statement of a call, on a stack that is large enough for every tree.
    pub fn statement(&self, tree: &tree::Statement) -> Result<Statement, Difference> {
        let translated = stack::apart(|| self.statement_here(tree));
        translated.unwrap_or_else(|| Err(Difference::Other("cannot translate the text".to_owned())))
    }

    /// Translates a statement on the current stack, which must be large.
    fn statement_here(&self, tree: &tree::Statement) -> Result<Statement, Difference> {
        Printer::statement(self, tree, false)
    }
}
