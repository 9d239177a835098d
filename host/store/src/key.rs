//! The ledger's key pair: it signs anchors and exported heads.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, Verifier as _, VerifyingKey};
use thiserror::Error;
use tollgate_core::hash::{hex, unhex};

use crate::data_dir::{DataDir, DataDirError};

/// File name of the private key, in the data directory.
const FILE: &str = "ledger.key";

/// Private key.
#[derive(Clone)]
pub struct LedgerKey(SigningKey);

impl LedgerKey {
    /// Key of the data directory, created on first use.
    pub fn open(data: &DataDir) -> Result<LedgerKey, DataDirError> {
        Ok(LedgerKey(SigningKey::from_bytes(&data.secret(FILE)?)))
    }

    /// Key of the data directory, if it exists.
    pub fn find(data: &DataDir) -> Result<Option<LedgerKey>, DataDirError> {
        let secret = data.find_secret(FILE)?;
        Ok(secret.map(|secret| LedgerKey(SigningKey::from_bytes(&secret))))
    }

    /// A signature in hex.
    pub fn sign(&self, text: &str) -> String {
        hex(&self.0.sign(text.as_bytes()).to_bytes())
    }

    /// Public key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Deterministic key for tests.
    #[cfg(test)]
    pub(crate) fn of_seed(seed: u8) -> LedgerKey {
        LedgerKey(SigningKey::from_bytes(&[seed; 32]))
    }
}

/// Public key, which verifies signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// True if the private key signed this text.
    pub fn signed(&self, text: &str, signature: &str) -> bool {
        unhex::<64>(signature).is_some_and(|bytes| {
            self.0
                .verify(text.as_bytes(), &Signature::from_bytes(&bytes))
                .is_ok()
        })
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(self.0.as_bytes()))
    }
}

/// Error for text that is not a public key.
#[derive(Debug, Error)]
#[error("a public key is 64 hex digits, as `tollgate ledger export --sign` prints it")]
pub struct NoPublicKey;

impl FromStr for PublicKey {
    type Err = NoPublicKey;

    fn from_str(text: &str) -> Result<PublicKey, NoPublicKey> {
        let bytes = unhex::<32>(text.trim()).ok_or(NoPublicKey)?;
        VerifyingKey::from_bytes(&bytes)
            .map(PublicKey)
            .map_err(|_| NoPublicKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_for_one_text_and_one_key() {
        let key = LedgerKey::of_seed(1);
        let signature = key.sign("seven");
        let public: PublicKey = key.public().to_string().parse().unwrap();
        assert!(public.signed("seven", &signature));
        assert!(!public.signed("eight", &signature));
        assert!(!LedgerKey::of_seed(2).public().signed("seven", &signature));
        assert!(!public.signed("seven", "no signature"));
        assert!("00".parse::<PublicKey>().is_err());
    }
}
