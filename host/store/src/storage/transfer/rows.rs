//! Copy of rows from one database to the other.

use std::ops::ControlFlow;

use super::error::{Side, TransferError};
use super::plan::{Kind, Table};
use crate::storage::engine::{Column, Dialects, Engine, Once, Prepared, Row, Sql, borrowed, sql};
use crate::storage::error::{StoreError, StoreResult};
use crate::storage::session::Session;
use crate::storage::value::Value;

/// Most values that one statement sends to a server.
const VALUES_AT_ONCE: usize = 1_000;
/// Most rows that one statement sends to a server.
const ROWS_AT_ONCE: usize = 50;
/// Bytes of rows that are collected before they are sent together.
const BYTES_AT_ONCE: usize = 1 << 20;
/// Longest value that a SQLite session accepts, in bytes.
const MAX_VALUE_BYTES: usize = 1_000_000;

/// A value that does not fit: its column, and the reason.
struct Misfit {
    column: String,
    why: String,
}

/// Reason for which a visit of rows ended early.
enum Ended {
    Misfit(Misfit),
    Failed(TransferError),
}

/// Visits all rows of a table. Fails for a value that a column cannot hold on both engines.
pub(super) fn each(
    (session, side): (&Session, Side),
    table: &Table<'_>,
    mut visit: impl FnMut(Vec<Value>) -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let name = table.on(session);
    // The ledger is ordered by its numbers. On SQLite they are the row ids.
    let order = session.engine.text(match table.position("seq") {
        Some(_) if table.namespace.is_none() => Dialects {
            sqlite: "NOT INDEXED ORDER BY seq",
            postgres: "ORDER BY seq",
        },
        _ => Dialects {
            sqlite: "NOT INDEXED ORDER BY rowid",
            postgres: "ORDER BY ctid",
        },
    });
    let sql = format!("SELECT {} FROM {name} {order}", table.listed());
    let mut number = 0_i64;
    let mut ended = None;
    let read = session.engine.each_until(Once(&sql), &[], |row| {
        let visited = match values(row, table)? {
            Ok(values) => visit(values).map_err(Ended::Failed),
            Err(misfit) => Err(Ended::Misfit(misfit)),
        };
        Ok(match visited {
            Ok(()) => {
                number += 1;
                ControlFlow::Continue(())
            }
            Err(early) => {
                ended = Some(early);
                ControlFlow::Break(())
            }
        })
    });
    match ended {
        None => read.map_err(side.failed("reading rows")),
        Some(Ended::Failed(err)) => Err(err),
        Some(Ended::Misfit(Misfit { column, why })) => Err(TransferError::Misfit {
            table: table.name.clone(),
            column,
            row: row_name(session, &name, order, number).unwrap_or_else(|_| (number + 1).to_string()),
            why,
        }),
    }
}

/// Name of a row in the engine, by its position.
fn row_name(session: &Session, table: &str, order: &str, position: i64) -> StoreResult<String> {
    let id = session.engine.text(Dialects {
        sqlite: "'rowid ' || rowid",
        postgres: "'ctid ' || ctid::text",
    });
    let sql = format!("SELECT {id} FROM {table} {order} LIMIT 1 OFFSET ?1");
    session.engine.one(Once(&sql), sql![position], |row| row.get(0))
}

fn values(row: &Row<'_>, table: &Table<'_>) -> StoreResult<Result<Vec<Value>, Misfit>> {
    let mut values = Vec::with_capacity(table.columns.len());
    for (at, field) in table.columns.iter().enumerate() {
        match fitted(row.column(at)?, field.kind) {
            Ok(value) => values.push(value),
            Err(why) => {
                let column = field.name.clone();
                return Ok(Err(Misfit { column, why }));
            }
        }
    }
    Ok(Ok(values))
}

/// Value in the form in which both engines store it in a column of a type.
fn fitted(found: Column<'_>, kind: Kind) -> Result<Value, String> {
    let value = match (kind, found) {
        (_, Column::Null) => Value::Null,
        (Kind::Integer, Column::Int(number)) => Value::Integer(number),
        (Kind::Real, Column::Real(number)) if number.is_nan() => {
            return Err("the value is not a number (NaN), which SQLite cannot store".to_owned());
        }
        // SQLite does not store the sign of zero.
        (Kind::Real, Column::Real(number)) => Value::Real(number + 0.0),
        (Kind::Text, Column::Text(bytes)) => Value::Text(text(bytes)?),
        (Kind::Blob, Column::Blob(bytes)) => Value::Blob(bytes.to_owned()),
        (kind, found) => {
            return Err(format!(
                "{} in a column of {}, which PostgreSQL cannot store",
                found.kind(),
                kind.as_str()
            ));
        }
    };
    let length = bytes_of(&value);
    match length > MAX_VALUE_BYTES {
        true => Err(format!(
            "the value has {length} bytes, but SQLite stores at most {MAX_VALUE_BYTES}"
        )),
        false => Ok(value),
    }
}

fn text(bytes: &[u8]) -> Result<String, String> {
    if let Some(place) = memchr::memchr(0, bytes) {
        return Err(format!(
            "the text has a NUL character at byte {place}, which PostgreSQL cannot store"
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|err| {
        let place = err.valid_up_to();
        format!("the text is not UTF-8 at byte {place}, which PostgreSQL cannot store")
    })?;
    Ok(text.to_owned())
}

fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Integer(_) | Value::Real(_) => 8,
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
    }
}

/// Writes rows of one table. Collected rows must be [sent](Inserter::send) at the end.
pub(super) struct Inserter<'s> {
    session: &'s Session,
    table: &'s Table<'s>,
    at_once: usize,
    whole: Prepared<'s>,
    waiting: Vec<Value>,
    bytes: usize,
    sent: u64,
}

impl<'s> Inserter<'s> {
    pub(super) fn new(session: &'s Session, table: &'s Table<'s>) -> Result<Inserter<'s>, TransferError> {
        let width = table.columns.len().max(1);
        let at_once = match session.engine {
            Engine::Sqlite(_) => 1,
            Engine::Postgres(_) => (VALUES_AT_ONCE / width).clamp(1, ROWS_AT_ONCE),
        };
        let whole = prepared(session, table, at_once).map_err(Side::Target.failed("preparing a table"))?;
        Ok(Inserter {
            session,
            table,
            at_once,
            whole,
            waiting: Vec::with_capacity(at_once * width),
            bytes: 0,
            sent: 0,
        })
    }

    /// Adds a row.
    pub(super) fn add(&mut self, row: Vec<Value>) -> Result<(), TransferError> {
        self.bytes += row.iter().map(bytes_of).sum::<usize>();
        self.waiting.extend(row);
        if self.rows() == self.at_once || self.bytes >= BYTES_AT_ONCE {
            self.send()?;
        }
        Ok(())
    }

    fn rows(&self) -> usize {
        self.waiting.len() / self.table.columns.len().max(1)
    }

    /// Sends the collected rows.
    pub(super) fn send(&mut self) -> Result<(), TransferError> {
        let rows = self.rows();
        if rows == 0 {
            return Ok(());
        }
        let values: Vec<Sql<'_>> = borrowed(&self.waiting);
        let sent = match rows == self.at_once {
            true => self.whole.run(&values),
            false => prepared(self.session, self.table, rows).and_then(|mut some| some.run(&values)),
        };
        let sent = sent.and_then(|changed| match changed == rows {
            true => Ok(()),
            // An object on the table discards rows.
            false => Err(StoreError::changed(changed)),
        });
        let first = self.sent + 1;
        self.sent += rows as u64;
        sent.map_err(|source| TransferError::Refused {
            table: self.table.name.clone(),
            first,
            last: self.sent,
            source,
        })?;
        self.waiting.clear();
        self.bytes = 0;
        Ok(())
    }
}

fn prepared<'s>(session: &'s Session, table: &Table<'_>, rows: usize) -> StoreResult<Prepared<'s>> {
    let width = table.columns.len();
    let row = |row: usize| {
        let values: Vec<String> = (1..=width)
            .map(|column| format!("?{}", row * width + column))
            .collect();
        format!("({})", values.join(", "))
    };
    let rows: Vec<String> = (0..rows).map(row).collect();
    let sql = format!(
        "INSERT INTO {} ({}) VALUES {}",
        table.on(session),
        table.listed(),
        rows.join(", ")
    );
    as_owner(session, table, || session.engine.prepare(Once(&sql)))
}

/// Prepares a statement that writes a component's table, with the component's rights: the host's own statements write
/// only the host's tables.
pub(super) fn as_owner<T>(session: &Session, table: &Table<'_>, prepare: impl FnOnce() -> T) -> T {
    match (&session.engine, table.namespace) {
        (Engine::Sqlite(sqlite), Some(namespace)) => sqlite.migrating(namespace, |_| prepare()),
        _ => prepare(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_kept_as_it_is_or_refused_with_a_reason() {
        let fits = [
            (Column::Null, Kind::Blob, Value::Null),
            (Column::Int(i64::MIN), Kind::Integer, Value::Integer(i64::MIN)),
            (
                Column::Real(f64::INFINITY),
                Kind::Real,
                Value::Real(f64::INFINITY),
            ),
            (
                Column::Text("ä".as_bytes()),
                Kind::Text,
                Value::Text("ä".to_owned()),
            ),
            (Column::Blob(&[0, 255]), Kind::Blob, Value::Blob(vec![0, 255])),
        ];
        for (found, kind, wanted) in fits {
            assert_eq!(fitted(found, kind), Ok(wanted));
        }
        let Ok(Value::Real(zero)) = fitted(Column::Real(-0.0), Kind::Real) else {
            panic!();
        };
        assert!(zero.is_sign_positive());
        let long = vec![b'x'; MAX_VALUE_BYTES + 1];
        for (found, kind, says) in [
            (
                Column::Text(b"12"),
                Kind::Integer,
                "text in a column of whole numbers",
            ),
            (
                Column::Real(1.5),
                Kind::Integer,
                "a number in a column of whole numbers",
            ),
            (
                Column::Int(1),
                Kind::Real,
                "a whole number in a column of numbers",
            ),
            (Column::Blob(b"x"), Kind::Text, "bytes in a column of text"),
            (Column::Real(f64::NAN), Kind::Real, "the value is not a number"),
            (
                Column::Text(b"a\0b"),
                Kind::Text,
                "the text has a NUL character at byte 1",
            ),
            (
                Column::Text(b"ab\xff"),
                Kind::Text,
                "the text is not UTF-8 at byte 2",
            ),
            (Column::Text(&long), Kind::Text, "the value has 1000001 bytes"),
        ] {
            let refused = fitted(found, kind).unwrap_err();
            assert!(refused.starts_with(says), "{refused}");
        }
    }
}
