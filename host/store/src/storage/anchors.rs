//! Anchors: entries in the chain that replace pruned rows.

use serde::Serialize;
use tollgate_sdk::Timestamp;

use super::engine::{Row, sql};
use super::error::StoreResult;
use super::handles::Ledger;
use crate::key::LedgerKey;

/// Age from which a row confirms the clock, in milliseconds.
const CONFIRMED_MS: i64 = 3_600_000;

/// A range of pruned rows, and the hashes at both ends of the range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Anchor {
    /// First row of the range.
    pub first_seq: i64,
    /// Last row of the range.
    pub last_seq: i64,
    /// Hash of the row before the first.
    pub prev_hash: String,
    /// Hash of the last row.
    pub hash: String,
    /// Time of the last extension.
    pub pruned_at: String,
    /// Signature of the ledger's key over all other fields.
    pub signature: String,
}

impl Anchor {
    /// Text to sign.
    pub(super) fn statement(&self) -> String {
        format!(
            "tollgate ledger anchor 1\n{} {}\n{} {}\n{}\n",
            self.first_seq, self.prev_hash, self.last_seq, self.hash, self.pruned_at
        )
    }

    /// Number of rows that it replaces.
    pub(super) fn rows(&self) -> i64 {
        self.last_seq.saturating_sub(self.first_seq).saturating_add(1)
    }

    /// Merges the next range, if it follows directly. Returns whether it did.
    pub(super) fn absorb(&mut self, next: &Anchor) -> bool {
        let follows = self.last_seq.checked_add(1) == Some(next.first_seq) && self.hash == next.prev_hash;
        if follows {
            self.last_seq = next.last_seq;
            self.hash.clone_from(&next.hash);
        }
        follows
    }

    pub(super) fn sign(&mut self, key: &LedgerKey, now: &str) {
        now.clone_into(&mut self.pruned_at);
        self.signature = key.sign(&self.statement());
    }
}

const COLUMNS: &str = "first_seq, last_seq, prev_hash, hash, pruned_at, signature";

fn anchor(row: &Row<'_>) -> StoreResult<Anchor> {
    Ok(Anchor {
        first_seq: row.get(0)?,
        last_seq: row.get(1)?,
        prev_hash: row.get(2)?,
        hash: row.get(3)?,
        pruned_at: row.get(4)?,
        signature: row.get(5)?,
    })
}

impl Ledger<'_> {
    /// All anchors, in chain order.
    pub fn anchors(self) -> StoreResult<Vec<Anchor>> {
        self.0.engine.all(
            &format!("SELECT {COLUMNS} FROM core_anchors ORDER BY first_seq, last_seq"),
            &[],
            anchor,
        )
    }

    /// Time that the ledger confirms: that of its newest row that is at least an hour old, or the current time if
    /// there is none. A clock that was set forward by mistake therefore expires nothing until it has been used for an
    /// hour.
    pub fn confirmed_ms(self, now_ms: i64) -> StoreResult<i64> {
        let before = Timestamp::from_ms(now_ms.saturating_sub(CONFIRMED_MS)).to_string();
        let sql = "SELECT timestamp FROM core_operations WHERE timestamp <= ?1 ORDER BY seq DESC LIMIT 1";
        let confirmed: Option<String> = self.0.engine.maybe(sql, sql![before], |row| row.get(0))?;
        let confirmed = confirmed.and_then(|time| Timestamp::parse(&time));
        Ok(confirmed.map_or(now_ms, Timestamp::as_ms))
    }

    /// Number of pruned rows.
    pub fn pruned_rows(self) -> StoreResult<i64> {
        self.0.engine.one(
            "SELECT coalesce(sum(last_seq - first_seq + 1), 0) FROM core_anchors",
            &[],
            |row| row.get(0),
        )
    }

    /// Anchor that ends directly before a row.
    pub(super) fn anchor_before(self, seq: i64) -> StoreResult<Option<Anchor>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM core_anchors WHERE first_seq < ?1 ORDER BY first_seq DESC LIMIT 1"
        );
        let before = self.0.engine.maybe(&sql, sql![seq], anchor)?;
        Ok(before.filter(|anchor| anchor.last_seq == seq - 1))
    }

    /// Anchor that begins directly after a row.
    pub(super) fn anchor_after(self, seq: i64) -> StoreResult<Option<Anchor>> {
        self.0.engine.maybe(
            &format!("SELECT {COLUMNS} FROM core_anchors WHERE first_seq = ?1"),
            sql![seq.saturating_add(1)],
            anchor,
        )
    }

    /// Stores an anchor. Anchors that it merged are removed by [`drop_anchor`](Ledger::drop_anchor).
    pub(super) fn add_anchor(self, anchor: &Anchor) -> StoreResult<()> {
        let sql = format!("INSERT INTO core_anchors ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
        self.0
            .engine
            .run(
                &sql,
                sql![
                    anchor.first_seq,
                    anchor.last_seq,
                    anchor.prev_hash,
                    anchor.hash,
                    anchor.pruned_at,
                    anchor.signature,
                ],
            )
            .map(drop)
    }

    /// Removes an anchor that was merged into another. Returns whether it existed.
    pub(super) fn drop_anchor(self, anchor: &Anchor) -> StoreResult<bool> {
        self.0
            .engine
            .run(
                "DELETE FROM core_anchors WHERE first_seq = ?1 AND last_seq = ?2",
                sql![anchor.first_seq, anchor.last_seq],
            )
            .map(|gone| gone == 1)
    }
}
