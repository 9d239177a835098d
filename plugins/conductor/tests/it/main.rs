//! The pack through its tools, over SQLite and real repositories.

mod harness;

mod context;
mod execution;
mod git;
mod planning;
mod prompts;
mod random;
mod records;
mod table;
mod templates;
mod transfer;
