//! Small ledgers for tests of the storage.

use tempfile::TempDir;
use tollgate_core::envelope::{Limits, Standing, State};

use super::engine::sqlite::schema::{Object, pristine};
use super::{Broken, Database, Ending, Envelope, Head, Operation, PruneError, Pruned, Retention, Session};
use crate::key::LedgerKey;

pub(crate) const NOW: &str = "2026-03-01T00:00:00.000Z";
pub(crate) const CUTOFF: &str = "2026-02-01T00:00:00.000Z";
pub(crate) const OLD: &str = "2026-01-01T00:00:00.000Z";
pub(crate) const YOUNG: &str = "2026-02-28T00:00:00.000Z";

pub(crate) fn key() -> LedgerKey {
    LedgerKey::of_seed(1)
}

pub(crate) fn retention() -> Retention {
    Retention {
        cutoff: CUTOFF.to_owned(),
        envelopes: 500,
    }
}

pub(crate) fn operation(number: usize, envelope: Option<&str>, timestamp: &str) -> Operation {
    Operation::for_tests(number, envelope, timestamp)
}

pub(crate) fn envelope(id: &str, closed_at: Option<&str>) -> Envelope {
    Envelope {
        id: id.to_owned(),
        standing: Standing {
            state: State::Open,
            limits: Limits::default(),
            mutations: 0,
            test_runs: 0,
            edits: 0,
            opened_boot_ms: 0,
        },
        workspace: None,
        label: None,
        note: None,
        opened_at: OLD.to_owned(),
        closed_at: closed_at.map(str::to_owned),
        closed_by: None,
        git_head: None,
        closed_git_head: None,
        last_mutation_fingerprint: None,
        last_failure_fingerprint: None,
        host_id: "h".to_owned(),
        connection: "c".to_owned(),
        identity: None,
        parent: None,
        closed_actor: None,
        detached_until_ms: None,
        index_version: None,
        restart_moved: None,
        over_boot_ms: None,
    }
}

/// A ledger with one row for each letter: `o` old and outside, `y` young and outside, `k` of an open
/// envelope, `c` of a closed old one.
pub(crate) fn ledger(rows: &str) -> (TempDir, Session) {
    let place = tempfile::tempdir().unwrap();
    let database = Database::open(&place.path().join("t.db")).unwrap();
    let session = database.write_session().unwrap();
    session.begin_write().unwrap();
    session.envelopes().open(&envelope("env_k", None)).unwrap();
    session.envelopes().open(&envelope("env_c", None)).unwrap();
    session
        .envelopes()
        .close("env_c", Ending::by_host(State::ClosedSuccess, "TEST", OLD, 0))
        .unwrap();
    add(&session, rows, 0);
    session.commit().unwrap();
    (place, session)
}

pub(crate) fn add(session: &Session, rows: &str, from: usize) {
    for (number, kind) in rows.chars().enumerate() {
        let (envelope, timestamp) = match kind {
            'o' => (None, OLD),
            'k' => (Some("env_k"), OLD),
            'c' => (Some("env_c"), OLD),
            _ => (None, YOUNG),
        };
        session
            .ledger()
            .record(&operation(from + number, envelope, timestamp))
            .unwrap();
    }
}

/// Number of rows in a stretch.
pub(crate) fn rows_between(session: &Session, first: i64, last: i64) -> i64 {
    let count = "SELECT count(*) FROM core_operations WHERE seq BETWEEN ?1 AND ?2";
    session
        .sqlite()
        .db
        .query_row(count, (first, last), |row| row.get(0))
        .unwrap()
}

/// Prunes in batches of so many rows.
pub(crate) fn prune(session: &Session, limit: u32) -> Result<Pruned, PruneError> {
    let mut after = 0;
    let mut all = Pruned::default();
    loop {
        let batch = session
            .maintenance()
            .plan_prune(&retention(), &mut after, limit, &key(), NOW)?;
        if batch.is_empty() {
            return Ok(all);
        }
        session.begin_write()?;
        session.maintenance().prune(&batch)?;
        session.commit()?;
        all.add(batch.pruned);
    }
}

pub(crate) fn verify(session: &Session, head: Option<&Head>) -> Option<Broken> {
    session.ledger().verify(head, &[key().public()]).unwrap().broken
}

/// Picture of the remaining rows: `#` for a row, `_` for a pruned one.
pub(crate) fn picture(session: &Session) -> String {
    let head = session.ledger().head().unwrap();
    let mut picture = vec!['#'; usize::try_from(head.seq).unwrap()];
    for anchor in session.ledger().anchors().unwrap() {
        for seq in anchor.first_seq..=anchor.last_seq {
            picture[usize::try_from(seq).unwrap() - 1] = '_';
        }
    }
    picture.into_iter().collect()
}

/// Drops what keeps SQL from changing the ledger.
pub(crate) fn disarm(session: &Session) {
    for guard in guards() {
        session
            .sqlite()
            .db
            .execute_batch(&format!("DROP TRIGGER {}", guard.name))
            .unwrap();
    }
}

pub(crate) fn rearm(session: &Session) {
    for guard in guards() {
        session
            .sqlite()
            .db
            .execute_batch(guard.sql.as_deref().unwrap())
            .unwrap();
    }
}

fn guards() -> impl Iterator<Item = &'static Object> {
    let all = pristine().unwrap().iter();
    all.filter(|object| object.kind == "trigger")
}
