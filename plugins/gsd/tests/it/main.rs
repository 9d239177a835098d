//! The pack through its tools, over SQLite.

mod harness;

mod claims;
mod files;
mod full_disk;
mod input;
mod life;
mod logs;
mod plans;
mod random;
mod reopen;
mod table;
