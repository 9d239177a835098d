//! Replacement for the storage of native tests without the feature `storage`. Has no tables.

use std::ops::Range;

use super::{MISSING_STORAGE, Session};
use crate::{DbError, Effect, Migration, Row, Value};

/// Tables of a pack or policy without tables.
pub(super) struct Storage;

impl Storage {
    pub(super) fn new(owner: &str, migrations: &[Migration], _which: Range<usize>) -> Storage {
        assert!(migrations.is_empty(), "{owner} has migrations; {MISSING_STORAGE}");
        Storage
    }

    pub(super) fn allow(&self, _effect: Effect) {}

    pub(super) fn begin(&self, _name: &str) -> Result<(), DbError> {
        Ok(())
    }

    pub(super) fn commit(&self, _name: &str) -> Result<(), DbError> {
        Ok(())
    }

    pub(super) fn roll_back(&self, _name: &str) -> Result<(), DbError> {
        Ok(())
    }

    pub(super) fn query(&self, _sql: &str, _params: &[Value]) -> Result<Vec<Row>, DbError> {
        Err(DbError::Refused(MISSING_STORAGE.to_owned()))
    }

    pub(super) fn execute(&self, _sql: &str, _params: &[Value]) -> Result<u64, DbError> {
        Err(DbError::Refused(MISSING_STORAGE.to_owned()))
    }
}

impl Session {
    /// Panics, because there are no tables without the feature `storage`.
    ///
    /// # Panics
    /// Always.
    pub fn sql(&self, sql: &str) -> Vec<Row> {
        panic!("{sql}: {MISSING_STORAGE}")
    }
}
