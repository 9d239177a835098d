//! The pack through its tools, over SQLite.

mod harness;

mod claims;
mod edits;
mod files;
mod full_disk;
mod grammar;
mod import;
mod import_parts;
mod input;
mod life;
mod logs;
mod next;
mod plans;
mod proof;
mod random;
mod reopen;
mod show;
mod table;
