//! Parameter values of a translated statement.

use std::borrow::Cow;

use thiserror::Error;

use super::{Kind, Parameter};

/// Most bytes of one text or blob: the limit that a host sets for SQLite, and that functions in [`super::FUNCTIONS`]
/// observe.
pub const MAX_VALUE: usize = 1_000_000;

/// A value of a component.
#[derive(Debug, Clone, PartialEq)]
pub enum Datum<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Blob(Cow<'a, [u8]>),
}

/// A value that does not fit its parameter. Its conversion by SQLite would depend on the row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("?{number} takes {wanted}, not {found}")]
pub struct Misfit {
    /// Number of the parameter.
    pub number: u16,
    /// Kind of the parameter.
    pub wanted: &'static str,
    /// Kind of the value, and the problem.
    pub found: &'static str,
}

/// Converts the value for a parameter. The value must have the parameter's kind, or be NULL: the conversion of any
/// other value by SQLite would depend on the parameter's position and on the row.
pub fn bind<'a>(parameter: &Parameter, value: Datum<'a>) -> Result<Datum<'a>, Misfit> {
    let misfit = |wanted, found| Misfit {
        number: parameter.number,
        wanted,
        found,
    };
    let Some(kind) = parameter.kind else {
        // It is only compared with NULL.
        return Ok(match value {
            Datum::Null => Datum::Null,
            _ => Datum::Text(Cow::Borrowed("")),
        });
    };
    let found = match (kind, value) {
        (_, Datum::Null) if parameter.required => return Err(misfit("a number", "NULL")),
        (_, Datum::Null) => return Ok(Datum::Null),
        // NaN is NULL in SQLite.
        (Kind::Real, Datum::Real(value)) if value.is_nan() => return Ok(Datum::Null),
        (Kind::Real, Datum::Real(value)) if value.is_infinite() => "an infinite number",
        // SQLite does not store the sign of zero.
        (Kind::Real, Datum::Real(value)) => return Ok(Datum::Real(value + 0.0)),
        (Kind::Text, Datum::Text(text)) if text.contains('\0') => "a text with a NUL character",
        (Kind::Text, Datum::Text(text)) if text.len() > MAX_VALUE => "a text of more than 1,000,000 bytes",
        (Kind::Blob, Datum::Blob(bytes)) if bytes.len() > MAX_VALUE => "a blob of more than 1,000,000 bytes",
        (Kind::Integer, value @ Datum::Integer(_))
        | (Kind::Text, value @ Datum::Text(_))
        | (Kind::Blob, value @ Datum::Blob(_)) => return Ok(value),
        (_, Datum::Integer(_)) => "a whole number",
        (_, Datum::Real(_)) => "a fraction",
        (_, Datum::Text(_)) => "a text",
        (_, Datum::Blob(_)) => "a blob",
    };
    Err(misfit(kind.said(), found))
}
