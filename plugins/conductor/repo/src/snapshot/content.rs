//! Reading one file, in pieces, into a hash.

use bstr::ByteSlice as _;

use super::{Content, Digest, Limits};
use crate::tree::{Entry, Tree, TreeError};

/// Bytes of one read. A host caps what one answer may carry.
const PIECE: u32 = 256 << 10;

/// Where a zero byte makes a file binary.
const SNIFFED: usize = 8_000;

/// Reads one file after the other into the same memory.
#[derive(Default)]
pub(crate) struct Reader {
    /// The content of the last file, as far as it is to be observed.
    kept: Vec<u8>,
    /// Bytes read so far, of all files.
    pub(super) bytes: u64,
}

impl Reader {
    /// What a file holds, and the content if it is text that is not too long.
    pub(crate) fn read<T: Tree + ?Sized>(
        &mut self,
        tree: &T,
        entry: &Entry,
        limits: &Limits,
    ) -> Result<(Content, Option<&[u8]>), TreeError> {
        self.kept.clear();
        if entry.size > limits.hashed_bytes {
            let ends = self.ends(tree, entry)?;
            return Ok((Content::Huge { ends }, None));
        }
        let mut hasher = blake3::Hasher::new();
        let mut head_is_binary = false;
        let mut offset = 0;
        while let Some(piece) = self.piece(tree, entry, offset)? {
            if offset == 0 {
                head_is_binary = is_binary(&piece);
            }
            hasher.update(&piece);
            offset += length(&piece);
            if !head_is_binary && offset <= limits.observed_bytes {
                self.kept.extend_from_slice(&piece);
            }
        }
        let digest = Digest(*hasher.finalize().as_bytes());
        if head_is_binary {
            return Ok((Content::Binary { digest }, None));
        }
        let whole = length(&self.kept) == offset;
        Ok((Content::Text { digest }, whole.then_some(self.kept.as_slice())))
    }

    /// The next piece, or `None` at the size the file was listed with: what was appended meanwhile
    /// belongs to the next snapshot.
    fn piece<T: Tree + ?Sized>(
        &mut self,
        tree: &T,
        entry: &Entry,
        offset: u64,
    ) -> Result<Option<Vec<u8>>, TreeError> {
        let left = entry.size.saturating_sub(offset);
        if left == 0 {
            return Ok(None);
        }
        let limit = u32::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        let mut piece = tree.read(&entry.path, offset, limit)?;
        piece.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        self.bytes += length(&piece);
        Ok((!piece.is_empty()).then_some(piece))
    }

    fn ends<T: Tree + ?Sized>(&mut self, tree: &T, entry: &Entry) -> Result<Digest, TreeError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&entry.size.to_be_bytes());
        for offset in [0, entry.size.saturating_sub(u64::from(PIECE))] {
            hasher.update(&self.piece(tree, entry, offset)?.unwrap_or_default());
        }
        Ok(Digest(*hasher.finalize().as_bytes()))
    }
}

fn is_binary(head: &[u8]) -> bool {
    head.get(..SNIFFED).unwrap_or(head).contains_str(b"\0")
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
