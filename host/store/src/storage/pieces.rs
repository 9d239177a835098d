//! Content of artifacts on a PostgreSQL server, stored by hash and in pieces.
//!
//! Content is written without the write lock, so that no call waits for it. This is safe for three reasons. No
//! statement under the write lock reads or writes these tables. Pieces with the same hash are identical whoever
//! writes them. And a session that stores or removes content holds a lock on its hash, so content is either present
//! or absent, and is not removed between a put and the check for it.
//!
//! A put records the artifact that it is for, because the artifact's row may be committed after its content. The
//! content is not removed until the row exists or an hour has passed.

use super::engine::{Engine, Once, Sql, sql};
use super::error::{StoreError, StoreResult};
use super::handles::Pieces;

/// Size of a piece in bytes. The last piece has the rest.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// Lock for changes to all contents.
const CONTENTS_LOCK: &str = "contents";

/// True for content, as `c`, that an artifact names, or may name once its row exists.
macro_rules! is_named {
    () => {
        "(EXISTS (SELECT 1 FROM core_artifacts AS a WHERE a.hash = c.hash AND a.collected = 0)
            OR EXISTS (SELECT 1 FROM core_content_puts AS p WHERE p.hash = c.hash
                AND p.put_ms > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 3600000
                AND NOT EXISTS (SELECT 1 FROM core_artifacts AS a WHERE a.id = p.artifact_id)))"
    };
}

/// A stored piece. The bytes are absent if there are more than a piece may have.
pub(crate) struct Piece<'a> {
    pub(crate) number: i64,
    pub(crate) bytes: Option<&'a [u8]>,
}

impl Pieces<'_> {
    /// Begins a change of content, after all other changes of the same content.
    pub(crate) fn begin(self, hash: &str) -> StoreResult<()> {
        self.begin_with(&format!("content {hash}"))
    }

    fn begin_with(self, lock: &str) -> StoreResult<()> {
        match &self.0.engine {
            Engine::Postgres(postgres) => postgres.begin_beside(lock),
            Engine::Sqlite(_) => Err(StoreError::of_servers_alone()),
        }
    }

    /// Records that content with this many pieces is put for an artifact, and removes pieces past them.
    pub(crate) fn note(self, hash: &str, artifact: &str, pieces: i64) -> StoreResult<()> {
        let sql = "WITH beyond AS (DELETE FROM core_contents WHERE hash = ?1 AND (piece >= ?3 OR piece < 0))
            INSERT INTO core_content_puts (artifact_id, hash, put_ms)
            VALUES (?2, ?1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
            ON CONFLICT (artifact_id) DO UPDATE SET hash = excluded.hash, put_ms = excluded.put_ms";
        self.0.engine.run(sql, sql![hash, artifact, pieces]).map(drop)
    }

    /// Stores a piece. Replaces an existing piece that differs.
    pub(crate) fn put(self, hash: &str, number: i64, bytes: &[u8]) -> StoreResult<()> {
        let sql = "INSERT INTO core_contents AS c (hash, piece, bytes) VALUES (?1, ?2, ?3)
            ON CONFLICT (hash, piece) DO UPDATE SET bytes = excluded.bytes WHERE c.bytes <> excluded.bytes";
        let bytes = Sql::Blob(bytes);
        self.0.engine.run(sql, sql![hash, number, bytes]).map(drop)
    }

    /// Visits a number of pieces from one on, in order.
    pub(crate) fn each(
        self,
        hash: &str,
        (first, count): (i64, i64),
        mut visit: impl FnMut(Piece<'_>),
    ) -> StoreResult<()> {
        let most = i64::try_from(PIECE_BYTES).unwrap_or(i64::MAX);
        let sql = "SELECT piece, CASE WHEN octet_length(bytes) <= ?4 THEN bytes END FROM core_contents
            WHERE hash = ?1 AND piece >= ?2 AND piece < ?3 ORDER BY piece";
        let end = first.saturating_add(count);
        self.0.engine.each(sql, sql![hash, first, end, most], |row| {
            visit(Piece {
                number: row.get(0)?,
                bytes: row.get(1)?,
            });
            Ok(())
        })
    }

    /// True if there is a piece of content.
    pub(crate) fn has(self, hash: &str) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM core_contents WHERE hash = ?1 LIMIT 1";
        self.0.engine.exists(sql, sql![hash])
    }

    /// Bytes of all contents. Each counts at least `least` bytes.
    pub(crate) fn total(self, least: i64) -> StoreResult<i64> {
        let sql = "SELECT coalesce(sum(CASE WHEN piece = 0 AND octet_length(bytes) < ?1 THEN ?1
                ELSE octet_length(bytes) END), 0)::bigint FROM core_contents";
        self.0.engine.one(sql, sql![least], |row| row.get(0))
    }

    /// Removes content, unless an artifact names it or may still do so. Requires [`begin`](Pieces::begin).
    pub(crate) fn remove(self, hash: &str) -> StoreResult<()> {
        let sql = concat!(
            "DELETE FROM core_contents AS c WHERE hash = ?1 AND NOT ",
            is_named!()
        );
        self.0.engine.run(sql, sql![hash]).map(drop)
    }

    /// Hashes of contents that no artifact names or may name, sorted, after a given one, up to a limit.
    pub(crate) fn unnamed(self, after: &str, limit: u32) -> StoreResult<Vec<String>> {
        let sql = concat!(
            "SELECT DISTINCT hash FROM core_contents AS c WHERE hash > ?1 AND NOT ",
            is_named!(),
            " ORDER BY hash LIMIT ?2"
        );
        self.0.engine.all(sql, sql![after, limit], |row| row.get(0))
    }

    /// Removes the records of puts whose rows will not come any more, or have existed for long, in a separate
    /// transaction.
    pub(crate) fn forget_puts(self) -> StoreResult<()> {
        self.begin_with(CONTENTS_LOCK)?;
        let sql = "DELETE FROM core_content_puts
            WHERE put_ms <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 3600000";
        let forgotten = self.0.engine.run(Once(sql), &[]);
        match forgotten {
            Ok(_) => self.0.commit(),
            Err(err) => {
                // The earlier error is the one to report.
                let _ = self.0.rollback();
                Err(err)
            }
        }
    }

    /// Hashes of all contents.
    pub(crate) fn hashes(self) -> StoreResult<Vec<String>> {
        let sql = "SELECT DISTINCT hash FROM core_contents ORDER BY hash";
        self.0.engine.all(sql, &[], |row| row.get(0))
    }
}
