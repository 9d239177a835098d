//! The WebAssembly sandbox: one engine, the state in a call's store, and its limits.
//!
//! Every call gets a fresh store and instance. Whatever a guest does to its own state ends with the call.

pub mod annotations;
pub mod bindings;
pub mod bound_types;
mod capabilities;
pub mod counted_programs;
mod engine;
pub mod facts;
mod git;
pub mod granted;
pub mod guest;
pub mod judged;
mod limits;
mod looked;
pub mod memory;
mod output;
pub mod permit;
pub mod process;
pub mod progress;
pub mod side_effects;
pub mod sitting;
pub mod state;
pub mod view;
mod waiting;
pub mod work_tree;
pub mod workspaces;

pub use engine::{PoolSlot, Sandbox, SandboxError};
pub use limits::{Exceeded, Limits};
pub use state::CallState;
pub use tollgate_engine::config as engine_config;
