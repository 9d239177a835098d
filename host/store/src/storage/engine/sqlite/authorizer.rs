//! Rules on the SQL that a component may prepare: a pure decision for SQLite's authorizer.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::storage::access::{CORE_PREFIX, Namespace};

/// Owner of the statement that is being prepared.
#[derive(Debug, Clone)]
pub(in crate::storage) enum Mode {
    /// The host.
    Host,
    /// A component, during a call.
    Component(Namespace),
    /// A component's migration.
    Migration(Namespace),
}

/// Functions that SQLite and PostgreSQL share, and that neither read state nor allocate without limit.
const PERMITTED_FUNCTIONS: &[&str] = &[
    "abs",
    "avg",
    "coalesce",
    "count",
    "dense_rank",
    "first_value",
    "ifnull",
    "iif",
    "instr",
    "lag",
    "last_value",
    "lead",
    "length",
    "like",
    "lower",
    "ltrim",
    "max",
    "min",
    "nth_value",
    "ntile",
    "nullif",
    "rank",
    "replace",
    "round",
    "row_number",
    "rtrim",
    "sign",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "total",
    "trim",
    "upper",
];

/// Allows or denies one action of one statement.
pub(in crate::storage) fn decide(mode: &Mode, with: &[String], context: &AuthContext<'_>) -> Authorization {
    let allowed = match (mode, &context.action) {
        (Mode::Host, action) => host_may(context.accessor, action),
        // For dropping a column, SQLite passes the column's name where other actions have the database's. The new
        // name of a renamed table is not passed: names are compared after the migration.
        (
            Mode::Migration(namespace),
            AuthAction::AlterTable {
                database_name,
                table_name,
            },
        ) => *database_name == "main" && namespace.owns(table_name),
        (Mode::Migration(_), action) if context.database_name == Some("temp") => renames_in_temp(action),
        _ if context.database_name.is_some_and(|name| name != "main") => false,
        // SQLite asks about a WITH name as about a table if no column of it is read.
        (
            Mode::Component(_),
            AuthAction::Read {
                table_name,
                column_name: "",
            },
        ) if with.iter().any(|name| name.eq_ignore_ascii_case(table_name)) => true,
        (Mode::Component(namespace), action) => component_may(namespace, action),
        (Mode::Migration(namespace), action) => migration_may(namespace, action),
    };
    if allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

/// Decision for the host's own statements. A statement of the host has the host's rights, and so would everything
/// that it triggers. SQLite names the trigger or view that causes an action. Actions of a foreign key have no such
/// name, so rows may be changed only in the host's own tables.
fn host_may(accessor: Option<&str>, action: &AuthAction<'_>) -> bool {
    if accessor.is_some_and(|name| !name.starts_with(CORE_PREFIX)) {
        return false;
    }
    match action {
        AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name } => {
            // The host's migrations write the schema, whose name no table can have.
            table_name.starts_with(CORE_PREFIX) || table_name.starts_with("sqlite_")
        }
        _ => true,
    }
}

fn component_may(namespace: &Namespace, action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Read { table_name, .. } | AuthAction::Insert { table_name } => namespace.owns(table_name),
        AuthAction::Update { table_name, .. } | AuthAction::Delete { table_name } => {
            namespace.may_change(table_name)
        }
        AuthAction::Function { function_name } => PERMITTED_FUNCTIONS
            .iter()
            .any(|name| name.eq_ignore_ascii_case(function_name)),
        _ => false,
    }
}

fn migration_may(namespace: &Namespace, action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::CreateTable { table_name } => namespace.names(table_name),
        AuthAction::DropTable { table_name } => namespace.may_change(table_name),
        AuthAction::CreateIndex {
            index_name,
            table_name,
        } => {
            // SQLite itself names the indexes of PRIMARY KEY and UNIQUE.
            namespace.owns(table_name)
                && (namespace.names(index_name) || index_name.starts_with("sqlite_autoindex_"))
        }
        AuthAction::DropIndex {
            index_name,
            table_name,
        } => {
            namespace.owns(table_name)
                && (namespace.owns(index_name) || index_name.starts_with("sqlite_autoindex_"))
        }
        AuthAction::Reindex { index_name } => {
            let of_key = index_name.strip_prefix("sqlite_autoindex_");
            namespace.owns(of_key.unwrap_or(index_name))
        }
        // To add a column to a strict table, SQLite itself checks the existing rows. This reveals only that they are
        // valid.
        AuthAction::Read { table_name, .. } if *table_name == "pragma_quick_check" => true,
        AuthAction::Pragma {
            pragma_name,
            pragma_value: Some(table),
        } => *pragma_name == "quick_check" && namespace.owns(table),
        // DDL reads and writes the schema table. Defensive mode prevents a migration from doing so directly.
        AuthAction::Read { table_name, .. } | AuthAction::Insert { table_name } => {
            namespace.owns(table_name) || *table_name == "sqlite_master"
        }
        AuthAction::Update { table_name, .. } | AuthAction::Delete { table_name } => {
            namespace.may_change(table_name) || *table_name == "sqlite_master"
        }
        // ALTER TABLE calls SQLite's internal functions.
        AuthAction::Function { function_name } => !function_name.eq_ignore_ascii_case("load_extension"),
        AuthAction::Select | AuthAction::Recursive => true,
        _ => false,
    }
}

/// Renaming searches the temporary schema for the old name. That schema is empty: components create no temporary
/// objects, and none of their statements may write to a schema.
fn renames_in_temp(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Read { table_name, .. } | AuthAction::Update { table_name, .. } => {
            *table_name == "sqlite_temp_master"
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;

    fn may(action: AuthAction<'_>) -> bool {
        component_may(&Namespace::of_pack("task-store"), &action)
    }

    #[test]
    fn a_component_reaches_its_own_tables_in_any_case() {
        assert!(may(AuthAction::Read {
            table_name: "task_store_tasks",
            column_name: "id"
        }));
        assert!(may(AuthAction::Insert {
            table_name: "TASK_STORE_tasks"
        }));
    }

    #[test]
    fn a_component_reaches_nothing_else() {
        for table_name in [
            "core_operations",
            "task_stores",
            "sqlite_master",
            "task_store",
            "tåsk_store_x",
            "",
        ] {
            assert!(
                !may(AuthAction::Read {
                    table_name,
                    column_name: ""
                }),
                "{table_name}"
            );
            assert!(
                !may(AuthAction::Update {
                    table_name,
                    column_name: "a"
                }),
                "{table_name}"
            );
        }
    }

    #[test]
    fn a_component_may_not_change_schema_or_engine() {
        assert!(!may(AuthAction::CreateTable {
            table_name: "task_store_more"
        }));
        assert!(!may(AuthAction::Attach { filename: "x" }));
        assert!(!may(AuthAction::Pragma {
            pragma_name: "user_version",
            pragma_value: None
        }));
        assert!(!may(AuthAction::Function {
            function_name: "load_extension"
        }));
        assert!(!may(AuthAction::Function {
            function_name: "randomblob"
        }));
    }

    /// Answer of SQLite to a text that nobody read, with the rights of a call.
    fn straight(sql: &str) -> Result<(), rusqlite::Error> {
        let dir = tempfile::tempdir().unwrap();
        let database = crate::storage::Database::open(&dir.path().join("t.db")).unwrap();
        let session = database.write_session().unwrap();
        let tables = "CREATE TABLE shop_items (id INTEGER PRIMARY KEY, line TEXT) STRICT;
                      CREATE TABLE shop_log (id INTEGER PRIMARY KEY, line TEXT, item INTEGER
                          REFERENCES shop_items (id) ON DELETE CASCADE ON UPDATE CASCADE) STRICT;";
        session.sqlite().unwrap().db.execute_batch(tables).unwrap();
        let log = Arc::new(BTreeSet::from(["shop_log".to_owned()]));
        let namespace = Namespace::of_pack("shop").while_append_only(&log);
        let deadline = tollgate_core::deadline::Deadline::after(
            std::time::Duration::from_secs(60),
            tollgate_core::deadline::Cancel::default(),
        );
        session.enter(&namespace, &deadline);
        let prepared = session.sqlite().unwrap().db.prepare(sql).map(drop);
        session.leave();
        prepared
    }

    #[test]
    fn sqlite_itself_refuses_what_no_reader_lets_through() {
        for sql in [
            "UPDATE shop_log SET line = ''",
            "UPDATE shop_LOG SET line = ''",
            "DELETE FROM shop_log",
            "INSERT INTO shop_log (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET line = ''",
            "DROP TABLE shop_log",
            // What foreign keys do is asked for as well.
            "DELETE FROM shop_items",
            "UPDATE shop_items SET id = 2",
            "SELECT * FROM core_operations",
            "WITH core_operations AS (SELECT 1) SELECT * FROM main.core_operations",
            "SELECT name FROM sqlite_master",
            "SELECT name FROM pragma_table_list",
            "SELECT value FROM json_each('[1]')",
            "INSERT INTO core_operations (seq) VALUES (1)",
            "DELETE FROM core_operations",
            "SELECT load_extension('x')",
            "SELECT randomblob(10)",
            "ATTACH 'other.db' AS other",
            "PRAGMA user_version = 3",
            "PRAGMA foreign_keys = OFF",
            "CREATE TABLE shop_more (id INTEGER)",
            "CREATE TEMP TABLE shop_temp (id INTEGER)",
            "CREATE TRIGGER shop_t BEFORE INSERT ON shop_items BEGIN SELECT 1; END",
            "ALTER TABLE shop_items RENAME TO shop_other",
            "BEGIN",
            "COMMIT",
            "SAVEPOINT other",
            "ANALYZE",
            "REINDEX",
            "CREATE VIRTUAL TABLE shop_v USING fts5(x)",
        ] {
            assert!(straight(sql).is_err(), "{sql}");
        }
        assert!(straight("INSERT INTO shop_log (line) VALUES ('')").is_ok());
        assert!(straight("UPDATE shop_items SET line = ''").is_ok());
    }
}
