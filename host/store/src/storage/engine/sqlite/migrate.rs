//! Bringing tables up to date: the host's own and each component's.

mod files;

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use thiserror::Error;
use tollgate_core::hash::hex;
use tollgate_sql::postgres::Finding;
use tollgate_sql::schema::{self, Command, Schema};
use tollgate_sql::{Problems, VERSION};

use self::files::CORE;
use super::own_sql::for_sqlite;
use crate::storage::access::Namespace;
use crate::storage::bounds::migration_deadline;
use crate::storage::engine::{Engine, Once, postgres, sql};
use crate::storage::error::{StoreError, StoreResult};
use crate::storage::session::{OpenError, Session};

/// Makes the table of applied steps, before any step. Its words are the same in every version, because they are compared.
const RECORD: &str = "CREATE TABLE IF NOT EXISTS core_migrations (
                pack TEXT NOT NULL,
                name TEXT NOT NULL,
                hash TEXT NOT NULL,
                PRIMARY KEY (pack, name)
            ) STRICT";

/// One step of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// `NNNN_name`.
    pub name: String,
    /// SQL in the subset that `tollgate-sql` reads.
    pub sql: String,
}

impl Step {
    /// The step as `tollgate-sql` reads it.
    pub(in crate::storage) fn as_read(&self) -> tollgate_sql::Step<'_> {
        tollgate_sql::Step {
            name: &self.name,
            sql: &self.sql,
        }
    }
}

/// Reason why tables could not be migrated. Nothing was changed.
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
        /// Owner of the step.
        pack: String,
        /// Its name.
        step: String,
    },
    /// A step that was not applied comes before one that was.
    #[error("migration {step} of {pack} comes before {applied}, which was applied; new migrations come last")]
    Early {
        /// Owner of the step.
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
        /// Owner of the step.
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
        /// Owner of the step.
        pack: String,
        /// Its name.
        step: String,
        /// Message of SQLite.
        reason: String,
    },
    /// Steps say what migrations may not say. All of it is told.
    #[error("migrations of {pack} cannot be run: {problems}")]
    Unreadable {
        /// Owner of the migrations.
        pack: String,
        /// Problems.
        problems: Problems,
    },
    /// Steps would do something else on PostgreSQL than on SQLite. All of it is told.
    #[error("migrations of {pack} cannot be run on PostgreSQL: {}", list(findings))]
    Differs {
        /// Owner of the migrations.
        pack: String,
        /// Differences.
        findings: Vec<Finding>,
    },
    /// A table was renamed to or from a name outside the namespace.
    #[error("a migration of {pack} renames a table to {table}, which is no name of its own")]
    ForeignName {
        /// Owner of the migration.
        pack: String,
        /// The name.
        table: String,
    },
    /// Something of the component's is what it may not have.
    #[error(
        "{object}; {pack} may have tables and indexes whose names start with exactly `{prefix}` and \
         that refer to nothing but each other"
    )]
    Misplaced {
        /// The pack it belongs to.
        pack: String,
        /// Prefix of the owner's names.
        prefix: String,
        /// Fault and its object.
        object: String,
    },
    /// With the component's tables the host could not write its own.
    #[error("with the tables of {pack} the host could not write its own: {reason}")]
    Obstructs {
        /// Owner of the tables.
        pack: String,
        /// Message of SQLite, with the obstacle.
        reason: String,
    },
    /// The migrations did not end.
    #[error(
        "the migrations of {pack} did not end within {seconds} s, which is what they may take; nothing was changed"
    )]
    OutOfTime {
        /// Owner of the migrations.
        pack: String,
        /// Time limit.
        seconds: u64,
    },
    /// The migrations sort or join too much at once.
    #[error(
        "the migrations of {pack} need more than {mib} MiB of memory, which is what limits.memory_mib leaves them; \
         nothing was changed"
    )]
    OutOfMemory {
        /// Owner of the migrations.
        pack: String,
        /// Limit.
        mib: u64,
    },
    /// The tables grow past their quota, or the disk is full.
    #[error(
        "after the migrations of {pack} its tables would take more than the {mib} MiB of limits.storage_mib, or \
         more than the disk has; nothing was changed"
    )]
    OutOfStorage {
        /// Owner of the migrations.
        pack: String,
        /// Limit of the tables.
        mib: u64,
    },
    /// Reading or recording what was applied failed.
    #[error("the record of migrations could not be used")]
    Record(#[from] StoreError),
}

fn list(findings: &[Finding]) -> String {
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    findings.join("; ")
}

impl From<rusqlite::Error> for MigrationError {
    fn from(err: rusqlite::Error) -> MigrationError {
        MigrationError::Record(err.into())
    }
}

/// The owner's name of the host's own tables.
pub(in crate::storage) const CORE_NAME: &str = "core";

/// Brings the host's own tables up to date.
pub(in crate::storage) fn apply_core(session: &Session) -> Result<(), MigrationError> {
    let steps: Vec<Step> = CORE
        .iter()
        .map(|&(name, sql)| Step {
            name: name.to_owned(),
            sql: sql.to_owned(),
        })
        .collect();
    in_transaction(session, || {
        session.sqlite()?.db.execute_batch(RECORD)?;
        for step in missing(&applied(session, CORE_NAME)?, CORE_NAME, &steps)? {
            let ran = session.sqlite()?.db.execute_batch(&for_sqlite(&step.sql));
            ran.map_err(|err| failed(CORE_NAME, step, err.to_string()))?;
            session.sqlite()?.db.execute(
                "INSERT INTO core_migrations (pack, name, hash) VALUES (?1, ?2, ?3)",
                [CORE_NAME, &step.name, &step.hash()],
            )?;
        }
        Ok(())
    })
}

impl Step {
    pub(in crate::storage::engine) fn hash(&self) -> String {
        hex(&Sha256::digest(&self.sql))
    }
}

/// Schema that a component's migrations make, or all their problems.
pub(in crate::storage) fn read(prefix: &str, steps: &[Step]) -> Result<Schema, Problems> {
    schema::read(prefix, steps.iter().map(Step::as_read))
}

/// Brings a component's tables up to date.
pub(in crate::storage) fn apply(
    session: &Session,
    namespace: &Namespace,
    steps: &[Step],
) -> Result<(), MigrationError> {
    in_transaction(session, || {
        session
            .components()
            .bounded(namespace, &migration_deadline(), || {
                apply_one(session, namespace, steps)
            })
    })
}

/// Checks that [`apply`] would migrate a component's tables. They stay as they are.
pub(in crate::storage) fn try_out(
    session: &Session,
    namespace: &Namespace,
    steps: &[Step],
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

fn apply_one(session: &Session, namespace: &Namespace, steps: &[Step]) -> Result<(), MigrationError> {
    if let Engine::Postgres(postgres) = &session.engine {
        return postgres::migrate::apply_one(session, postgres, namespace, steps);
    }
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

/// The tables that are not a component's own. Renaming is how it could make one.
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

/// Brings the tables of many components up to date, all or none. The error names whose it was.
pub(in crate::storage) fn apply_together<'a>(
    session: &Session,
    components: impl Iterator<Item = (&'a Namespace, &'a [Step])>,
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

/// The same in the open transaction.
pub(in crate::storage) fn apply_within<'a>(
    session: &Session,
    components: impl Iterator<Item = (&'a Namespace, &'a [Step])>,
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

/// The owners of applied steps, without the host itself.
pub(in crate::storage) fn packs(session: &Session) -> Result<Vec<String>, MigrationError> {
    let sql = "SELECT DISTINCT pack FROM core_migrations WHERE pack <> ?1";
    Ok(session.engine.all(Once(sql), sql![CORE_NAME], |row| row.get(0))?)
}

pub(in crate::storage::engine) fn in_transaction(
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

/// Notes that a step was applied.
pub(in crate::storage::engine) fn record(session: &Session, pack: &str, step: &Step) -> StoreResult<()> {
    let sql = "INSERT INTO core_migrations (pack, name, hash, reader) VALUES (?1, ?2, ?3, ?4)";
    let recorded = session
        .engine
        .run(Once(sql), sql![pack, step.name, step.hash(), VERSION]);
    recorded.map(drop)
}

pub(in crate::storage) fn failed(pack: &str, step: &Step, reason: String) -> MigrationError {
    MigrationError::Failed {
        pack: pack.to_owned(),
        step: step.name.clone(),
        reason,
    }
}

/// True if steps were applied that this version of the reader has not read.
pub(in crate::storage::engine) fn unread(session: &Session, pack: &str) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM core_migrations WHERE pack = ?1 AND reader < ?2";
    session.engine.exists(Once(sql), sql![pack, VERSION])
}

/// The steps that are not applied yet.
pub(in crate::storage) fn missing<'a>(
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

pub(in crate::storage) fn applied(session: &Session, pack: &str) -> StoreResult<Vec<(String, String)>> {
    let sql = "SELECT name, hash FROM core_migrations WHERE pack = ?1 ORDER BY name";
    session
        .engine
        .all(Once(sql), sql![pack], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// A foreign key into another namespace would let a component see, block or set off what is not its own. A trigger would run in
/// the component's statements, whoever made it.
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
