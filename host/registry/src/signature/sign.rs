//! Signing of published components, with a key in a file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, UnparsedPublicKey,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;

use super::cosign;
use crate::client::Client;
use crate::digest::Digest;
use crate::error::RegistryError;
use crate::manifest::{Descriptor, Manifest, malformed};
use crate::reference::Reference;

/// A private key: P-256 or Ed25519, in PKCS #8.
pub struct SigningKey(Pair);

enum Pair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Parses a key in PEM, as `openssl genpkey` writes it.
    pub fn from_pem(what: &str, pem: &str) -> Result<SigningKey, RegistryError> {
        let failed = |why: &str| RegistryError::Key {
            what: what.to_owned(),
            kind: "a signing key",
            why: why.to_owned(),
        };
        if pem.contains("ENCRYPTED") {
            return Err(failed(
                "it is encrypted; give a key without a password, or sign with `cosign sign --key`",
            ));
        }
        let pkcs8 = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes());
        let pkcs8 = pkcs8
            .map_err(|_| failed("it has no PEM block PRIVATE KEY; create one with `openssl genpkey`"))?;
        let der = pkcs8.secret_pkcs8_der();
        let p256 = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der, &SystemRandom::new());
        let pair = match p256 {
            Ok(pair) => Pair::P256(pair),
            Err(_) => {
                let ed25519 = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der);
                Pair::Ed25519(ed25519.map_err(|_| failed("it is neither a P-256 nor an Ed25519 key"))?)
            }
        };
        Ok(SigningKey(pair))
    }

    fn sign(&self, text: &[u8]) -> Result<String, RegistryError> {
        let signature = match &self.0 {
            Pair::P256(pair) => pair
                .sign(&SystemRandom::new(), text)
                .map_err(|_| malformed("the signature", "cannot sign with the key".to_owned()))?
                .as_ref()
                .to_vec(),
            Pair::Ed25519(pair) => pair.sign(text).as_ref().to_vec(),
        };
        Ok(STANDARD.encode(signature))
    }

    /// Returns whether this key made a signature of a text.
    fn made(&self, signature: &str, text: &[u8]) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else {
            return false;
        };
        let verified = match &self.0 {
            Pair::P256(pair) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, pair.public_key().as_ref())
                .verify(text, &signature),
            Pair::Ed25519(pair) => {
                UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref()).verify(text, &signature)
            }
        };
        verified.is_ok()
    }
}

impl Client {
    /// Adds a signature of a manifest to the existing ones. A key signs only once, because more signatures would reach
    /// the limits of readers.
    pub(crate) fn push_signature(
        &self,
        reference: &Reference,
        digest: &Digest,
        key: &SigningKey,
    ) -> Result<(), RegistryError> {
        let beside = reference.tagged(&cosign::tag(digest))?;
        let payload = cosign::payload(reference, digest);
        let mut layer = Descriptor::of(cosign::PAYLOAD, &payload);
        layer
            .annotations
            .insert(cosign::SIGNATURE.to_owned(), key.sign(&payload)?);
        let mut layers = self
            .beside(&beside)?
            .map(|there| there.manifest.layers)
            .unwrap_or_default();
        let is_there = layers.iter().any(|there| {
            let signature = there.annotations.get(cosign::SIGNATURE);
            there.digest == layer.digest && signature.is_some_and(|signature| key.made(signature, &payload))
        });
        if is_there {
            return Ok(());
        }
        layers.push(layer);
        let config = serde_json::json!({
            "architecture": "",
            "os": "",
            "config": {},
            "rootfs": { "type": "layers", "diff_ids": layers.iter().map(|layer| &layer.digest).collect::<Vec<_>>() },
        });
        let config = config.to_string().into_bytes();
        self.push_blob(&beside, &payload)?;
        self.push_blob(&beside, &config)?;
        let config = Descriptor::of("application/vnd.oci.image.config.v1+json", &config);
        self.push_manifest(&beside, &Manifest::new(config, layers, Default::default()))?;
        Ok(())
    }
}
