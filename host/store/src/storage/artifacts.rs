//! Artifacts of operations.

use std::ops::ControlFlow;

use super::engine::{Dialects, sql};
use super::error::StoreResult;
use super::handles::Artifacts;
use crate::artifact::{Artifact, ArtifactKind};

/// A stored artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArtifact {
    /// Artifact.
    pub artifact: Artifact,
    /// Operation that it belongs to.
    pub op_id: String,
    /// True if its content was removed.
    pub collected: bool,
}

/// Equal content is stored once, and counts for its newest artifact.
const CONTENTS: Dialects<'static> = Dialects {
    sqlite: "SELECT hash, size, holder, max(created_at) AS newest FROM core_artifacts
    WHERE collected = 0 GROUP BY hash",
    postgres: "SELECT DISTINCT ON (hash) hash, size, holder, created_at AS newest FROM core_artifacts
    WHERE collected = 0 ORDER BY hash, created_at DESC",
};

impl Artifacts<'_> {
    /// Adds an operation's artifact, in the operation's transaction.
    pub(super) fn insert(self, op_id: &str, artifact: &Artifact) -> StoreResult<()> {
        let sql = "INSERT INTO core_artifacts (id, hash, kind, size, total_size, op_id, created_at, expires_at, holder)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        self.0.engine.change_one(
            sql,
            sql![
                artifact.id,
                artifact.hash,
                artifact.kind.as_str(),
                artifact.size,
                artifact.total_size,
                op_id,
                artifact.created_at,
                artifact.expires_at,
                artifact.holder,
            ],
        )
    }

    /// One artifact.
    pub fn get(self, id: &str) -> StoreResult<Option<StoredArtifact>> {
        let sql = "SELECT id, hash, kind, size, total_size, created_at, expires_at, op_id, collected, holder
            FROM core_artifacts WHERE id = ?1";
        self.0.engine.maybe(sql, sql![id], |row| {
            let kind: String = row.get(2)?;
            Ok(StoredArtifact {
                artifact: Artifact {
                    id: row.get(0)?,
                    hash: row.get(1)?,
                    // The column's CHECK leaves no other text.
                    kind: ArtifactKind::parse(&kind).unwrap_or(ArtifactKind::Log),
                    size: row.get(3)?,
                    total_size: row.get(4)?,
                    created_at: row.get(5)?,
                    expires_at: row.get(6)?,
                    holder: row.get(9)?,
                },
                op_id: row.get(7)?,
                collected: row.get(8)?,
            })
        })
    }

    /// Ids and hashes of artifacts whose content must be removed: expired ones, and if the total exceeds the limit,
    /// the oldest of the largest holder, as far as it has more than the next largest.
    pub fn over(self, now: &str, most: i64, limit: u32) -> StoreResult<Vec<(String, String)>> {
        let sql = "SELECT id, hash FROM core_artifacts WHERE collected = 0 AND expires_at <= ?1
            ORDER BY expires_at, id LIMIT ?2";
        let expired: Vec<(String, String)> = self
            .0
            .engine
            .all(sql, sql![now, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if !expired.is_empty() {
            return Ok(expired);
        }
        let Some((holder, excess)) = self.excess(most)? else {
            return Ok(Vec::new());
        };
        let hashes = self.oldest_of(&holder, excess, limit)?;
        let sql = "SELECT id, hash FROM core_artifacts WHERE hash = ?1 AND collected = 0";
        let mut named_by = self.0.engine.prepare(sql)?;
        let mut over = Vec::new();
        for hash in hashes {
            let named: Vec<_> = named_by.all(sql![hash], |row| Ok((row.get(0)?, row.get(1)?)))?;
            over.extend(named);
        }
        Ok(over)
    }

    /// Largest holder, if the total exceeds the limit, and the number of bytes to remove first.
    fn excess(self, most: i64) -> StoreResult<Option<(String, i64)>> {
        let contents = self.0.engine.text(CONTENTS);
        let sql = format!(
            "SELECT holder, sum(size) AS bytes FROM ({contents}) AS contents GROUP BY holder ORDER BY bytes DESC, holder"
        );
        let holders: Vec<(String, i64)> = self
            .0
            .engine
            .all(&sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let over = holders.iter().map(|(_, bytes)| bytes).sum::<i64>() - most;
        let mut holders = holders.into_iter();
        let first = holders.next().filter(|_| over > 0);
        let next = holders.next().map_or(0, |(_, bytes)| bytes);
        Ok(first.map(|(holder, bytes)| (holder, over.min(bytes - next).max(1))))
    }

    /// Hashes of a holder's oldest contents with at least this many bytes in total.
    fn oldest_of(self, holder: &str, bytes: i64, limit: u32) -> StoreResult<Vec<String>> {
        let contents = self.0.engine.text(CONTENTS);
        let sql = format!(
            "SELECT hash, size FROM ({contents}) AS contents WHERE holder = ?1 ORDER BY newest, hash LIMIT ?2"
        );
        let (mut hashes, mut sum) = (Vec::new(), 0);
        self.0.engine.each_until(&sql, sql![holder, limit], |row| {
            if sum >= bytes {
                return Ok(ControlFlow::Break(()));
            }
            hashes.push(row.get(0)?);
            sum += row.get::<i64>(1)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(hashes)
    }

    /// Records that content was removed.
    pub fn mark_collected(self, ids: &[String]) -> StoreResult<()> {
        let sql = "UPDATE core_artifacts SET collected = 1 WHERE id = ?1";
        let mut mark = self.0.engine.prepare(sql)?;
        for id in ids {
            mark.run(sql![id])?;
        }
        Ok(())
    }

    /// True if an existing artifact has this content.
    pub fn is_live(self, hash: &str) -> StoreResult<bool> {
        self.0.engine.exists(
            "SELECT 1 FROM core_artifacts WHERE hash = ?1 AND collected = 0",
            sql![hash],
        )
    }

    /// True if there are rows of content that was removed before this time.
    pub fn has_before(self, time: &str) -> StoreResult<bool> {
        self.0.engine.exists(
            "SELECT 1 FROM core_artifacts WHERE collected = 1 AND expires_at < ?1",
            sql![time],
        )
    }

    /// Removes rows of content that went before this time.
    pub fn forget(self, time: &str, limit: u32) -> StoreResult<()> {
        let sql = "DELETE FROM core_artifacts WHERE id IN
            (SELECT id FROM core_artifacts WHERE collected = 1 AND expires_at < ?1 LIMIT ?2)";
        self.0.engine.run(sql, sql![time, limit]).map(drop)
    }
}
