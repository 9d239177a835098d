//! Paths in a repository, which need not be UTF-8.

use std::fmt;

use serde::{Serialize, Serializer};

/// Mark of a path that is not UTF-8.
const BYTES_PREFIX: &str = "bytes:";

/// A path relative to the top of a repository. It may contain line breaks and need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath {
    text: String,
    is_utf8: bool,
}

impl RepoPath {
    /// Creates a path from bytes. Bytes that are not UTF-8 become, for example, `\xe9` after the mark `bytes:`, with
    /// backslashes doubled, so that different paths always have different text.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> RepoPath {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return RepoPath {
                text: text.to_owned(),
                is_utf8: true,
            };
        }
        let mut text = String::from(BYTES_PREFIX);
        for chunk in bytes.utf8_chunks() {
            text.push_str(&chunk.valid().replace('\\', "\\\\"));
            for byte in chunk.invalid() {
                text.push_str(&format!("\\x{byte:02x}"));
            }
        }
        RepoPath { text, is_utf8: false }
    }

    /// Path as text, or its marked form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether [`RepoPath::as_str`] is the name that opens the file.
    #[must_use]
    pub const fn is_utf8(&self) -> bool {
        self.is_utf8
    }

    /// Path relative to a folder, whose name ends with a slash or is empty. `None` if the path is not below it.
    #[must_use]
    pub fn below(&self, folder: &[u8]) -> Option<RepoPath> {
        let bytes = self.bytes();
        let rest = bytes.strip_prefix(folder)?;
        Some(RepoPath::from_bytes(rest))
    }

    /// Path with C-style quoting, which Git accepts for paths with special characters.
    #[must_use]
    pub fn quoted(&self) -> String {
        let mut quoted = String::from("\"");
        for byte in self.bytes() {
            match byte {
                b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
                b' '..=b'~' => quoted.push(char::from(byte)),
                _ => quoted.push_str(&format!("\\{byte:03o}")),
            }
        }
        quoted.push('"');
        quoted
    }

    /// Original bytes of the path.
    fn bytes(&self) -> Vec<u8> {
        let Some(marked) = self.text.strip_prefix(BYTES_PREFIX).filter(|_| !self.is_utf8) else {
            return self.text.clone().into_bytes();
        };
        let mut bytes = Vec::with_capacity(marked.len());
        let mut rest = marked;
        while let Some((before, escape)) = rest.split_once('\\') {
            bytes.extend_from_slice(before.as_bytes());
            let byte = escape
                .strip_prefix('x')
                .and_then(|digits| u8::from_str_radix(digits.get(..2)?, 16).ok());
            bytes.push(byte.unwrap_or(b'\\'));
            rest = escape
                .get(if byte.is_some() { 3 } else { 1 }..)
                .unwrap_or_default();
        }
        bytes.extend_from_slice(rest.as_bytes());
        bytes
    }

    /// Path on one line, with control characters escaped.
    #[must_use]
    pub fn one_line(&self) -> String {
        let escaped = |c: char| {
            if c.is_control() {
                c.escape_default().collect()
            } else {
                String::from(c)
            }
        };
        self.text.chars().map(escaped).collect()
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for RepoPath {
    fn from(path: &str) -> RepoPath {
        RepoPath::from_bytes(path.as_bytes())
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> String {
        path.text
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
