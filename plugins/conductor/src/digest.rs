//! SHA-256 in hexadecimal.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Hash of a text.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}
