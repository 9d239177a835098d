//! Incremental hash of a set of files: files can be added to it and removed from it.
//!
//! The state of a work tree then needs only the files that differ from a commit whose sum is known, and committing
//! the present files does not change the state.

use tollgate_core::hash;

/// Parts of a SHA-256 hash, each a sum modulo 2^64.
const LANES: usize = 4;

/// Sum of the hashes of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum([u64; LANES]);

impl Sum {
    /// Adds a file.
    pub(crate) fn add(&mut self, path: &[u8], mode: &str, content: &str) {
        for (sum, lane) in self.0.iter_mut().zip(lanes(path, mode, content)) {
            *sum = sum.wrapping_add(lane);
        }
    }

    /// Removes a file that was added.
    pub(crate) fn take(&mut self, path: &[u8], mode: &str, content: &str) {
        for (sum, lane) in self.0.iter_mut().zip(lanes(path, mode, content)) {
            *sum = sum.wrapping_sub(lane);
        }
    }

    /// Hash of the set under the name of its workspace.
    pub(crate) fn finish(self, workspace: &str) -> String {
        let mut bytes = b"tollgate.work_tree.v1\0".to_vec();
        bytes.extend_from_slice(workspace.as_bytes());
        bytes.push(0);
        for lane in self.0 {
            bytes.extend_from_slice(&lane.to_be_bytes());
        }
        hash::sha256_hex(&bytes)
    }
}

fn lanes(path: &[u8], mode: &str, content: &str) -> [u64; LANES] {
    let mut bytes = Vec::with_capacity(path.len() + 64);
    for part in [path, mode.as_bytes(), content.as_bytes()] {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    let digest = hash::sha256(&bytes);
    let mut lanes = [0; LANES];
    for (lane, bytes) in lanes.iter_mut().zip(digest.chunks_exact(8)) {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        *lane = u64::from_be_bytes(word);
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_matter_and_what_is_taken_is_gone() {
        let mut one = Sum::default();
        one.add(b"a", "100644", "1");
        one.add(b"b", "100644", "2");
        let mut other = Sum::default();
        other.add(b"b", "100644", "2");
        other.add(b"c", "100644", "3");
        other.add(b"a", "100644", "1");
        assert_ne!(one, other);
        other.take(b"c", "100644", "3");
        assert_eq!(one, other);
        assert_ne!(one.finish("w"), one.finish("x"));
        other.take(b"b", "100644", "2");
        other.add(b"b", "100755", "2");
        assert_ne!(one, other);
    }
}
