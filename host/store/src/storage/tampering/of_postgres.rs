//! Attacks that are possible only on a server, with the rights of the owner of the tables.

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
        "trigger core_operations.quiet",
    ),
    (
        "CREATE OR REPLACE TRIGGER core_operations_no_update BEFORE UPDATE ON core_operations
         FOR EACH ROW WHEN (false) EXECUTE FUNCTION core_refuse('the ledger is append-only')",
        "core_operations_no_update",
    ),
    (
        "CREATE OR REPLACE TRIGGER core_operations_no_update BEFORE UPDATE OF short_diff ON core_operations
         FOR EACH ROW EXECUTE FUNCTION core_refuse('the ledger is append-only')",
        "core_operations_no_update",
    ),
    (
        "CREATE TRIGGER core_anchors_no_update BEFORE INSERT ON core_operations
         FOR EACH ROW EXECUTE FUNCTION core_refuse('no more rows')",
        "trigger core_operations.core_anchors_no_update",
    ),
    ("ALTER FUNCTION core_unpin() SET search_path = pg_catalog", "core_unpin"),
    ("ALTER FUNCTION core_append() SECURITY DEFINER", "core_append"),
    ("ALTER TABLE core_operations SET UNLOGGED", "table core_operations"),
    ("CREATE TEMP TABLE more () INHERITS (core_operations)", "child"),
    (
        "DROP OPERATOR ->> (text, text);
         CREATE FUNCTION nothing(text, text) RETURNS text LANGUAGE sql AS 'SELECT NULL::text';
         CREATE OPERATOR ->> (LEFTARG = text, RIGHTARG = text, FUNCTION = nothing)",
        "operator ->>",
    ),
    ("CREATE RULE quiet AS ON INSERT TO core_operations DO INSTEAD NOTHING", "rule quiet"),
    ("DROP INDEX core_operations_failed", "core_operations_failed"),
    ("CREATE VIEW core_more AS SELECT * FROM core_operations", "view core_more"),
    ("ALTER TABLE core_operations ENABLE ROW LEVEL SECURITY", "table core_operations"),
    ("DROP TABLE core_consents", "core_consents"),
    ("ALTER TABLE core_operations ALTER COLUMN op_id DROP NOT NULL", "column core_operations.op_id"),
    ("ALTER TABLE core_operations ALTER COLUMN host_id SET DEFAULT ''", "column core_operations.host_id"),
    ("ALTER TABLE core_operations ADD COLUMN more text", "column core_operations.more"),
    ("ALTER TABLE core_consents ALTER COLUMN used_at TYPE integer", "column core_consents.used_at"),
    ("ALTER TABLE core_operations ALTER COLUMN actor TYPE text COLLATE \"POSIX\"", "column core_operations.actor"),
    ("ALTER TABLE core_operations DROP CONSTRAINT core_operations_op_id_key", "core_operations.core_operations_op_id_key"),
    ("ALTER TABLE core_operations DROP CONSTRAINT core_operations_effect_check", "core_operations.core_operations_effect_check"),
    ("ALTER TABLE core_budgets ADD CONSTRAINT few CHECK (used < 5) NOT VALID", "constraint core_budgets.few"),
    (
        "DROP INDEX core_operations_failed; CREATE INDEX core_operations_failed ON core_operations (op_id)",
        "index core_operations_failed",
    ),
    ("ALTER FUNCTION core_unpin() STABLE", "function core_unpin()"),
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
fn rows_that_are_taken_from_the_end_leave_another_end_behind_on_a_server() {
    if !on_postgres() {
        return;
    }
    for sql in [
        "ALTER TABLE core_operations DISABLE TRIGGER core_operations_no_delete;
         DELETE FROM core_operations WHERE seq = (SELECT max(seq) FROM core_operations);
         ALTER TABLE core_operations ENABLE TRIGGER core_operations_no_delete",
        "UPDATE core_streams SET place = place + 1",
        "INSERT INTO core_streams (id, place, hash) VALUES (1, 0, '')",
    ] {
        let (_place, session) = ledger("yy");
        assert_eq!(verify(&session, None), None);
        change(&session, sql).unwrap();
        let broken = verify(&session, None).unwrap();
        assert!(
            broken.what.contains("core_streams does not match"),
            "{sql}: {}",
            broken.what
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
