//! Components in OCI registries: pulling, publishing, signatures and trust.
//!
//! The layout is the CNCF's for WebAssembly, which `wkg` and `oras` also write. All requests block, so callers run them
//! on a suitable thread. Nothing here writes a file. Callers store what they need.
//!
//! # Architecture Invariant
//!
//! Everything that a registry sends is hostile. It is bounded before it is read, and compared with the requested digest
//! before it is parsed. A credential is sent only to the host it belongs to.

pub mod annotations;
mod auth;
pub mod change;
mod client;
pub mod credentials;
mod digest;
mod error;
mod http;
mod manifest;
mod publish;
mod push;
mod reference;
pub mod signature;
mod text;
pub mod trust;

pub use client::{Client, Pulled, versions_after};
pub use credentials::{Credentials, HostSettings};
pub use digest::Digest;
pub use error::{RegistryError, connection_remedy};
pub use manifest::{Descriptor, Manifest};
pub use publish::{Publication, Published};
pub use reference::{Reference, SCHEME};
pub use signature::Evidence;
pub use signature::sign::SigningKey;
pub use text::plain;
pub use trust::{Signer, Trust, Unsigned, Verdict};
