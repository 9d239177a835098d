//! Values on their way into a translated statement.

use std::borrow::Cow;

use thiserror::Error;

use super::{Kind, Parameter};

/// Bytes of one text or blob: as many as a host lets SQLite keep, and as functions in [`super::FUNCTIONS`] make.
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

/// A value that does not fit its parameter: what SQLite would make of it depends on the row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("?{number} takes {wanted}, not {found}")]
pub struct Misfit {
    /// Number of the parameter.
    pub number: u16,
    /// Kind of the parameter.
    pub wanted: &'static str,
    /// Kind of the value, and what is wrong with it.
    pub found: &'static str,
}

/// The value that is sent for a parameter. It is of the parameter's kind, or NULL: what SQLite would make of
/// another depends on where the parameter stands, and on the row.
pub fn bind<'a>(parameter: &Parameter, value: Datum<'a>) -> Result<Datum<'a>, Misfit> {
    let misfit = |wanted, found| Misfit {
        number: parameter.number,
        wanted,
        found,
    };
    let Some(kind) = parameter.kind else {
        // It is only looked at for NULL.
        return Ok(match value {
            Datum::Null => Datum::Null,
            _ => Datum::Text(Cow::Borrowed("")),
        });
    };
    let found = match (kind, value) {
        (_, Datum::Null) if parameter.required => return Err(misfit("a number", "NULL")),
        (_, Datum::Null) => return Ok(Datum::Null),
        // Not a number is NULL for SQLite.
        (Kind::Real, Datum::Real(value)) if value.is_nan() => return Ok(Datum::Null),
        (Kind::Real, Datum::Real(value)) if value.is_infinite() => "an infinite number",
        // SQLite keeps no sign of zero.
        (Kind::Real, Datum::Real(value)) => return Ok(Datum::Real(value + 0.0)),
        (Kind::Text, Datum::Text(text)) if text.contains('\0') => "a text with a NUL character",
        (Kind::Text, Datum::Text(text)) if text.len() > MAX_VALUE => "a text above 1,000,000 bytes",
        (Kind::Blob, Datum::Blob(bytes)) if bytes.len() > MAX_VALUE => "a blob above 1,000,000 bytes",
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
