//! SQL of components: parsed once into a small tree of what SQLite and PostgreSQL share, checked, and printed anew.
//!
//! A component's text never reaches an engine. [`tree`] can represent nothing but the subset, [`read`] parses the
//! component's text into it or returns a refusal, and [`sqlite`] prints it. [`schema`] reads the migrations of a
//! component, and then knows which of its tables are append-only. [`Reader`] does the same for the statements of its
//! calls, and caches the results.
//!
//! Nothing in this crate uses a database.

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

/// Version of the reader that checked a text. Increased whenever the subset gets narrower, so that texts accepted
/// before are checked again.
pub const VERSION: u32 = 2;

/// Most bytes of one text.
pub const MAX_TEXT: usize = 100_000;
/// Most bytes of all migrations of a component. All of them are in memory while they are read.
pub const MAX_MIGRATIONS: usize = 512 << 10;
/// Most tables of a component. Every connection keeps the whole schema in memory.
pub const MAX_SCHEMA_TABLES: usize = 200;
/// Most indexes of a component, including those of keys.
pub const MAX_SCHEMA_INDEXES: usize = 400;
/// Most columns of all tables and indexes of a component.
pub const MAX_SCHEMA_COLUMNS: usize = 4_000;
/// Most bytes of the printed definitions of a component's tables and indexes.
pub const MAX_SCHEMA_BYTES: usize = 128 << 10;
/// Most columns of a table, a row, a result, a key or an order.
pub const MAX_COLUMNS: usize = 100;
/// Most terms to sort or group by. A sort is one step of the engine, which no deadline interrupts.
pub const MAX_SORTED: usize = 16;
/// Most queries that UNION, EXCEPT and INTERSECT combine.
pub const MAX_COMPOUND: usize = 5;
/// Highest parameter number.
pub const MAX_PARAMETERS: u16 = 100;
/// Deepest nesting of expressions and queries.
pub const MAX_DEPTH: usize = 100;
/// Deepest nesting of queries.
pub const MAX_QUERIES: usize = 12;
/// Deepest nesting of parentheses and CASE.
pub const MAX_NESTING: usize = 30;
/// Most tables in one FROM.
pub const MAX_JOINED: usize = 20;
/// Most tables in a statement. A table behind a WITH name counts each time the name is used.
pub const MAX_TABLES: usize = 200;
/// Most arguments of a function.
pub const MAX_ARGUMENTS: usize = 8;
/// Most characters of a name: the length that PostgreSQL keeps.
pub const MAX_NAME: usize = 63;
