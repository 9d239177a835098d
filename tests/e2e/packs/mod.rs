//! Built-in packs, driven by real clients.

mod conductor;
mod convergence;
mod gsd;
mod stories;
pub(crate) mod task_store;
mod tasks;
