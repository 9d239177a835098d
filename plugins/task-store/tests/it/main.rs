//! The pack through its tools, over SQLite.

mod harness;

mod approvals;
mod attempts;
mod circuits;
mod events;
mod life;
mod lists;
mod random;
mod refusals;
mod remedies;
mod reviews;
mod roles;
mod show;
mod specs;
mod table;
mod workers;
