//! Limit on the length of values for statements with very many steps.
//!
//! SQLite checks a deadline only where a program jumps back. Without this limit, thousands of consecutive
//! comparisons, conversions or functions, each on a value of a megabyte, would take seconds without a check.

use rusqlite::limits::Limit;
use rusqlite::{CachedStatement, StatementStatus};

use super::Sqlite;
use crate::storage::error::StoreResult;

/// Size of a prepared statement below which it cannot have many steps, in bytes.
const SMALL_STATEMENT_BYTES: i32 = 8 << 10;
/// Number of steps below which a statement works on values of any length.
const FREE_STEPS: usize = 100;
/// Most bytes that all steps of a statement may read together, if each reads the longest value: about a tenth of a
/// second.
const MAX_READ_BYTES: usize = 100_000_000;
/// Value length that every statement may work on.
const MIN_VALUE_BYTES: usize = 16 << 10;

/// Guard of a reduced length limit.
pub(super) struct Narrow<'a> {
    sqlite: &'a Sqlite,
    before: i32,
    /// Longest value, in bytes.
    pub(super) longest: usize,
}

impl Sqlite {
    /// Reduces the length of values for a new statement that has very many steps.
    pub(super) fn narrow(
        &self,
        sql: &str,
        statement: &CachedStatement<'_>,
    ) -> StoreResult<Option<Narrow<'_>>> {
        if statement.get_status(StatementStatus::MemUsed) <= SMALL_STATEMENT_BYTES {
            return Ok(None);
        }
        let steps = self.steps(sql)?;
        if steps <= FREE_STEPS {
            return Ok(None);
        }
        let longest = (MAX_READ_BYTES / steps).max(MIN_VALUE_BYTES);
        let before = self.db.limit(Limit::SQLITE_LIMIT_LENGTH)?;
        let limit = i32::try_from(longest).unwrap_or(i32::MAX).min(before);
        self.db.set_limit(Limit::SQLITE_LIMIT_LENGTH, limit)?;
        Ok(Some(Narrow {
            sqlite: self,
            before,
            longest,
        }))
    }

    /// Number of steps in a statement whose time grows with the length of a value.
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
        // Cannot fail, because it was the limit before.
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
