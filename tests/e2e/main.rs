//! End to end: the real binary, driven by real clients.

mod arguments;
mod artifacts;
mod boundary;
mod budgets;
mod cancellation;
mod cli;
mod clients;
mod compact;
mod conductor;
mod conductor_tools;
mod convergence;
mod crash;
mod envelopes;
mod gsd;
#[allow(dead_code, reason = "shared with the tests of faults, which use more of it")]
mod harness;
mod hoarding;
mod hostile;
mod http;
mod https;
mod ledger;
mod loading;
mod meddling;
mod operator;
mod programs;
mod project;
mod python;
mod record;
mod reload;
mod resources;
mod stdio;
mod surface;
mod tasks;
mod workspaces;
