//! Transports: stdio, HTTP with its authentication and limits, and the handling of request ids and text.

pub(crate) mod http;
pub(crate) mod http_auth;
mod http_connections;
mod http_limits;
mod issuer;
mod python_client;
mod replay_and_escaping;
mod stdio;
mod tokens;
