//! Tables to copy, with their columns, in an order that foreign keys allow.
//!
//! SQLite's catalog names the tables: one of the two databases is always a file, and both have the same tables.

use std::collections::BTreeSet;

use super::error::{Side, TransferError};
use crate::storage::access::Namespace;
use crate::storage::engine::sqlite::schema::pristine;
use crate::storage::engine::steps::{self, CORE_NAME, MigrationStep};
use crate::storage::engine::{Engine, Once, sql};
use crate::storage::error::{StoreError, StoreResult};
use crate::storage::session::Session;

/// Tables of the host that are specific to each database: applied steps differ by engine, and pages exist only in
/// SQLite.
const OF_EACH_DATABASE: &[&str] = &["core_migrations", "core_usage"];
/// Rows of the ledger.
pub(super) const OPERATIONS: &str = "core_operations";
/// Ranges of pruned rows.
pub(super) const ANCHORS: &str = "core_anchors";

/// A table to copy.
#[derive(Debug, Clone)]
pub(super) struct Table<'a> {
    /// Namespace of its component. `None` for the host's own tables.
    pub(super) namespace: Option<&'a Namespace>,
    pub(super) name: String,
    pub(super) columns: Vec<Field>,
    /// True if a foreign key refers to the table itself.
    pub(super) has_own_parent: bool,
    parents: BTreeSet<String>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Real,
    Text,
    Blob,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Kind::Integer => "whole numbers",
            Kind::Real => "numbers",
            Kind::Text => "text",
            Kind::Blob => "bytes",
        }
    }
}

impl Table<'_> {
    /// Name of the owner.
    pub(super) fn owner(&self) -> &str {
        self.namespace.map_or(CORE_NAME, Namespace::pack)
    }

    /// Name of the table in a session's statements.
    pub(super) fn on(&self, session: &Session) -> String {
        session.engine.table_of(self.owner(), &self.name)
    }

    /// Columns, as listed in statements.
    pub(super) fn listed(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|field| quoted(&field.name)).collect();
        columns.join(", ")
    }

    /// Position of a column.
    pub(super) fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|field| field.name == column)
    }
}

/// Quoted name.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Tables of the host and of components, parents before children.
pub(super) fn tables<'a>(
    file: &Session,
    side: Side,
    components: &[(&'a Namespace, &'a [MigrationStep])],
) -> Result<Vec<Table<'a>>, TransferError> {
    let unread = |source| TransferError::Tables {
        owner: CORE_NAME.to_owned(),
        source,
    };
    let own = pristine().map_err(unread)?.iter();
    let own =
        own.filter(|object| object.kind == "table" && !OF_EACH_DATABASE.contains(&object.name.as_str()));
    let mut named: Vec<(Option<&Namespace>, String)> =
        own.map(|object| (None, object.name.clone())).collect();
    for &(namespace, steps) in components {
        let schema = steps::read(namespace.prefix(), steps).map_err(|problems| TransferError::Tables {
            owner: namespace.pack().to_owned(),
            source: steps::MigrationError::Unreadable {
                pack: namespace.pack().to_owned(),
                problems,
            },
        })?;
        named.extend(schema.tables.into_keys().map(|name| (Some(namespace), name)));
    }
    let mut described = Vec::with_capacity(named.len());
    for (namespace, name) in named {
        let found = table(file, namespace, &name).map_err(side.failed("reading its tables"))?;
        described.push(found.ok_or(TransferError::NoTable { side, table: name })?);
    }
    Ok(in_order(described))
}

/// Table with its columns, if it exists.
fn table<'a>(file: &Session, namespace: Option<&'a Namespace>, name: &str) -> StoreResult<Option<Table<'a>>> {
    // SQLite keeps a name as written, and a server folds it to lower case.
    let sql = "SELECT lower(name), type FROM pragma_table_info(?1) ORDER BY cid";
    let columns: Vec<(String, String)> = file
        .engine
        .all(Once(sql), sql![name], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if columns.is_empty() {
        return Ok(None);
    }
    let columns = columns.into_iter().map(|(name, kind)| {
        let kind = match kind.as_str() {
            "INTEGER" | "INT" => Kind::Integer,
            "REAL" => Kind::Real,
            "TEXT" => Kind::Text,
            "BLOB" => Kind::Blob,
            _ => return Err(StoreError::of_column(1, "a type that tables do not have")),
        };
        Ok(Field { name, kind })
    });
    let columns = columns.collect::<StoreResult<Vec<_>>>()?;
    let sql = "SELECT DISTINCT lower(\"table\") FROM pragma_foreign_key_list(?1)";
    let mut parents: BTreeSet<String> = file.engine.all(Once(sql), sql![name], |row| row.get(0))?;
    let has_own_parent = parents.remove(name);
    Ok(Some(Table {
        namespace,
        name: name.to_owned(),
        columns,
        has_own_parent,
        parents,
    }))
}

/// Sorts parents before children. Tables in a cycle come last: SQLite checks keys at the end, and a server has no
/// such tables.
fn in_order(mut rest: Vec<Table<'_>>) -> Vec<Table<'_>> {
    let mut done: Vec<Table<'_>> = Vec::with_capacity(rest.len());
    loop {
        let (ready, waiting): (Vec<_>, Vec<_>) = rest.into_iter().partition(|table| {
            let is_done = |parent: &String| done.iter().any(|table| table.name == *parent);
            table.parents.iter().all(is_done)
        });
        if ready.is_empty() {
            done.extend(waiting);
            return done;
        }
        done.extend(ready);
        rest = waiting;
    }
}

/// Fails if a table has other columns on a server, because the values of a column that only one side has would be
/// lost.
pub(super) fn check_columns(session: &Session, side: Side, table: &Table<'_>) -> Result<(), TransferError> {
    let Engine::Postgres(postgres) = &session.engine else {
        return Ok(());
    };
    let sql = "SELECT attname::text FROM pg_attribute
        WHERE attrelid = to_regclass(CAST(?1 AS text)) AND attnum > 0 AND NOT attisdropped";
    let name = postgres.table_of(table.owner(), &table.name);
    let mut there: Vec<String> = session
        .engine
        .all(Once(sql), sql![name], |row| row.get(0))
        .map_err(side.failed("reading its tables"))?;
    let mut here: Vec<String> = table.columns.iter().map(|field| field.name.clone()).collect();
    here.sort();
    there.sort();
    match here == there {
        true => Ok(()),
        false => Err(TransferError::OtherColumns {
            table: table.name.clone(),
            here: here.join(", "),
            there: there.join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(name: &str, parents: &[&str]) -> Table<'a> {
        Table {
            namespace: None,
            name: name.to_owned(),
            columns: Vec::new(),
            has_own_parent: false,
            parents: parents.iter().map(|&parent| parent.to_owned()).collect(),
        }
    }

    #[test]
    fn parents_come_before_their_children() {
        let tables = vec![
            named("c", &["b", "a"]),
            named("b", &["a"]),
            named("x", &["y"]),
            named("y", &["x"]),
            named("a", &[]),
        ];
        let order: Vec<String> = in_order(tables).into_iter().map(|table| table.name).collect();
        assert_eq!(order, ["a", "b", "c", "x", "y"]);
    }
}
