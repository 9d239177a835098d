//! Components in OCI registries: pulling, publishing, signatures and trust.
//!
//! The layout is the CNCF's for WebAssembly, which `wkg` and `oras` write as well. All requests block, so callers run them on a
//! thread for that. Nothing here writes a file: what is kept is the caller's to keep.
//!
//! # Architecture Invariant
//!
//! Everything that a registry sends is hostile: bounded before it is read, and compared with the digest that was asked for before
//! it is parsed. A credential leaves for the host it belongs to and for no other.

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
