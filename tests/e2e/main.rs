//! End to end: the real binary, driven by real clients.

mod arguments;
mod cli;
mod clients;
mod crash;
mod envelopes;
mod harness;
mod hostile;
mod http;
mod loading;
mod python;
mod stdio;
mod surface;
