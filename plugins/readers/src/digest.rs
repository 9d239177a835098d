//! SHA-256 over length-prefixed fields.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Hashes fields, each preceded by its length.
#[derive(Debug, Clone)]
pub struct Encoder(Sha256);

impl Encoder {
    /// Starts a hash. `tag` names kind and version of the input, so that different kinds of hashes never
    /// agree.
    #[must_use]
    pub fn new(tag: &str) -> Encoder {
        let mut encoder = Encoder(Sha256::new());
        encoder.field(tag.as_bytes());
        encoder
    }

    /// Adds a field.
    pub fn field(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    /// Adds an optional field. Missing and empty differ.
    pub fn optional(&mut self, bytes: Option<&[u8]>) {
        self.count(usize::from(bytes.is_some()));
        bytes.into_iter().for_each(|bytes| self.field(bytes));
    }

    /// Adds the number of entries that follow.
    pub fn count(&mut self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.0.update(count.to_be_bytes());
    }

    /// Returns the hash in hexadecimal.
    #[must_use]
    pub fn finish(self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0.finalize() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}
