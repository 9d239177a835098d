//! Migrations of components, on the engine of the session.

use super::steps::{MigrationError, MigrationStep, in_transaction};
use super::{Engine, postgres, sqlite};
use crate::storage::access::Namespace;
use crate::storage::bounds::migration_deadline;
use crate::storage::session::Session;

/// Migrates a component's tables.
pub(in crate::storage) fn apply(
    session: &Session,
    namespace: &Namespace,
    steps: &[MigrationStep],
) -> Result<(), MigrationError> {
    in_transaction(session, || {
        session
            .components()
            .bounded(namespace, &migration_deadline(), || {
                apply_one(session, namespace, steps)
            })
    })
}

/// Checks that [`apply`] would succeed for a component. The tables stay unchanged.
pub(in crate::storage) fn try_out(
    session: &Session,
    namespace: &Namespace,
    steps: &[MigrationStep],
) -> Result<(), MigrationError> {
    session.begin_write()?;
    let tried = session
        .components()
        .bounded(namespace, &migration_deadline(), || {
            apply_one(session, namespace, steps)
        });
    if session.in_transaction() {
        session.rollback()?;
    }
    tried
}

/// Migrates a component's tables, in the open transaction.
fn apply_one(
    session: &Session,
    namespace: &Namespace,
    steps: &[MigrationStep],
) -> Result<(), MigrationError> {
    match &session.engine {
        Engine::Sqlite(_) => sqlite::migrate::apply_one(session, namespace, steps),
        Engine::Postgres(postgres) => postgres::migrate::apply_one(session, postgres, namespace, steps),
    }
}

/// Migrates the tables of many components, all or none. The error names the component.
pub(in crate::storage) fn apply_together<'a>(
    session: &Session,
    components: impl Iterator<Item = (&'a Namespace, &'a [MigrationStep])>,
) -> Result<(), (String, MigrationError)> {
    let mut at = String::new();
    in_transaction(session, || {
        apply_within(session, components).map_err(|(owner, err)| {
            at = owner;
            err
        })
    })
    .map_err(|err| (at, err))
}

/// Migrates the tables of many components in the open transaction.
pub(in crate::storage) fn apply_within<'a>(
    session: &Session,
    components: impl Iterator<Item = (&'a Namespace, &'a [MigrationStep])>,
) -> Result<(), (String, MigrationError)> {
    let deadline = migration_deadline();
    for (namespace, steps) in components {
        session
            .components()
            .bounded(namespace, &deadline, || apply_one(session, namespace, steps))
            .map_err(|err| (namespace.pack().to_owned(), err))?;
    }
    Ok(())
}
