//! Values in tables of packs that the host reads.

use rusqlite::OptionalExtension;

use super::error::StoreResult;
use super::session::Session;

/// Place of one text in a table of a pack. Whoever makes one has checked that the names need no quotes and that the
/// table is the pack's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOf {
    /// Table of the pack.
    pub table: String,
    /// Column that the value is compared with.
    pub key: String,
    /// Column of the text.
    pub column: String,
    /// Value of the key.
    pub value: String,
}

impl Session {
    /// Text at a place, if there is one.
    pub fn text_at(&self, text: &TextOf) -> StoreResult<Option<String>> {
        let TextOf {
            table, key, column, ..
        } = text;
        let found: Option<Option<String>> = self
            .db
            .prepare_cached(&format!("SELECT {column} FROM {table} WHERE {key} = ?1 LIMIT 1"))?
            .query_row([&text.value], |row| row.get(0))
            .optional()?;
        Ok(found.flatten())
    }
}
