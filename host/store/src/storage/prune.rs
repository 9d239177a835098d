//! Retention: selects the rows that may be pruned, and removes them from the chain so that it stays verifiable.
//!
//! Rows are selected and anchors are signed on a snapshot. Only inserting the anchors and deleting the rows needs the
//! write lock. Only one pruner works at a time, so the selection stays valid: rows do not change, closed envelopes do
//! not reopen, and nothing else moves anchors.

use serde::Serialize;

use super::anchors::Anchor;
use super::engine::{Prepared, sql};
use super::error::{StoreError, StoreResult};
use super::handles::Maintenance;
use super::ledger::{CHAIN_COLUMNS, Link, RowHasher, link};
use crate::key::LedgerKey;

/// Retention.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Time before which closed envelopes, and rows outside envelopes, are pruned, RFC 3339.
    pub cutoff: String,
    /// Number of newer envelopes from which a closed one is pruned.
    pub envelopes: u32,
}

/// Numbers of prunable or pruned envelopes and rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Closed envelopes.
    pub envelopes: i64,
    /// Rows of these envelopes.
    pub rows_in_envelopes: i64,
    /// Rows outside envelopes.
    pub rows_outside: i64,
}

impl Pruned {
    /// Adds the numbers of another batch.
    pub fn add(&mut self, other: Pruned) {
        self.envelopes += other.envelopes;
        self.rows_in_envelopes += other.rows_in_envelopes;
        self.rows_outside += other.rows_outside;
    }
}

/// Rows to delete in one transaction, and the anchors that replace them.
#[derive(Debug, Default)]
pub struct PruneBatch {
    envelopes: Vec<String>,
    /// First and last row of each range.
    rows: Vec<(i64, i64)>,
    new: Vec<Anchor>,
    /// Anchors that new ones replace.
    absorbed: Vec<Anchor>,
    /// Numbers of envelopes and rows.
    pub pruned: Pruned,
}

/// Reason for which nothing is pruned.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// The chain is broken, which pruning would hide.
    #[error("row {0} was changed; nothing is pruned until `tollgate ledger verify` finds the ledger intact")]
    Tampered(i64),
    /// Envelopes differ from the ledger's rows, and pruning would rely on them.
    #[error("{0}; nothing is pruned until `tollgate ledger verify` finds the ledger intact")]
    Envelopes(String),
    /// Storage failed.
    #[error("cannot prune rows")]
    Storage(#[from] StoreError),
}

/// Number of rows in one search for rows outside envelopes. Rows are nearly in time order: if none in such a window
/// is old enough, no later row is.
const WINDOW_ROWS: i64 = 10_000;

/// Condition for closed envelopes that are too old or have too many newer ones.
const IS_EXPIRED: &str = "state <> 'OPEN' AND (closed_at < ?1 OR (opened_at, id) <
    (SELECT opened_at, id FROM core_envelopes ORDER BY opened_at DESC, id DESC LIMIT 1 OFFSET ?2))";
/// Condition for rows without an existing envelope.
const IS_OUTSIDE: &str = "(envelope_id IS NULL OR NOT EXISTS
    (SELECT 1 FROM core_envelopes WHERE id = core_operations.envelope_id))";

impl Maintenance<'_> {
    /// Refuses to prune by envelopes that differ from the ledger's rows, because their times and states decide which
    /// rows are pruned.
    pub fn check_before_prune(self) -> Result<(), PruneError> {
        self.0.begin_read()?;
        let faults = self.0.envelopes().faults();
        let ended = self.0.commit();
        let faults = faults?;
        ended?;
        match faults.into_iter().next() {
            Some(fault) => Err(PruneError::Envelopes(fault)),
            None => Ok(()),
        }
    }

    /// Next rows to prune, up to a limit. `after` is updated to the place where the search for rows outside envelopes
    /// continues.
    pub fn plan_prune(
        self,
        retention: &Retention,
        after: &mut i64,
        limit: u32,
        key: &LedgerKey,
        now: &str,
    ) -> Result<PruneBatch, PruneError> {
        self.0.begin_read()?;
        let batch = self.plan(retention, after, limit, key, now);
        let ended = self.0.commit();
        let batch = batch?;
        ended?;
        Ok(batch)
    }

    fn plan(
        self,
        retention: &Retention,
        after: &mut i64,
        limit: u32,
        key: &LedgerKey,
        now: &str,
    ) -> Result<PruneBatch, PruneError> {
        let mut batch = PruneBatch::default();
        let mut rows: Vec<Link> = Vec::new();
        let mut hasher = RowHasher::new();
        let sql = format!(
            "SELECT {CHAIN_COLUMNS} FROM core_operations WHERE envelope_id = ?1 ORDER BY seq LIMIT ?2"
        );
        let mut rows_of = self.0.engine.prepare(&sql)?;
        let room = |rows: &[Link]| limit.saturating_sub(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        for envelope in self.doomed_envelopes(retention, limit)? {
            let room = room(&rows);
            let found: Vec<Link> = rows_of.all(sql![envelope, room], |row| link(row, &mut hasher))?;
            let is_whole = found.len() < room as usize;
            rows.extend(found);
            if !is_whole {
                break;
            }
            batch.envelopes.push(envelope);
        }
        batch.pruned.envelopes = count(&batch.envelopes);
        batch.pruned.rows_in_envelopes = count(&rows);
        if rows.is_empty() && batch.envelopes.is_empty() {
            rows = self.rows_outside(retention, after, limit)?;
            batch.pruned.rows_outside = count(&rows);
        }
        rows.sort_unstable_by_key(|row| row.seq);
        if let Some(row) = rows.iter().find(|row| !row.is_intact) {
            return Err(PruneError::Tampered(row.seq));
        }
        let stretches = stretches(&rows);
        batch.rows = stretches
            .iter()
            .map(|anchor| (anchor.first_seq, anchor.last_seq))
            .collect();
        (batch.new, batch.absorbed) = join(stretches, self.neighbours(&batch.rows)?);
        for anchor in &mut batch.new {
            anchor.sign(key, now);
        }
        Ok(batch)
    }

    fn doomed_envelopes(self, retention: &Retention, limit: u32) -> StoreResult<Vec<String>> {
        let sql = format!("SELECT id FROM core_envelopes WHERE {IS_EXPIRED} ORDER BY opened_at, id LIMIT ?3");
        self.0.engine.all(
            &sql,
            sql![retention.cutoff, retention.envelopes.saturating_sub(1), limit],
            |row| row.get(0),
        )
    }

    fn rows_outside(self, retention: &Retention, after: &mut i64, limit: u32) -> StoreResult<Vec<Link>> {
        let mut hasher = RowHasher::new();
        let sql = format!(
            "SELECT {CHAIN_COLUMNS} FROM core_operations
            WHERE seq > ?1 AND seq <= ?2 AND timestamp < ?3 AND {IS_OUTSIDE} ORDER BY seq LIMIT ?4"
        );
        let mut outside = self.0.engine.prepare(&sql)?;
        let mut windows = Windows::new(self)?;
        while let Some(end) = windows.end(retention, *after)? {
            let rows: Vec<Link> = outside.all(sql![*after, end, retention.cutoff, limit], |row| {
                link(row, &mut hasher)
            })?;
            match rows.last() {
                Some(last) => {
                    *after = last.seq;
                    return Ok(rows);
                }
                None => *after = end,
            }
        }
        Ok(Vec::new())
    }

    /// Anchors next to ranges.
    fn neighbours(self, stretches: &[(i64, i64)]) -> StoreResult<Vec<Anchor>> {
        let mut found: Vec<Anchor> = Vec::new();
        for (first, last) in stretches {
            let beside = [
                self.0.ledger().anchor_before(*first)?,
                self.0.ledger().anchor_after(*last)?,
            ];
            for anchor in beside.into_iter().flatten() {
                if found.last() != Some(&anchor) {
                    found.push(anchor);
                }
            }
        }
        Ok(found)
    }

    /// Removes a batch, in a transaction of the caller.
    pub fn prune(self, batch: &PruneBatch) -> StoreResult<()> {
        for anchor in &batch.new {
            self.0.ledger().add_anchor(anchor)?;
        }
        for anchor in &batch.absorbed {
            if !self.0.ledger().drop_anchor(anchor)? {
                return Err(StoreError::changed(0));
            }
        }
        let sql = "DELETE FROM core_operations WHERE seq BETWEEN ?1 AND ?2";
        let mut delete = self.0.engine.prepare(sql)?;
        for (first, last) in &batch.rows {
            let gone = delete.run(sql![first, last])?;
            if i64::try_from(gone).ok() != Some(last - first + 1) {
                return Err(StoreError::changed(gone));
            }
        }
        let sql = "DELETE FROM core_envelopes WHERE id = ?1 AND state <> 'OPEN'";
        let mut delete = self.0.engine.prepare(sql)?;
        for envelope in &batch.envelopes {
            delete.run(sql![envelope])?;
        }
        Ok(())
    }

    /// Numbers of envelopes and rows that pruning would remove. Removes nothing.
    pub fn prunable(self, retention: &Retention) -> StoreResult<Pruned> {
        let mut pruned = Pruned::default();
        let sql = "SELECT count(*) FROM core_operations WHERE envelope_id = ?1";
        let mut count = self.0.engine.prepare(sql)?;
        for envelope in self.doomed_envelopes(retention, u32::MAX)? {
            pruned.envelopes += 1;
            pruned.rows_in_envelopes += count.one(sql![envelope], |row| row.get::<i64>(0))?;
        }
        let sql = format!(
            "SELECT count(*) FROM core_operations WHERE seq > ?1 AND seq <= ?2 AND timestamp < ?3 AND {IS_OUTSIDE}"
        );
        let mut count = self.0.engine.prepare(&sql)?;
        let mut windows = Windows::new(self)?;
        let mut after = 0;
        while let Some(end) = windows.end(retention, after)? {
            pruned.rows_outside += count.one(sql![after, end, retention.cutoff], |row| row.get::<i64>(0))?;
            after = end;
        }
        Ok(pruned)
    }
}

/// Windows of the ledger, each of which is searched in one statement.
struct Windows<'s> {
    last: Prepared<'s>,
    has_old: Prepared<'s>,
}

impl<'s> Windows<'s> {
    fn new(maintenance: Maintenance<'s>) -> StoreResult<Windows<'s>> {
        let engine = &maintenance.0.engine;
        Ok(Windows {
            last: engine.prepare(
                "SELECT max(seq) FROM (SELECT seq FROM core_operations WHERE seq > ?1 ORDER BY seq LIMIT ?2) AS next",
            )?,
            has_old: engine.prepare(
                "SELECT 1 FROM core_operations WHERE seq > ?1 AND seq <= ?2 AND timestamp < ?3 LIMIT 1",
            )?,
        })
    }

    /// End of the next window. `None` if its rows and all later ones are too young.
    fn end(&mut self, retention: &Retention, after: i64) -> StoreResult<Option<i64>> {
        let last: Option<i64> = self.last.one(sql![after, WINDOW_ROWS], |row| row.get(0))?;
        match last {
            Some(last) if self.has_old.exists(sql![after, last, retention.cutoff])? => Ok(Some(last)),
            _ => Ok(None),
        }
    }
}

impl PruneBatch {
    /// True if there is nothing to prune.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.envelopes.is_empty()
    }
}

/// Ranges without gaps from sorted rows.
fn stretches(rows: &[Link]) -> Vec<Anchor> {
    let mut stretches: Vec<Anchor> = Vec::new();
    for row in rows {
        let one = Anchor {
            first_seq: row.seq,
            last_seq: row.seq,
            prev_hash: row.prev_hash.clone(),
            hash: row.hash.clone(),
            pruned_at: String::new(),
            signature: String::new(),
        };
        if !stretches.last_mut().is_some_and(|last| last.absorb(&one)) {
            stretches.push(one);
        }
    }
    stretches
}

/// Joins ranges with adjacent anchors. Returns the new anchors and those that they replace. An anchor that does not
/// match its neighbour stays unchanged, for `verify` to report.
fn join(stretches: Vec<Anchor>, anchors: Vec<Anchor>) -> (Vec<Anchor>, Vec<Anchor>) {
    let mut pieces: Vec<(Anchor, Option<Anchor>)> = stretches.into_iter().map(|new| (new, None)).collect();
    pieces.extend(anchors.into_iter().map(|old| (old.clone(), Some(old))));
    pieces.sort_by_key(|(piece, _)| piece.first_seq);
    let mut joined: Vec<(Anchor, Vec<Anchor>, bool)> = Vec::new();
    for (piece, old) in pieces {
        let is_new = old.is_none();
        if let Some((last, absorbed, has_new)) = joined.last_mut()
            && last.absorb(&piece)
        {
            absorbed.extend(old);
            *has_new |= is_new;
        } else {
            joined.push((piece, old.into_iter().collect(), is_new));
        }
    }
    let mut new = Vec::new();
    let mut gone = Vec::new();
    for (anchor, absorbed, has_new) in joined {
        if has_new {
            new.push(anchor);
            gone.extend(absorbed);
        }
    }
    (new, gone)
}

fn count<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::storage::Ending;
    use tollgate_core::envelope::State;

    use super::super::fixture::{
        NOW, YOUNG, add, envelope, key, ledger, operation, picture, prune, retention, verify,
    };
    use super::*;

    #[test]
    fn pruning_leaves_a_chain_that_holds() {
        for (rows, left) in [
            ("ooyy", "__##"),
            ("okocyk", "_#__##"),
            ("kokckokk", "#_#_#_##"),
            ("oooo", "____"),
            ("ckoy", "_#_#"),
            ("yyyy", "####"),
            ("yoyo", "#_#_"),
        ] {
            for limit in [1, 2, 100] {
                let (_place, session) = ledger(rows);
                let head = session.ledger().head().unwrap();
                let pruned = prune(&session, limit).unwrap();
                assert_eq!(picture(&session), left, "{rows}");
                let gone = left.matches('_').count();
                let gone = i64::try_from(gone).unwrap();
                assert_eq!(pruned.rows_in_envelopes + pruned.rows_outside, gone, "{rows}");
                let verified = session.ledger().verify(Some(&head), &[key().public()]).unwrap();
                assert_eq!(verified.broken, None, "{rows} by {limit}");
                assert_eq!((verified.head, verified.pruned), (head, gone), "{rows}");
                let stretches = left.split('#').filter(|stretch| !stretch.is_empty()).count();
                assert_eq!(
                    session.ledger().anchors().unwrap().len(),
                    stretches,
                    "{rows} by {limit}"
                );
                // The chain continues where it was, and later rows are pruned like the rest.
                session.begin_write().unwrap();
                add(&session, "oo", 100);
                session.commit().unwrap();
                prune(&session, limit).unwrap();
                assert_eq!(picture(&session), format!("{left}__"));
                assert_eq!(verify(&session, None), None, "{rows} by {limit}");
            }
        }
    }

    #[test]
    fn only_what_is_over_goes() {
        let (_place, session) = ledger("kcoyc");
        let expected = Pruned {
            envelopes: 1,
            rows_in_envelopes: 2,
            rows_outside: 1,
        };
        assert_eq!(session.maintenance().prunable(&retention()).unwrap(), expected);
        assert_eq!(prune(&session, 100).unwrap(), expected);
        assert_eq!(session.envelopes().list(&Default::default(), 9).unwrap().len(), 1);
        assert_eq!(
            session.maintenance().prunable(&retention()).unwrap(),
            Pruned::default()
        );
    }

    #[test]
    fn closed_envelopes_beyond_the_newest_go_whatever_their_age() {
        let (_place, session) = ledger("");
        session.begin_write().unwrap();
        for number in 0..4 {
            let mut one = envelope(&format!("env_{number}"), None);
            one.opened_at = format!("2026-02-2{number}T00:00:00.000Z");
            session.envelopes().open(&one).unwrap();
            session
                .ledger()
                .record(&operation(number, Some(&one.id), YOUNG))
                .unwrap();
            if number != 1 {
                session
                    .envelopes()
                    .close(&one.id, Ending::by_host(State::ClosedFailed, "TEST", YOUNG, 0))
                    .unwrap();
            }
        }
        session.commit().unwrap();
        let retention = Retention {
            envelopes: 2,
            ..retention()
        };
        let batch = session
            .maintenance()
            .plan_prune(&retention, &mut 0, 100, &key(), NOW)
            .unwrap();
        session.begin_write().unwrap();
        session.maintenance().prune(&batch).unwrap();
        session.commit().unwrap();
        let left: Vec<String> = session
            .envelopes()
            .list(&Default::default(), 9)
            .unwrap()
            .into_iter()
            .map(|envelope| envelope.id)
            .collect();
        // env_c is old, env_0 is beyond the newest two, env_1 and env_k are open.
        assert_eq!(left, ["env_3", "env_2", "env_1", "env_k"]);
        assert_eq!(verify(&session, None), None);
    }
}
