//! Removal of objects that do not belong in the database.

use super::migrate;
use super::schema::{pristine, quoted};
use crate::storage::Database;
use crate::storage::engine::Engine;
use crate::storage::engine::misplaced::{Cure, Misplaced};
use crate::storage::engine::steps::MigrationError;
use crate::storage::error::{StoreError, StoreResult};
use crate::storage::handles::Maintenance;
use crate::storage::session::Session;

/// Tables that every database of the host has had since its first migration.
const HOST_TABLES: [&str; 3] = ["core_operations", "core_envelopes", "core_anchors"];

impl Database {
    /// Drops objects that neither the host nor a component may have, with their rows, and recreates missing or
    /// changed triggers and indexes of the host. Returns what was done. Runs only at the operator's request.
    pub fn repair(&self) -> Result<Vec<Misplaced>, MigrationError> {
        let mut session = self.write_session()?;
        // Otherwise dropping a table would first delete its rows, in a statement that involves foreign keys and in
        // which the host touches objects that are not its own.
        session.sqlite()?.db.pragma_update(None, "foreign_keys", false)?;
        let Engine::Sqlite(sqlite) = &mut session.engine else {
            return Err(StoreError::of_sqlite_alone().into());
        };
        sqlite
            .db
            .authorizer(None::<fn(rusqlite::hooks::AuthContext<'_>) -> rusqlite::hooks::Authorization>)?;
        // Rows in a renamed table of the host are not dropped as foreign ones.
        if session.maintenance().has_migrations()? {
            for table in HOST_TABLES {
                if !session.maintenance().has_table(table)? {
                    return Err(MigrationError::Missing { table });
                }
            }
        }
        let mut done = cure(&session, Cure::Drop)?;
        // A database of an older version lacks objects of later migrations.
        migrate::apply_core(&session)?;
        done.extend(cure(&session, Cure::Restore)?);
        Ok(done)
    }
}

impl Maintenance<'_> {
    pub(in crate::storage) fn has_table(self, name: &str) -> StoreResult<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1)";
        Ok(self.0.sqlite()?.db.query_row(sql, [name], |row| row.get(0))?)
    }
}

/// Applies one remedy to all objects that need it, all or none.
fn cure(session: &Session, cure: Cure) -> Result<Vec<Misplaced>, MigrationError> {
    session.begin_write()?;
    let cured = cure_in_transaction(session, cure);
    match &cured {
        Ok(_) => session.commit()?,
        Err(_) if session.in_transaction() => session.rollback()?,
        Err(_) => {}
    }
    cured
}

fn cure_in_transaction(session: &Session, cure: Cure) -> Result<Vec<Misplaced>, MigrationError> {
    let mut wrong = if session.maintenance().has_migrations()? {
        session.maintenance().misplaced()?
    } else {
        Vec::new()
    };
    wrong.retain(|object| object.cure == cure);
    // Objects on a table are dropped before it.
    wrong.sort_by_key(|object| object.kind == "table");
    for object in &wrong {
        let kind = object.kind.to_uppercase();
        let mut sql = format!("DROP {kind} IF EXISTS {};", quoted(&object.name));
        if cure == Cure::Restore {
            let core = pristine()?.iter();
            let made = core
                .filter(|made| made.kind == object.kind && made.name == object.name)
                .find_map(|made| made.sql.as_deref());
            sql.push_str(made.unwrap_or_default());
        }
        session.sqlite()?.db.execute_batch(&sql)?;
    }
    Ok(wrong)
}
