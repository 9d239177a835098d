//! Components: fetching, checking, compiling and loading of packs and policies, and those that are built in.

pub mod builtin;
pub mod host_tool;
pub mod packs;
pub mod policies;
