//! Tollgate: an MCP server that hosts tool packs as sandboxed WebAssembly components.
//!
//! This crate is the program: its command line, its configuration, and the host assembled from the crates below it. See
//! `docs/ARCHITECTURE.md` for the map.

pub mod check;
pub mod clients;
pub mod config;
pub mod console;
pub mod doctor;
pub mod host;
pub mod notify;
pub mod policy_test;
pub mod scaffold;
pub mod sources;
pub mod user;
pub mod watch;
