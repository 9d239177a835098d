//! Conversion of values to and from PostgreSQL.
//!
//! A parameter has the type that the server inferred for it, so a number is encoded in that type.

use std::error::Error;
use std::fmt;

use bytes::{BufMut as _, BytesMut};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::storage::engine::{Column, Sql};
use crate::storage::error::{StoreError, StoreResult};

/// Value of a parameter.
pub(super) struct Param<'a>(pub(super) Sql<'a>);

/// Omits the value, because the library logs parameters.
impl fmt::Debug for Param<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Sql::Null => "NULL",
            Sql::Int(_) => "a whole number",
            Sql::Real(_) => "a number",
            Sql::Text(_) => "a text",
            Sql::Blob(_) => "bytes",
        })
    }
}

/// Reason for which a value cannot be sent.
#[derive(Debug, thiserror::Error)]
enum Unsendable {
    #[error("text contains a NUL character, which PostgreSQL cannot store")]
    Nul,
    #[error("{0} is out of range for the type {1}")]
    Range(i64, Type),
    #[error("a parameter of the type {0} was given {1}")]
    Type(Type, &'static str),
}

type Boxed = Box<dyn Error + Sync + Send>;

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Boxed> {
        match self.0 {
            Sql::Null => return Ok(IsNull::Yes),
            Sql::Int(number) => put_int(number, ty, out)?,
            Sql::Real(number) => match *ty {
                Type::FLOAT8 => out.put_f64(number),
                _ => return Err(Unsendable::Type(ty.clone(), "a number").into()),
            },
            Sql::Text(text) => match *ty {
                Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => {
                    if memchr::memchr(0, text.as_bytes()).is_some() {
                        return Err(Unsendable::Nul.into());
                    }
                    out.put_slice(text.as_bytes());
                }
                _ => return Err(Unsendable::Type(ty.clone(), "text").into()),
            },
            Sql::Blob(bytes) => match *ty {
                Type::BYTEA => out.put_slice(bytes),
                _ => return Err(Unsendable::Type(ty.clone(), "bytes").into()),
            },
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn put_int(number: i64, ty: &Type, out: &mut BytesMut) -> Result<(), Unsendable> {
    let range = |_| Unsendable::Range(number, ty.clone());
    match *ty {
        Type::INT8 => out.put_i64(number),
        Type::INT4 => out.put_i32(number.try_into().map_err(range)?),
        Type::INT2 => out.put_i16(number.try_into().map_err(range)?),
        Type::BOOL => out.put_u8(u8::from(number != 0)),
        #[allow(
            clippy::cast_precision_loss,
            reason = "as SQLite stores a whole number in such a column"
        )]
        Type::FLOAT8 => out.put_f64(number as f64),
        _ => return Err(Unsendable::Type(ty.clone(), "a whole number")),
    }
    Ok(())
}

/// Value in the server's encoding.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw<'a>, Boxed> {
        Ok(Raw(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Bytes of a column in a row. `None` for NULL or a missing column.
pub(super) fn raw(row: &Row, index: usize) -> Option<Option<&[u8]>> {
    let found: Option<Raw<'_>> = row.try_get(index).ok()?;
    Some(found.map(|Raw(bytes)| bytes))
}

/// Value of a column in a row.
pub(in crate::storage::engine) fn column(row: &Row, index: usize) -> StoreResult<Column<'_>> {
    let Some(Raw(raw)) = row.try_get::<_, Option<Raw<'_>>>(index)? else {
        return Ok(Column::Null);
    };
    let ty = row.columns()[index].type_();
    read(ty, raw).ok_or_else(|| StoreError::of_column(index, "a value of an unsupported type"))
}

fn read<'a>(ty: &Type, raw: &'a [u8]) -> Option<Column<'a>> {
    Some(match *ty {
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON | Type::UNKNOWN => {
            Column::Text(raw)
        }
        Type::INT8 => Column::Int(i64::from_be_bytes(raw.try_into().ok()?)),
        Type::INT4 => Column::Int(i32::from_be_bytes(raw.try_into().ok()?).into()),
        Type::INT2 => Column::Int(i16::from_be_bytes(raw.try_into().ok()?).into()),
        Type::BOOL => Column::Int(i64::from(*raw.first()? != 0)),
        Type::FLOAT8 => Column::Real(f64::from_be_bytes(raw.try_into().ok()?)),
        Type::FLOAT4 => Column::Real(f32::from_be_bytes(raw.try_into().ok()?).into()),
        Type::BYTEA => Column::Blob(raw),
        Type::NUMERIC => numeric(raw)?,
        _ => return None,
    })
}

/// Decodes a sum of integers, which PostgreSQL sends as digits to base 10,000, highest first. `None` if it does not
/// fit or has a fraction, because no statement of the host may produce that.
fn numeric(raw: &[u8]) -> Option<Column<'static>> {
    const NEGATIVE: u16 = 0x4000;
    let mut words = raw
        .chunks_exact(2)
        .map(|word| u16::from_be_bytes([word[0], word[1]]));
    let digits = words.next()?;
    let weight = i16::from_be_bytes(words.next()?.to_be_bytes());
    let sign = words.next()?;
    let _scale = words.next()?;
    if digits == 0 {
        return (sign == 0).then_some(Column::Int(0));
    }
    let places = usize::try_from(weight).ok()?.checked_add(1)?;
    let mut number = 0_i64;
    let mut digits = words.fuse();
    for _ in 0..places {
        // Accumulated as a negative number, because the negative range is larger.
        let digit = i64::from(digits.next().unwrap_or(0));
        number = number.checked_mul(10_000)?.checked_sub(digit)?;
    }
    if digits.any(|digit| digit != 0) {
        return None;
    }
    Some(Column::Int(match sign {
        0 => number.checked_neg()?,
        NEGATIVE => number,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_whole_numbers() {
        let of = |weight: i16, sign: u16, digits: &[u16]| {
            let mut raw = Vec::new();
            for word in [
                u16::try_from(digits.len()).unwrap(),
                weight.cast_unsigned(),
                sign,
                0,
            ] {
                raw.extend(word.to_be_bytes());
            }
            raw.extend(digits.iter().flat_map(|digit| digit.to_be_bytes()));
            numeric(&raw)
        };
        assert_eq!(of(0, 0, &[]), Some(Column::Int(0)));
        assert_eq!(of(0, 0, &[7]), Some(Column::Int(7)));
        assert_eq!(of(1, 0, &[1, 2345]), Some(Column::Int(12_345)));
        assert_eq!(of(1, 0x4000, &[3]), Some(Column::Int(-30_000)));
        let lowest = [922, 3372, 368, 5477, 5808];
        assert_eq!(of(4, 0x4000, &lowest), Some(Column::Int(i64::MIN)));
        assert_eq!(of(4, 0, &lowest), None, "one more than the highest");
        assert_eq!(of(-1, 0, &[5000]), None, "a fraction");
        assert_eq!(of(0, 0, &[1, 5000]), None, "a fraction");
        assert_eq!(of(0, 0xC000, &[]), None, "no number");
    }

    #[test]
    fn a_value_is_sent_as_the_type_wants_it() {
        let sent = |value: Sql<'_>, ty: Type| {
            let mut out = BytesMut::new();
            let is_null = Param(value)
                .to_sql(&ty, &mut out)
                .map_err(|err| err.to_string())?;
            Ok(matches!(is_null, IsNull::No).then(|| out.to_vec()))
        };
        assert_eq!(sent(Sql::Null, Type::INT8), Ok(None));
        assert_eq!(sent(Sql::Int(1), Type::INT4), Ok(Some(vec![0, 0, 0, 1])));
        assert_eq!(sent(Sql::Int(2), Type::BOOL), Ok(Some(vec![1])));
        assert_eq!(
            sent(Sql::Int(1 << 40), Type::INT4),
            Err("1099511627776 is out of range for the type int4".to_owned())
        );
        assert_eq!(
            sent(Sql::Text("a\0b"), Type::TEXT),
            Err("text contains a NUL character, which PostgreSQL cannot store".to_owned())
        );
        assert_eq!(
            sent(Sql::Text("1"), Type::INT8),
            Err("a parameter of the type int8 was given text".to_owned())
        );
    }
}
