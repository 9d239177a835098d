//! End to end: the real binary, driven by real clients.

mod arguments;
mod cancellation;
mod cli;
mod clients;
mod conductor;
mod conductor_tools;
mod crash;
mod envelopes;
mod harness;
mod hostile;
mod http;
mod loading;
mod meddling;
mod programs;
mod project;
mod python;
mod stdio;
mod surface;
mod workspaces;
