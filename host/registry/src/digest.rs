//! SHA-256 digests, the only supported kind.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use crate::error::RegistryError;
use crate::text::plain;

/// Prefix of a digest in text.
const DIGEST_PREFIX: &str = "sha256:";

/// A SHA-256 digest of content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

impl Digest {
    /// Digest of bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        let hash = Sha256::digest(bytes);
        Digest(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Hex digits without the algorithm, in lower case.
    pub fn hex(&self) -> &str {
        &self.0
    }

    /// Refuses bytes that have another digest.
    pub(crate) fn check(&self, what: &str, bytes: &[u8]) -> Result<(), RegistryError> {
        let found = Digest::of(bytes);
        if found == *self {
            return Ok(());
        }
        Err(RegistryError::OtherDigest {
            what: what.to_owned(),
            wanted: self.to_string(),
            found: found.to_string(),
        })
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Digest, String> {
        let hex = text.strip_prefix(DIGEST_PREFIX).filter(|hex| {
            hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
        hex.map(|hex| Digest(hex.to_owned()))
            .ok_or_else(|| format!("{} is not `sha256:` and 64 hex digits in lower case", plain(text)))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{DIGEST_PREFIX}{}", self.0)
    }
}
