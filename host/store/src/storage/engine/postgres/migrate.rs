//! Migrations of components on PostgreSQL. Each component has its own schema.

use sha2::{Digest as _, Sha256};
use tollgate_core::hash::hex;
use tollgate_sql::VERSION;
use tollgate_sql::postgres::{FUNCTIONS, Translator, Untranslated};
use tollgate_sql::schema::Command;

use super::server::{OF_FUNCTIONS, Server};
use super::settings::{lock_key, quoted};
use super::{Postgres, ServerError, roles};
use crate::storage::access::Namespace;
use crate::storage::engine::steps::{
    MigrationError, MigrationStep, applied, failed, in_transaction, missing, record, unread,
};
use crate::storage::engine::{Once, sql};
use crate::storage::error::{StoreError, StoreFailure, StoreResult};
use crate::storage::session::Session;

/// Migrates a component's tables, in the open transaction.
pub(in crate::storage) fn apply_one(
    session: &Session,
    postgres: &Postgres,
    namespace: &Namespace,
    steps: &[MigrationStep],
) -> Result<(), MigrationError> {
    let pack = namespace.pack();
    let applied = applied(session, pack)?;
    let missing = missing(&applied, pack, steps)?;
    if missing.is_empty() && !unread(session, pack)? {
        return Ok(roles::make(session, postgres, pack)?);
    }
    let schema = postgres.server.schema_of(pack);
    let read: Vec<_> = steps.iter().map(MigrationStep::as_read).collect();
    let translator = Translator::new(namespace.prefix(), &schema, &read).map_err(|err| unsaid(pack, err))?;
    make(session, postgres, &schema)?;
    for (step, commands) in steps.iter().zip(translator.steps()) {
        if !missing.iter().any(|missing| missing.name == step.name) {
            continue;
        }
        for (command, printed) in commands {
            for statement in printed {
                let ran = postgres.script_in_time(statement);
                ran.map_err(|err| failed(pack, step, told(command, &err)))?;
            }
        }
        record(session, pack, step)?;
    }
    let sql = "UPDATE core_migrations SET reader = ?2 WHERE pack = ?1 AND reader < ?2";
    session.engine.run(Once(sql), sql![pack, VERSION])?;
    Ok(roles::make(session, postgres, pack)?)
}

fn told(command: &Command, err: &StoreError) -> String {
    format!("statement {} (`{}`): {err}", command.number, command.words)
}

fn unsaid(pack: &str, err: Untranslated) -> MigrationError {
    let pack = pack.to_owned();
    match err {
        Untranslated::Problems(problems) => MigrationError::Unreadable { pack, problems },
        Untranslated::Differs(findings) => MigrationError::Differs { pack, findings },
    }
}

/// Creates a schema, unless it exists. An administrator can create it for a role without that right.
pub(super) fn make(session: &Session, postgres: &Postgres, schema: &str) -> StoreResult<()> {
    let sql = "SELECT 1 FROM pg_namespace WHERE nspname = ?1";
    if session.engine.exists(Once(sql), sql![schema])? {
        return Ok(());
    }
    let made = postgres.script(&format!("CREATE SCHEMA {}", quoted(schema)));
    made.map_err(|err| not_created(err, &format!("the schema {schema}")))
}

fn not_created(err: StoreError, what: &str) -> StoreError {
    match err.failure() {
        StoreFailure::NotWritable => ServerError::MayNotCreate(what.to_owned()).into(),
        _ => err,
    }
}

/// Creates the functions of translated statements, unless this version exists.
pub(super) fn make_functions(session: &Session, postgres: &Postgres) -> Result<(), MigrationError> {
    let version = format!("functions of Tollgate, {}", hex(&Sha256::digest(FUNCTIONS)));
    let are_there = || {
        let sql = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = ?1";
        let found: Option<Option<String>> = session
            .engine
            .maybe(Once(sql), sql![OF_FUNCTIONS], |row| row.get(0))?;
        Ok::<_, StoreError>(found.flatten().as_ref() == Some(&version))
    };
    if are_there()? {
        return Ok(());
    }
    in_transaction(session, || {
        // Hosts with other schemas in the same database share the functions, and have another write lock.
        postgres.script(&format!(
            "SELECT pg_advisory_xact_lock({})",
            lock_key(OF_FUNCTIONS, "functions")
        ))?;
        if are_there()? {
            return Ok(());
        }
        let made = postgres
            .script(FUNCTIONS)
            .and_then(|()| postgres.script(&format!("COMMENT ON SCHEMA {OF_FUNCTIONS} IS '{version}'")));
        made.map_err(|err| not_created(err, &format!("functions in the schema {OF_FUNCTIONS}")).into())
    })
}

impl Server {
    /// LIKE pattern for the schemas of components.
    pub(in crate::storage) fn schemas_of_components(&self) -> String {
        format!("{}/%", self.schema.replace('_', "\\_"))
    }
}
