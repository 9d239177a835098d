//! Taking away what is over: expired, too much, or named by no row.

use tollgate_sdk::Timestamp;

use super::store::{ArtifactStore, UNFINISHED};
use crate::storage::Session;

/// How old a file without a row must be, so that it is not one whose row is about to be committed.
const ORPHAN_MS: i64 = 3_600_000;
/// The same for a file that is still being written: longer than any call may take.
const UNFINISHED_MS: i64 = 25 * 3_600_000;
/// Rows changed at once.
const BATCH: u32 = 500;

/// What stays known of artifacts that are gone.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// Now, in milliseconds since 1970 UTC.
    pub now_ms: i64,
    /// Rows that expired before this time go as well, RFC 3339.
    pub rows_since: &'a str,
}

/// Takes away what is over. `commit` runs a change of the database in a transaction, and says whether to
/// go on.
pub fn collect(
    store: &ArtifactStore,
    session: &Session,
    kept: Kept<'_>,
    mut commit: impl FnMut(Box<dyn Fn(&Session) -> rusqlite::Result<()> + Send>) -> bool,
) -> anyhow::Result<()> {
    let now = Timestamp::from_ms(kept.now_ms).to_string();
    let most = i64::try_from(store.settings().max_mib << 20).unwrap_or(i64::MAX);
    loop {
        let over = session.artifacts_over(&now, most, BATCH)?;
        if over.is_empty() {
            break;
        }
        let ids: Vec<String> = over.iter().map(|(id, _)| id.clone()).collect();
        if !commit(Box::new(move |session| session.mark_collected(&ids))) {
            return Ok(());
        }
        for (_, hash) in &over {
            if !session.is_artifact_live(hash)? {
                store.remove(hash, |_| true)?;
            }
        }
    }
    let since = kept.rows_since.to_owned();
    while session.has_artifacts_before(&since)? {
        let since = since.clone();
        if !commit(Box::new(move |session| session.forget_artifacts(&since, BATCH))) {
            return Ok(());
        }
    }
    sweep(store, session)
}

/// Takes away files that no row names.
fn sweep(store: &ArtifactStore, session: &Session) -> anyhow::Result<()> {
    for name in store.names()? {
        let patience = if name.starts_with(UNFINISHED) {
            UNFINISHED_MS
        } else if session.is_artifact_live(&name)? {
            continue;
        } else {
            ORPHAN_MS
        };
        store.remove(&name, |age_ms| age_ms > patience)?;
    }
    Ok(())
}
