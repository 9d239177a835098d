//! Records of many files, kept as bytes in buckets.

use std::collections::BTreeMap;

use tollgate_sdk::{Db, DbError, params, text_enum};

use crate::model::JobId;

/// Bytes of one row. A value may have 1 MB.
const PIECE: usize = 256 << 10;
/// Bytes asked for at once. A result may have 4 MiB.
const AT_ONCE: usize = 2 << 20;

text_enum! {
    /// What the records say.
    pub(crate) enum Kind {
        Files = "files",
        Facts = "facts",
        Ages = "ages",
    }
}

/// The bytes of each bucket.
pub(crate) type Buckets = BTreeMap<u32, Vec<u8>>;

/// Every bucket of a kind.
pub(crate) fn load(db: &Db<'_>, job: &JobId, kind: Kind) -> Result<Buckets, DbError> {
    let sizes = db.query(
        "SELECT bucket, sum(length(content)) FROM conductor_parts WHERE job_id = ?1 AND kind = ?2 \
         GROUP BY bucket ORDER BY bucket",
        params![job, kind],
    )?;
    let mut buckets = Buckets::new();
    let (mut first, mut last, mut bytes) = (0, 0, 0_usize);
    for row in &sizes {
        let (bucket, size): (u32, usize) = (row.get(0)?, row.get(1)?);
        if bytes > 0 && bytes.saturating_add(size) > AT_ONCE {
            read(db, job, kind, (first, last), &mut buckets)?;
            (first, bytes) = (bucket, 0);
        }
        last = bucket;
        bytes = bytes.saturating_add(size);
    }
    if bytes > 0 {
        read(db, job, kind, (first, last), &mut buckets)?;
    }
    Ok(buckets)
}

/// The bytes of one bucket; empty if there are none.
pub(crate) fn bucket(db: &Db<'_>, job: &JobId, kind: Kind, bucket: u32) -> Result<Vec<u8>, DbError> {
    let mut buckets = Buckets::new();
    read(db, job, kind, (bucket, bucket), &mut buckets)?;
    Ok(buckets.remove(&bucket).unwrap_or_default())
}

fn read(
    db: &Db<'_>,
    job: &JobId,
    kind: Kind,
    (first, last): (u32, u32),
    buckets: &mut Buckets,
) -> Result<(), DbError> {
    let rows = db.query(
        "SELECT bucket, content FROM conductor_parts \
         WHERE job_id = ?1 AND kind = ?2 AND bucket >= ?3 AND bucket <= ?4 ORDER BY bucket, piece",
        params![job, kind, first, last],
    )?;
    for row in rows {
        let content: Vec<u8> = row.get(1)?;
        buckets.entry(row.get(0)?).or_default().extend(content);
    }
    Ok(())
}

/// Whether there is anything of a kind.
pub(crate) fn any(db: &Db<'_>, job: &JobId, kind: Kind) -> Result<bool, DbError> {
    let row = db.query_row(
        "SELECT bucket FROM conductor_parts WHERE job_id = ?1 AND kind = ?2 LIMIT 1",
        params![job, kind],
    )?;
    Ok(row.is_some())
}

/// Replaces some buckets.
pub(crate) fn put_all(db: &Db<'_>, job: &JobId, kind: Kind, changed: &Buckets) -> Result<(), DbError> {
    changed
        .iter()
        .try_for_each(|(bucket, content)| put(db, job, kind, *bucket, content))
}

/// Replaces one bucket.
pub(crate) fn put(db: &Db<'_>, job: &JobId, kind: Kind, bucket: u32, content: &[u8]) -> Result<(), DbError> {
    let mut pieces = 0_u32;
    for piece in content.chunks(PIECE) {
        db.execute(
            "INSERT INTO conductor_parts (job_id, kind, bucket, piece, content) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (job_id, kind, bucket, piece) DO UPDATE SET content = excluded.content",
            params![job, kind, bucket, pieces, piece],
        )?;
        pieces += 1;
    }
    db.execute(
        "DELETE FROM conductor_parts WHERE job_id = ?1 AND kind = ?2 AND bucket = ?3 AND piece >= ?4",
        params![job, kind, bucket, pieces],
    )?;
    Ok(())
}
