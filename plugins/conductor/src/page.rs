//! Pages of lists: `limit` and `cursor` in, `next_cursor` out. Cursors are opaque to callers.

use crate::error::{Reason, Refusals};

/// Longest cursor, in bytes.
pub(crate) const CURSOR: usize = 200;

/// Number of entries before a page of a list that is made anew for each call. `offset` is an old name of the cursor.
pub(crate) fn skipped(refusals: &mut Refusals, cursor: Option<&str>, offset: Option<u32>) -> u32 {
    if cursor.is_some() && offset.is_some() {
        refusals.add(Reason::argument("offset", "cannot be combined with cursor"));
    }
    match cursor.map(str::parse::<u32>) {
        Some(Ok(skipped)) => skipped,
        Some(Err(_)) => {
            unknown(refusals);
            0
        }
        None => offset.unwrap_or_default(),
    }
}

/// Refuses a cursor that no reply had.
pub(crate) fn unknown(refusals: &mut Refusals) {
    refusals.add(Reason::argument(
        "cursor",
        "is not a next_cursor of this list; leave it out to begin with the first page",
    ));
}

/// Cursor of the page after one that ends at a number of entries.
pub(crate) fn after(end: u32, total: usize) -> Option<String> {
    ((end as usize) < total).then(|| end.to_string())
}
