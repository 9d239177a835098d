//! First and last bytes of a stream, in bounded memory.

use std::collections::VecDeque;

use crate::Output;

/// Consumes a stream and keeps at most `limit` bytes of it.
#[derive(Debug)]
pub struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Capture {
    /// Keeps the first and the last half of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Capture {
        Capture {
            half: limit / 2,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    /// Consumes the next bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.half - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Returns the kept bytes.
    #[must_use]
    pub fn finish(self) -> Output {
        let mut bytes = self.head;
        bytes.extend(self.tail);
        Output {
            bytes,
            total: self.total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the first and the last half, however the stream is split.
    #[test]
    fn the_ends_are_kept_however_the_stream_is_cut() {
        let stream: Vec<u8> = (0..100).collect();
        for length in [0, 1, 7, 8, 9, 10, 50, 100] {
            let stream = &stream[..length];
            for piece in [1, 3, 8, 100] {
                let mut capture = Capture::new(8);
                stream.chunks(piece).for_each(|bytes| capture.take(bytes));
                let output = capture.finish();
                let expected = if length <= 8 {
                    stream.to_vec()
                } else {
                    [&stream[..4], &stream[length - 4..]].concat()
                };
                assert_eq!(output.bytes, expected, "{length} bytes in pieces of {piece}");
                assert_eq!(output.total, length as u64);
                assert_eq!(output.is_cut(), length > 8);
            }
        }
    }
}
