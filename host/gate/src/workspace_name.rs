//! Name of the workspace that a call is about, from its arguments or from a row of its pack.

use serde_json::Value;
use tollgate_components::catalog::ToolEntry;
use tollgate_sandbox::workspaces::Workspaces;

use crate::arguments;

/// Registered workspace that a call names, or its tool's default.
pub(super) fn registered(workspaces: &Workspaces, tool: &ToolEntry, arguments: &Value) -> Option<String> {
    let name = given(tool, arguments)?;
    workspaces.get(name).map(|_| name.to_owned())
}

/// Name of a workspace in a row of a pack. Packs also store paths in workspaces.
pub(super) fn in_row(text: &str) -> &str {
    text.trim().split('/').next().unwrap_or_default()
}

/// Workspace that a call names, or its tool's default.
pub(super) fn given<'a>(tool: &'a ToolEntry, arguments: &'a Value) -> Option<&'a str> {
    arguments::given(tool, arguments, "workspace")
}
