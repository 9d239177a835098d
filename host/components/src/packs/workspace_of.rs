//! Workspace that a call is about without naming it: `x-workspace` at the root of its tool's input schema names the row
//! that does.

use serde::Deserialize;
use serde_json::Value;
use tollgate_store::storage::TextOf;

use super::manifest::ToolSpec;

/// Key of a schema that tells where the workspace of a call is.
const WORKSPACE: &str = "x-workspace";

/// A row of the pack's own tables that names the workspace of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceOf {
    argument: String,
    table: String,
    key: String,
    column: String,
}

/// The same as a schema has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    /// Argument with the key of the row.
    argument: String,
    table: String,
    /// Column that is compared with the argument.
    key: String,
    /// Column with the name of a workspace, or a path in one.
    column: String,
}

impl WorkspaceOf {
    /// Takes what a tool declares out of its schema.
    pub(super) fn take(pack: &str, spec: &mut ToolSpec) -> Result<Option<WorkspaceOf>, String> {
        let declared = spec.input_schema.remove(WORKSPACE);
        declared
            .map(|declared| WorkspaceOf::read(pack, declared))
            .transpose()
    }

    fn read(pack: &str, declared: Value) -> Result<WorkspaceOf, String> {
        let prefix = format!("{}_", pack.replace('-', "_"));
        match serde_json::from_value::<Declaration>(declared) {
            Ok(declared)
                if declared.table.starts_with(&prefix)
                    && [&declared.table, &declared.key, &declared.column]
                        .into_iter()
                        .all(|name| is_plain(name)) =>
            {
                Ok(WorkspaceOf {
                    argument: declared.argument,
                    table: declared.table,
                    key: declared.key,
                    column: declared.column,
                })
            }
            _ => Err(format!(
                "{WORKSPACE}: it is {{\"argument\", \"table\", \"key\", \"column\"}}, with a table of the pack's own"
            )),
        }
    }

    /// Place of the workspace's name for a call with these arguments.
    pub fn place(&self, arguments: &Value) -> Option<TextOf> {
        let value = arguments.get(&self.argument)?.as_str()?;
        Some(TextOf {
            table: self.table.clone(),
            key: self.key.clone(),
            column: self.column.clone(),
            value: value.to_owned(),
        })
    }
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
        let place = found.place(&json!({"job_id": "J1"})).unwrap();
        assert_eq!(
            (place.table.as_str(), place.value.as_str()),
            ("task_store_jobs", "J1")
        );
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
}
