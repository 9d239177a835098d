//! Copy of the ledger's rows and of the anchors of pruned rows, byte for byte and in chain order.
//!
//! Both engines accept a row only after its predecessor, or after the anchor that replaces its predecessors. So
//! anchors are copied between the rows, each in the place of the rows that it replaces.

use std::iter::Peekable;
use std::vec::IntoIter;

use super::digest::Digest;
use super::error::{Side, TransferError};
use super::plan::Table;
use super::rows::{Inserter, each};
use crate::storage::engine::{Engine, sql};
use crate::storage::error::StoreError;
use crate::storage::session::Session;
use crate::storage::value::Value;

/// Anchors that are not written yet.
struct Anchors<'s> {
    target: &'s Session,
    inserter: Inserter<'s>,
    rest: Peekable<IntoIter<Vec<Value>>>,
    /// Column positions of the first row, the last row and its hash.
    columns: [usize; 3],
}

/// Copies the ledger. Returns sums of the rows and anchors that were read.
pub(super) fn copy(
    source: &Session,
    target: &Session,
    operations: &Table<'_>,
    anchors: &Table<'_>,
) -> Result<(Digest, Digest), TransferError> {
    let mut of_anchors = Digest::default();
    let first = column(anchors, "first_seq")?;
    let mut stretches = Vec::new();
    each((source, Side::Source), anchors, |anchor| {
        of_anchors.add(&anchor);
        stretches.push(anchor);
        Ok(())
    })?;
    stretches.sort_by_key(|anchor| whole(anchor, first));
    let mut anchors = Anchors {
        target,
        inserter: Inserter::new(target, anchors)?,
        rest: stretches.into_iter().peekable(),
        columns: [first, column(anchors, "last_seq")?, column(anchors, "hash")?],
    };
    let seq = column(operations, "seq")?;
    let mut of_rows = Digest::default();
    let mut rows = Inserter::new(target, operations)?;
    each((source, Side::Source), operations, |row| {
        of_rows.add(&row);
        let at = whole(&row, seq);
        if anchors.is_next_before(at) {
            rows.send()?;
            anchors.write_before(at)?;
        }
        rows.add(row)
    })?;
    rows.send()?;
    anchors.write_before(i64::MAX)?;
    Ok((of_rows, of_anchors))
}

impl Anchors<'_> {
    fn is_next_before(&mut self, seq: i64) -> bool {
        let first = self.columns[0];
        self.rest.peek().is_some_and(|anchor| whole(anchor, first) < seq)
    }

    fn write_before(&mut self, seq: i64) -> Result<(), TransferError> {
        while self.is_next_before(seq) {
            let Some(anchor) = self.rest.next() else { break };
            let [_, last, hash] = self.columns;
            let end = (whole(&anchor, last), anchor.get(hash).cloned());
            self.inserter.add(anchor)?;
            self.inserter.send()?;
            self.move_stream(&end)?;
        }
        Ok(())
    }

    /// Sets the append state so that the next row follows the range. On SQLite the anchor itself does that.
    fn move_stream(&self, (place, hash): &(i64, Option<Value>)) -> Result<(), TransferError> {
        if let Engine::Sqlite(_) = self.target.engine {
            return Ok(());
        }
        let sql = "UPDATE core_streams SET place = ?1, hash = ?2 WHERE id = 0";
        let moved = self.target.engine.run(sql, sql![*place, *hash]);
        let moved = moved.and_then(|rows| match rows {
            1 => Ok(()),
            rows => Err(StoreError::changed(rows)),
        });
        moved.map_err(Side::Target.failed("moving the end of the chain over pruned rows"))
    }
}

/// Integer in a row. Any other value counts as before all rows, where the verification finds it.
fn whole(row: &[Value], column: usize) -> i64 {
    match row.get(column) {
        Some(Value::Integer(number)) => *number,
        _ => i64::MIN,
    }
}

fn column(table: &Table<'_>, name: &str) -> Result<usize, TransferError> {
    table.position(name).ok_or_else(|| TransferError::OtherColumns {
        table: table.name.clone(),
        here: table.listed(),
        there: name.to_owned(),
    })
}
