//! Hash over all rows of a table, independent of the order in which an engine reads them.

use sha2::{Digest as _, Sha256};
use tollgate_core::hash::hex;

use crate::storage::value::Value;

/// Collects the hashes of rows: 32 bytes for each row.
#[derive(Debug, Default)]
pub(super) struct Digest {
    rows: Vec<[u8; 32]>,
}

/// Number of rows of a table and the hash over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) rows: u64,
    pub(super) sha256: String,
}

impl Digest {
    /// Adds a row.
    pub(super) fn add(&mut self, row: &[Value]) {
        let mut hash = Sha256::new();
        for value in row {
            let (tag, bytes) = match value {
                Value::Null => (0, &[][..]),
                Value::Integer(number) => (1, &number.to_be_bytes()[..]),
                Value::Real(number) => (2, &number.to_bits().to_be_bytes()[..]),
                Value::Text(text) => (3, text.as_bytes()),
                Value::Blob(bytes) => (4, bytes.as_slice()),
            };
            // With the length, the boundary between two values is unambiguous.
            hash.update([tag]);
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        }
        self.rows.push(hash.finalize().into());
    }

    /// The hash over the hashes of all rows, sorted.
    pub(super) fn sum(mut self, table: &str, columns: impl Iterator<Item = String>) -> Sum {
        self.rows.sort_unstable();
        let mut hash = Sha256::new();
        hash.update(format!("tollgate table 1\n{table}\n"));
        for column in columns {
            hash.update(format!("{column}\n"));
        }
        for row in &self.rows {
            hash.update(row);
        }
        Sum {
            rows: self.rows.len() as u64,
            sha256: hex(&hash.finalize()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(rows: &[&[Value]]) -> String {
        let mut digest = Digest::default();
        for row in rows {
            digest.add(row);
        }
        digest.sum("t", ["a".to_owned()].into_iter()).sha256
    }

    #[test]
    fn order_does_not_count_and_everything_else_does() {
        let text = |text: &str| Value::Text(text.to_owned());
        let (one, two): (&[Value], &[Value]) = (&[Value::Integer(1)], &[Value::Null]);
        assert_eq!(sum(&[one, two]), sum(&[two, one]));
        let different = [
            sum(&[]),
            sum(&[one]),
            sum(&[one, one]),
            sum(&[&[Value::Real(1.0)]]),
            sum(&[&[text("1")]]),
            sum(&[&[Value::Blob(b"1".to_vec())]]),
            sum(&[&[text("")]]),
            sum(&[&[Value::Null]]),
            sum(&[&[text("a"), text("b")]]),
            sum(&[&[text("ab"), text("")]]),
        ];
        for (place, hash) in different.iter().enumerate() {
            assert!(!different[..place].contains(hash), "{place}");
        }
    }
}
