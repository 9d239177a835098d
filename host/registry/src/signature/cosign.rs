//! Signatures by a key in cosign's layout: a text with the manifest's digest, under a tag derived from that digest.

use serde::Deserialize;
use serde_json::json;
use sigstore_verify::crypto::VerificationKey;
use sigstore_verify::types::{DerPublicKey, SignatureBytes};

use super::provider;
use crate::digest::Digest;
use crate::reference::Reference;

/// Annotation of a layer that holds the signature.
pub(crate) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// Media type of the signed text.
pub(crate) const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Type that the signed text states.
const TYPE: &str = "cosign container image signature";

/// Tag of the signatures of a manifest.
pub(crate) fn tag(digest: &Digest) -> String {
    format!("sha256-{}.sig", digest.hex())
}

/// Text that is signed for a manifest.
pub(crate) fn payload(reference: &Reference, digest: &Digest) -> Vec<u8> {
    let payload = json!({
        "critical": {
            "identity": { "docker-reference": reference.repository() },
            "image": { "docker-manifest-digest": digest.to_string() },
            "type": TYPE,
        },
        "optional": null,
    });
    payload.to_string().into_bytes()
}

/// Checks a signature. The error says why it is not accepted.
pub(crate) fn check(
    key: &DerPublicKey,
    digest: &Digest,
    payload: &str,
    signature: &str,
) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Payload {
        critical: Critical,
    }
    #[derive(Deserialize)]
    struct Critical {
        image: Image,
        r#type: String,
    }
    #[derive(Deserialize)]
    struct Image {
        #[serde(rename = "docker-manifest-digest")]
        digest: String,
    }
    provider::install();
    let signature = SignatureBytes::from_base64(signature).map_err(|_| "it is not base64".to_owned())?;
    // The signature is checked first, so that unsigned text is never parsed.
    let key = VerificationKey::from_spki(key).map_err(|err| err.to_string())?;
    key.verify(payload.as_bytes(), &signature)
        .map_err(|_| "it was signed with another key".to_owned())?;
    let payload: Payload =
        serde_json::from_str(payload).map_err(|err| format!("cannot read its text: {err}"))?;
    if payload.critical.r#type != TYPE {
        return Err("its text is not about a component".to_owned());
    }
    if payload.critical.image.digest != digest.to_string() {
        return Err("it is for another component".to_owned());
    }
    Ok(())
}
