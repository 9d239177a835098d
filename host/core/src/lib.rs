//! Types that all crates of the host share: callers, envelopes, budgets, time, text and metrics. This crate does no
//! I/O on a database, a component or the network.

pub mod budget;
pub mod client_name;
pub mod clock;
pub mod deadline;
pub mod effect;
pub mod envelope;
pub mod failure_class;
pub mod file;
pub mod git_head;
pub mod hash;
pub mod identity;
pub mod meter;
pub mod scopes;
pub mod share;
pub mod task;
pub mod text;
