//! Steps of migrations, and the record of those that were applied. The same on every engine.

use sha2::{Digest, Sha256};
use thiserror::Error;
use tollgate_core::hash::hex;
use tollgate_sql::postgres::Finding;
use tollgate_sql::schema::{self, Schema};
use tollgate_sql::{Problems, VERSION};

use super::{Once, sql};
use crate::storage::error::{StoreError, StoreResult};
use crate::storage::session::{OpenError, Session};

/// Owner name of the host's own tables.
pub(in crate::storage) const CORE_NAME: &str = "core";

/// One step of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationStep {
    /// `NNNN_name`.
    pub name: String,
    /// SQL in the subset that `tollgate-sql` reads.
    pub sql: String,
}

impl MigrationStep {
    /// Steps of files, each a name and its SQL.
    pub(in crate::storage) fn all(files: &[(&str, &str)]) -> Vec<MigrationStep> {
        let step = |&(name, sql): &(&str, &str)| MigrationStep {
            name: name.to_owned(),
            sql: sql.to_owned(),
        };
        files.iter().map(step).collect()
    }

    /// The step as `tollgate-sql` reads it.
    pub(in crate::storage) fn as_read(&self) -> tollgate_sql::Step<'_> {
        tollgate_sql::Step {
            name: &self.name,
            sql: &self.sql,
        }
    }

    /// Hash of the step's text, by which a change is noticed.
    pub(super) fn hash(&self) -> String {
        hex(&Sha256::digest(&self.sql))
    }
}

/// Reason for which tables could not be migrated. Nothing was changed.
#[derive(Debug, Error)]
pub enum MigrationError {
    /// The database could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The text of an applied step has changed.
    #[error(
        "migration {step} of {pack} was changed after it was applied; ship the change as a new migration"
    )]
    Changed {
        /// Owner of the step.
        pack: String,
        /// Name of the step.
        step: String,
    },
    /// A step that was not applied precedes an applied one.
    #[error(
        "migration {step} of {pack} comes before {applied}, which was already applied; add new migrations at the end"
    )]
    Early {
        /// Owner of the step.
        pack: String,
        /// New step.
        step: String,
        /// Applied step.
        applied: String,
    },
    /// The database has steps that are unknown to the component.
    #[error(
        "the database has migration {step} of {pack}, which this version does not know; use a newer version"
    )]
    Newer {
        /// Owner of the step.
        pack: String,
        /// Name of the step.
        step: String,
    },
    /// One of the host's tables is missing.
    #[error(
        "the host's table {table} is missing, so nothing was repaired: it was renamed or dropped; rename it back or \
         restore a backup"
    )]
    Missing {
        /// Missing table.
        table: &'static str,
    },
    /// A step's SQL failed.
    #[error("migration {step} of {pack} failed: {reason}")]
    Failed {
        /// Owner of the step.
        pack: String,
        /// Its name.
        step: String,
        /// Message from SQLite.
        reason: String,
    },
    /// Steps contain SQL that migrations may not contain.
    #[error("cannot run migrations of {pack}: {problems}")]
    Unreadable {
        /// Owner of the migrations.
        pack: String,
        /// Problems.
        problems: Problems,
    },
    /// Steps would have another meaning on PostgreSQL than on SQLite.
    #[error("cannot run migrations of {pack} on PostgreSQL: {}", list(findings))]
    Differs {
        /// Owner of the migrations.
        pack: String,
        /// Differences.
        findings: Vec<Finding>,
    },
    /// A table was renamed to or from a name outside the namespace.
    #[error("a migration of {pack} renames a table to {table}, a name that it may not use")]
    ForeignName {
        /// Owner of the migration.
        pack: String,
        /// Name of the table.
        table: String,
    },
    /// The component has an object that it may not have.
    #[error(
        "{object}; {pack} may only have tables and indexes whose names start with exactly `{prefix}` \
         and that refer only to each other"
    )]
    Misplaced {
        /// The pack it belongs to.
        pack: String,
        /// Prefix of the owner's names.
        prefix: String,
        /// Fault and its object.
        object: String,
    },
    /// The component's tables prevent the host from writing its own.
    #[error("the tables of {pack} would prevent the host from writing its own: {reason}")]
    Obstructs {
        /// Owner of the tables.
        pack: String,
        /// Message from SQLite, with the obstacle.
        reason: String,
    },
    /// The migrations exceeded their time limit.
    #[error(
        "the migrations of {pack} did not finish within {seconds} s, their time limit; nothing was changed"
    )]
    OutOfTime {
        /// Owner of the migrations.
        pack: String,
        /// Time limit.
        seconds: u64,
    },
    /// The migrations exceeded their memory limit.
    #[error(
        "the migrations of {pack} need more than {mib} MiB of memory, the limit that limits.memory_mib allows; \
         nothing was changed"
    )]
    OutOfMemory {
        /// Owner of the migrations.
        pack: String,
        /// Limit.
        mib: u64,
    },
    /// The tables exceed their quota, or the disk is full.
    #[error(
        "the migrations of {pack} would make its tables larger than the {mib} MiB of limits.storage_mib, \
         or than the disk allows; nothing was changed"
    )]
    OutOfStorage {
        /// Owner of the migrations.
        pack: String,
        /// Limit of the tables.
        mib: u64,
    },
    /// Reading or recording the applied steps failed.
    #[error("cannot use the record of migrations")]
    Record(#[from] StoreError),
}

fn list(findings: &[Finding]) -> String {
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    findings.join("; ")
}

/// Schema that a component's migrations create, or all their problems.
pub(in crate::storage) fn read(prefix: &str, steps: &[MigrationStep]) -> Result<Schema, Problems> {
    schema::read(prefix, steps.iter().map(MigrationStep::as_read))
}

pub(super) fn in_transaction<T>(
    session: &Session,
    body: impl FnOnce() -> Result<T, MigrationError>,
) -> Result<T, MigrationError> {
    session.begin_write()?;
    match body() {
        Ok(value) => {
            session.commit()?;
            Ok(value)
        }
        Err(err) => {
            if session.in_transaction() {
                session.rollback()?;
            }
            Err(err)
        }
    }
}

/// Records that a step was applied.
pub(super) fn record(session: &Session, pack: &str, step: &MigrationStep) -> StoreResult<()> {
    let sql = "INSERT INTO core_migrations (pack, name, hash, reader) VALUES (?1, ?2, ?3, ?4)";
    let recorded = session
        .engine
        .run(Once(sql), sql![pack, step.name, step.hash(), VERSION]);
    recorded.map(drop)
}

pub(in crate::storage) fn failed(pack: &str, step: &MigrationStep, reason: String) -> MigrationError {
    MigrationError::Failed {
        pack: pack.to_owned(),
        step: step.name.clone(),
        reason,
    }
}

/// True if steps were applied that this version of the reader has not read.
pub(super) fn unread(session: &Session, pack: &str) -> StoreResult<bool> {
    let sql = "SELECT 1 FROM core_migrations WHERE pack = ?1 AND reader < ?2";
    session.engine.exists(Once(sql), sql![pack, VERSION])
}

/// Steps that are not applied yet.
pub(in crate::storage) fn missing<'a>(
    applied: &[(String, String)],
    pack: &str,
    steps: &'a [MigrationStep],
) -> Result<Vec<&'a MigrationStep>, MigrationError> {
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
        // A step before applied ones would run with the tables that are append-only now, not with those at its place.
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

/// Owners of applied steps, without the host itself.
pub(in crate::storage) fn packs(session: &Session) -> Result<Vec<String>, MigrationError> {
    let sql = "SELECT DISTINCT pack FROM core_migrations WHERE pack <> ?1";
    Ok(session.engine.all(Once(sql), sql![CORE_NAME], |row| row.get(0))?)
}
