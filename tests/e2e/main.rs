//! End-to-end tests: the real binary, driven by real clients.

mod altered_component;
mod components;
mod envelopes;
mod gate;
#[allow(dead_code, reason = "shared with the tests of faults, which use more of it")]
mod harness;
mod https;
mod operator;
mod packs;
mod pages;
mod policies;
mod protocol;
mod sandbox;
#[path = "../faults/share.rs"]
mod share;
mod storage;
mod suggested_calls;
mod transport;
mod workspace_access;
