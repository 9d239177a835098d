//! Attacks on the ledger by somebody who tampers with it: tables of attacks, each with the row that
//! `verify` names.

use super::error::StoreResult;
use super::fixture::{YOUNG, disarm, key, ledger, operation, picture, prune, rearm, verify};
use super::{Database, PruneError, Session};
use crate::key::LedgerKey;

#[test]
fn rows_only_come_after_the_last_and_stay() {
    let (_place, session) = ledger("oo");
    for sql in [
        "UPDATE core_operations SET tool = 'x'",
        "DELETE FROM core_operations",
        "INSERT OR REPLACE INTO core_operations SELECT * FROM core_operations WHERE seq = 1",
        "UPDATE OR REPLACE core_operations SET seq = 1 WHERE seq = 2",
    ] {
        let err = session.sqlite().db.execute(sql, []).unwrap_err().to_string();
        assert!(err.contains("append-only"), "{sql}: {err}");
    }
    prune(&session, 10).unwrap();
    for sql in [
        "DELETE FROM core_anchors",
        "UPDATE core_anchors SET last_seq = 9",
        "INSERT OR REPLACE INTO core_anchors SELECT first_seq, last_seq, '', '', '', '' FROM core_anchors",
    ] {
        let err = session.sqlite().db.execute(sql, []).unwrap_err().to_string();
        assert!(err.contains("append-only"), "{sql}: {err}");
    }
    assert_eq!(verify(&session, None), None);
}

#[test]
fn a_row_that_was_changed_is_not_pruned_away() {
    let (_place, session) = ledger("ooy");
    disarm(&session);
    session
        .sqlite()
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
        session.sqlite().db.execute_batch(sql).unwrap();
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
        session.sqlite().db.execute_batch(sql).unwrap();
        rearm(&session);
        let broken = verify(&session, None).expect(sql);
        assert_eq!(broken.seq, *seq, "{sql}: {broken:?}");
        assert!(broken.what.contains(what), "{sql}: {broken:?}");
    }
}

/// Changes a row and makes the hashes from there on fit again, as far as rows go.
fn rewrite_from(session: &Session, seq: i64) {
    let rows: Vec<i64> = session
        .sqlite()
        .db
        .prepare("SELECT seq FROM core_operations WHERE seq >= ?1 ORDER BY seq")
        .unwrap()
        .query_map([seq], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    session
        .sqlite()
        .db
        .execute("UPDATE core_operations SET tool = 'x' WHERE seq = ?1", [seq])
        .unwrap();
    let mut before: Option<String> = None;
    for row in rows {
        if let Some(before) = before.take() {
            session
                .sqlite()
                .db
                .execute(
                    "UPDATE core_operations SET prev_hash = ?2 WHERE seq = ?1",
                    (row, before),
                )
                .unwrap();
        }
        let hash = session.ledger().hash_of_row(row).unwrap();
        session
            .sqlite()
            .db
            .execute(
                "UPDATE core_operations SET hash = ?2 WHERE seq = ?1",
                (row, &hash),
            )
            .unwrap();
        let next_is_here: bool = session
            .sqlite()
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
    let head = session.ledger().head().unwrap();
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
    let head = session.ledger().head().unwrap();
    disarm(&session);
    session
        .sqlite()
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
        .sqlite()
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
        .sqlite().db
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
        let broken = session.ledger().verify(None, &keys).unwrap().broken.unwrap();
        assert!(broken.what.contains("no key"), "{broken:?}");
    }
    let both = [LedgerKey::of_seed(2).public(), key().public()];
    assert_eq!(session.ledger().verify(None, &both).unwrap().broken, None);
}

/// A connection to the same file without anything that a session of the host's has: what a stranger's tool is.
fn stranger(session: &Session) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(session.sqlite().db.path().unwrap()).unwrap();
    db.pragma_update(None, "foreign_keys", false).unwrap();
    db
}

fn record_one(session: &Session) -> StoreResult<()> {
    session.begin_write()?;
    let recorded = session.ledger().record(&operation(99, None, YOUNG));
    session.rollback()?;
    recorded.map_err(|err| session.maintenance().explain(err))
}

/// Objects that take rows away or change them, and what is named. The ledger took rows before they came, so its
/// statements are prepared already.
const IN_THE_WAY: &[(&str, &str)] = &[
    ("CREATE TRIGGER core_quiet BEFORE INSERT ON core_operations BEGIN SELECT RAISE(IGNORE); END", "core_quiet"),
    ("CREATE TRIGGER quiet BEFORE INSERT ON core_operations WHEN NEW.tool = 't' BEGIN SELECT RAISE(IGNORE); END", "quiet"),
    ("CREATE TRIGGER Core_quiet AFTER INSERT ON core_operations BEGIN SELECT 1; END", "Core_quiet"),
    ("CREATE TRIGGER p_more AFTER INSERT ON core_operations BEGIN DELETE FROM core_envelopes; END", "p_more"),
    (
        "DROP TRIGGER core_operations_no_delete;
         CREATE TRIGGER core_gone AFTER INSERT ON core_operations BEGIN DELETE FROM core_operations WHERE seq = NEW.seq; END",
        "core_gone",
    ),
    (
        "DROP TRIGGER core_operations_no_update;
         CREATE TRIGGER core_other AFTER INSERT ON core_operations
             BEGIN UPDATE core_operations SET hash = '' WHERE seq = NEW.seq; END",
        "core_other",
    ),
    (
        "CREATE TABLE SHARK_bite (x TEXT REFERENCES core_operations (tool) DEFERRABLE INITIALLY DEFERRED)",
        "SHARK_bite",
    ),
    (
        "ALTER TABLE core_operations RENAME TO core_real; CREATE VIEW core_operations AS SELECT * FROM core_real;
         CREATE TRIGGER core_into INSTEAD OF INSERT ON core_operations BEGIN SELECT 1; END",
        "core_operations",
    ),
    (
        "CREATE TABLE p_all (n INTEGER PRIMARY KEY);
         CREATE UNIQUE INDEX core_one ON core_operations (host_id) WHERE op_id IN ('op_0', 'op_99')",
        "core_one",
    ),
];

#[test]
fn a_call_without_exactly_one_row_fails_and_says_what_is_in_the_way() {
    for (sql, name) in IN_THE_WAY {
        let (_place, session) = ledger("yy");
        record_one(&session).unwrap();
        stranger(&session).execute_batch(sql).unwrap();
        let err = record_one(&session).expect_err(sql).to_string();
        assert!(err.contains(name), "{sql}: {err}");
        let broken = session.ledger().verify(None, &[key().public()]).unwrap();
        assert!(
            broken.around.iter().any(|fault| fault.contains(name)),
            "{sql}: {broken:?}"
        );
        assert!(broken.broken.is_some(), "{sql}");
    }
}

#[test]
fn a_counter_that_somebody_keeps_from_moving_fails_its_call() {
    use tollgate_core::envelope::Charge;
    for table in ["core_envelopes", "core_budgets", "core_intents"] {
        let (_place, session) = ledger("");
        session.begin_write().unwrap();
        let limits = [("units".to_owned(), 3)].into();
        session.budgets().open("env_k", &limits).unwrap();
        session.commit().unwrap();
        let charge = || -> StoreResult<()> {
            session
                .envelopes()
                .admit("env_k", Charge::Mutations(1), 0, YOUNG)?;
            session.budgets().book("env_k", "units", 1)?;
            session.intents().insert(&operation(7, None, YOUNG))
        };
        session.begin_write().unwrap();
        charge().unwrap();
        session.rollback().unwrap();
        for event in ["INSERT", "UPDATE"] {
            let sql = format!(
                "CREATE TRIGGER core_still_{event} BEFORE {event} ON {table} BEGIN SELECT RAISE(IGNORE); END"
            );
            stranger(&session).execute_batch(&sql).unwrap();
        }
        session.begin_write().unwrap();
        let err = session
            .maintenance()
            .explain(charge().expect_err(table))
            .to_string();
        session.rollback().unwrap();
        assert!(err.contains("core_still"), "{table}: {err}");
    }
}

/// Attacks on the schema around the rows, and the names in the findings.
const AROUND: &[(&str, &[&str])] = &[
    ("CREATE TRIGGER core_quiet AFTER UPDATE ON core_anchors BEGIN SELECT 1; END", &["trigger core_quiet"]),
    ("CREATE TRIGGER core_quiet AFTER UPDATE ON core_usage BEGIN SELECT 1; END", &["trigger core_quiet"]),
    ("DROP TRIGGER core_anchors_no_update; DROP INDEX core_operations_failed", &[
        "trigger core_anchors_no_update is gone", "index core_operations_failed is gone",
    ]),
    ("CREATE VIEW last AS SELECT max(seq) FROM core_operations", &["view last"]),
    ("CREATE VIEW mine AS SELECT 1", &["view mine"]),
    ("CREATE INDEX core_more ON core_operations (lower(tool))", &["index core_more"]),
    (
        "DROP INDEX core_operations_failed; CREATE INDEX core_operations_failed ON core_operations (seq) WHERE success = 1",
        &["index core_operations_failed is gone and another one is in its place"],
    ),
    ("ALTER TABLE core_operations ADD COLUMN more TEXT", &["table core_operations is gone and another one is in its place"]),
    ("CREATE TABLE core_usage2 (n INTEGER)", &["table core_usage2"]),
    ("CREATE TABLE child (x TEXT REFERENCES core_envelopes (id) ON DELETE CASCADE)", &["table child belongs to no component"]),
    ("CREATE TABLE own (x TEXT); CREATE TRIGGER own_t AFTER INSERT ON own BEGIN SELECT 1; END", &["trigger own_t"]),
    (
        // An index that says it has every failed row, and has none.
        "DROP INDEX core_operations_failed; CREATE INDEX core_operations_failed ON core_operations (seq) WHERE success = 5;
         PRAGMA writable_schema = ON;
         UPDATE sqlite_master SET sql = 'CREATE INDEX core_operations_failed ON core_operations (seq) WHERE success = 1'
         WHERE name = 'core_operations_failed'",
        &["missing from index core_operations_failed"],
    ),
];

#[test]
fn whatever_is_done_around_the_rows_is_named() {
    for (sql, names) in AROUND {
        let (place, session) = ledger("yy");
        stranger(&session).execute_batch(sql).unwrap();
        drop(session);
        let session = Database::existing(&place.path().join("t.db"))
            .read_session()
            .unwrap();
        let verified = session.ledger().verify(None, &[key().public()]).unwrap();
        assert!(verified.broken.is_some(), "{sql}");
        for name in *names {
            assert!(
                verified.around.iter().any(|fault| fault.contains(name)),
                "{sql}: {verified:?}"
            );
        }
    }
}

#[test]
fn a_trigger_with_the_names_of_a_component_is_named_and_dropped() {
    let (place, session) = ledger("");
    stranger(&session)
        .execute_batch(
            "INSERT INTO core_migrations (pack, name, hash) VALUES ('shop', '0001_init', 'h');
             CREATE TABLE shop_items (id INTEGER PRIMARY KEY);
             CREATE TRIGGER shop_quiet AFTER INSERT ON shop_items BEGIN DELETE FROM shop_items; END",
        )
        .unwrap();
    let verified = session.ledger().verify(None, &[key().public()]).unwrap();
    assert_eq!(
        verified.around,
        ["trigger shop_quiet is a trigger, and no component may have one"]
    );
    let database = Database::existing(&place.path().join("t.db"));
    let done: Vec<String> = database
        .repair()
        .unwrap()
        .into_iter()
        .map(|object| object.name)
        .collect();
    assert_eq!(done, ["shop_quiet"]);
}

#[test]
fn a_repair_leaves_a_database_that_takes_rows_and_verifies() {
    for (sql, name) in IN_THE_WAY {
        if sql.contains("CREATE VIEW") {
            continue;
        }
        let (place, session) = ledger("yyoc");
        let head = session.ledger().head().unwrap();
        stranger(&session).execute_batch(sql).unwrap();
        let database = Database::existing(&place.path().join("t.db"));
        let done = database.repair().unwrap();
        assert!(done.iter().any(|object| object.name == *name), "{sql}: {done:?}");
        assert_eq!(verify(&session, Some(&head)), None, "{sql}");
        record_one(&session).unwrap();
        prune(&session, 10).unwrap();
        assert!(session.maintenance().misplaced().unwrap().is_empty(), "{sql}");
        assert!(database.repair().unwrap().is_empty(), "{sql}");
    }
}

#[test]
fn nothing_that_hangs_on_the_ledger_runs_with_the_hosts_rights() {
    let (_place, session) = ledger("oo");
    // What a component of an older host could leave behind: a table that goes with rows of the ledger, and a
    // trigger on it that may do whatever the statement may that sets it off.
    stranger(&session)
        .execute_batch(
            "CREATE TABLE victim_notes (text TEXT); INSERT INTO victim_notes VALUES ('private');
             CREATE TABLE LEECH_skin (seq INTEGER REFERENCES core_operations (seq) ON DELETE CASCADE);
             INSERT INTO LEECH_skin VALUES (1), (2);
             CREATE TRIGGER LEECH_bite AFTER DELETE ON LEECH_skin BEGIN
                 UPDATE victim_notes SET text = 'bitten'; UPDATE core_envelopes SET mutation_count = 0;
             END",
        )
        .unwrap();
    session.begin_read().unwrap();
    session.commit().unwrap();
    let Err(PruneError::Storage(err)) = prune(&session, 10) else {
        panic!("the host's statement set a stranger's trigger off");
    };
    session.rollback().unwrap();
    let err = session.maintenance().explain(err).to_string();
    assert!(err.contains("LEECH_skin"), "{err}");
    let text: String = session
        .sqlite()
        .db
        .query_row("SELECT text FROM victim_notes", [], |row| row.get(0))
        .unwrap();
    assert_eq!(text, "private");
    assert_eq!(picture(&session), "##");
}
