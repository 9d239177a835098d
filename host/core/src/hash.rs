//! SHA-256 in hex.

use sha2::{Digest, Sha256};

/// Bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(if half < 10 { b'0' + half } else { b'a' + half - 10 });
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 0xf));
    }
    text
}

/// Bytes of a hex text. `None` unless the text encodes exactly `N` bytes.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| {
            char::from(pair[at])
                .to_digit(16)
                .and_then(|digit| u8::try_from(digit).ok())
        };
        *byte = digit(0)? << 4 | digit(1)?;
    }
    Some(bytes)
}

/// SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256 of bytes, in hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of bytes that come in parts.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds a part.
    pub fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// The hash of all parts, in hex.
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_goes_there_and_back() {
        assert_eq!(hex(&[0, 0xab, 0x7f]), "00ab7f");
        assert_eq!(unhex("00AB7f"), Some([0, 0xab, 0x7f]));
        assert_eq!(unhex::<1>("0g"), None);
        assert_eq!(unhex::<1>("é"), None);
        assert_eq!(unhex::<2>("00"), None);
    }

    #[test]
    fn sha256_is_the_known_one() {
        assert!(sha256_hex(b"abc").starts_with("ba7816bf"));
        let mut parts = Hasher::default();
        [&b"a"[..], b"", b"bc"].iter().for_each(|part| parts.update(part));
        assert_eq!(parts.finish(), sha256_hex(b"abc"));
    }
}
