//! Bringing tables up to date: the host's own and each component's.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use thiserror::Error;
use tollgate_sql::schema::{self, Command, Schema};
use tollgate_sql::{Problems, VERSION};

use super::access::Namespace;
use super::bounds::migration_deadline;
use super::own_sql::for_sqlite;
use super::session::{OpenError, Session};
use crate::hash::hex;

/// One step of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// `NNNN_name`.
    pub name: String,
    /// SQL in the subset that `tollgate-sql` reads.
    pub sql: String,
}

/// Why tables could not be brought up to date. Nothing was changed.
#[derive(Debug, Error)]
pub enum MigrationError {
    /// The database could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A step that was applied has another text now.
    #[error(
        "migration {step} of {pack} was changed after it was applied; ship the change as a new migration"
    )]
    Changed {
        /// Whose step.
        pack: String,
        /// Its name.
        step: String,
    },
    /// A step that was not applied comes before one that was.
    #[error("migration {step} of {pack} comes before {applied}, which was applied; new migrations come last")]
    Early {
        /// Whose step.
        pack: String,
        /// The new one.
        step: String,
        /// The one that was applied.
        applied: String,
    },
    /// The database has steps that the component does not know.
    #[error(
        "the database has migration {step} of {pack}, which this version does not know; use a newer version"
    )]
    Newer {
        /// Whose step.
        pack: String,
        /// Its name.
        step: String,
    },
    /// A table of the host's own was taken away.
    #[error(
        "the host's table {table} is gone, so nothing was repaired: somebody renamed or dropped it; name it back or restore a backup"
    )]
    Missing {
        /// The table.
        table: &'static str,
    },
    /// A step's SQL failed.
    #[error("migration {step} of {pack} failed: {reason}")]
    Failed {
        /// Whose step.
        pack: String,
        /// Its name.
        step: String,
        /// What SQLite says.
        reason: String,
    },
    /// Steps say what migrations may not say. All of it is told.
    #[error("migrations of {pack} cannot be run: {problems}")]
    Unreadable {
        /// Whose migrations.
        pack: String,
        /// What is wrong with them.
        problems: Problems,
    },
    /// A table was renamed to or from a name outside the namespace.
    #[error("a migration of {pack} renames a table to {table}, which is no name of its own")]
    ForeignName {
        /// Whose migration.
        pack: String,
        /// The name.
        table: String,
    },
    /// Something of the component's is what it may not have.
    #[error(
        "{object}; {pack} may have tables, indexes and triggers whose names start with exactly `{prefix}` and \
         that refer to nothing but each other"
    )]
    Misplaced {
        /// The pack it belongs to.
        pack: String,
        /// What its names start with.
        prefix: String,
        /// What is wrong with which object.
        object: String,
    },
    /// With the component's tables the host could not write its own.
    #[error("with the tables of {pack} the host could not write its own: {reason}")]
    Obstructs {
        /// Whose tables.
        pack: String,
        /// What SQLite says, and what is in the way.
        reason: String,
    },
    /// The migrations did not end.
    #[error(
        "the migrations of {pack} did not end within {seconds} s, which is what they may take; nothing was changed"
    )]
    OutOfTime {
        /// Whose migrations.
        pack: String,
        /// How long they may take.
        seconds: u64,
    },
    /// The migrations sort or join too much at once.
    #[error(
        "the migrations of {pack} need more than {mib} MiB of memory, which is what limits.memory_mib leaves them; \
         nothing was changed"
    )]
    OutOfMemory {
        /// Whose migrations.
        pack: String,
        /// What they may take.
        mib: u64,
    },
    /// The tables grow past their quota, or the disk is full.
    #[error(
        "after the migrations of {pack} its tables would take more than the {mib} MiB of limits.storage_mib, or \
         more than the disk has; nothing was changed"
    )]
    OutOfStorage {
        /// Whose migrations.
        pack: String,
        /// What its tables may take.
        mib: u64,
    },
    /// Reading or recording what was applied failed.
    #[error("the record of migrations could not be used")]
    Record(#[from] rusqlite::Error),
}

/// The host's own steps, append only.
const CORE: &[(&str, &str)] = &[
    (
        "0001_init",
        include_str!("../../../migrations/core/0001_init.sql"),
    ),
    (
        "0002_named_budgets",
        include_str!("../../../migrations/core/0002_named_budgets.sql"),
    ),
    (
        "0003_retention",
        include_str!("../../../migrations/core/0003_retention.sql"),
    ),
    (
        "0005_tool_definitions",
        include_str!("../../../migrations/core/0005_tool_definitions.sql"),
    ),
    (
        "0006_anchor_guard",
        include_str!("../../../migrations/core/0006_anchor_guard.sql"),
    ),
    (
        "0007_readable_migrations",
        include_str!("../../../migrations/core/0007_readable_migrations.sql"),
    ),
    (
        "0009_consents",
        include_str!("../../../migrations/core/0009_consents.sql"),
    ),
    (
        "0010_artifact_holders",
        include_str!("../../../migrations/core/0010_artifact_holders.sql"),
    ),
    (
        "0011_permits_and_members",
        include_str!("../../../migrations/core/0011_permits_and_members.sql"),
    ),
];

/// The owner's name of the host's own tables.
const CORE_NAME: &str = "core";

/// Brings the host's own tables up to date.
pub(super) fn apply_core(session: &Session) -> Result<(), MigrationError> {
    let steps: Vec<Step> = CORE
        .iter()
        .map(|&(name, sql)| Step {
            name: name.to_owned(),
            sql: sql.to_owned(),
        })
        .collect();
    in_transaction(session, || {
        session.db.execute_batch(
            "CREATE TABLE IF NOT EXISTS core_migrations (
                pack TEXT NOT NULL,
                name TEXT NOT NULL,
                hash TEXT NOT NULL,
                PRIMARY KEY (pack, name)
            ) STRICT",
        )?;
        for step in missing(&applied(session, CORE_NAME)?, CORE_NAME, &steps)? {
            let ran = session.db.execute_batch(&for_sqlite(&step.sql));
            ran.map_err(|err| failed(CORE_NAME, step, err.to_string()))?;
            session.db.execute(
                "INSERT INTO core_migrations (pack, name, hash) VALUES (?1, ?2, ?3)",
                [CORE_NAME, &step.name, &step.hash()],
            )?;
        }
        Ok(())
    })
}

impl Step {
    fn hash(&self) -> String {
        hex(&Sha256::digest(&self.sql))
    }
}

/// What a component's migrations make, or all that is wrong with them.
pub(super) fn read(prefix: &str, steps: &[Step]) -> Result<Schema, Problems> {
    let steps = steps.iter().map(|step| tollgate_sql::Step {
        name: &step.name,
        sql: &step.sql,
    });
    schema::read(prefix, steps)
}

/// Brings a component's tables up to date.
pub(super) fn apply(session: &Session, namespace: &Namespace, steps: &[Step]) -> Result<(), MigrationError> {
    in_transaction(session, || {
        session.bounded(namespace, &migration_deadline(), || {
            apply_one(session, namespace, steps)
        })
    })
}

/// Whether [`apply`] would bring a component's tables up to date. They stay as they are.
pub(super) fn try_out(
    session: &Session,
    namespace: &Namespace,
    steps: &[Step],
) -> Result<(), MigrationError> {
    session.begin_write()?;
    let tried = session.bounded(namespace, &migration_deadline(), || {
        apply_one(session, namespace, steps)
    });
    if session.in_transaction() {
        session.rollback()?;
    }
    tried
}

fn apply_one(session: &Session, namespace: &Namespace, steps: &[Step]) -> Result<(), MigrationError> {
    let pack = namespace.pack();
    let applied = applied(session, pack)?;
    let missing: Vec<&str> = missing(&applied, pack, steps)?
        .iter()
        .map(|step| step.name.as_str())
        .collect();
    if missing.is_empty() && !unread(session, pack)? {
        return check_objects(session, namespace);
    }
    // What was applied before there was a reader, or under one that let more through, is read as well.
    let schema = read(namespace.prefix(), steps).map_err(|problems| MigrationError::Unreadable {
        pack: pack.to_owned(),
        problems,
    })?;
    let before = others(session, namespace)?;
    for (step, commands) in steps.iter().zip(&schema.steps) {
        if missing.contains(&step.name.as_str()) {
            run(session, namespace, step, commands)?;
        }
    }
    session.db.execute(
        "UPDATE core_migrations SET reader = ?2 WHERE pack = ?1 AND reader < ?2",
        (pack, VERSION),
    )?;
    let after = others(session, namespace)?;
    if let Some(table) = after.symmetric_difference(&before).next() {
        return Err(MigrationError::ForeignName {
            pack: namespace.pack().to_owned(),
            table: table.clone(),
        });
    }
    check_objects(session, namespace)?;
    if missing.is_empty() {
        return Ok(());
    }
    session.probe().map_err(|err| MigrationError::Obstructs {
        pack: namespace.pack().to_owned(),
        reason: session.explain(err).to_string(),
    })
}

/// The tables that are not a component's own. Renaming is how it could make one.
fn others(session: &Session, namespace: &Namespace) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement = session
        .db
        .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    let is_other = |name: &String| !namespace.owns(name) && !name.starts_with("sqlite_");
    names
        .filter(|name| name.as_ref().map_or(true, is_other))
        .collect()
}

/// Brings the tables of many components up to date, all or none. The error names whose it was.
pub(super) fn apply_together<'a>(
    session: &Session,
    components: impl Iterator<Item = (&'a Namespace, &'a [Step])>,
) -> Result<(), (String, MigrationError)> {
    let mut at = String::new();
    let deadline = migration_deadline();
    in_transaction(session, || {
        for (namespace, steps) in components {
            namespace.pack().clone_into(&mut at);
            session.bounded(namespace, &deadline, || apply_one(session, namespace, steps))?;
        }
        Ok(())
    })
    .map_err(|err| (at, err))
}

/// The owners of applied steps, without the host itself.
pub(super) fn packs(session: &Session) -> Result<Vec<String>, MigrationError> {
    let packs = session
        .db
        .prepare("SELECT DISTINCT pack FROM core_migrations WHERE pack <> ?1")?
        .query_map([CORE_NAME], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(packs)
}

fn in_transaction(
    session: &Session,
    body: impl FnOnce() -> Result<(), MigrationError>,
) -> Result<(), MigrationError> {
    session.begin_write()?;
    match body() {
        Ok(()) => Ok(session.commit()?),
        Err(err) => {
            if session.in_transaction() {
                session.rollback()?;
            }
            Err(err)
        }
    }
}

/// Runs one step's statements as they were read, each with what was append-only before it.
fn run(
    session: &Session,
    namespace: &Namespace,
    step: &Step,
    commands: &[Command],
) -> Result<(), MigrationError> {
    for command in commands {
        let Some(sql) = &command.sql else { continue };
        let namespace = namespace.while_append_only(&command.append_only);
        let ran = session.migrating(&namespace, |db| db.execute_batch(sql));
        ran.map_err(|err| {
            let reason = format!("statement {} (`{}`): {err}", command.number, command.words);
            failed(namespace.pack(), step, reason)
        })?;
    }
    session.db.execute(
        "INSERT INTO core_migrations (pack, name, hash, reader) VALUES (?1, ?2, ?3, ?4)",
        (namespace.pack(), &step.name, step.hash(), VERSION),
    )?;
    Ok(())
}

fn failed(pack: &str, step: &Step, reason: String) -> MigrationError {
    MigrationError::Failed {
        pack: pack.to_owned(),
        step: step.name.clone(),
        reason,
    }
}

/// Whether steps were applied that this version of the reader has not read.
fn unread(session: &Session, pack: &str) -> rusqlite::Result<bool> {
    session.db.query_row(
        "SELECT EXISTS (SELECT 1 FROM core_migrations WHERE pack = ?1 AND reader < ?2)",
        (pack, VERSION),
        |row| row.get(0),
    )
}

/// The steps that are not applied yet.
fn missing<'a>(
    applied: &[(String, String)],
    pack: &str,
    steps: &'a [Step],
) -> Result<Vec<&'a Step>, MigrationError> {
    if let Some((name, _)) = applied
        .iter()
        .find(|(name, _)| !steps.iter().any(|step| step.name == *name))
    {
        return Err(MigrationError::Newer {
            pack: pack.to_owned(),
            step: name.clone(),
        });
    }
    let mut missing = Vec::new();
    for step in steps {
        let hash = step.hash();
        match applied.iter().find(|(name, _)| *name == step.name) {
            Some((_, seen)) if *seen == hash => {}
            Some(_) => {
                return Err(MigrationError::Changed {
                    pack: pack.to_owned(),
                    step: step.name.clone(),
                });
            }
            None => missing.push(step),
        }
        // A step before applied ones would run under what was append-only at its place, not now.
        if let Some(early) = missing.first().filter(|early| early.name != step.name)
            && applied.iter().any(|(name, _)| *name == step.name)
        {
            return Err(MigrationError::Early {
                pack: pack.to_owned(),
                step: early.name.clone(),
                applied: step.name.clone(),
            });
        }
    }
    Ok(missing)
}

fn applied(session: &Session, pack: &str) -> rusqlite::Result<Vec<(String, String)>> {
    session
        .db
        .prepare("SELECT name, hash FROM core_migrations WHERE pack = ?1 ORDER BY name")?
        .query_map([pack], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

/// A foreign key into another namespace would let a component see, block or set off what is not its own, and
/// so would a trigger on or about other tables.
fn check_objects(session: &Session, namespace: &Namespace) -> Result<(), MigrationError> {
    match session.misplaced_of(namespace)?.first() {
        None => Ok(()),
        Some(object) => Err(MigrationError::Misplaced {
            pack: namespace.pack().to_owned(),
            prefix: namespace.prefix().to_owned(),
            object: object.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Database;

    fn tried(sql: &str) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("t.db")).unwrap();
        let namespace = Namespace::of_pack("shop");
        let mut steps = vec![Step {
            name: "0001_init".to_owned(),
            sql: "CREATE TABLE shop_items (id TEXT PRIMARY KEY, size BIGINT NOT NULL CHECK (size > 0));
                  CREATE TABLE shop_old (id TEXT PRIMARY KEY);
                  CREATE INDEX shop_by_size ON shop_items (size);
                  INSERT INTO shop_items (id, size) VALUES ('a', 1), ('b', 2);"
                .to_owned(),
        }];
        database.migrate(&namespace, &steps).unwrap();
        steps.push(Step {
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
        let steps = [Step {
            name: "0001_init".to_owned(),
            sql: "CREATE TABLE shop_items (id TEXT PRIMARY KEY, size BIGINT NOT NULL);".to_owned(),
        }];
        database.migrate(&namespace, &steps).unwrap();
        let session = database.write_session().unwrap();
        let before = others(&session, &namespace).unwrap();
        let tried = in_transaction(&session, || {
            session.migrating(&namespace, |db| db.execute_batch(sql))?;
            check_objects(&session, &namespace)?;
            Ok(session.probe()?)
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

    /// What SQLite says to a text that nobody read, with the rights of a migration.
    fn straight(sql: &str) -> rusqlite::Result<()> {
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
            .migrating(&namespace, |db| db.execute_batch(tables))
            .unwrap();
        let log = std::sync::Arc::new(BTreeSet::from(["shop_log".to_owned()]));
        session.migrating(&namespace.while_append_only(&log), |db| db.execute_batch(sql))
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
        assert_eq!(straight("INSERT INTO shop_log VALUES ('2', NULL)"), Ok(()));
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
        let step = |name: &str, sql: &str| Step {
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
            include_str!("../../../tests/earlier/gsd-0001_init.sql"),
            include_str!("../../../migrations/gsd/0001_init.sql"),
        ),
        (
            "tasks",
            include_str!("../../../tests/earlier/tasks-0001_init.sql"),
            include_str!("../../../migrations/tasks/0001_init.sql"),
        ),
        (
            "task-store",
            include_str!("../../../tests/earlier/task-store-0001_init.sql"),
            include_str!("../../../migrations/task-store/0001_init.sql"),
        ),
    ];

    /// A database as the version before left it: without a reader, and with what components said then.
    fn earlier(path: &std::path::Path, components: &[(&str, &str)]) {
        let session = Database::existing(path).write_session().unwrap();
        let db = &session.db;
        let table =
            "CREATE TABLE core_migrations (pack TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL,
                     PRIMARY KEY (pack, name)) STRICT";
        db.execute_batch(table).unwrap();
        let host = CORE
            .iter()
            .filter(|(name, _)| *name < "0007")
            .map(|(name, sql)| (CORE_NAME, *name, *sql));
        let steps = components.iter().map(|(pack, sql)| (*pack, "0001_init", *sql));
        for (pack, name, sql) in host.chain(steps) {
            db.execute_batch(&for_sqlite(sql)).unwrap();
            let hash = hex(&Sha256::digest(sql));
            db.execute(
                "INSERT INTO core_migrations VALUES (?1, ?2, ?3)",
                [pack, name, &hash],
            )
            .unwrap();
        }
    }

    fn first_step(sql: &str) -> Vec<Step> {
        vec![Step {
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
        let count = |sql: &str| -> i64 { session.db.query_row(sql, [], |row| row.get(0)).unwrap() };
        let others = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name NOT LIKE 'core%'";
        assert_eq!(count(others), 0);
        let unread = "SELECT count(*) FROM core_migrations WHERE pack <> 'core' AND reader = 0";
        assert_eq!(count(unread), 3);
        for (pack, _, now) in EARLIER {
            let steps = first_step(now);
            let namespace = Namespace::of_pack(pack).with_tables(&steps).unwrap();
            database.migrate(&namespace, &steps).unwrap();
            let log = format!("DELETE FROM {}events", namespace.prefix());
            let deadline = crate::deadline::Deadline::after(
                std::time::Duration::from_secs(60),
                crate::deadline::Cancel::default(),
            );
            session.enter(&namespace, &deadline);
            assert!(session.db.prepare(&log).is_err(), "{log}");
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
            Step {
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
            .db
            .query_row("PRAGMA data_version", [], |row| row.get(0))
            .unwrap();
        database.migrate(&namespace, &steps).unwrap();
        let after: i64 = session
            .db
            .query_row("PRAGMA data_version", [], |row| row.get(0))
            .unwrap();
        assert_eq!(before, after, "nothing was written");
    }
}
