//! SQL of components: read once, into a small tree of what SQLite and PostgreSQL share, checked, and
//! printed anew.
//!
//! What a component sends never reaches an engine. [`tree`] can hold nothing but the subset, [`read`] makes it of
//! the component's text or says why not, and [`sqlite`] prints it. [`schema`] goes through the migrations of a
//! component, and knows afterwards which of its tables are append-only. [`Reader`] does the same for the
//! statements of its calls, and remembers what it read.
//!
//! Nothing here knows a database.

mod cache;
pub mod functions;
pub mod postgres;
pub mod read;
mod refusal;
pub mod schema;
pub mod sqlite;
mod stack;
mod token;
pub mod tree;

pub use cache::{Reader, Statement};
pub use refusal::{Problem, Problems, Refusal};
pub use schema::{Schema, Step, Table};

/// Which reader checked a text. It grows when the subset gets narrower, so that what was accepted before is
/// read again.
pub const VERSION: u32 = 2;

/// Bytes of one text.
pub const MAX_TEXT: usize = 100_000;
/// Bytes of all migrations of a component: each is kept while all are read.
pub const MAX_MIGRATIONS: usize = 512 << 10;
/// Tables of a component. Every connection keeps all of them in memory.
pub const MAX_SCHEMA_TABLES: usize = 200;
/// Indexes of a component, those of keys included.
pub const MAX_SCHEMA_INDEXES: usize = 400;
/// Columns of all tables and indexes of a component.
pub const MAX_SCHEMA_COLUMNS: usize = 4_000;
/// Bytes of all that makes the tables and indexes of a component, as they are printed.
pub const MAX_SCHEMA_BYTES: usize = 128 << 10;
/// Columns of a table, a row, a result, a key or an order.
pub const MAX_COLUMNS: usize = 100;
/// Terms that rows are sorted or grouped by: a sort is one step of the engine, which no deadline interrupts.
pub const MAX_SORTED: usize = 16;
/// Queries that UNION, EXCEPT and INTERSECT put together.
pub const MAX_COMPOUND: usize = 5;
/// Parameters are `?1` to this one.
pub const MAX_PARAMETERS: u16 = 100;
/// Expressions and queries inside each other.
pub const MAX_DEPTH: usize = 100;
/// Queries inside each other.
pub const MAX_QUERIES: usize = 12;
/// Parentheses and CASE inside each other.
pub const MAX_NESTING: usize = 30;
/// Tables that one FROM names.
pub const MAX_JOINED: usize = 20;
/// Tables that a statement names, each as often as it is read if WITH stands for it.
pub const MAX_TABLES: usize = 200;
/// Arguments of a function.
pub const MAX_ARGUMENTS: usize = 8;
/// Characters of a name: what PostgreSQL keeps of it.
pub const MAX_NAME: usize = 63;
