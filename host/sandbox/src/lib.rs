//! The WebAssembly side: one engine, what a call's store holds, and its limits.
//!
//! Every call gets a store and an instance that no other had. Whatever a guest does to itself ends with the call.

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
pub mod sitting;
pub mod state;
pub mod view;
mod waiting;
pub mod work_tree;
pub mod workspaces;

pub use engine::{Room, Sandbox, SandboxError};
pub use limits::{Exceeded, Limits};
pub use state::CallState;
pub use tollgate_engine::config as engine_config;
