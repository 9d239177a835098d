//! Records of many files, stored as bytes in buckets.

use std::collections::BTreeMap;

use tollgate_sdk::{Db, DbError, params, text_enum};

use crate::entity;
use crate::model::JobId;

/// Maximum bytes of one row. A value holds at most 1 MB.
const PIECE_BYTES: usize = 256 << 10;
/// Rows per query. A result holds at most 4 MiB.
const PAGE_ROWS: u32 = 8;

text_enum! {
    /// Kinds of records.
    pub(crate) enum Kind {
        Files = "files",
        Facts = "facts",
        Ages = "ages",
    }
}

/// Bytes of each bucket.
pub(crate) type Buckets = BTreeMap<u32, Vec<u8>>;

/// All buckets of a kind.
pub(crate) fn load(db: &Db<'_>, job: &JobId, kind: Kind) -> Result<Buckets, DbError> {
    let mut buckets = Buckets::new();
    read(db, job, kind, (0, u32::MAX), &mut buckets)?;
    Ok(buckets)
}

/// Requested buckets that exist.
pub(crate) fn some(db: &Db<'_>, job: &JobId, kind: Kind, wanted: &[u32]) -> Result<Buckets, DbError> {
    let mut buckets = Buckets::new();
    for bucket in wanted {
        read(db, job, kind, (*bucket, *bucket), &mut buckets)?;
    }
    Ok(buckets)
}

/// Bytes of one bucket; empty if it does not exist.
pub(crate) fn bucket(db: &Db<'_>, job: &JobId, kind: Kind, bucket: u32) -> Result<Vec<u8>, DbError> {
    let mut found = some(db, job, kind, &[bucket])?;
    Ok(found.remove(&bucket).unwrap_or_default())
}

/// Adds all buckets in a range to a map.
fn read(
    db: &Db<'_>,
    job: &JobId,
    kind: Kind,
    (first, last): (u32, u32),
    buckets: &mut Buckets,
) -> Result<(), DbError> {
    let mut after = (first, -1);
    loop {
        let rows = db.query(
            "SELECT bucket, piece, content FROM conductor_parts \
             WHERE job_id = ?1 AND kind = ?2 AND (bucket, piece) > (?3, ?4) AND bucket <= ?5 \
             ORDER BY bucket, piece LIMIT ?6",
            params![job, kind, after.0, after.1, last, PAGE_ROWS],
        )?;
        let found = rows.len();
        for row in rows {
            after = (row.get(0)?, row.get(1)?);
            let content: Vec<u8> = row.get(2)?;
            buckets.entry(after.0).or_default().extend(content);
        }
        if found < PAGE_ROWS as usize {
            return Ok(());
        }
    }
}

/// Checks whether a kind has any bucket.
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
    entity::part(job, kind.as_str());
    let mut pieces = 0_u32;
    for piece in content.chunks(PIECE_BYTES) {
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

#[cfg(test)]
mod tests {
    use tollgate_sdk::native::Session;
    use tollgate_sdk::{CallInfo, Cx, Id as _};

    use super::*;

    #[test]
    fn buckets_of_any_size_come_back_whole() {
        let session = Session::new(&crate::PACK);
        let begun = session
            .call("conductor_init", r#"{"title": "Parts", "goal": "Keep them"}"#)
            .unwrap();
        let begun: serde_json::Value = serde_json::from_str(&begun.structured).unwrap();
        let job = JobId::from_text(begun["job_id"].as_str().unwrap().to_owned());
        let call = CallInfo::default();
        let cx = Cx::new(session.backend(), &call);
        // As many pieces as are asked for at once, and one more or less.
        let sizes = [
            1,
            PIECE_BYTES,
            7 * PIECE_BYTES,
            8 * PIECE_BYTES,
            8 * PIECE_BYTES + 1,
            20 * PIECE_BYTES,
        ];
        let of = |size: usize| (0..=u8::MAX).cycle().take(size).collect::<Vec<u8>>();
        let all: Buckets = (3..).zip(sizes.map(of)).collect();
        cx.transaction(|db| {
            put_all(&db, &job, Kind::Files, &all)?;
            assert_eq!(load(&db, &job, Kind::Files)?, all);
            assert!(load(&db, &job, Kind::Facts)?.is_empty());
            assert_eq!(bucket(&db, &job, Kind::Files, 7)?, all[&7]);
            let two = some(&db, &job, Kind::Files, &[4, 8, 99])?;
            assert_eq!(two.into_keys().collect::<Vec<_>>(), [4, 8]);
            put(&db, &job, Kind::Files, 8, &all[&4])?;
            assert_eq!(bucket(&db, &job, Kind::Files, 8)?, all[&4], "it shrank");
            put(&db, &job, Kind::Files, 8, &[])?;
            assert!(bucket(&db, &job, Kind::Files, 8)?.is_empty());
            Ok::<_, DbError>(())
        })
        .unwrap();
    }
}
