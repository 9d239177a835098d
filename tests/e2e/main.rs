//! End to end: the real binary, driven by real clients.

mod arguments;
mod cancellation;
mod cli;
mod clients;
mod conductor;
mod crash;
mod envelopes;
mod harness;
mod hostile;
mod http;
mod loading;
mod meddling;
mod programs;
mod python;
mod stdio;
mod surface;
mod workspaces;
