//! Tollgate: an MCP server that hosts tool packs as sandboxed WebAssembly components.
//!
//! Every call takes one path through [`gate`]. See `docs/ARCHITECTURE.md` for the map.

mod additions;
pub mod artifacts;
pub mod auth;
pub mod backup;
pub mod budget;
pub mod builtin;
pub mod check;
pub mod clients;
pub mod clock;
pub mod config;
pub mod core_tools;
pub mod data_dir;
pub mod deadline;
pub mod doctor;
pub mod envelope;
pub mod gate;
pub mod git_head;
pub mod hash;
pub mod host;
pub mod ledger;
pub mod liveness;
pub mod mcp;
pub mod meter;
pub mod packs;
pub mod policies;
pub mod process;
pub mod progress;
pub mod sandbox;
pub mod scaffold;
pub mod share;
pub mod storage;
pub mod telemetry;
pub mod text;
pub mod trial;
pub mod view;
pub mod watch;
pub mod workspaces;
