//! Signatures: finding them in a registry, and storing them for later offline checks.

pub(crate) mod bundle;
pub(crate) mod cosign;
pub(crate) mod provider;
pub mod sign;

use serde::{Deserialize, Serialize};

use crate::client::{Client, Pulled};
use crate::digest::Digest;
use crate::error::RegistryError;
use crate::manifest::malformed;

/// Maximum number of checked signatures of one component.
const SIGNATURES_LIMIT: usize = 32;
/// Maximum bytes of one signature.
const SIGNATURE_LIMIT: u64 = 256 << 10;

/// A manifest with its signatures. Checking them needs no registry, so a host repeats the check at each load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Manifest, byte for byte.
    pub manifest: String,
    /// Signatures that were found.
    pub signatures: Vec<Signature>,
}

/// A signature in one of two forms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Signature {
    /// A signed text that names the digest, which cosign stores under a tag.
    Simple {
        /// Signed text.
        payload: String,
        /// Signature in base64.
        signature: String,
    },
    /// A Sigstore bundle in JSON.
    Bundle(String),
}

impl Evidence {
    /// Digest of the manifest.
    pub fn digest(&self) -> Digest {
        Digest::of(self.manifest.as_bytes())
    }
}

impl Client {
    /// Collects the signatures of a manifest. Fails if the registry does not answer, because that does not mean
    /// unsigned.
    pub fn evidence(&self, pulled: &Pulled) -> Result<Evidence, RegistryError> {
        let mut signatures = self.simple_signatures(pulled)?;
        signatures.extend(self.bundles(pulled)?);
        let manifest = String::from_utf8(pulled.bytes.clone());
        let manifest = manifest.map_err(|_| {
            malformed(
                &pulled.reference.to_string(),
                "its manifest is not UTF-8".to_owned(),
            )
        })?;
        Ok(Evidence { manifest, signatures })
    }

    fn simple_signatures(&self, pulled: &Pulled) -> Result<Vec<Signature>, RegistryError> {
        let beside = pulled.reference.tagged(&cosign::tag(&pulled.digest))?;
        let Some(signed) = self.beside(&beside)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for layer in signed.manifest.layers.iter().take(SIGNATURES_LIMIT) {
            let Some(signature) = layer.annotations.get(cosign::SIGNATURE) else {
                continue;
            };
            let payload = self.text(pulled, layer)?;
            found.push(Signature::Simple {
                payload,
                signature: signature.clone(),
            });
        }
        Ok(found)
    }

    fn bundles(&self, pulled: &Pulled) -> Result<Vec<Signature>, RegistryError> {
        let mut found = Vec::new();
        let all = self.referrers(&pulled.reference, &pulled.digest)?;
        let bundles = all.iter().filter(|one| {
            let artifact = one.artifact_type.as_deref().unwrap_or_default();
            artifact.starts_with(bundle::MEDIA_TYPE)
        });
        for descriptor in bundles.take(SIGNATURES_LIMIT) {
            let manifest = self
                .resolve(&pulled.reference.pinned(&descriptor.digest()?))?
                .manifest;
            let layer = manifest
                .layers
                .iter()
                .find(|layer| layer.media_type.starts_with(bundle::MEDIA_TYPE));
            if let Some(layer) = layer {
                found.push(Signature::Bundle(self.text(pulled, layer)?));
            }
        }
        Ok(found)
    }

    fn text(&self, pulled: &Pulled, layer: &crate::Descriptor) -> Result<String, RegistryError> {
        let bytes = self.blob(&pulled.reference, layer, SIGNATURE_LIMIT)?;
        String::from_utf8(bytes).map_err(|_| {
            malformed(
                &format!("a signature of {}", pulled.reference),
                "it is not UTF-8".to_owned(),
            )
        })
    }
}
