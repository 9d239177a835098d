//! All SQL of the pack: one file per table, each with its record type.

pub(crate) mod attempt;
mod baseline;
pub(crate) mod batch;
pub(crate) mod context;
pub(crate) mod description;
pub(crate) mod gone;
pub(crate) mod job;
pub(crate) mod log;
pub(crate) mod mistake;
pub(crate) mod part;
pub(crate) mod run;
pub(crate) mod snapshot;
pub(crate) mod step;
pub(crate) mod template;
pub(crate) mod workspace;

use serde::Serialize;
use sha2::{Digest, Sha256};
use tollgate_sdk::{Cx, DbError, Id};

/// Value as the text of a JSON column.
fn to_json(value: &impl Serialize) -> Result<String, DbError> {
    serde_json::to_string(value).map_err(|_| DbError::Internal)
}

/// Reads all rows of a query in pages, because one result may not hold all of them.
fn in_pages<T>(page: impl Fn(u32, u32) -> Result<Vec<T>, DbError>) -> Result<Vec<T>, DbError> {
    const PAGE_ROWS: u32 = 20;
    let mut all = Vec::new();
    for offset in (0..).step_by(PAGE_ROWS as usize) {
        let rows = page(offset, PAGE_ROWS)?;
        let last = rows.len() < PAGE_ROWS as usize;
        all.extend(rows);
        if last {
            break;
        }
    }
    Ok(all)
}

/// A new id: the prefix and the shortest base32 text that is not taken, at least four characters.
pub(crate) fn short_id<I: Id>(
    cx: &Cx<'_>,
    taken: impl Fn(&I) -> Result<bool, DbError>,
) -> Result<I, DbError> {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    /// Tries per length. If all are taken, the next length is used.
    const TRIES_PER_LENGTH: usize = 3;
    for length in (4..=26).flat_map(|length| [length; TRIES_PER_LENGTH]) {
        let seed = cx.new_id::<Seed>().0;
        let digest = Sha256::digest(seed.as_bytes());
        let letters = digest
            .iter()
            .take(length)
            .filter_map(|byte| ALPHABET.get(usize::from(byte % 32)));
        let text: String = letters.map(|&letter| char::from(letter)).collect();
        let id = I::from_text(format!("{}-{text}", I::PREFIX));
        if !taken(&id)? {
            return Ok(id);
        }
    }
    Err(DbError::Internal)
}

/// Source of short ids.
struct Seed(String);

impl Id for Seed {
    const PREFIX: &'static str = "seed";
    fn from_text(text: String) -> Seed {
        Seed(text)
    }
}
