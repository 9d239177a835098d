//! End to end: the real binary, driven by real clients.

mod arguments;
mod artifacts;
mod cli;
mod clients;
mod crash;
mod envelopes;
mod harness;
mod hostile;
mod http;
mod ledger;
mod loading;
mod python;
mod stdio;
mod surface;
