//! Signature checks with ring, the project's only cryptography library.

use ring::digest::{Context, SHA256, SHA384, SHA512};
use ring::signature as algorithms;
use ring::signature::{UnparsedPublicKey, VerificationAlgorithm};
use sigstore_verify::crypto::{
    CryptoProvider, Error, HashContext, Result, SigningScheme, install_default_provider,
};
use sigstore_verify::types::HashAlgorithm;

/// Provider of hashes and checks of signatures.
#[derive(Debug)]
struct Ring;

struct Hash(Context);

impl HashContext for Hash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

impl CryptoProvider for Ring {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>> {
        let algorithm = match algorithm {
            HashAlgorithm::Sha2256 => &SHA256,
            HashAlgorithm::Sha2384 => &SHA384,
            HashAlgorithm::Sha2512 => &SHA512,
            other => {
                return Err(Error::UnsupportedAlgorithm(format!("{other} is not supported")));
            }
        };
        Ok(Box::new(Hash(Context::new(algorithm))))
    }

    fn verify_raw(&self, scheme: SigningScheme, key: &[u8], data: &[u8], signature: &[u8]) -> Result<()> {
        UnparsedPublicKey::new(algorithm(scheme)?, key)
            .verify(data, signature)
            .map_err(|_| {
                Error::Verification("the signature does not match the key and the content".to_owned())
            })
    }

    /// ring hashes the content itself. A bundle with prehashed content is refused, and no bundle of a manifest has this
    /// form.
    fn verify_prehashed(&self, scheme: SigningScheme, _: &[u8], _: &[u8], _: &[u8]) -> Result<()> {
        Err(Error::UnsupportedAlgorithm(format!(
            "{} over a hash is not supported",
            scheme.name()
        )))
    }
}

fn algorithm(scheme: SigningScheme) -> Result<&'static dyn VerificationAlgorithm> {
    Ok(match scheme {
        SigningScheme::EcdsaP256Sha256 => &algorithms::ECDSA_P256_SHA256_ASN1,
        SigningScheme::EcdsaP256Sha384 => &algorithms::ECDSA_P256_SHA384_ASN1,
        SigningScheme::EcdsaP384Sha256 => &algorithms::ECDSA_P384_SHA256_ASN1,
        SigningScheme::EcdsaP384Sha384 => &algorithms::ECDSA_P384_SHA384_ASN1,
        SigningScheme::Ed25519 => &algorithms::ED25519,
        SigningScheme::RsaPssSha256 => &algorithms::RSA_PSS_2048_8192_SHA256,
        SigningScheme::RsaPssSha384 => &algorithms::RSA_PSS_2048_8192_SHA384,
        SigningScheme::RsaPssSha512 => &algorithms::RSA_PSS_2048_8192_SHA512,
        SigningScheme::RsaPkcs1Sha256 => &algorithms::RSA_PKCS1_2048_8192_SHA256,
        SigningScheme::RsaPkcs1Sha384 => &algorithms::RSA_PKCS1_2048_8192_SHA384,
        SigningScheme::RsaPkcs1Sha512 => &algorithms::RSA_PKCS1_2048_8192_SHA512,
        other => {
            return Err(Error::UnsupportedAlgorithm(format!(
                "{} is not supported",
                other.name()
            )));
        }
    })
}

/// Makes the signature library use ring. Repeated calls have no effect.
pub(crate) fn install() {
    // Fails if a provider is already installed.
    let _ = install_default_provider(&Ring);
}
