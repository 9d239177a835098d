//! Access to an SQLite file.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::{Look, Row};

/// A snapshot of a file.
pub(super) struct File(Connection);

impl File {
    pub(super) fn open(path: &Path) -> anyhow::Result<File> {
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.busy_timeout(Duration::from_secs(10))?;
        db.execute_batch("BEGIN")?;
        Ok(File(db))
    }
}

impl Look for File {
    fn ask(&self, sql: &str) -> anyhow::Result<Vec<Row>> {
        let mut statement = self.0.prepare_cached(sql)?;
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            (0..columns).map(|column| row.get_ref(column).map(text)).collect()
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn damage(&self) -> anyhow::Result<Option<String>> {
        let said: String = self.0.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        Ok((said != "ok").then_some(said))
    }
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// Runs SQL without the triggers, which are created again afterwards.
pub(super) fn change(path: &Path, sql: &str) -> anyhow::Result<()> {
    let db = Connection::open(path)?;
    let triggers: Vec<(String, String)> = db
        .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (name, _) in &triggers {
        db.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    db.execute_batch(sql)?;
    for (_, sql) in &triggers {
        db.execute_batch(sql)?;
    }
    Ok(())
}
