//! End to end: the real binary, driven by real clients.

mod arguments;
mod artifacts;
mod budgets;
mod cancellation;
mod cli;
mod clients;
mod compact;
mod conductor;
mod conductor_tools;
mod consent;
mod convergence;
mod crash;
mod envelopes;
mod gsd;
mod harness;
mod hoarding;
mod hostile;
mod http;
mod ledger;
mod loading;
mod meddling;
mod policies;
mod programs;
mod project;
mod python;
mod record;

mod resources;
mod shipped;
mod stdio;
mod surface;
mod tasks;
mod villains;
mod workspaces;
