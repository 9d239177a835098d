//! The pack through its tools, over SQLite.

mod harness;

mod approvals;
mod attempts;
mod events;
mod life;
mod lists;
mod random;
mod refusals;
mod reviews;
mod roles;
mod show;
mod table;
