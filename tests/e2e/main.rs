//! End to end: the real binary, driven by real clients.

mod arguments;
mod artifacts;
mod budgets;
mod cancellation;
mod cli;
mod clients;
mod conductor;
mod conductor_tools;
mod convergence;
mod crash;
mod envelopes;
mod gsd;
mod harness;
mod hostile;
mod http;
mod ledger;
mod loading;
mod meddling;
mod programs;
mod project;
mod python;
mod record;
mod stdio;
mod surface;
mod tasks;
mod workspaces;
