//! Pages of lists: `limit` and `cursor` in, `next_cursor` out. Cursors are opaque to callers.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use tollgate_sdk::Id;

use crate::error::{Reason, Refusals};

/// Longest cursor, in bytes.
const MAX_CURSOR_BYTES: usize = 200;

/// Cursor of a page, from an earlier reply.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Cursor(String);

impl JsonSchema for Cursor {
    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "Cursor from an earlier reply.", "maxLength": MAX_CURSOR_BYTES})
    }
}

impl Cursor {
    /// The parts of a cursor of two, around a separator.
    pub(crate) fn parts(&self, separator: char) -> Option<(&str, &str)> {
        self.0.split_once(separator)
    }

    /// Id of the last entry before the page.
    pub(crate) fn id<I: Id>(self) -> I {
        I::from_text(self.0)
    }
}

/// Number of entries before a page of a list that is made anew for each call. `offset` is an old name of the cursor.
pub(crate) fn skipped(refusals: &mut Refusals, cursor: Option<&Cursor>, offset: Option<u32>) -> u32 {
    combined(refusals, cursor, offset);
    match cursor.map(|cursor| cursor.0.parse::<u32>()) {
        Some(Ok(skipped)) => skipped,
        Some(Err(_)) => {
            unknown(refusals);
            0
        }
        None => offset.unwrap_or_default(),
    }
}

/// Refuses a cursor together with its old name.
pub(crate) fn combined(refusals: &mut Refusals, cursor: Option<&Cursor>, offset: Option<u32>) {
    if cursor.is_some() && offset.is_some() {
        refusals.add(Reason::argument("offset", "cannot be combined with cursor"));
    }
}

/// Refuses a cursor that no reply had.
pub(crate) fn unknown(refusals: &mut Refusals) {
    refusals.add(Reason::argument(
        "cursor",
        "is not a next_cursor of this list; omit it to start with the first page",
    ));
}

/// Cursor of the page after one that ends at a number of entries.
pub(crate) fn after(end: u32, total: usize) -> Option<String> {
    ((end as usize) < total).then(|| end.to_string())
}
