//! Signature checks for an issuer's tokens with ring, which TLS already uses. The library's own providers would each
//! add a second cryptography stack.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{
    self as ring_signature, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use signature::Verifier;

/// Provider that checks signatures and cannot sign.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(Error::from(ErrorKind::InvalidAlgorithm)),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes the library use [`PROVIDER`] in this process.
pub(super) fn install() {
    // Fails if an earlier call already installed the provider.
    let _ = PROVIDER.install_default();
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let scheme = Scheme::of(*algorithm).ok_or_else(|| Error::from(ErrorKind::InvalidAlgorithm))?;
    if key.family() != scheme.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(RingVerifier {
        algorithm: *algorithm,
        scheme,
        key: key.clone(),
    }))
}

/// Verification scheme of ring for an algorithm.
#[derive(Clone, Copy)]
enum Scheme {
    Rsa(&'static RsaParameters),
    Elliptic(&'static dyn VerificationAlgorithm),
    Edwards,
}

impl Scheme {
    fn of(algorithm: Algorithm) -> Option<Scheme> {
        Some(match algorithm {
            Algorithm::RS256 => Scheme::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Scheme::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Scheme::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Scheme::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Scheme::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Scheme::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Scheme::Elliptic(&ring_signature::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Scheme::Elliptic(&ring_signature::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Scheme::Edwards,
            _ => return None,
        })
    }

    fn family(self) -> AlgorithmFamily {
        match self {
            Scheme::Rsa(_) => AlgorithmFamily::Rsa,
            Scheme::Elliptic(_) => AlgorithmFamily::Ec,
            Scheme::Edwards => AlgorithmFamily::Ed,
        }
    }
}

struct RingVerifier {
    algorithm: Algorithm,
    scheme: Scheme,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let checked = match (self.scheme, self.key.kind()) {
            (Scheme::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Scheme::Rsa(parameters), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(parameters, key).verify(message, signature)
            }
            (Scheme::Elliptic(algorithm), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(algorithm, key).verify(message, signature)
            }
            (Scheme::Edwards, DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(&ring_signature::ED25519, key).verify(message, signature)
            }
            (Scheme::Elliptic(_) | Scheme::Edwards, DecodingKeyKind::RsaModulusExponent { .. }) => {
                Err(ring::error::Unspecified)
            }
        };
        checked.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::Validation;
    use jsonwebtoken::jwk::JwkSet;
    use serde_json::Value;

    use super::*;

    /// Tokens that OpenSSL signed with each algorithm, and the keys of their issuer.
    const SIGNED: &str = include_str!("signed.json");

    fn accepts(token: &str, key: &DecodingKey, algorithm: Algorithm) -> bool {
        let mut validation = Validation::new(algorithm);
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        jsonwebtoken::decode::<Value>(token, key, &validation).is_ok()
    }

    #[test]
    fn each_algorithm_takes_its_own_signatures_and_no_others() {
        install();
        let signed: Value = serde_json::from_str(SIGNED).unwrap();
        let keys: JwkSet = serde_json::from_value(signed["jwks"].clone()).unwrap();
        let tokens = signed["tokens"].as_object().unwrap();
        assert_eq!(tokens.len(), 9);
        for (name, token) in tokens {
            let (algorithm, token): (Algorithm, _) = (name.parse().unwrap(), token.as_str().unwrap());
            for jwk in &keys.keys {
                let key = DecodingKey::from_jwk(jwk).unwrap();
                let is_its_key = match Scheme::of(algorithm).unwrap() {
                    Scheme::Rsa(_) => jwk.common.key_id.as_deref() == Some("rsa"),
                    Scheme::Elliptic(_) | Scheme::Edwards => jwk.common.key_id.as_ref() == Some(name),
                };
                assert_eq!(accepts(token, &key, algorithm), is_its_key, "{name} {jwk:?}");
                if !is_its_key {
                    continue;
                }
                let (rest, signature) = token.rsplit_once('.').unwrap();
                let first = if signature.starts_with('A') { 'B' } else { 'A' };
                let forged = format!("{rest}.{first}{}", &signature[1..]);
                assert!(!accepts(&forged, &key, algorithm), "{name} forged");
                let short = &token[..token.len() - 4];
                assert!(!accepts(short, &key, algorithm), "{name} short");
            }
        }
    }
}
