//! Parameter values of a statement.

use crate::storage::value::Value;

/// Parameter value. Borrowed, so that an in-process engine copies nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::storage) enum Sql<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
}

/// A type whose values can be parameters.
pub(in crate::storage) trait AsSql {
    /// Converts the value to a parameter.
    fn as_sql(&self) -> Sql<'_>;
}

/// Parameters of a statement: `?1`, `?2` and so on.
macro_rules! sql {
    ($($value:expr),* $(,)?) => {
        &[$($crate::storage::engine::AsSql::as_sql(&$value)),*]
    };
}
pub(in crate::storage) use sql;

/// Values as parameters of a statement.
pub(in crate::storage) fn borrowed<T: AsSql>(values: &[T]) -> Vec<Sql<'_>> {
    values.iter().map(AsSql::as_sql).collect()
}

impl AsSql for Sql<'_> {
    fn as_sql(&self) -> Sql<'_> {
        *self
    }
}

impl<T: AsSql + ?Sized> AsSql for &T {
    fn as_sql(&self) -> Sql<'_> {
        (**self).as_sql()
    }
}

impl<T: AsSql> AsSql for Option<T> {
    fn as_sql(&self) -> Sql<'_> {
        self.as_ref().map_or(Sql::Null, AsSql::as_sql)
    }
}

impl AsSql for str {
    fn as_sql(&self) -> Sql<'_> {
        Sql::Text(self)
    }
}

impl AsSql for String {
    fn as_sql(&self) -> Sql<'_> {
        Sql::Text(self)
    }
}

impl AsSql for f64 {
    fn as_sql(&self) -> Sql<'_> {
        Sql::Real(*self)
    }
}

impl AsSql for i64 {
    fn as_sql(&self) -> Sql<'_> {
        Sql::Int(*self)
    }
}

impl AsSql for u32 {
    fn as_sql(&self) -> Sql<'_> {
        Sql::Int(i64::from(*self))
    }
}

impl AsSql for bool {
    fn as_sql(&self) -> Sql<'_> {
        Sql::Int(i64::from(*self))
    }
}

impl From<Sql<'_>> for Value {
    fn from(value: Sql<'_>) -> Value {
        match value {
            Sql::Null => Value::Null,
            Sql::Int(number) => Value::Integer(number),
            Sql::Real(number) => Value::Real(number),
            Sql::Text(text) => Value::Text(text.to_owned()),
            Sql::Blob(bytes) => Value::Blob(bytes.to_owned()),
        }
    }
}

impl AsSql for Value {
    fn as_sql(&self) -> Sql<'_> {
        match self {
            Value::Null => Sql::Null,
            Value::Integer(number) => Sql::Int(*number),
            Value::Real(number) => Sql::Real(*number),
            Value::Text(text) => Sql::Text(text),
            Value::Blob(bytes) => Sql::Blob(bytes),
        }
    }
}
