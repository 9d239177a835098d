//! Migrations of the host's own tables and of each component's, on SQLite.

mod files;

use std::collections::BTreeSet;

use tollgate_sql::VERSION;
use tollgate_sql::schema::Command;

use self::files::CORE;
use super::own_sql::for_sqlite;
use super::schema::set_pristine;
use crate::storage::access::Namespace;
use crate::storage::engine::steps::{
    CORE_NAME, MigrationError, MigrationStep, applied, failed, in_transaction, missing, read, record, unread,
};
use crate::storage::error::StoreResult;
use crate::storage::session::Session;

/// Creates the table of applied steps, before any step. The text is the same in every version, because it is
/// compared.
const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS core_migrations (
                pack TEXT NOT NULL,
                name TEXT NOT NULL,
                hash TEXT NOT NULL,
                PRIMARY KEY (pack, name)
            ) STRICT";

impl From<rusqlite::Error> for MigrationError {
    fn from(err: rusqlite::Error) -> MigrationError {
        MigrationError::Record(err.into())
    }
}

/// Migrates the host's own tables. Returns true if the database was empty before.
pub(in crate::storage) fn apply_core(session: &Session) -> Result<bool, MigrationError> {
    let steps = MigrationStep::all(CORE);
    in_transaction(session, || {
        let was_empty = session.maintenance().is_empty()?;
        session.sqlite()?.db.execute_batch(MIGRATIONS_TABLE)?;
        for step in missing(&applied(session, CORE_NAME)?, CORE_NAME, &steps)? {
            let ran = session.sqlite()?.db.execute_batch(&for_sqlite(&step.sql));
            ran.map_err(|err| failed(CORE_NAME, step, err.to_string()))?;
            session.sqlite()?.db.execute(
                "INSERT INTO core_migrations (pack, name, hash) VALUES (?1, ?2, ?3)",
                [CORE_NAME, &step.name, &step.hash()],
            )?;
        }
        if was_empty {
            set_pristine(session.maintenance().objects()?);
        }
        Ok(was_empty)
    })
}

/// Migrates a component's tables, in the open transaction.
pub(in crate::storage::engine) fn apply_one(
    session: &Session,
    namespace: &Namespace,
    steps: &[MigrationStep],
) -> Result<(), MigrationError> {
    let pack = namespace.pack();
    let applied = applied(session, pack)?;
    let missing: Vec<&str> = missing(&applied, pack, steps)?
        .iter()
        .map(|step| step.name.as_str())
        .collect();
    if missing.is_empty() && !unread(session, pack)? {
        return check_objects(session, namespace);
    }
    // Steps that were applied before there was a reader, or under a more permissive one, are read as well.
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
    session.sqlite()?.db.execute(
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
    session
        .maintenance()
        .probe()
        .map_err(|err| MigrationError::Obstructs {
            pack: namespace.pack().to_owned(),
            reason: session.maintenance().explain(err).to_string(),
        })
}

/// Tables outside a component's namespace, to detect that the component renamed one.
fn others(session: &Session, namespace: &Namespace) -> StoreResult<BTreeSet<String>> {
    let mut statement = session
        .sqlite()?
        .db
        .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    let is_other = |name: &String| !namespace.owns(name) && !name.starts_with("sqlite_");
    Ok(names
        .filter(|name| name.as_ref().map_or(true, is_other))
        .collect::<rusqlite::Result<_>>()?)
}

/// Runs one step's parsed statements, each with the tables that were append-only before it.
fn run(
    session: &Session,
    namespace: &Namespace,
    step: &MigrationStep,
    commands: &[Command],
) -> Result<(), MigrationError> {
    for command in commands {
        let Some(sql) = &command.sql else { continue };
        let namespace = namespace.while_append_only(&command.append_only);
        let ran = session
            .sqlite()?
            .migrating(&namespace, |db| db.execute_batch(sql));
        ran.map_err(|err| {
            let reason = format!("statement {} (`{}`): {err}", command.number, command.words);
            failed(namespace.pack(), step, reason)
        })?;
    }
    Ok(record(session, namespace.pack(), step)?)
}

/// Checks the objects of a component. A foreign key into another namespace would let it see, block or trigger what is
/// not its own. A trigger would run in the component's statements, whoever created it.
fn check_objects(session: &Session, namespace: &Namespace) -> Result<(), MigrationError> {
    match session.maintenance().misplaced_of(namespace)?.first() {
        None => Ok(()),
        Some(object) => Err(MigrationError::Misplaced {
            pack: namespace.pack().to_owned(),
            prefix: namespace.prefix().to_owned(),
            object: object.to_string(),
        }),
    }
}

#[cfg(test)]
pub(in crate::storage) mod tests;
