//! Copy of a whole database from a file to a PostgreSQL server, and back.
//!
//! The copy is one transaction on the target. The transaction is committed only after the ledger was verified there
//! and each table was compared with the source. A copy that is interrupted or fails leaves the target without any
//! row.
//!
//! Content of artifacts in files is not part of the database: the files stay in the data directory, which both sides
//! share. Content in tables of the host's own is copied with them, because `plan` includes all of those.

mod digest;
mod error;
mod ledger;
mod moved;
mod plan;
mod rows;
mod target;
#[cfg(test)]
mod tests;

use serde::Serialize;
use tollgate_core::clock::Clock as _;

use self::digest::{Digest, Sum};
pub use self::error::{Side, TransferError};
use self::plan::{ANCHORS, OPERATIONS, Table};
use self::rows::Inserter;
use super::access::Namespace;
use super::engine::Engine;
use super::engine::migrate;
use super::engine::steps::{self, MigrationError, MigrationStep};
use super::error::StoreFailure;
use super::ledger::Head;
use super::session::Session;
use super::{Database, verify};
use crate::key::PublicKey;

/// A copy of a database into an empty one.
pub struct Transfer<'a> {
    /// Database to read. Its tables are up to date.
    pub source: &'a Database,
    /// Database to write. The host's own tables exist.
    pub target: &'a Database,
    /// All components with tables, and their migrations.
    pub components: &'a [(&'a Namespace, &'a [MigrationStep])],
    /// Components whose rows are not copied.
    pub leave_out: &'a [String],
    /// Id of the host that copies.
    pub host: &'a str,
    /// Head that the copied ledger must contain, if one was saved.
    pub head: Option<&'a Head>,
    /// Trusted keys. One of them must have signed each anchor.
    pub keys: &'a [PublicKey],
    /// Returns who uses one of the databases, if anyone does.
    pub others: &'a (dyn Fn() -> Option<String> + Sync),
}

/// Result of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Transferred {
    /// Tables, parents before children.
    pub tables: Vec<TransferredTable>,
    /// Rows of all tables.
    pub rows: u64,
    /// Rows of the ledger that were verified.
    pub ledger_rows: u64,
    /// End of the ledger's chain in the target: that of the source, or a later row with the converted times of open
    /// envelopes.
    pub head: Head,
}

/// A table that is equal on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransferredTable {
    /// Name of the table.
    pub table: String,
    /// Number of rows.
    pub rows: u64,
    /// SHA-256 over the rows, independent of their order.
    pub sha256: String,
}

impl Transfer<'_> {
    /// Copies, compares and commits.
    pub fn run(&self) -> Result<Transferred, TransferError> {
        let source = self.source.write_session()?;
        let target = self.target.write_session()?;
        // Prevents writes to the source until the end.
        source
            .begin_write()
            .map_err(Side::Source.failed("waiting for the write lock"))?;
        let copied = self
            .ahead_ms()
            .and_then(|ahead_ms| self.copy(&source, &target, ahead_ms));
        for session in [&source, &target] {
            if session.in_transaction() {
                // Nothing was written, or it is discarded. The session ends the transaction in any case.
                let _ = session.rollback();
            }
        }
        copied
    }

    /// Milliseconds by which the target's envelope clock is ahead of the source's. A file counts from the boot of the
    /// machine.
    fn ahead_ms(&self) -> Result<i64, TransferError> {
        let of = |database: &Database, side: Side| {
            let clock = database.clock().map_err(side.failed("reading its clock"))?;
            Ok::<_, TransferError>(clock.boot_ms())
        };
        Ok(of(self.target, Side::Target)?.saturating_sub(of(self.source, Side::Source)?))
    }

    fn copy(&self, source: &Session, target: &Session, ahead_ms: i64) -> Result<Transferred, TransferError> {
        let (file, side) = match (&source.engine, &target.engine) {
            (Engine::Postgres(_), Engine::Postgres(_)) => return Err(TransferError::NoFile),
            (Engine::Sqlite(_), _) => (source, Side::Source),
            (Engine::Postgres(_), Engine::Sqlite(_)) => (target, Side::Target),
        };
        allow_pauses(source, Side::Source)?;
        let verified = self.verified(source, Side::Source, self.head)?;
        target
            .begin_write()
            .map_err(Side::Target.failed("waiting for the write lock"))?;
        allow_pauses(target, Side::Target)?;
        target::check_empty(target)?;
        let components = self.wanted(source)?;
        make_tables(source, target, &components)?;
        let tables = plan::tables(file, side, &components)?;
        for table in &tables {
            plan::check_columns(source, Side::Source, table)?;
            plan::check_columns(target, Side::Target, table)?;
            target::clear(target, table)?;
        }
        target::defer_keys(target, &tables)?;
        let sums = copy_all(source, target, &tables)?;
        target::settle_keys(target, &tables)?;
        for table in &tables {
            target::set_numbers(target, table)?;
        }
        for (table, here) in tables.iter().zip(&sums) {
            compare(target, table, here)?;
        }
        let copied = self.verified(target, Side::Target, Some(&verified.head))?;
        if copied.head != verified.head {
            return Err(TransferError::OtherHead {
                copied: told(&copied.head),
                wanted: told(&verified.head),
            });
        }
        let (rows, head) = self
            .target
            .clock()
            .and_then(|clock| moved::shift(target, &*clock, self.host, ahead_ms))
            .and_then(|rows| Ok((rows, target.ledger().head()?)))
            .map_err(Side::Target.failed("moving the times of open envelopes"))?;
        if let Some(others) = (self.others)() {
            return Err(TransferError::NotAlone(others));
        }
        target.commit().map_err(|err| match err.failure() {
            StoreFailure::Unknown => TransferError::Unknown(err),
            _ => Side::Target.failed("committing the copy")(err),
        })?;
        let of = |(table, sum): (&Table<'_>, Sum)| TransferredTable {
            table: table.name.clone(),
            rows: sum.rows,
            sha256: sum.sha256,
        };
        let tables: Vec<TransferredTable> = tables.iter().zip(sums).map(of).collect();
        Ok(Transferred {
            rows: tables.iter().map(|table| table.rows).sum(),
            tables,
            ledger_rows: copied.rows + rows,
            head,
        })
    }

    /// Verifies the chain of the ledger.
    fn verified(
        &self,
        session: &Session,
        side: Side,
        head: Option<&Head>,
    ) -> Result<verify::Verified, TransferError> {
        let verified = session
            .ledger()
            .verify_snapshot(head, self.keys)
            .map_err(side.failed("verifying the ledger"))?;
        match verified.broken {
            Some(broken) => Err(TransferError::Broken { side, broken }),
            None => Ok(verified),
        }
    }

    /// Components whose rows are copied. Fails if other components have tables in the source.
    fn wanted(&self, source: &Session) -> Result<Vec<(&Namespace, &[MigrationStep])>, TransferError> {
        let stays = |pack: &str| self.leave_out.iter().any(|left| left == pack);
        let wanted: Vec<_> = self
            .components
            .iter()
            .filter(|(namespace, _)| !stays(namespace.pack()))
            .copied()
            .collect();
        let there = steps::packs(source).map_err(|err| of_tables("core", err))?;
        let unloaded = there
            .into_iter()
            .find(|pack| !stays(pack) && !wanted.iter().any(|(namespace, _)| namespace.pack() == pack));
        match unloaded {
            Some(pack) => Err(TransferError::Unloaded(pack)),
            None => Ok(wanted),
        }
    }
}

fn told(head: &Head) -> String {
    format!("{}:{}", head.seq, head.hash)
}

fn of_tables(owner: &str, source: MigrationError) -> TransferError {
    TransferError::Tables {
        owner: owner.to_owned(),
        source,
    }
}

/// Lets a transaction wait for the other side. Otherwise a server ends it after a minute without a statement.
fn allow_pauses(session: &Session, side: Side) -> Result<(), TransferError> {
    match &session.engine {
        Engine::Sqlite(_) => Ok(()),
        Engine::Postgres(postgres) => postgres
            .allow_pauses()
            .map_err(side.failed("setting its time limits")),
    }
}

/// Creates the components' tables like a starting host, so that both sides have the same steps.
fn make_tables(
    source: &Session,
    target: &Session,
    components: &[(&Namespace, &[MigrationStep])],
) -> Result<(), TransferError> {
    migrate::apply_within(target, components.iter().copied())
        .map_err(|(owner, err)| of_tables(&owner, err))?;
    if let Engine::Sqlite(sqlite) = &target.engine {
        let lifted = sqlite.drop_limit();
        lifted.map_err(Side::Target.failed("removing the growth limit of the database"))?;
    }
    for &(namespace, steps) in components {
        let pack = namespace.pack();
        let applied = steps::applied(source, pack).map_err(Side::Source.failed("reading its migrations"))?;
        let missing = steps::missing(&applied, pack, steps).map_err(|err| of_tables(pack, err))?;
        if let Some(step) = missing.first() {
            let reason = "it was not applied to the source database".to_owned();
            return Err(of_tables(pack, steps::failed(pack, step, reason)));
        }
    }
    Ok(())
}

/// Copies all rows. Returns sums of the rows that were read, in table order.
fn copy_all(source: &Session, target: &Session, tables: &[Table<'_>]) -> Result<Vec<Sum>, TransferError> {
    let find = |name: &str| {
        let host = |table: &&Table<'_>| table.namespace.is_none() && table.name == name;
        tables.iter().find(host)
    };
    let (mut of_rows, mut of_anchors) = match (find(OPERATIONS), find(ANCHORS)) {
        (Some(operations), Some(anchors)) => {
            let (rows, anchors) = ledger::copy(source, target, operations, anchors)?;
            (Some(rows), Some(anchors))
        }
        _ => (None, None),
    };
    let mut sums = Vec::with_capacity(tables.len());
    for table in tables {
        let of_ledger = match (table.namespace, table.name.as_str()) {
            (None, OPERATIONS) => of_rows.take(),
            (None, ANCHORS) => of_anchors.take(),
            _ => None,
        };
        let digest = match of_ledger {
            Some(digest) => digest,
            None => copy_table(source, target, table)?,
        };
        sums.push(summed(digest, table));
    }
    Ok(sums)
}

fn copy_table(source: &Session, target: &Session, table: &Table<'_>) -> Result<Digest, TransferError> {
    let pages = || target.pages().map_err(Side::Target.failed("reading its size"));
    let before = pages()?;
    let mut digest = Digest::default();
    let mut inserter = Inserter::new(target, table)?;
    rows::each((source, Side::Source), table, |row| {
        digest.add(&row);
        inserter.add(row)
    })?;
    inserter.send()?;
    let grown = pages()? - before;
    if let Some(namespace) = table.namespace.filter(|_| grown != 0) {
        // The quota of a component includes the copied rows.
        let booked = target.components().book_pages(namespace, grown);
        booked.map_err(Side::Target.failed("booking pages"))?;
    }
    Ok(digest)
}

fn summed(digest: Digest, table: &Table<'_>) -> Sum {
    let columns = table.columns.iter();
    digest.sum(&table.name, columns.map(|field| field.name.clone()))
}

/// Reads a table of the target, and fails if it differs from the source.
fn compare(target: &Session, table: &Table<'_>, here: &Sum) -> Result<(), TransferError> {
    let mut digest = Digest::default();
    rows::each((target, Side::Target), table, |row| {
        digest.add(&row);
        Ok(())
    })?;
    let there = summed(digest, table);
    match there == *here {
        true => Ok(()),
        false => Err(TransferError::Differs {
            table: table.name.clone(),
            here: here.rows,
            here_hash: here.sha256.clone(),
            there: there.rows,
            there_hash: there.sha256,
        }),
    }
}
