//! Components with altered bytes.
#![allow(clippy::disallowed_methods, reason = "tests write files")]

use tempfile::NamedTempFile;

/// A component in which one text is replaced everywhere by another of the same length.
pub(crate) fn altered(bytes: &[u8], from: &str, to: &str) -> NamedTempFile {
    assert_eq!(from.len(), to.len());
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let mut bytes = bytes.to_vec();
    let mut found = 0;
    while let Some(at) = bytes.windows(from.len()).position(|window| window == from) {
        bytes[at..at + to.len()].copy_from_slice(to);
        found += 1;
    }
    assert_ne!(found, 0);
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}
