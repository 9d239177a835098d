//! Tests of tampering with the ledger: tables of attacks, each with the row that `verify` reports.

mod of_postgres;
mod of_sqlite;

use super::engine::sql;
use super::fixture::{change, disarm, key, ledger, on_postgres, picture, prune, rearm, verify};
use super::{PruneError, Session};
use crate::key::LedgerKey;

#[test]
fn rows_only_come_after_the_last_and_stay() {
    let (_place, session) = ledger("oo");
    for sql in [
        "UPDATE core_operations SET tool = 'x'",
        "DELETE FROM core_operations",
        "UPDATE core_operations SET seq = 3 WHERE seq = 2",
    ] {
        let err = change(&session, sql).unwrap_err().to_string();
        assert!(err.contains("append-only"), "{sql}: {err}");
    }
    prune(&session, 10).unwrap();
    for sql in ["DELETE FROM core_anchors", "UPDATE core_anchors SET last_seq = 9"] {
        let err = change(&session, sql).unwrap_err().to_string();
        assert!(err.contains("append-only"), "{sql}: {err}");
    }
    assert_eq!(verify(&session, None), None);
}

#[test]
fn a_row_that_was_changed_is_not_pruned_away() {
    let (_place, session) = ledger("ooy");
    disarm(&session);
    change(&session, "UPDATE core_operations SET tool = 'x' WHERE seq = 2").unwrap();
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
             failure_fingerprint, failing_tests, events, verdicts, artifact_ids, prev_hash, hash, members, outcome, counters, workspace
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
        change(&session, sql).unwrap();
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
             failure_fingerprint, failing_tests, events, verdicts, artifact_ids, prev_hash, hash, members, outcome, counters, workspace
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
        change(&session, sql).unwrap();
        rearm(&session);
        let broken = verify(&session, None).expect(sql);
        assert_eq!(broken.seq, *seq, "{sql}: {broken:?}");
        assert!(broken.what.contains(what), "{sql}: {broken:?}");
    }
}

/// Changes a row and makes the hashes from there on fit again, as far as rows go.
fn rewrite_from(session: &Session, seq: i64) {
    let engine = &session.engine;
    let from = "SELECT seq FROM core_operations WHERE seq >= ?1 ORDER BY seq";
    let rows: Vec<i64> = engine.all(from, sql![seq], |row| row.get(0)).unwrap();
    engine
        .run("UPDATE core_operations SET tool = 'x' WHERE seq = ?1", sql![seq])
        .unwrap();
    let mut before: Option<String> = None;
    for row in rows {
        if let Some(before) = before.take() {
            let update = "UPDATE core_operations SET prev_hash = ?2 WHERE seq = ?1";
            engine.run(update, sql![row, before]).unwrap();
        }
        let hash = session.ledger().hash_of_row(row).unwrap();
        let update = "UPDATE core_operations SET hash = ?2 WHERE seq = ?1";
        engine.run(update, sql![row, hash]).unwrap();
        if session.ledger().hash_of(row + 1).unwrap().is_none() {
            return;
        }
        before = Some(hash);
    }
}

/// The rows fit each other. A server has the end of the stream besides, which whoever rewrites history can write, too.
fn assert_only_the_stream_tells(session: &Session) {
    match (verify(session, None), on_postgres()) {
        (Some(broken), true) => assert!(broken.what.contains("core_streams"), "{broken:?}"),
        (broken, _) => assert_eq!(broken, None),
    }
}

#[test]
fn history_rewritten_from_the_middle_is_found_with_a_head() {
    let (_place, session) = ledger("yyyyy");
    let head = session.ledger().head().unwrap();
    disarm(&session);
    rewrite_from(&session, 3);
    rearm(&session);
    assert_only_the_stream_tells(&session);
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
    let head = session.ledger().head().unwrap();
    disarm(&session);
    change(&session, "DELETE FROM core_operations WHERE seq = 5").unwrap();
    rearm(&session);
    assert_only_the_stream_tells(&session);
    let broken = verify(&session, Some(&head)).unwrap();
    assert!(broken.seq == 5 && broken.what.contains("end"), "{broken:?}");
}

#[test]
fn anchors_of_another_key_do_not_count() {
    let (_place, session) = ledger("oy");
    prune(&session, 100).unwrap();
    for keys in [vec![], vec![LedgerKey::of_seed(2).public()]] {
        let broken = session.ledger().verify(None, &keys).unwrap().broken.unwrap();
        assert!(broken.what.contains("no key"), "{broken:?}");
    }
    let both = [LedgerKey::of_seed(2).public(), key().public()];
    assert_eq!(session.ledger().verify(None, &both).unwrap().broken, None);
}
