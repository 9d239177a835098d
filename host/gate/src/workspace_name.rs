//! Name of the workspace that a call is about: in its arguments, or in a row of its pack.

use serde_json::Value;
use tollgate_components::catalog::ToolEntry;
use tollgate_sandbox::workspaces::Workspaces;

use crate::arguments;

/// The registered workspace that a call names, or that its tool takes without a name.
pub(super) fn registered(workspaces: &Workspaces, tool: &ToolEntry, arguments: &Value) -> Option<String> {
    let name = given(tool, arguments)?;
    workspaces.get(name).map(|_| name.to_owned())
}

/// Name of a workspace in a row of a pack. Packs keep paths in workspaces as well.
pub(super) fn in_row(text: &str) -> &str {
    text.trim().split('/').next().unwrap_or_default()
}

/// The workspace that a call names, or that its tool takes without a name.
pub(super) fn given<'a>(tool: &'a ToolEntry, arguments: &'a Value) -> Option<&'a str> {
    arguments::given(tool, arguments, "workspace")
}
