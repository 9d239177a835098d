//! Baselines of steps. A work tree with thousands of uncommitted files has one that is too large for a column.

use tollgate_sdk::{Db, DbError, params};

use super::job::Baseline;
use super::to_json;
use crate::model::JobId;

/// Bytes of JSON that the column of the job holds.
const MAX_COLUMN_BYTES: usize = 256 << 10;
/// Bytes of one piece. A value holds at most 1 MB.
const PIECE_BYTES: usize = 256 << 10;

/// Text for the column of the job: the baseline, or what tells that it is in pieces.
pub(super) fn column(baseline: &Baseline) -> Result<String, DbError> {
    let json = to_json(baseline)?;
    match json.len() <= MAX_COLUMN_BYTES {
        true => Ok(json),
        false => to_json(&Baseline {
            commit: baseline.commit.clone(),
            whole: baseline.whole,
            raw: baseline.raw,
            in_pieces: true,
            ..Baseline::default()
        }),
    }
}

/// Stores the pieces of a baseline, if its column cannot hold it, in place of earlier ones.
pub(super) fn keep(db: &Db<'_>, job: &JobId, baseline: Option<&Baseline>) -> Result<(), DbError> {
    db.execute("DELETE FROM conductor_baselines WHERE job_id = ?1", params![job])?;
    let Some(baseline) = baseline else {
        return Ok(());
    };
    let json = to_json(baseline)?;
    if json.len() <= MAX_COLUMN_BYTES {
        return Ok(());
    }
    for (piece, content) in (0_u32..).zip(json.as_bytes().chunks(PIECE_BYTES)) {
        db.execute(
            "INSERT INTO conductor_baselines (job_id, piece, content) VALUES (?1, ?2, ?3)",
            params![job, piece, content],
        )?;
    }
    Ok(())
}

/// The whole baseline, of which the column may only tell that it is in pieces.
pub(super) fn whole(db: &Db<'_>, job: &JobId, column: Option<Baseline>) -> Result<Option<Baseline>, DbError> {
    if !column.as_ref().is_some_and(|baseline| baseline.in_pieces) {
        return Ok(column);
    }
    let mut json: Vec<u8> = Vec::new();
    for piece in 0_u32.. {
        let row = db.query_row(
            "SELECT content FROM conductor_baselines WHERE job_id = ?1 AND piece = ?2",
            params![job, piece],
        )?;
        let Some(row) = row else { break };
        let content: Vec<u8> = row.get(0)?;
        json.extend(content);
    }
    let read = serde_json::from_slice(&json).map_err(|_| DbError::Internal)?;
    Ok(Some(read))
}
