//! Anchors: what stands in the chain for stretches of pruned rows.

use serde::Serialize;
use tollgate_sdk::Timestamp;

use super::engine::{Row, sql};
use super::error::StoreResult;
use super::handles::Ledger;
use crate::key::LedgerKey;

/// Age of a row by which the clock is believed, in milliseconds.
const CONFIRMED_MS: i64 = 3_600_000;

/// A stretch of pruned rows, and the hashes by which the chain enters and leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Anchor {
    /// The first row of the stretch.
    pub first_seq: i64,
    /// The last.
    pub last_seq: i64,
    /// The hash before the first.
    pub prev_hash: String,
    /// The hash of the last.
    pub hash: String,
    /// Time of the last addition.
    pub pruned_at: String,
    /// The ledger key's signature over the rest.
    pub signature: String,
}

impl Anchor {
    /// Signed text.
    pub(super) fn statement(&self) -> String {
        format!(
            "tollgate ledger anchor 1\n{} {}\n{} {}\n{}\n",
            self.first_seq, self.prev_hash, self.last_seq, self.hash, self.pruned_at
        )
    }

    /// Number of rows that it represents.
    pub(super) fn rows(&self) -> i64 {
        self.last_seq.saturating_sub(self.first_seq).saturating_add(1)
    }

    /// Takes in the stretch that follows, if it does.
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
    /// Every anchor, in the chain's order.
    pub fn anchors(self) -> StoreResult<Vec<Anchor>> {
        self.0.engine.all(
            &format!("SELECT {COLUMNS} FROM core_anchors ORDER BY first_seq, last_seq"),
            &[],
            anchor,
        )
    }

    /// Time that the ledger confirms: that of its newest row that is an hour old, or now without such a row. A clock that
    /// was set forward by mistake makes nothing old until calls were made by it for an hour.
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

    /// The anchor that ends right before a row.
    pub(super) fn anchor_before(self, seq: i64) -> StoreResult<Option<Anchor>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM core_anchors WHERE first_seq < ?1 ORDER BY first_seq DESC LIMIT 1"
        );
        let before = self.0.engine.maybe(&sql, sql![seq], anchor)?;
        Ok(before.filter(|anchor| anchor.last_seq == seq - 1))
    }

    /// The anchor that begins right after a row.
    pub(super) fn anchor_after(self, seq: i64) -> StoreResult<Option<Anchor>> {
        self.0.engine.maybe(
            &format!("SELECT {COLUMNS} FROM core_anchors WHERE first_seq = ?1"),
            sql![seq.saturating_add(1)],
            anchor,
        )
    }

    /// Stores an anchor. What it takes in goes by [`drop_anchor`](Ledger::drop_anchor).
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

    /// Removes an anchor that a wider one took in. Whether it was there.
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
