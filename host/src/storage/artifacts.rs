//! Which artifacts operations have.

use rusqlite::{OptionalExtension, params};

use super::schema::exactly_one;
use super::session::Session;
use crate::artifacts::{Artifact, ArtifactKind};

/// An artifact as it is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArtifact {
    /// What it is.
    pub artifact: Artifact,
    /// The operation it belongs to.
    pub op_id: String,
    /// Its content was taken away.
    pub collected: bool,
}

impl Session {
    /// Adds an operation's artifact, in the operation's transaction.
    pub(super) fn add_artifact(&self, op_id: &str, artifact: &Artifact) -> rusqlite::Result<()> {
        self.db
            .prepare_cached(
                "INSERT INTO core_artifacts (id, hash, kind, size, total_size, op_id, created_at, expires_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                artifact.id,
                artifact.hash,
                artifact.kind.as_str(),
                artifact.size,
                artifact.total_size,
                op_id,
                artifact.created_at,
                artifact.expires_at,
            ])
            .and_then(exactly_one)
    }

    /// One artifact.
    pub fn artifact(&self, id: &str) -> rusqlite::Result<Option<StoredArtifact>> {
        self.db
            .prepare_cached(
                "SELECT id, hash, kind, size, total_size, created_at, expires_at, op_id, collected
                 FROM core_artifacts WHERE id = ?1",
            )?
            .query_row([id], |row| {
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
                    },
                    op_id: row.get(7)?,
                    collected: row.get(8)?,
                })
            })
            .optional()
    }

    /// Ids and hashes of artifacts whose content must go: those that expired, and the oldest of what is
    /// more than so many bytes.
    pub fn artifacts_over(
        &self,
        now: &str,
        most: i64,
        limit: u32,
    ) -> rusqlite::Result<Vec<(String, String)>> {
        let expired: Vec<(String, String)> = self
            .db
            .prepare_cached(
                "SELECT id, hash FROM core_artifacts WHERE collected = 0 AND expires_at <= ?1
                 ORDER BY expires_at, id LIMIT ?2",
            )?
            .query_map(params![now, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        if !expired.is_empty() {
            return Ok(expired);
        }
        // Equal content is stored once, and counted with its newest artifact.
        self.db
            .prepare_cached(
                "SELECT artifacts.id, artifacts.hash FROM core_artifacts AS artifacts
                 JOIN (SELECT hash, sum(size) OVER (ORDER BY newest DESC, hash) AS up_to
                       FROM (SELECT hash, max(size) AS size, max(created_at) AS newest FROM core_artifacts
                             WHERE collected = 0 GROUP BY hash)) AS contents ON contents.hash = artifacts.hash
                 WHERE artifacts.collected = 0 AND contents.up_to > ?1
                 ORDER BY artifacts.created_at, artifacts.id LIMIT ?2",
            )?
            .query_map(params![most, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }

    /// Notes that content was taken away.
    pub fn mark_collected(&self, ids: &[String]) -> rusqlite::Result<()> {
        let mut statement = self
            .db
            .prepare_cached("UPDATE core_artifacts SET collected = 1 WHERE id = ?1")?;
        for id in ids {
            statement.execute([id])?;
        }
        Ok(())
    }

    /// Whether an artifact that is still there has this content.
    pub fn is_artifact_live(&self, hash: &str) -> rusqlite::Result<bool> {
        self.db
            .prepare_cached("SELECT 1 FROM core_artifacts WHERE hash = ?1 AND collected = 0")?
            .exists([hash])
    }

    /// Whether there are rows of content that went before this time.
    pub fn has_artifacts_before(&self, time: &str) -> rusqlite::Result<bool> {
        self.db
            .prepare_cached("SELECT 1 FROM core_artifacts WHERE collected = 1 AND expires_at < ?1")?
            .exists([time])
    }

    /// Removes rows of content that went before this time.
    pub fn forget_artifacts(&self, time: &str, limit: u32) -> rusqlite::Result<()> {
        self.db
            .prepare_cached(
                "DELETE FROM core_artifacts WHERE id IN
                     (SELECT id FROM core_artifacts WHERE collected = 1 AND expires_at < ?1 LIMIT ?2)",
            )?
            .execute(params![time, limit])
            .map(drop)
    }
}
