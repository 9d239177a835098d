//! What becomes of a ledger that somebody tampers with: tables of attacks, each with the row that
//! `verify` names.

use tempfile::TempDir;

use super::{Broken, Database, Head, OpType, Operation, PruneError, Pruned, Retention, Session};
use crate::envelope::{Limits, Standing, State};
use crate::ledger::key::LedgerKey;
use crate::packs::Effect;
use crate::storage::Envelope;

const NOW: &str = "2026-03-01T00:00:00.000Z";
const CUTOFF: &str = "2026-02-01T00:00:00.000Z";
const OLD: &str = "2026-01-01T00:00:00.000Z";
const YOUNG: &str = "2026-02-28T00:00:00.000Z";

fn key() -> LedgerKey {
    LedgerKey::of_seed(1)
}

fn retention() -> Retention {
    Retention {
        cutoff: CUTOFF.to_owned(),
        envelopes: 500,
    }
}

fn operation(number: usize, envelope: Option<&str>, timestamp: &str) -> Operation {
    Operation {
        op_id: format!("op_{number}"),
        envelope_id: envelope.map(str::to_owned),
        timestamp: timestamp.to_owned(),
        duration_ms: 0.5,
        op_type: OpType::Mutation,
        success: Some(true),
        pack: "p".to_owned(),
        tool: "t".to_owned(),
        effect: Effect::Write,
        error_code: None,
        failure_class: None,
        limit_triggered: None,
        actor: None,
        client: None,
        connection: "c".to_owned(),
        request_id: None,
        host_id: "h".to_owned(),
        args_hash: "a".to_owned(),
        result_hash: None,
        repo_before_hash: None,
        repo_after_hash: None,
        changed_paths: None,
        diff_stats: None,
        short_diff: None,
        mutation_fingerprint: None,
        failure_fingerprint: None,
        failing_tests: None,
        events: None,
        verdicts: None,
        artifact_ids: None,
        artifacts: Vec::new(),
    }
}

fn envelope(id: &str, closed_at: Option<&str>) -> Envelope {
    Envelope {
        id: id.to_owned(),
        standing: Standing {
            state: State::Open,
            limits: Limits::default(),
            mutations: 0,
            test_runs: 0,
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
    }
}

/// A ledger with one row for each letter: `o` old and outside, `y` young and outside, `k` of an open
/// envelope, `c` of a closed old one.
fn ledger(rows: &str) -> (TempDir, Session) {
    let place = tempfile::tempdir().unwrap();
    let database = Database::open(&place.path().join("t.db")).unwrap();
    let session = database.write_session().unwrap();
    session.begin_write().unwrap();
    session.open_envelope(&envelope("env_k", None)).unwrap();
    session.open_envelope(&envelope("env_c", None)).unwrap();
    session
        .close_envelope("env_c", State::ClosedSuccess, OLD, None, None)
        .unwrap();
    add(&session, rows, 0);
    session.commit().unwrap();
    (place, session)
}

fn add(session: &Session, rows: &str, from: usize) {
    for (number, kind) in rows.chars().enumerate() {
        let (envelope, timestamp) = match kind {
            'o' => (None, OLD),
            'k' => (Some("env_k"), OLD),
            'c' => (Some("env_c"), OLD),
            _ => (None, YOUNG),
        };
        session
            .record(&operation(from + number, envelope, timestamp))
            .unwrap();
    }
}

/// Prunes in batches of so many rows.
fn prune(session: &Session, limit: u32) -> Result<Pruned, PruneError> {
    let mut after = 0;
    let mut all = Pruned::default();
    loop {
        let batch = session.plan_prune(&retention(), &mut after, limit, &key(), NOW)?;
        if batch.is_empty() {
            return Ok(all);
        }
        session.begin_write()?;
        session.prune(&batch)?;
        session.commit()?;
        all.add(batch.pruned);
    }
}

fn verify(session: &Session, head: Option<&Head>) -> Option<Broken> {
    session.verify(head, &[key().public()]).unwrap().broken
}

/// What remains: `#` for a row, `_` for a pruned one.
fn picture(session: &Session) -> String {
    let head = session.head().unwrap();
    let mut picture = vec!['#'; usize::try_from(head.seq).unwrap()];
    for anchor in session.anchors().unwrap() {
        for seq in anchor.first_seq..=anchor.last_seq {
            picture[usize::try_from(seq).unwrap() - 1] = '_';
        }
    }
    picture.into_iter().collect()
}

/// Drops what keeps SQL from changing the ledger.
fn disarm(session: &Session) {
    for (name, _) in session.triggers().unwrap() {
        session.db.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
}

fn rearm(session: &Session) {
    for (_, sql) in Database::pristine_triggers().unwrap() {
        session.db.execute_batch(&sql).unwrap();
    }
}

#[test]
fn rows_only_come_after_the_last_and_stay() {
    let (_place, session) = ledger("oo");
    for sql in [
        "UPDATE core_operations SET tool = 'x'",
        "DELETE FROM core_operations",
        "INSERT OR REPLACE INTO core_operations SELECT * FROM core_operations WHERE seq = 1",
        "UPDATE OR REPLACE core_operations SET seq = 1 WHERE seq = 2",
    ] {
        let err = session.db.execute(sql, []).unwrap_err().to_string();
        assert!(err.contains("append-only"), "{sql}: {err}");
    }
    prune(&session, 10).unwrap();
    for sql in [
        "DELETE FROM core_anchors",
        "UPDATE core_anchors SET last_seq = 9",
        "INSERT OR REPLACE INTO core_anchors SELECT first_seq, last_seq, '', '', '', '' FROM core_anchors",
    ] {
        let err = session.db.execute(sql, []).unwrap_err().to_string();
        assert!(err.contains("append-only"), "{sql}: {err}");
    }
    assert_eq!(verify(&session, None), None);
}

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
            let head = session.head().unwrap();
            let pruned = prune(&session, limit).unwrap();
            assert_eq!(picture(&session), left, "{rows}");
            let gone = left.matches('_').count();
            let gone = i64::try_from(gone).unwrap();
            assert_eq!(pruned.rows_in_envelopes + pruned.rows_outside, gone, "{rows}");
            let verified = session.verify(Some(&head), &[key().public()]).unwrap();
            assert_eq!(verified.broken, None, "{rows} by {limit}");
            assert_eq!((verified.head, verified.pruned), (head, gone), "{rows}");
            let stretches = left.split('#').filter(|stretch| !stretch.is_empty()).count();
            assert_eq!(session.anchors().unwrap().len(), stretches, "{rows} by {limit}");
            // The chain goes on where it was, and what comes is pruned like the rest.
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
    assert_eq!(session.prunable(&retention()).unwrap(), expected);
    assert_eq!(prune(&session, 100).unwrap(), expected);
    assert_eq!(session.envelopes(&Default::default(), 9).unwrap().len(), 1);
    assert_eq!(session.prunable(&retention()).unwrap(), Pruned::default());
}

#[test]
fn closed_envelopes_beyond_the_newest_go_whatever_their_age() {
    let (_place, session) = ledger("");
    session.begin_write().unwrap();
    for number in 0..4 {
        let mut one = envelope(&format!("env_{number}"), None);
        one.opened_at = format!("2026-02-2{number}T00:00:00.000Z");
        session.open_envelope(&one).unwrap();
        session.record(&operation(number, Some(&one.id), YOUNG)).unwrap();
        if number != 1 {
            session
                .close_envelope(&one.id, State::ClosedFailed, YOUNG, None, None)
                .unwrap();
        }
    }
    session.commit().unwrap();
    let retention = Retention {
        envelopes: 2,
        ..retention()
    };
    let batch = session.plan_prune(&retention, &mut 0, 100, &key(), NOW).unwrap();
    session.begin_write().unwrap();
    session.prune(&batch).unwrap();
    session.commit().unwrap();
    let left: Vec<String> = session
        .envelopes(&Default::default(), 9)
        .unwrap()
        .into_iter()
        .map(|envelope| envelope.id)
        .collect();
    // env_c is old, env_0 is beyond the newest two, env_1 and env_k are open.
    assert_eq!(left, ["env_3", "env_2", "env_1", "env_k"]);
    assert_eq!(verify(&session, None), None);
}

#[test]
fn a_row_that_was_changed_is_not_pruned_away() {
    let (_place, session) = ledger("ooy");
    disarm(&session);
    session
        .db
        .execute("UPDATE core_operations SET tool = 'x' WHERE seq = 2", [])
        .unwrap();
    rearm(&session);
    assert!(matches!(prune(&session, 1), Err(PruneError::Tampered(2))));
    assert_eq!(verify(&session, None).unwrap().seq, 2);
}

/// Each attack on a whole ledger, the row that is named, and why.
const ON_ROWS: &[(&str, i64, &str)] = &[
    ("UPDATE core_operations SET tool = 'x' WHERE seq = 3", 3, "changed"),
    ("UPDATE core_operations SET error_code = '' WHERE seq = 2", 2, "changed"),
    ("UPDATE core_operations SET duration_ms = 1 WHERE seq = 5", 5, "changed"),
    ("UPDATE core_operations SET hash = 'x' WHERE seq = 5", 5, "changed"),
    ("UPDATE core_operations SET op_id = 'other', hash = hash WHERE seq = 1", 1, "changed"),
    ("UPDATE core_operations SET prev_hash = hash WHERE seq = 2", 2, "inserted or replaced"),
    ("DELETE FROM core_operations WHERE seq = 4", 4, "missing"),
    ("DELETE FROM core_operations WHERE seq = 1", 1, "missing"),
    ("UPDATE core_operations SET seq = 9 WHERE seq = 5", 5, "missing"),
    (
        "UPDATE core_operations SET seq = -seq WHERE seq IN (2, 3); UPDATE core_operations SET seq = 5 + seq WHERE seq < 0",
        2,
        "inserted or replaced",
    ),
    (
        "DELETE FROM core_operations WHERE seq = 3;
         INSERT INTO core_operations SELECT 3, 'op_x', envelope_id, timestamp, duration_ms, op_type, success, pack, tool, effect,
             error_code, failure_class, limit_triggered, actor, client, connection, request_id, host_id, args_hash, result_hash,
             repo_before_hash, repo_after_hash, changed_paths, diff_stats, short_diff, mutation_fingerprint,
             failure_fingerprint, failing_tests, events, verdicts, artifact_ids, prev_hash, hash
         FROM core_operations WHERE seq = 2",
        3,
        "inserted or replaced",
    ),
];

#[test]
fn whatever_is_done_to_a_row_is_named() {
    for (sql, seq, what) in ON_ROWS {
        let (_place, session) = ledger("yyyyy");
        disarm(&session);
        session.db.execute_batch(sql).unwrap();
        rearm(&session);
        let broken = verify(&session, None).unwrap();
        assert_eq!(broken.seq, *seq, "{sql}: {broken:?}");
        assert!(broken.what.contains(what), "{sql}: {broken:?}");
    }
}

/// Attacks on a ledger of which rows 2 and 3, and 5, were pruned: `koocok y`.
const AFTER_PRUNING: &[(&str, i64, &str)] = &[
    ("UPDATE core_operations SET tool = 'x' WHERE seq = 4", 4, "changed"),
    ("DELETE FROM core_operations WHERE seq = 4", 4, "missing"),
    ("DELETE FROM core_operations WHERE seq = 1", 1, "missing"),
    ("DELETE FROM core_anchors WHERE first_seq = 2", 2, "missing"),
    ("DELETE FROM core_anchors WHERE first_seq = 5", 5, "missing"),
    ("UPDATE core_anchors SET last_seq = 4 WHERE first_seq = 2", 2, "no key"),
    ("UPDATE core_anchors SET hash = prev_hash WHERE first_seq = 2", 2, "no key"),
    ("UPDATE core_anchors SET pruned_at = '' WHERE first_seq = 5", 5, "no key"),
    ("UPDATE core_anchors SET signature = '' WHERE first_seq = 5", 5, "no key"),
    (
        "UPDATE core_anchors SET signature = (SELECT signature FROM core_anchors WHERE first_seq = 2) WHERE first_seq = 5",
        5,
        "no key",
    ),
    (
        "INSERT INTO core_anchors SELECT 4, 4, prev_hash, hash, '', 'forged' FROM core_operations WHERE seq = 4;
         DELETE FROM core_operations WHERE seq = 4",
        4,
        "no key",
    ),
    (
        "INSERT INTO core_anchors SELECT 3, 3, prev_hash, hash, pruned_at, signature FROM core_anchors WHERE first_seq = 2",
        3,
        "no key",
    ),
    (
        "INSERT INTO core_operations SELECT 2, 'op_x', envelope_id, timestamp, duration_ms, op_type, success, pack, tool, effect,
             error_code, failure_class, limit_triggered, actor, client, connection, request_id, host_id, args_hash, result_hash,
             repo_before_hash, repo_after_hash, changed_paths, diff_stats, short_diff, mutation_fingerprint,
             failure_fingerprint, failing_tests, events, verdicts, artifact_ids, prev_hash, hash
         FROM core_operations WHERE seq = 1",
        2,
        "inserted where rows were pruned",
    ),
];

#[test]
fn whatever_is_done_after_pruning_is_named_too() {
    for (sql, seq, what) in AFTER_PRUNING {
        let (_place, session) = ledger("kockoky");
        prune(&session, 100).unwrap();
        assert_eq!(picture(&session), "#__#_##");
        disarm(&session);
        session.db.execute_batch(sql).unwrap();
        rearm(&session);
        let broken = verify(&session, None).expect(sql);
        assert_eq!(broken.seq, *seq, "{sql}: {broken:?}");
        assert!(broken.what.contains(what), "{sql}: {broken:?}");
    }
}

/// Changes a row and makes the hashes from there on fit again, as far as rows go.
fn rewrite_from(session: &Session, seq: i64) {
    let rows: Vec<i64> = session
        .db
        .prepare("SELECT seq FROM core_operations WHERE seq >= ?1 ORDER BY seq")
        .unwrap()
        .query_map([seq], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    session
        .db
        .execute("UPDATE core_operations SET tool = 'x' WHERE seq = ?1", [seq])
        .unwrap();
    let mut before: Option<String> = None;
    for row in rows {
        if let Some(before) = before.take() {
            session
                .db
                .execute(
                    "UPDATE core_operations SET prev_hash = ?2 WHERE seq = ?1",
                    (row, before),
                )
                .unwrap();
        }
        let hash = session.hash_of_row(row).unwrap();
        session
            .db
            .execute(
                "UPDATE core_operations SET hash = ?2 WHERE seq = ?1",
                (row, &hash),
            )
            .unwrap();
        let next_is_here: bool = session
            .db
            .query_row(
                "SELECT count(*) > 0 FROM core_operations WHERE seq = ?1",
                [row + 1],
                |row| row.get(0),
            )
            .unwrap();
        if !next_is_here {
            return;
        }
        before = Some(hash);
    }
}

#[test]
fn history_rewritten_from_the_middle_is_found_with_a_head() {
    let (_place, session) = ledger("yyyyy");
    let head = session.head().unwrap();
    disarm(&session);
    rewrite_from(&session, 3);
    rearm(&session);
    assert_eq!(verify(&session, None), None, "the rows fit each other again");
    let broken = verify(&session, Some(&head)).unwrap();
    assert!(broken.seq == 5 && broken.what.contains("rewritten"), "{broken:?}");
}

#[test]
fn history_rewritten_before_a_pruned_stretch_is_found_without_a_head() {
    let (_place, session) = ledger("kkoyy");
    prune(&session, 100).unwrap();
    disarm(&session);
    rewrite_from(&session, 1);
    rearm(&session);
    let broken = verify(&session, None).unwrap();
    assert!(broken.seq == 2 && broken.what.contains("replaced"), "{broken:?}");
}

#[test]
fn rows_taken_from_the_end_are_found_with_a_head() {
    let (_place, session) = ledger("yyyyy");
    let head = session.head().unwrap();
    disarm(&session);
    session
        .db
        .execute("DELETE FROM core_operations WHERE seq = 5", [])
        .unwrap();
    rearm(&session);
    assert_eq!(verify(&session, None), None);
    let broken = verify(&session, Some(&head)).unwrap();
    assert!(broken.seq == 5 && broken.what.contains("end"), "{broken:?}");
}

#[test]
fn a_trigger_that_was_dropped_or_replaced_is_named() {
    let (_place, session) = ledger("yy");
    session
        .db
        .execute_batch("DROP TRIGGER core_operations_no_delete")
        .unwrap();
    assert!(
        verify(&session, None)
            .unwrap()
            .what
            .contains("core_operations_no_delete")
    );
    session
        .db
        .execute_batch(
            "CREATE TRIGGER core_operations_no_delete BEFORE DELETE ON core_operations WHEN 0 BEGIN SELECT 1; END",
        )
        .unwrap();
    assert!(
        verify(&session, None)
            .unwrap()
            .what
            .contains("core_operations_no_delete")
    );
}

#[test]
fn anchors_of_another_key_do_not_count() {
    let (_place, session) = ledger("oy");
    prune(&session, 100).unwrap();
    for keys in [vec![], vec![LedgerKey::of_seed(2).public()]] {
        let broken = session.verify(None, &keys).unwrap().broken.unwrap();
        assert!(broken.what.contains("no key"), "{broken:?}");
    }
    let both = [LedgerKey::of_seed(2).public(), key().public()];
    assert_eq!(session.verify(None, &both).unwrap().broken, None);
}
