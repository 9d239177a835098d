//! The pack through its tools, over SQLite.

#![allow(
    clippy::result_large_err,
    reason = "a refusal is made at most once per call and carries all that its caller needs"
)]

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
mod table;
