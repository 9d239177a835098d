use super::*;
use crate::storage::Database;
use crate::storage::error::StoreResult;

fn tried(sql: &str) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(&dir.path().join("t.db")).unwrap();
    let namespace = Namespace::of_pack("shop");
    let mut steps = vec![MigrationStep {
        name: "0001_init".to_owned(),
        sql: "CREATE TABLE shop_items (id TEXT PRIMARY KEY, size BIGINT NOT NULL CHECK (size > 0));
              CREATE TABLE shop_old (id TEXT PRIMARY KEY);
              CREATE INDEX shop_by_size ON shop_items (size);
              INSERT INTO shop_items (id, size) VALUES ('a', 1), ('b', 2);"
            .to_owned(),
    }];
    database.migrate(&namespace, &steps).unwrap();
    steps.push(MigrationStep {
        name: "0002_change".to_owned(),
        sql: sql.to_owned(),
    });
    database
        .migrate(&namespace, &steps)
        .map_err(|err| err.to_string())
}

/// Statements that reach SQLite as they are, as if the reader had let them through: what holds then.
fn tried_unread(sql: &str) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(&dir.path().join("t.db")).unwrap();
    let namespace = Namespace::of_pack("shop");
    let steps = [MigrationStep {
        name: "0001_init".to_owned(),
        sql: "CREATE TABLE shop_items (id TEXT PRIMARY KEY, size BIGINT NOT NULL);".to_owned(),
    }];
    database.migrate(&namespace, &steps).unwrap();
    let session = database.write_session().unwrap();
    let before = others(&session, &namespace).unwrap();
    let tried = in_transaction(&session, || {
        session
            .sqlite()
            .unwrap()
            .migrating(&namespace, |db| db.execute_batch(sql))?;
        check_objects(&session, &namespace)?;
        Ok(session.maintenance().probe()?)
    });
    tried.map_err(|err| err.to_string())?;
    match others(&session, &namespace).unwrap() == before {
        true => Ok(()),
        false => Err("another's table was made".to_owned()),
    }
}

#[test]
fn tables_with_rows_can_be_changed_in_every_way() {
    for sql in [
        "ALTER TABLE shop_items ADD COLUMN note TEXT",
        "ALTER TABLE shop_items ADD COLUMN note TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE shop_items ADD COLUMN price BIGINT DEFAULT 1 CHECK (price > 0)",
        "ALTER TABLE shop_items RENAME COLUMN size TO length",
        "ALTER TABLE shop_items ADD COLUMN note TEXT; ALTER TABLE shop_items DROP COLUMN note",
        "ALTER TABLE shop_items RENAME TO shop_things",
        "DROP INDEX shop_by_size; CREATE UNIQUE INDEX shop_by_size ON shop_items (size)",
        "DROP TABLE shop_old",
        "CREATE TABLE shop_new (id TEXT PRIMARY KEY); INSERT INTO shop_new SELECT id FROM shop_items",
        "UPDATE shop_items SET size = size * 2; DELETE FROM shop_items WHERE id = 'a'",
    ] {
        assert_eq!(tried(sql), Ok(()), "{sql}");
    }
}

#[test]
fn a_new_column_that_the_rows_cannot_have_is_refused() {
    for sql in [
        "ALTER TABLE shop_items ADD COLUMN note TEXT NOT NULL",
        "ALTER TABLE shop_items ADD COLUMN price BIGINT DEFAULT 0 CHECK (price > 0)",
        "ALTER TABLE shop_items ADD COLUMN price BIGINT DEFAULT 'much'",
    ] {
        assert!(tried(sql).is_err(), "{sql}");
    }
}

/// Answer of SQLite to a text that nobody read, with the rights of a migration.
fn straight(sql: &str) -> StoreResult<()> {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(&dir.path().join("t.db")).unwrap();
    let session = database.write_session().unwrap();
    let namespace = Namespace::of_pack("shop");
    let tables = "CREATE TABLE shop_items (id TEXT PRIMARY KEY, size INTEGER) STRICT;
                  CREATE TABLE shop_old (id TEXT PRIMARY KEY) STRICT;
                  CREATE TABLE shop_log (id TEXT PRIMARY KEY, item TEXT REFERENCES shop_items (id)
                                         ON DELETE CASCADE) STRICT;
                  INSERT INTO shop_items VALUES ('a', 1); INSERT INTO shop_log VALUES ('1', 'a');";
    session
        .sqlite()
        .unwrap()
        .migrating(&namespace, |db| db.execute_batch(tables))
        .unwrap();
    let log = std::sync::Arc::new(BTreeSet::from(["shop_log".to_owned()]));
    Ok(session
        .sqlite()
        .unwrap()
        .migrating(&namespace.while_append_only(&log), |db| db.execute_batch(sql))?)
}

#[test]
fn sqlite_itself_refuses_what_no_reader_lets_through() {
    for sql in FOREIGN.iter().chain(&[
        "UPDATE shop_log SET id = '2'",
        "DELETE FROM shop_log",
        "DELETE FROM shop_LOG",
        "DROP TABLE shop_log",
        "INSERT INTO shop_log VALUES ('1', NULL) ON CONFLICT (id) DO UPDATE SET item = NULL",
        // The foreign key would delete the log's row.
        "DELETE FROM shop_items",
        "CREATE TRIGGER shop_t AFTER INSERT ON shop_items BEGIN DELETE FROM shop_log; END",
    ]) {
        // What a table is renamed to is compared after the migration.
        if !sql.contains("shop_items RENAME TO") {
            assert!(straight(sql).is_err(), "{sql}");
        }
    }
    straight("INSERT INTO shop_log VALUES ('2', NULL)").unwrap();
}

const FOREIGN: &[&str] = &[
    "PRAGMA user_version = 7",
    "PRAGMA quick_check",
    "PRAGMA quick_check(core_migrations)",
    "INSERT INTO shop_old SELECT * FROM pragma_quick_check('core_migrations')",
    "INSERT INTO shop_old SELECT * FROM pragma_quick_check",
    "INSERT INTO shop_old SELECT name FROM pragma_table_info('core_migrations')",
    "INSERT INTO shop_old SELECT hash FROM core_migrations",
    "ALTER TABLE core_migrations ADD COLUMN x TEXT",
    "ALTER TABLE core_migrations RENAME COLUMN hash TO x",
    "ALTER TABLE shop_items RENAME TO core_items",
    "ALTER TABLE shop_items RENAME TO task_store_items",
    "ALTER TABLE shop_items RENAME TO sqlite_items",
    "ALTER TABLE shop_items RENAME TO shopping",
    "ALTER TABLE core_envelopes RENAME TO shop_envelopes",
    "CREATE TEMP TABLE shop_new (id TEXT)",
    "CREATE TEMP TRIGGER shop_t AFTER INSERT ON shop_items BEGIN SELECT 1; END",
    "UPDATE sqlite_temp_master SET sql = 'x'",
    "UPDATE sqlite_master SET sql = 'x'",
    "CREATE VIEW shop_v AS SELECT * FROM core_migrations",
];

#[test]
fn nothing_else_is_looked_at_or_changed() {
    for sql in FOREIGN {
        assert!(tried(sql).is_err(), "{sql}");
    }
}

#[test]
fn names_carry_the_prefix_exactly_as_it_is_written() {
    for sql in [
        "CREATE TABLE SHOP_skin (n INTEGER)",
        "CREATE TABLE Shop_skin (n INTEGER)",
        "CREATE INDEX SHOP_by_id ON shop_items (id)",
        "ALTER TABLE shop_items RENAME TO SHOP_items",
        "ALTER TABLE shop_items RENAME TO shop_x; ALTER TABLE shop_x RENAME TO sHop_items",
        "CREATE TRIGGER SHOP_t AFTER INSERT ON shop_items BEGIN SELECT 1; END",
    ] {
        assert!(tried(sql).is_err(), "{sql}");
        assert!(tried_unread(sql).is_err(), "{sql}");
    }
}

#[test]
fn nothing_refers_to_or_mentions_what_is_not_its_own() {
    for sql in [
        "CREATE TABLE shop_bite (x TEXT REFERENCES core_operations (tool) DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TABLE shop_bite (x TEXT REFERENCES CORE_operations (seq) ON DELETE CASCADE)",
        "CREATE TABLE shop_bite (x TEXT REFERENCES core_envelopes (id) ON DELETE SET NULL)",
        "CREATE TABLE shop_bite (x TEXT, FOREIGN KEY (x) REFERENCES task_store_tasks (id))",
        "CREATE TABLE shop_bite (x TEXT REFERENCES shopping (id))",
        "CREATE TABLE shop_bite (x INTEGER);
         ALTER TABLE shop_bite ADD COLUMN seq INTEGER GENERATED ALWAYS AS (x) VIRTUAL
             REFERENCES core_operations (seq) ON DELETE CASCADE",
        "CREATE TRIGGER shop_t AFTER INSERT ON shop_items BEGIN DELETE FROM core_operations; END",
        "CREATE TRIGGER shop_t AFTER INSERT ON shop_items BEGIN DELETE FROM \"Core_operations\"; END",
        "CREATE TRIGGER shop_t AFTER INSERT ON shop_items WHEN EXISTS (SELECT 1 FROM 'core_envelopes') BEGIN SELECT 1; END",
        "CREATE TRIGGER shop_t BEFORE INSERT ON core_operations BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER shop_t BEFORE INSERT ON [core_operations] BEGIN SELECT RAISE(IGNORE); END",
        "CREATE INDEX shop_i ON core_operations (tool)",
        "CREATE UNIQUE INDEX shop_i ON core_operations (host_id)",
        "REINDEX core_operations_failed",
        "REINDEX",
        "ANALYZE",
    ] {
        assert!(tried(sql).is_err(), "{sql}");
        assert!(tried_unread(sql).is_err(), "{sql}");
    }
}

#[test]
fn tables_of_a_component_refer_to_each_other_in_any_case() {
    for sql in [
        "CREATE TABLE shop_sold (item TEXT REFERENCES SHOP_items (id) ON DELETE CASCADE)",
        "CREATE TABLE shop_sold (core_name TEXT DEFAULT 'core') -- not core_operations",
    ] {
        assert_eq!(tried_unread(sql), Ok(()), "{sql}");
    }
}

#[test]
fn a_component_after_whose_migrations_the_host_cannot_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.db");
    let database = Database::open(&path).unwrap();
    let sql = "CREATE TABLE shark_bite (x TEXT REFERENCES core_operations (tool))";
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch(sql)
        .unwrap();
    let step = |name: &str, sql: &str| MigrationStep {
        name: name.to_owned(),
        sql: sql.to_owned(),
    };
    let other = Namespace::of_pack("shop");
    let steps = [step("0001_init", "CREATE TABLE shop_items (id TEXT)")];
    // Each statement of the host's is tried; whose fault it is, is said.
    let err = database.migrate(&other, &steps).unwrap_err();
    assert!(matches!(&err, MigrationError::Obstructs { .. }), "{err}");
    assert!(err.to_string().contains("shark_bite"), "{err}");
    let steps = [step("0001_init", "CREATE TABLE shark_more (id TEXT)")];
    let err = database
        .migrate(&Namespace::of_pack("shark"), &steps)
        .unwrap_err();
    assert!(
        err.to_string()
            .contains("shark_bite of shark refers to core_operations"),
        "{err}"
    );
    database.repair().unwrap();
    database.migrate(&other, &[]).unwrap();
}

const EARLIER: [(&str, &str, &str); 3] = [
    (
        "gsd",
        include_str!("../../../../../../../tests/earlier/gsd-0001_init.sql"),
        include_str!("../../../../../../../migrations/gsd/0001_init.sql"),
    ),
    (
        "tasks",
        include_str!("../../../../../../../tests/earlier/tasks-0001_init.sql"),
        include_str!("../../../../../../../migrations/tasks/0001_init.sql"),
    ),
    (
        "task-store",
        include_str!("../../../../../../../tests/earlier/task-store-0001_init.sql"),
        include_str!("../../../../../../../migrations/task-store/0001_init.sql"),
    ),
];

/// A database as the version before left it: without a reader, and with what components said then.
pub(in crate::storage) fn earlier(path: &std::path::Path, components: &[(&str, &str)]) {
    let session = Database::existing(path).write_session().unwrap();
    let db = &session.sqlite().unwrap().db;
    db.execute_batch(MIGRATIONS_TABLE).unwrap();
    let host = CORE
        .iter()
        .filter(|(name, _)| *name < "0007")
        .map(|(name, sql)| (CORE_NAME, *name, *sql));
    let steps = components.iter().map(|(pack, sql)| (*pack, "0001_init", *sql));
    for (pack, name, sql) in host.chain(steps) {
        db.execute_batch(&for_sqlite(sql)).unwrap();
        let hash = tollgate_core::hash::sha256_hex(sql.as_bytes());
        db.execute(
            "INSERT INTO core_migrations VALUES (?1, ?2, ?3)",
            [pack, name, &hash],
        )
        .unwrap();
    }
}

fn first_step(sql: &str) -> Vec<MigrationStep> {
    vec![MigrationStep {
        name: "0001_init".to_owned(),
        sql: sql.to_owned(),
    }]
}

#[test]
fn a_database_of_the_version_before_is_taken_over_with_its_logs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.db");
    earlier(&path, &EARLIER.map(|(pack, before, _)| (pack, before)));
    let database = Database::open(&path).unwrap();
    let session = database.write_session().unwrap();
    let count = |sql: &str| -> i64 {
        session
            .sqlite()
            .unwrap()
            .db
            .query_row(sql, [], |row| row.get(0))
            .unwrap()
    };
    let others = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name NOT LIKE 'core%'";
    assert_eq!(count(others), 0);
    let unread = "SELECT count(*) FROM core_migrations WHERE pack <> 'core' AND reader = 0";
    assert_eq!(count(unread), 3);
    for (pack, _, now) in EARLIER {
        let steps = first_step(now);
        let namespace = Namespace::of_pack(pack).with_tables(&steps).unwrap();
        database.migrate(&namespace, &steps).unwrap();
        let log = format!("DELETE FROM {}events", namespace.prefix());
        let deadline = tollgate_core::deadline::Deadline::after(
            std::time::Duration::from_secs(60),
            tollgate_core::deadline::Cancel::default(),
        );
        session.enter(&namespace, &deadline);
        assert!(session.sqlite().unwrap().db.prepare(&log).is_err(), "{log}");
        session.leave();
    }
    assert_eq!(count(unread), 0);
}

#[test]
fn a_step_that_was_applied_unread_is_read_before_its_component_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.db");
    let sql = "CREATE TABLE shop_items (id TEXT PRIMARY KEY);
               CREATE TRIGGER shop_keep BEFORE DELETE ON shop_items BEGIN SELECT RAISE(ABORT, 'no'); END;";
    earlier(&path, &[("shop", sql)]);
    let database = Database::open(&path).unwrap();
    let steps = first_step(sql);
    let refused = database
        .migrate(&Namespace::of_pack("shop"), &steps)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("step 0001_init, statement 2 (`CREATE TRIGGER shop_keep"),
        "{refused}"
    );
    assert!(Namespace::of_pack("shop").with_tables(&steps).is_err());
}

#[test]
fn a_new_step_comes_after_those_that_were_applied() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(&dir.path().join("t.db")).unwrap();
    let log = "CREATE TABLE shop_log (id INTEGER PRIMARY KEY, line TEXT) WITH (append_only = true);
               INSERT INTO shop_log (line) VALUES ('as it was')";
    let mut steps = first_step(log);
    database.migrate(&Namespace::of_pack("shop"), &steps).unwrap();
    // Before the table is append-only, by the list; not by what is in the database.
    steps.insert(
        0,
        MigrationStep {
            name: "0000_early".to_owned(),
            sql: "UPDATE shop_log SET line = 'forged'".to_owned(),
        },
    );
    let refused = database.migrate(&Namespace::of_pack("shop"), &steps);
    assert!(
        matches!(refused, Err(MigrationError::Early { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_step_that_was_read_is_not_looked_at_again() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(&dir.path().join("t.db")).unwrap();
    let steps = first_step("CREATE TABLE shop_items (id TEXT PRIMARY KEY)");
    let namespace = Namespace::of_pack("shop");
    database.migrate(&namespace, &steps).unwrap();
    let session = database.write_session().unwrap();
    let before: i64 = session
        .sqlite()
        .unwrap()
        .db
        .query_row("PRAGMA data_version", [], |row| row.get(0))
        .unwrap();
    database.migrate(&namespace, &steps).unwrap();
    let after: i64 = session
        .sqlite()
        .unwrap()
        .db
        .query_row("PRAGMA data_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(before, after, "nothing was written");
}
