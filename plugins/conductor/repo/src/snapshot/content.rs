//! Reads one file, in pieces, into a hash.

use bstr::ByteSlice as _;
use twox_hash::xxhash3_128::Hasher;

use super::{Content, Digest, Limits};
use crate::tree::{Entry, Tree, TreeResult};

/// Bytes per read. A host limits the size of one reply.
const READ_BYTES: u32 = 256 << 10;

/// Number of leading bytes in which a zero byte makes a file binary.
const SNIFFED_BYTES: usize = 8_000;

/// Reads one file after the other into the same memory.
#[derive(Default)]
pub(crate) struct Reader {
    /// Content of the last file, as far as the observer gets it.
    kept: Vec<u8>,
    /// Bytes read so far, of all files.
    pub(super) bytes: u64,
}

impl Reader {
    /// Reads a file. Returns its content too, if that is text within the size limit.
    pub(crate) fn read<T: Tree + ?Sized>(
        &mut self,
        tree: &T,
        entry: &Entry,
        limits: &Limits,
    ) -> TreeResult<(Content, Option<&[u8]>)> {
        self.kept.clear();
        if entry.size > limits.hashed_bytes {
            let ends = self.ends(tree, entry)?;
            return Ok((Content::Huge { ends }, None));
        }
        let Some(first) = self.piece(tree, entry, 0)? else {
            let digest = Digest::of(&[]);
            return Ok((Content::Text { digest }, Some(&[])));
        };
        let head_is_binary = is_binary(&first);
        let digest = if length(&first) == entry.size {
            let digest = Digest::of(&first);
            self.kept = first;
            digest
        } else {
            self.rest(tree, entry, first, limits)?
        };
        if head_is_binary {
            return Ok((Content::Binary { digest }, None));
        }
        let is_whole = entry.size <= limits.observed_bytes;
        Ok((Content::Text { digest }, is_whole.then_some(self.kept.as_slice())))
    }

    /// Reads the pieces after the first. Content that is too long for the observer is not kept.
    fn rest<T: Tree + ?Sized>(
        &mut self,
        tree: &T,
        entry: &Entry,
        first: Vec<u8>,
        limits: &Limits,
    ) -> TreeResult<Digest> {
        let mut hasher = Hasher::new();
        let mut next = Some(first);
        let mut offset = 0;
        while let Some(piece) = next {
            hasher.write(&piece);
            offset += length(&piece);
            if entry.size <= limits.observed_bytes {
                self.kept.extend_from_slice(&piece);
            }
            next = self.piece(tree, entry, offset)?;
        }
        Ok(Digest::finished(&hasher))
    }

    /// Reads the next piece, or `None` at the listed size: data appended since then belongs to the next
    /// snapshot.
    fn piece<T: Tree + ?Sized>(
        &mut self,
        tree: &T,
        entry: &Entry,
        offset: u64,
    ) -> TreeResult<Option<Vec<u8>>> {
        let limit = piece_limit(entry.size.saturating_sub(offset));
        if limit == 0 {
            return Ok(None);
        }
        let mut piece = tree.read(&entry.path, offset, limit)?;
        piece.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        self.bytes += length(&piece);
        Ok((!piece.is_empty()).then_some(piece))
    }

    fn ends<T: Tree + ?Sized>(&mut self, tree: &T, entry: &Entry) -> TreeResult<Digest> {
        let mut hasher = Hasher::new();
        hasher.write(&entry.size.to_be_bytes());
        for offset in [0, entry.size.saturating_sub(u64::from(READ_BYTES))] {
            hasher.write(&self.piece(tree, entry, offset)?.unwrap_or_default());
        }
        Ok(Digest::finished(&hasher))
    }
}

/// Size of the next piece, given the remaining bytes.
pub(super) fn piece_limit(left: u64) -> u32 {
    u32::try_from(left).map_or(READ_BYTES, |left| left.min(READ_BYTES))
}

fn is_binary(head: &[u8]) -> bool {
    head.get(..SNIFFED_BYTES).unwrap_or(head).contains_str(b"\0")
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
