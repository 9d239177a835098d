//! Components from OCI registries: pulled, verified by signature, and stored with the evidence for that verification.

use std::sync::Arc;

use tollgate_core::hash::sha256_hex;
use tollgate_registry::{Client, Digest, Evidence, Pulled, Reference, RegistryError, Trust, Verdict};

use super::version::MAX_SIZE;

/// Registries as the operator configured them: access, and trusted signatures.
pub struct Registries {
    /// Client.
    pub client: Client,
    /// Trust.
    pub trust: Trust,
}

/// A pulled component. Its bytes have the digest in the manifest.
pub struct Fetched {
    /// Manifest.
    pub pulled: Pulled,
    /// Bytes of the component.
    pub bytes: Vec<u8>,
    /// SHA-256 of the bytes, in hex.
    pub sha256: String,
    /// Manifest with its signatures.
    pub evidence: Evidence,
    /// Verdict on the signatures.
    pub verdict: Result<Verdict, RegistryError>,
}

impl Registries {
    /// Pulls a component on a blocking thread. Stores nothing.
    pub async fn fetch(self: &Arc<Registries>, reference: &Reference) -> Result<Fetched, RegistryError> {
        let (registries, reference) = (Arc::clone(self), reference.clone());
        run(move || {
            let pulled = registries.client.resolve(&reference)?;
            let evidence = registries.client.evidence(&pulled)?;
            let bytes = registries.client.component(&pulled, MAX_SIZE as u64)?;
            let sha256 = sha256_hex(&bytes);
            let verdict = registries.trust.judge(&pulled.reference, &sha256, &evidence);
            Ok(Fetched {
                pulled,
                bytes,
                sha256,
                evidence,
                verdict,
            })
        })
        .await
    }
}

/// Runs a blocking request to a registry.
pub async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    let outcome = tokio::task::spawn_blocking(work).await;
    outcome.map_err(|err| RegistryError::Malformed {
        what: "the result of the request to a registry".to_owned(),
        why: err.to_string(),
    })?
}

/// Name of the file that holds a manifest and its signatures.
pub(super) fn evidence_name(digest: &Digest) -> String {
    format!("{}.evidence.json", digest.hex())
}
