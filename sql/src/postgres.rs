//! The tree as PostgreSQL 15 and later read it, with the meaning that it has for SQLite.
//!
//! PostgreSQL knows types where SQLite looks at values. So every expression gets one of four kinds here, from the
//! columns that the migrations made, and what would depend on the value of a row is refused by name: a
//! [`Difference`]. Parameters get the kind of what they stand beside.
//!
//! Tables get names of the translation's own (`s1`, `w1`, `c1`), and each column the name of its table, so that
//! PostgreSQL has nothing to resolve. Some functions are made once in a database: [`FUNCTIONS`].

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

/// Schema `tollgate` with the functions that translated statements call. It is made once in a database, by its
/// owner, and everybody may read and call it.
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
    /// PostgreSQL's name of it.
    #[must_use]
    pub fn sql(self) -> &'static str {
        match self {
            Kind::Integer => "bigint",
            Kind::Real => "double precision",
            Kind::Text => "text",
            Kind::Blob => "bytea",
        }
    }

    /// Name of it in migrations.
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
    /// Its number in the component's text: `?1` is 1.
    pub number: u16,
    /// The kind it is sent as; none if it is only looked at for NULL, and sent as text.
    pub kind: Option<Kind>,
    /// NULL is refused where it goes.
    pub required: bool,
}

/// A translated statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub sql: String,
    /// In the order of `$1`, `$2` and so on.
    pub parameters: Vec<Parameter>,
    /// Kinds of the results; empty if there are none.
    pub columns: Vec<Kind>,
    /// Change that it makes, unless it only reads.
    pub changes: Option<Change>,
}

/// Change that a statement makes in one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub verb: Verb,
    /// In lower case.
    pub table: String,
    /// SQL for RETURNING that is true for a row that was inserted, of an INSERT that updates rows that are in its way.
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
        translated.unwrap_or_else(|| Err(Difference::Other("the text could not be translated".to_owned())))
    }

    /// The same on this thread's stack, which must be large.
    fn statement_here(&self, tree: &tree::Statement) -> Result<Statement, Difference> {
        Printer::statement(self, tree, false)
    }
}
