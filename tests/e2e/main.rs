//! End to end: the real binary, driven by real clients.

mod arguments;
mod budgets;
mod cli;
mod clients;
mod crash;
mod envelopes;
mod harness;
mod hostile;
mod http;
mod loading;
mod python;
mod record;
mod stdio;
mod surface;
