//! Target database of a copy: the check that it is empty, and the state to set beside the rows.

use super::error::{Side, TransferError};
use super::plan::{Table, quoted};
use super::rows::as_owner;
use crate::storage::engine::{Engine, Once, sql};
use crate::storage::error::StoreResult;
use crate::storage::session::Session;

/// Tables of the host that may have rows in an empty database: rows of the setup, not of its use.
const MAY_HAVE_ROWS: &[&str] = &[
    "core_migrations",
    "core_streams",
    "core_tool_definitions",
    "core_usage",
];

/// Fails if a database was used, by the host or by any component.
pub(super) fn check_empty(session: &Session) -> Result<(), TransferError> {
    match used(session).map_err(Side::Target.failed("checking whether it is empty"))? {
        None => Ok(()),
        Some(table) => Err(TransferError::NotEmpty { table }),
    }
}

/// First table that has rows.
fn used(session: &Session) -> StoreResult<Option<String>> {
    for (name, in_statements) in all_tables(session)? {
        if MAY_HAVE_ROWS.contains(&name.as_str()) {
            continue;
        }
        let sql = format!("SELECT 1 FROM {in_statements} LIMIT 1");
        if session.engine.exists(Once(&sql), &[])? {
            return Ok(Some(name));
        }
    }
    if let Engine::Postgres(_) = session.engine {
        let moved = session
            .engine
            .exists("SELECT 1 FROM core_streams WHERE place <> 0 LIMIT 1", &[])?;
        return Ok(moved.then(|| "core_streams".to_owned()));
    }
    Ok(None)
}

/// All tables, with the name for people and the name for statements.
fn all_tables(session: &Session) -> StoreResult<Vec<(String, String)>> {
    let Engine::Postgres(postgres) = &session.engine else {
        let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name";
        return session.engine.all(Once(sql), &[], |row| {
            let name: String = row.get(0)?;
            Ok((name.clone(), quoted(&name)))
        });
    };
    let sql = "SELECT n.nspname::text, c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p') AND (n.nspname = ?1 OR starts_with(n.nspname::text, ?2)) ORDER BY 1, 2";
    let schema = postgres.schema();
    session
        .engine
        .all(Once(sql), sql![schema, format!("{schema}/")], |row| {
            let (schema, table): (String, String) = (row.get(0)?, row.get(1)?);
            let name = format!("{}.{}", quoted(&schema), quoted(&table));
            Ok((table, name))
        })
}

/// Removes the rows that migration steps have put into a table, now or at an earlier start of a host.
pub(super) fn clear(session: &Session, table: &Table<'_>) -> Result<(), TransferError> {
    let exists = format!("SELECT 1 FROM {} LIMIT 1", table.on(session));
    let delete = format!("DELETE FROM {}", table.on(session));
    let cleared = session
        .engine
        .exists(Once(&exists), &[])
        .and_then(|has_rows| match has_rows {
            false => Ok(()),
            true => as_owner(session, table, || session.engine.prepare(Once(&delete)))
                .and_then(|mut delete| delete.run(&[]))
                .map(drop),
        });
    cleared.map_err(Side::Target.failed("removing rows that its migrations made"))
}

/// Defers foreign key checks to the end, because rows of a table may refer to later ones.
pub(super) fn defer_keys(session: &Session, tables: &[Table<'_>]) -> Result<(), TransferError> {
    let deferred = match &session.engine {
        Engine::Sqlite(sqlite) => sqlite.host_statement("PRAGMA defer_foreign_keys = ON"),
        Engine::Postgres(_) => set_own_keys(session, tables, "DEFERRABLE INITIALLY DEFERRED"),
    };
    deferred.map_err(Side::Target.failed("deferring foreign keys"))
}

/// Checks the deferred foreign keys and restores them. SQLite does this by itself.
pub(super) fn settle_keys(session: &Session, tables: &[Table<'_>]) -> Result<(), TransferError> {
    let Engine::Postgres(_) = session.engine else {
        return Ok(());
    };
    let settled = session
        .engine
        .run(Once("SET CONSTRAINTS ALL IMMEDIATE"), &[])
        .and_then(|_| set_own_keys(session, tables, "NOT DEFERRABLE"));
    settled.map_err(Side::Target.failed("checking foreign keys"))
}

fn set_own_keys(session: &Session, tables: &[Table<'_>], how: &str) -> StoreResult<()> {
    for table in tables.iter().filter(|table| table.has_own_parent) {
        let name = table.on(session);
        let sql = "SELECT conname::text FROM pg_constraint
            WHERE contype = 'f' AND conrelid = to_regclass(CAST(?1 AS text)) AND confrelid = conrelid";
        let keys: Vec<String> = session.engine.all(Once(sql), sql![name], |row| row.get(0))?;
        for key in keys {
            let sql = format!("ALTER TABLE {name} ALTER CONSTRAINT {} {how}", quoted(&key));
            session.engine.run(Once(&sql), &[])?;
        }
    }
    Ok(())
}

/// Makes self-numbering keys continue after the highest one. SQLite does this by itself.
pub(super) fn set_numbers(session: &Session, table: &Table<'_>) -> Result<(), TransferError> {
    let Engine::Postgres(_) = session.engine else {
        return Ok(());
    };
    set_numbers_of(session, table).map_err(Side::Target.failed("setting the next value of a numbered key"))
}

fn set_numbers_of(session: &Session, table: &Table<'_>) -> StoreResult<()> {
    let name = table.on(session);
    let sql = "SELECT attname::text FROM pg_attribute
        WHERE attrelid = to_regclass(CAST(?1 AS text)) AND attidentity <> '' AND NOT attisdropped";
    let columns: Vec<String> = session.engine.all(Once(sql), sql![name], |row| row.get(0))?;
    for column in columns {
        let highest = format!("SELECT max({}) FROM {name}", quoted(&column));
        let highest: Option<i64> = session.engine.one(Once(&highest), &[], |row| row.get(0))?;
        let last = highest.filter(|highest| *highest >= 1);
        let (number, is_used) = (last.unwrap_or(1), last.is_some());
        let sql = "SELECT setval(pg_get_serial_sequence(CAST(?1 AS text), CAST(?2 AS text))::regclass,
            CAST(?3 AS bigint), CAST(?4 AS boolean))";
        session
            .engine
            .one(Once(sql), sql![name, column, number, is_used], |_| Ok(()))?;
    }
    Ok(())
}
