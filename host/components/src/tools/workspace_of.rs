//! Workspace of a call that does not name one: `x-workspace` at the root of the tool's input schema points to the row
//! that names the workspace.

use serde::Deserialize;
use serde_json::Value;
use tollgate_store::storage::{ColumnOf, TextOf};

use super::spec::ToolSpec;

/// Key of a schema that tells how to find the workspace of a call.
const WORKSPACE: &str = "x-workspace";

/// Longest chain of rows that leads to the name of a workspace.
const MAX_ROWS: usize = 4;

/// A row of the pack's own tables that names the workspace of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceOf {
    pack: String,
    argument: String,
    columns: Vec<ColumnOf>,
}

/// Row as declared in a schema.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    /// Argument that holds the key of the row.
    argument: String,
    table: String,
    /// Column that is compared with the argument.
    key: String,
    /// Column that holds the name of a workspace, or a path in one.
    column: String,
    /// Row whose key is in `column`, if that row names the workspace.
    then: Option<Box<Next>>,
}

/// Next row in the chain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Next {
    table: String,
    key: String,
    column: String,
    then: Option<Box<Next>>,
}

impl Declaration {
    /// Columns to read, in order. `None` if there are too many.
    fn columns(self) -> Option<Vec<ColumnOf>> {
        let Declaration {
            table, key, column, ..
        } = self;
        let mut columns = vec![ColumnOf { table, key, column }];
        let mut at = self.then;
        while let Some(next) = at {
            let Next {
                table,
                key,
                column,
                then,
            } = *next;
            columns.push(ColumnOf { table, key, column });
            at = then;
        }
        (columns.len() <= MAX_ROWS).then_some(columns)
    }
}

impl WorkspaceOf {
    /// Removes a tool's declaration from its schema and returns it.
    pub(super) fn take(pack: &str, spec: &mut ToolSpec) -> Result<Option<WorkspaceOf>, String> {
        let declared = spec.input_schema.remove(WORKSPACE);
        declared
            .map(|declared| WorkspaceOf::read(pack, declared))
            .transpose()
    }

    fn read(pack: &str, declared: Value) -> Result<WorkspaceOf, String> {
        let prefix = format!("{}_", pack.replace('-', "_"));
        let is_own = |at: &ColumnOf| {
            at.table.starts_with(&prefix)
                && [&at.table, &at.key, &at.column]
                    .into_iter()
                    .all(|name| is_plain(name))
        };
        let read = || {
            let declared: Declaration = serde_json::from_value(declared).ok()?;
            let argument = declared.argument.clone();
            let columns = declared.columns().filter(|columns| columns.iter().all(is_own))?;
            Some(WorkspaceOf {
                pack: pack.to_owned(),
                argument,
                columns,
            })
        };
        read().ok_or_else(|| {
            format!(
                "{WORKSPACE} must have `argument`, `table`, `key` and `column`, and the table must belong to the pack; \
                 `then` may name the next row with `table`, `key` and `column`, at most {MAX_ROWS} rows in total"
            )
        })
    }

    /// Location of the workspace's name for a call with these arguments.
    pub fn place(&self, arguments: &Value) -> Option<TextOf> {
        let value = arguments.get(&self.argument)?.as_str()?;
        Some(TextOf {
            pack: self.pack.clone(),
            columns: self.columns.clone(),
            spellings: spellings(value),
        })
    }
}

/// Spellings of an id that people type or paste: unchanged, without surrounding blanks, in upper case, in lower case.
/// A pack with case-sensitive ids either finds the unchanged spelling or has no row for the others.
fn spellings(value: &str) -> Vec<String> {
    let tidy = value.trim();
    let mut all = vec![value.to_owned()];
    for spelling in [tidy.to_owned(), tidy.to_uppercase(), tidy.to_lowercase()] {
        if !all.contains(&spelling) {
            all.push(spelling);
        }
    }
    all
}

/// True for a name that SQL needs no quotes for.
fn is_plain(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(letters)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_tables_of_the_pack_name_workspaces() {
        let declared = |table: &str, column: &str| {
            let declared = json!({"argument": "job_id", "table": table, "key": "id", "column": column});
            WorkspaceOf::read("task-store", declared)
        };
        let found = declared("task_store_jobs", "repo_root").unwrap();
        let place = found.place(&json!({"job_id": " J1a\n"})).unwrap();
        assert_eq!(place.columns[0].table, "task_store_jobs");
        assert_eq!(place.spellings, [" J1a\n", "J1a", "J1A", "j1a"]);
        let place = found.place(&json!({"job_id": "J1"})).unwrap();
        assert_eq!(place.spellings, ["J1", "j1"]);
        assert_eq!(found.place(&json!({"job_id": 1})), None);
        for (table, column) in [
            ("core_operations", "tool"),
            ("tasks_jobs", "repo_root"),
            ("task_store_jobs", "repo_root FROM core_operations --"),
            ("task_store_jobs; DROP TABLE x", "repo_root"),
        ] {
            assert!(declared(table, column).is_err(), "{table} {column}");
        }
    }

    #[test]
    fn a_row_may_lead_to_another_of_the_pack() {
        let declared = |table: &str, rows: usize| {
            let mut then = json!({"table": table, "key": "id", "column": "workspace"});
            for _ in 2..rows {
                then = json!({"table": "tasks_parts", "key": "id", "column": "task_id", "then": then});
            }
            let declared = json!({"argument": "attempt_id", "table": "tasks_attempts", "key": "id",
                "column": "task_id", "then": then});
            WorkspaceOf::read("tasks", declared)
        };
        let place = declared("tasks_tasks", 2).unwrap();
        let place = place.place(&json!({"attempt_id": "att_1"})).unwrap();
        let tables: Vec<&str> = place.columns.iter().map(|at| at.table.as_str()).collect();
        assert_eq!(tables, ["tasks_attempts", "tasks_tasks"]);
        assert!(declared("core_envelopes", 2).is_err());
        assert!(declared("tasks_tasks", MAX_ROWS).is_ok());
        assert!(declared("tasks_tasks", MAX_ROWS + 1).is_err());
    }
}
