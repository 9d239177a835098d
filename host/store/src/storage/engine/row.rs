//! Result rows of a statement.

use super::{Sql, postgres};
use crate::storage::error::{StoreError, StoreResult};

/// A row of a result, borrowed from the engine.
pub(in crate::storage) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

/// Value of a column. Text is as stored: readers must check that it is UTF-8.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::storage) enum Column<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

/// A type that a column can be read as.
pub(in crate::storage) trait FromColumn<'a>: Sized {
    /// Reads a column. `None` if it holds another type.
    fn from_column(column: Column<'a>) -> Option<Self>;
}

impl<'a> Row<'a> {
    /// Value of a column.
    pub(in crate::storage) fn column(&self, index: usize) -> StoreResult<Column<'_>> {
        match self {
            Row::Sqlite(row) => Ok(row.get_ref(index)?.into()),
            Row::Postgres(row) => postgres::column(row, index),
        }
    }

    /// Value of a column, as a type.
    pub(in crate::storage) fn get<'r, T: FromColumn<'r>>(&'r self, index: usize) -> StoreResult<T> {
        let column = self.column(index)?;
        T::from_column(column).ok_or_else(|| StoreError::of_column(index, column.kind()))
    }
}

impl<'a> Column<'a> {
    /// Text of a column that holds text.
    pub(in crate::storage) fn text(self) -> Option<&'a str> {
        match self {
            Column::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Kind of the value, for messages.
    pub(in crate::storage) fn kind(self) -> &'static str {
        match self {
            Column::Null => "NULL",
            Column::Int(_) => "a whole number",
            Column::Real(_) => "a number",
            Column::Text(_) => "text",
            Column::Blob(_) => "bytes",
        }
    }
}

impl<'a> From<Sql<'a>> for Column<'a> {
    fn from(value: Sql<'a>) -> Column<'a> {
        match value {
            Sql::Null => Column::Null,
            Sql::Int(number) => Column::Int(number),
            Sql::Real(number) => Column::Real(number),
            Sql::Text(text) => Column::Text(text.as_bytes()),
            Sql::Blob(bytes) => Column::Blob(bytes),
        }
    }
}

impl<'a, T: FromColumn<'a>> FromColumn<'a> for Option<T> {
    fn from_column(column: Column<'a>) -> Option<Option<T>> {
        match column {
            Column::Null => Some(None),
            column => T::from_column(column).map(Some),
        }
    }
}

impl<'a> FromColumn<'a> for &'a str {
    fn from_column(column: Column<'a>) -> Option<&'a str> {
        column.text()
    }
}

impl<'a> FromColumn<'a> for &'a [u8] {
    fn from_column(column: Column<'a>) -> Option<&'a [u8]> {
        match column {
            Column::Blob(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl FromColumn<'_> for String {
    fn from_column(column: Column<'_>) -> Option<String> {
        column.text().map(str::to_owned)
    }
}

impl FromColumn<'_> for i64 {
    fn from_column(column: Column<'_>) -> Option<i64> {
        match column {
            Column::Int(number) => Some(number),
            _ => None,
        }
    }
}

impl FromColumn<'_> for u32 {
    fn from_column(column: Column<'_>) -> Option<u32> {
        i64::from_column(column).and_then(|number| u32::try_from(number).ok())
    }
}

impl FromColumn<'_> for bool {
    fn from_column(column: Column<'_>) -> Option<bool> {
        i64::from_column(column).map(|number| number != 0)
    }
}

impl FromColumn<'_> for f64 {
    #[allow(clippy::cast_precision_loss, reason = "as the engine itself converts it")]
    fn from_column(column: Column<'_>) -> Option<f64> {
        match column {
            Column::Real(number) => Some(number),
            Column::Int(number) => Some(number as f64),
            _ => None,
        }
    }
}
