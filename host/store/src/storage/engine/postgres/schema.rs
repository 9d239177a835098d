//! The host's own tables on PostgreSQL: creates them, and detects changes to them.

use super::{Postgres, Server, ServerError, migrate, settings};
use crate::storage::engine::steps::{
    CORE_NAME, MigrationError, MigrationStep, applied, failed, in_transaction, missing,
};
use crate::storage::engine::{Engine, Once, sql};
use crate::storage::error::{StoreError, StoreFailure, StoreResult};
use crate::storage::session::Session;

/// The host's own migration steps on PostgreSQL, append-only. Each matches steps for SQLite, so that both engines
/// have the same tables.
pub(super) const CORE: &[(&str, &str)] = &[
    (
        "0001_init",
        include_str!("../../../../../../migrations/core-postgres/0001_init.sql"),
    ),
    (
        "0002_hosts",
        include_str!("../../../../../../migrations/core-postgres/0002_hosts.sql"),
    ),
    (
        "0003_contents",
        include_str!("../../../../../../migrations/core-postgres/0003_contents.sql"),
    ),
    (
        "0004_append",
        include_str!("../../../../../../migrations/core-postgres/0004_append.sql"),
    ),
];

/// Table of the applied steps, which exists before them.
const OF_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS core_migrations (
    pack TEXT NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    reader BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (pack, name)
)";

/// SQL of the whole schema, for an empty one.
pub(super) fn whole() -> String {
    let steps = CORE.iter().map(|(_, sql)| *sql);
    let all: Vec<&str> = std::iter::once(OF_MIGRATIONS).chain(steps).collect();
    adapted(&all.join(";\n"))
}

/// INSERT of a row without a place in the ledger, which the guard trigger must refuse.
pub(super) const TRIAL_ROW: &str = "INSERT INTO core_operations (seq, op_id, timestamp, duration_ms, op_type, pack, tool, effect, connection,
        host_id, args_hash, prev_hash, hash)
    VALUES (-1, 'op_trial', '', 0, 'control', 'core', 'trial', 'read', '', '', '', '', '')";

/// Checks the server of a session, and migrates the host's own tables.
pub(in crate::storage) fn prepare(session: &Session, server: &Server) -> Result<(), MigrationError> {
    let Engine::Postgres(postgres) = &session.engine else {
        return Err(StoreError::of_sqlite_alone().into());
    };
    settings::check(server, &postgres.wire()).map_err(StoreError::from)?;
    let steps = MigrationStep::all(CORE);
    let is_current =
        has_migrations(session)? && missing(&applied(session, CORE_NAME)?, CORE_NAME, &steps)?.is_empty();
    if !is_current {
        // The write lock prevents other hosts from doing the same.
        in_transaction(session, || apply(session, postgres, &steps))?;
    }
    migrate::make_functions(session, postgres)?;
    Ok(try_triggers(session)?)
}

fn apply(session: &Session, postgres: &Postgres, steps: &[MigrationStep]) -> Result<(), MigrationError> {
    migrate::make(session, postgres, &postgres.server.schema)?;
    postgres.script(&adapted(OF_MIGRATIONS))?;
    for step in missing(&applied(session, CORE_NAME)?, CORE_NAME, steps)? {
        let ran = postgres.script(&adapted(&step.sql));
        ran.map_err(|err| failed(CORE_NAME, step, err.to_string()))?;
        session.engine.run(
            Once("INSERT INTO core_migrations (pack, name, hash) VALUES (?1, ?2, ?3)"),
            sql![CORE_NAME, step.name, step.hash()],
        )?;
    }
    Ok(())
}

/// Text of a step for PostgreSQL: texts are compared by bytes, whatever the database's collation.
fn adapted(sql: &str) -> String {
    sql.replace("TEXT", "text COLLATE \"C\"")
}

/// True if a host has used this schema.
fn has_migrations(session: &Session) -> StoreResult<bool> {
    let sql = "SELECT to_regclass('core_migrations') IS NOT NULL";
    session.engine.one(Once(sql), &[], |row| row.get(0))
}

/// Tests that the server runs the ledger's guard trigger: a row without a place must be refused.
fn try_triggers(session: &Session) -> StoreResult<()> {
    session.begin_write()?;
    let tried = session.engine.run(Once(TRIAL_ROW), &[]);
    session.rollback()?;
    match tried {
        Err(err) if err.failure() == StoreFailure::Fenced => Ok(()),
        Err(err) => Err(err),
        Ok(_) => Err(ServerError::NoTriggers.into()),
    }
}
