//! Attacks that only a server lets somebody make, who has the rights of the owner of the tables.

use crate::storage::fixture::{change, key, ledger, on_postgres, verify};

/// Changes around the rows, and what is named.
const AROUND: &[(&str, &str)] = &[
    ("ALTER TABLE core_operations DISABLE TRIGGER core_operations_no_update", "core_operations_no_update"),
    ("ALTER TABLE core_operations ENABLE REPLICA TRIGGER core_operations_in_order", "core_operations_in_order"),
    ("DROP TRIGGER core_anchors_no_delete ON core_anchors", "core_anchors_no_delete"),
    (
        "CREATE OR REPLACE FUNCTION core_unpin() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END'",
        "core_unpin",
    ),
    (
        "DROP TRIGGER core_operations_no_delete ON core_operations;
         CREATE TRIGGER core_operations_no_delete AFTER DELETE ON core_operations FOR EACH ROW EXECUTE FUNCTION core_unpin()",
        "core_operations_no_delete",
    ),
    (
        "CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER quiet BEFORE INSERT ON core_operations FOR EACH ROW EXECUTE FUNCTION quiet()",
        "trigger quiet",
    ),
    ("CREATE RULE quiet AS ON INSERT TO core_operations DO INSTEAD NOTHING", "rule quiet"),
    ("DROP INDEX core_operations_failed", "core_operations_failed"),
    ("CREATE VIEW core_more AS SELECT * FROM core_operations", "view core_more"),
    ("ALTER TABLE core_operations ENABLE ROW LEVEL SECURITY", "table core_operations"),
    ("DROP TABLE core_consents", "core_consents"),
    (
        "CREATE FUNCTION json_text(text, integer) RETURNS text LANGUAGE sql AS 'SELECT 1::text'",
        "json_text",
    ),
];

#[test]
fn whatever_is_done_around_the_rows_is_named_on_a_server() {
    if !on_postgres() {
        return;
    }
    for (sql, name) in AROUND {
        let (_place, session) = ledger("yy");
        assert_eq!(session.maintenance().misplaced().unwrap(), []);
        change(&session, sql).unwrap();
        let verified = session.ledger().verify(None, &[key().public()]).unwrap();
        assert!(verified.broken.is_some(), "{sql}");
        let around = &verified.around;
        assert!(
            around.iter().any(|fault| fault.contains(name)),
            "{sql}: {around:?}"
        );
    }
}

#[test]
fn a_ledger_cannot_be_emptied_on_a_server() {
    if !on_postgres() {
        return;
    }
    let (_place, session) = ledger("yy");
    for table in ["core_operations", "core_anchors"] {
        let refused = change(&session, &format!("TRUNCATE {table}"))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("append-only"), "{refused}");
    }
    assert_eq!(verify(&session, None), None);
}
