//! Statements of very many steps, which work on shorter values.
//!
//! SQLite looks at a deadline where a program jumps back. Thousands of comparisons, conversions or functions in a
//! row, each of a value of a megabyte, would take seconds without a look.

use rusqlite::limits::Limit;
use rusqlite::{CachedStatement, StatementStatus};

use super::Sqlite;
use crate::storage::error::StoreResult;

/// Bytes of a prepared statement that cannot have many steps.
const SMALL: i32 = 8 << 10;
/// Steps of a statement that works on values of any length.
const FREE_STEPS: usize = 100;
/// Bytes that all steps of a statement may look at together, if each looks at the longest value: about a tenth of
/// a second.
const LOOKED_AT: usize = 100_000_000;
/// Smallest size that every statement works on.
const SHORTEST: usize = 16 << 10;

/// Values are shorter until this is dropped.
pub(super) struct Narrow<'a> {
    sqlite: &'a Sqlite,
    before: i32,
    /// The longest value, in bytes.
    pub(super) longest: usize,
}

impl Sqlite {
    /// Shortens the values that a new statement may work on, if it has very many steps.
    pub(super) fn narrow(
        &self,
        sql: &str,
        statement: &CachedStatement<'_>,
    ) -> StoreResult<Option<Narrow<'_>>> {
        if statement.get_status(StatementStatus::MemUsed) <= SMALL {
            return Ok(None);
        }
        let steps = self.steps(sql)?;
        if steps <= FREE_STEPS {
            return Ok(None);
        }
        let longest = (LOOKED_AT / steps).max(SHORTEST);
        let before = self.db.limit(Limit::SQLITE_LIMIT_LENGTH)?;
        let limit = i32::try_from(longest).unwrap_or(i32::MAX).min(before);
        self.db.set_limit(Limit::SQLITE_LIMIT_LENGTH, limit)?;
        Ok(Some(Narrow {
            sqlite: self,
            before,
            longest,
        }))
    }

    /// Steps of a statement whose time grows with the length of a value.
    fn steps(&self, sql: &str) -> StoreResult<usize> {
        let mut explained = self.db.prepare(&["EXPLAIN ", sql].concat())?;
        let mut rows = explained.raw_query();
        let mut steps = 0;
        while let Some(row) = rows.next()? {
            steps += usize::from(grows(row.get_ref(1)?.as_str().unwrap_or_default()));
        }
        Ok(steps)
    }
}

impl Drop for Narrow<'_> {
    fn drop(&mut self) {
        // It was this before, so it cannot be refused.
        let _ = self.sqlite.db.set_limit(Limit::SQLITE_LIMIT_LENGTH, self.before);
    }
}

fn grows(step: &str) -> bool {
    matches!(
        step,
        "Eq" | "Ne"
            | "Lt"
            | "Le"
            | "Gt"
            | "Ge"
            | "Compare"
            | "Concat"
            | "Add"
            | "Subtract"
            | "Multiply"
            | "Divide"
            | "Remainder"
            | "BitAnd"
            | "BitOr"
            | "BitNot"
            | "ShiftLeft"
            | "ShiftRight"
            | "And"
            | "Or"
            | "Not"
            | "If"
            | "IfNot"
            | "IsTrue"
            | "Cast"
            | "Affinity"
            | "MustBeInt"
            | "Function"
            | "PureFunc"
            | "AggStep"
            | "AggStep1"
            | "AggInverse"
            | "Found"
            | "NotFound"
            | "NoConflict"
            | "NotExists"
            | "SeekRowid"
            | "SeekLT"
            | "SeekLE"
            | "SeekGE"
            | "SeekGT"
            | "IdxLT"
            | "IdxLE"
            | "IdxGE"
            | "IdxGT"
            | "IdxInsert"
    )
}
