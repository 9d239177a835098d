//! Attacks that are possible only on a SQLite file, with the attacker's own tools.

use crate::storage::error::StoreResult;
use crate::storage::fixture::in_file::ledger;
use crate::storage::fixture::{YOUNG, key, operation, picture, prune, verify};
use crate::storage::{Database, PruneError, Session};

#[test]
fn a_row_cannot_be_replaced() {
    let (_place, session) = ledger("oo");
    let refused = |sql: &str| {
        let err = session
            .sqlite()
            .unwrap()
            .db
            .execute(sql, [])
            .unwrap_err()
            .to_string();
        assert!(err.contains("append-only"), "{sql}: {err}");
    };
    refused("INSERT OR REPLACE INTO core_operations SELECT * FROM core_operations WHERE seq = 1");
    refused("UPDATE OR REPLACE core_operations SET seq = 1 WHERE seq = 2");
    prune(&session, 10).unwrap();
    refused(
        "INSERT OR REPLACE INTO core_anchors SELECT first_seq, last_seq, '', '', '', '' FROM core_anchors",
    );
    assert_eq!(verify(&session, None), None);
}

#[test]
fn a_trigger_that_was_dropped_or_replaced_is_named() {
    let (_place, session) = ledger("yy");
    let is_named = || {
        let broken = verify(&session, None).unwrap();
        broken.what.contains("core_operations_no_delete")
    };
    session
        .sqlite()
        .unwrap()
        .db
        .execute_batch("DROP TRIGGER core_operations_no_delete")
        .unwrap();
    assert!(is_named());
    session
        .sqlite().unwrap().db
        .execute_batch(
            "CREATE TRIGGER core_operations_no_delete BEFORE DELETE ON core_operations WHEN 0 BEGIN SELECT 1; END",
        )
        .unwrap();
    assert!(is_named());
}

/// A connection to the same file without anything that a session of the host's has: what a stranger's tool is.
fn stranger(session: &Session) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(session.sqlite().unwrap().db.path().unwrap()).unwrap();
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
        "trigger core_anchors_no_update is missing", "index core_operations_failed is missing",
    ]),
    ("CREATE VIEW last AS SELECT max(seq) FROM core_operations", &["view last"]),
    ("CREATE VIEW mine AS SELECT 1", &["view mine"]),
    ("CREATE INDEX core_more ON core_operations (lower(tool))", &["index core_more"]),
    (
        "DROP INDEX core_operations_failed; CREATE INDEX core_operations_failed ON core_operations (seq) WHERE success = 1",
        &["index core_operations_failed was changed or replaced"],
    ),
    ("ALTER TABLE core_operations ADD COLUMN more TEXT", &["table core_operations was changed or replaced"]),
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
        ["trigger shop_quiet is a trigger, which no component may have"]
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
        .unwrap()
        .db
        .query_row("SELECT text FROM victim_notes", [], |row| row.get(0))
        .unwrap();
    assert_eq!(text, "private");
    assert_eq!(picture(&session), "##");
}
