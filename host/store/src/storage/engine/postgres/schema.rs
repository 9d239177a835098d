//! The host's own tables on PostgreSQL: making them, and finding what was changed about them.

use super::{Postgres, Server, ServerError, migrate, settings};
use crate::storage::engine::sqlite::migrate::{
    CORE_NAME, MigrationError, Step, applied, failed, in_transaction, missing,
};
use crate::storage::engine::{Engine, Once, sql};
use crate::storage::error::{StoreError, StoreFailure, StoreResult};
use crate::storage::session::Session;

/// The host's own steps on PostgreSQL, append only. Each follows steps of SQLite's, so that both have the same tables.
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

/// Table of the steps that were applied, which is there before them.
const OF_MIGRATIONS: &str = "CREATE TABLE IF NOT EXISTS core_migrations (
    pack TEXT NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    reader BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (pack, name)
)";

/// All of the schema, as a text for one that is empty.
pub(super) fn whole() -> String {
    let steps = CORE.iter().map(|(_, sql)| *sql);
    let all: Vec<&str> = std::iter::once(OF_MIGRATIONS).chain(steps).collect();
    adapted(&all.join(";\n"))
}

/// A row without a place in the ledger, which its guard must refuse.
pub(super) const TRIAL_ROW: &str = "INSERT INTO core_operations (seq, op_id, timestamp, duration_ms, op_type, pack, tool, effect, connection,
        host_id, args_hash, prev_hash, hash)
    VALUES (-1, 'op_trial', '', 0, 'control', 'core', 'trial', 'read', '', '', '', '', '')";

/// Checks the server of a session, and brings the host's own tables up to date.
pub(in crate::storage) fn prepare(session: &Session, server: &Server) -> Result<(), MigrationError> {
    let Engine::Postgres(postgres) = &session.engine else {
        return Err(StoreError::of_sqlite_alone().into());
    };
    settings::check(server, &postgres.wire()).map_err(StoreError::from)?;
    let steps: Vec<Step> = CORE
        .iter()
        .map(|&(name, sql)| Step {
            name: name.to_owned(),
            sql: sql.to_owned(),
        })
        .collect();
    let is_current =
        has_migrations(session)? && missing(&applied(session, CORE_NAME)?, CORE_NAME, &steps)?.is_empty();
    if !is_current {
        // The turn to write keeps other hosts from doing the same.
        in_transaction(session, || apply(session, postgres, &steps))?;
    }
    migrate::make_functions(session, postgres)?;
    Ok(try_triggers(session)?)
}

fn apply(session: &Session, postgres: &Postgres, steps: &[Step]) -> Result<(), MigrationError> {
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

/// A step's text as PostgreSQL runs it: text is compared by its bytes, whatever the collation of the database.
fn adapted(sql: &str) -> String {
    sql.replace("TEXT", "text COLLATE \"C\"")
}

/// True if a host has worked with this schema.
fn has_migrations(session: &Session) -> StoreResult<bool> {
    let sql = "SELECT to_regclass('core_migrations') IS NOT NULL";
    session.engine.one(Once(sql), &[], |row| row.get(0))
}

/// Tries if the server runs the guard of the ledger: a row without a place in it must be refused.
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
