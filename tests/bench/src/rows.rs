//! Rows of a created task, for insertion into other servers.

use std::path::Path;

use anyhow::Context as _;
use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;
use serde_json::Value;

/// Tables, and the rows of one task in them.
#[derive(Debug, Serialize)]
pub(crate) struct Rows {
    /// Statements that create the tables, their indexes and triggers.
    schema: Vec<String>,
    inserts: Vec<Insert>,
}

/// Statement that inserts one row. `ids` are its unique texts, and `number` is the row's own number.
#[derive(Debug, Serialize)]
struct Insert {
    sql: String,
    values: Vec<Value>,
    ids: Vec<usize>,
    number: Option<usize>,
}

/// Selection of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The pack's rows: the task and its first event.
    Pack,
    /// The ledger's row as well: everything that tollgate commits for the call.
    All,
}

impl Rows {
    /// Rows of the newest task in a data directory's database.
    pub(crate) fn of(database: &Path, which: Which) -> anyhow::Result<Rows> {
        let db = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut schema = strings(
            &db,
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name LIKE 'task\\_store\\_%' ESCAPE '\\'",
        )?;
        let mut inserts = vec![
            Insert::of(&db, "task_store_tasks", "rowid", &["id"], None)?,
            Insert::of(&db, "task_store_events", "id", &["task_id"], None)?,
        ];
        if which == Which::All {
            schema.extend(strings(
                &db,
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name IN ('core_operations', 'core_anchors')",
            )?);
            let row = Insert::of(&db, "core_operations", "seq", &["op_id"], Some("seq"))?;
            inserts.push(row);
        }
        Ok(Rows { schema, inserts })
    }
}

fn strings(db: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    db.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

impl Insert {
    fn of(
        db: &Connection,
        table: &str,
        order: &str,
        ids: &[&str],
        number: Option<&str>,
    ) -> anyhow::Result<Insert> {
        let mut select = db.prepare(&format!("SELECT * FROM {table} ORDER BY {order} DESC LIMIT 1"))?;
        let columns: Vec<String> = select.column_names().map(str::to_owned).collect();
        let mut rows = select.query([])?;
        let row = rows.next()?.with_context(|| format!("{table} is empty"))?;
        let mut values = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            // The table assigns the number of an event.
            let is_given = table == "task_store_events" && column == "id";
            values.push(if is_given {
                Value::Null
            } else {
                json(row.get_ref(at)?)?
            });
        }
        // Without numbers, because better-sqlite3 would interpret them as names.
        let places = vec!["?"; columns.len()];
        let at = |name: &str| columns.iter().position(|column| column == name);
        Ok(Insert {
            sql: format!("INSERT INTO {table} VALUES ({})", places.join(", ")),
            ids: ids.iter().filter_map(|name| at(name)).collect(),
            number: number.and_then(at),
            values,
        })
    }
}

fn json(value: ValueRef<'_>) -> anyhow::Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(_) => value.as_str()?.into(),
        ValueRef::Blob(_) => anyhow::bail!("a blob is not expected"),
    })
}

/// A database into which the rows of one task after another are committed.
pub(crate) struct Bare {
    db: Connection,
    rows: Rows,
    count: i64,
}

impl Bare {
    /// Creates a database with the server's durability.
    pub(crate) fn create(path: &Path, rows: Rows) -> anyhow::Result<Bare> {
        let db = Connection::open(path)?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "foreign_keys", true)?;
        db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        for sql in &rows.schema {
            db.execute_batch(sql)?;
        }
        Ok(Bare { db, rows, count: 0 })
    }

    /// Commits the rows of one more task.
    pub(crate) fn commit(&mut self) -> anyhow::Result<()> {
        self.count += 1;
        let id = format!("task_{:026}", self.count);
        let begin = |sql| self.db.prepare_cached(sql)?.execute([]);
        begin("BEGIN IMMEDIATE")?;
        for insert in &self.rows.inserts {
            let mut statement = self.db.prepare_cached(&insert.sql)?;
            for (at, value) in insert.values.iter().enumerate() {
                let value = if insert.ids.contains(&at) {
                    ToSqlOutput::Borrowed(ValueRef::Text(id.as_bytes()))
                } else if insert.number == Some(at) {
                    ToSqlOutput::Owned(SqlValue::Integer(self.count))
                } else {
                    sql(value)
                };
                statement.raw_bind_parameter(at + 1, value)?;
            }
            statement.raw_execute()?;
        }
        begin("COMMIT")?;
        Ok(())
    }
}

fn sql(value: &Value) -> ToSqlOutput<'_> {
    match (value, value.as_i64(), value.as_f64()) {
        (Value::String(text), ..) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        (_, Some(number), _) => ToSqlOutput::Owned(SqlValue::Integer(number)),
        (_, _, Some(number)) => ToSqlOutput::Owned(SqlValue::Real(number)),
        _ => ToSqlOutput::Owned(SqlValue::Null),
    }
}
