//! Structs read from the rows of a query.

use serde::de::DeserializeOwned;
use tollgate_sdk::FromValue;
#[doc(hidden)]
pub use tollgate_sdk::{DbError, Row};

/// Columns of a row, read from left to right. [`from_row!`](crate::from_row!) reads them.
#[doc(hidden)]
#[derive(Debug)]
pub struct Columns<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Columns<'a> {
    #[must_use]
    pub const fn of(row: &'a Row) -> Columns<'a> {
        Columns { row, next: 0 }
    }

    pub fn get<T: FromValue>(&mut self) -> Result<T, DbError> {
        self.row.get(self.advance())
    }

    pub fn json<T: DeserializeOwned>(&mut self) -> Result<T, DbError> {
        self.row.json(self.advance())
    }

    pub fn optional_json<T: DeserializeOwned>(&mut self) -> Result<Option<T>, DbError> {
        let column = self.advance();
        let text = self.row.get::<Option<String>>(column)?;
        text.map(|_| self.row.json(column)).transpose()
    }

    pub fn nested<T: FromColumns>(&mut self) -> Result<T, DbError> {
        T::from_columns(self)
    }

    const fn advance(&mut self) -> usize {
        let column = self.next;
        self.next += 1;
        column
    }
}

/// A struct that takes some of the columns of a row. [`from_row!`](crate::from_row!) implements it.
#[doc(hidden)]
pub trait FromColumns: Sized {
    fn from_columns(columns: &mut Columns<'_>) -> Result<Self, DbError>;
}

/// Implements `TryFrom<Row>` for a struct whose fields are the columns of a query, in this order.
///
/// A column is read as the type of its field, as JSON text with `field: json`, as JSON text or NULL with
/// `field: optional_json`, or through a function with `field = function`. The function may use earlier fields.
/// `field: nested` reads the next columns as another struct with `from_row!`. `field: copy id` copies the earlier
/// field `id` and reads no column.
///
/// ```
/// use tollgate_sdk::{Row, Value};
///
/// #[derive(Debug, PartialEq)]
/// struct Note {
///     id: i64,
///     tags: Vec<String>,
///     is_long: bool,
/// }
///
/// tollgate_kit::from_row! {
///     Note { id, tags: json, is_long = |bytes: i64| bytes > 1_000 }
/// }
///
/// let row = Row::new(vec![Value::Integer(7), Value::Text("[\"draft\"]".to_owned()), Value::Integer(12)]);
/// let note = Note { id: 7, tags: vec!["draft".to_owned()], is_long: false };
/// assert_eq!(Note::try_from(row), Ok(note));
///
/// struct Listed {
///     note: Note,
///     folder: String,
///     name: String,
/// }
///
/// tollgate_kit::from_row! {
///     Listed { note: nested, folder, name: copy folder }
/// }
/// ```
#[macro_export]
macro_rules! from_row {
    (@read $columns:ident) => { $columns.get()? };
    (@read $columns:ident : json) => { $columns.json()? };
    (@read $columns:ident : optional_json) => { $columns.optional_json()? };
    (@read $columns:ident : nested) => { $columns.nested()? };
    (@read $columns:ident : copy $earlier:ident) => { ::std::clone::Clone::clone(&$earlier) };
    (@read $columns:ident = $read:expr) => { ($read)($columns.get()?) };
    ($row:ident { $($field:ident $(: $form:ident $($earlier:ident)?)? $(= $read:expr)?),+ $(,)? }) => {
        impl $crate::rows::FromColumns for $row {
            fn from_columns(
                columns: &mut $crate::rows::Columns<'_>,
            ) -> ::std::result::Result<$row, $crate::rows::DbError> {
                $(let $field = $crate::from_row!(@read columns $(: $form $($earlier)?)? $(= $read)?);)+
                ::std::result::Result::Ok($row { $($field),+ })
            }
        }

        impl ::std::convert::TryFrom<$crate::rows::Row> for $row {
            type Error = $crate::rows::DbError;

            fn try_from(row: $crate::rows::Row) -> ::std::result::Result<$row, $crate::rows::DbError> {
                $crate::rows::Columns::of(&row).nested()
            }
        }
    };
}
