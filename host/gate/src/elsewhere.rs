//! Calls about workspaces that belong to hosts on other machines.

use serde_json::json;
use tollgate_components::catalog::ToolEntry;
use tollgate_sdk::{NextCall, ToolError};
use tollgate_store::liveness::Elsewhere;

use super::{Call, Gate, Generation};

/// Argument that names a workspace.
const WORKSPACE_ARGUMENT: &str = "workspace";
/// Tool that lists the workspaces of this host.
const LIST_TOOL: &str = "workspace_list";

impl Gate {
    /// Refuses a call about a workspace that is not registered here and that a live host on another machine has.
    /// Otherwise the name would count as a mere label, and the files would belong to no workspace.
    pub(super) fn check_workspace(
        &self,
        generation: &Generation,
        tool: &ToolEntry,
        call: &Call,
    ) -> Result<(), ToolError> {
        let Some(name) = call
            .arguments
            .get(WORKSPACE_ARGUMENT)
            .and_then(|name| name.as_str())
        else {
            return Ok(());
        };
        let properties = tool.spec.input_schema.get("properties");
        let takes_one = properties.is_some_and(|properties| properties.get(WORKSPACE_ARGUMENT).is_some());
        if !takes_one || generation.workspaces.get(name).is_some() {
            return Ok(());
        }
        let hosts = self.host.hosts_with_workspace(name);
        if hosts.is_empty() {
            return Ok(());
        }
        Err(wrong_host(name, &hosts).remediation(
            "Call the tool at the host that has the workspace, or name a workspace of this host: workspace_list lists them.",
        ))
    }
}

/// Refusal without a remedy, because the remedy depends on the call.
pub(super) fn wrong_host(name: &str, hosts: &[Elsewhere]) -> ToolError {
    let places: Vec<&str> = hosts
        .iter()
        .map(|host| host.url.as_deref().unwrap_or(&host.machine))
        .collect();
    let places = places.join(", ");
    ToolError::new(
        "WRONG_HOST",
        format!("workspace `{name}` is not on this host, but on {places}"),
    )
    .next_call(NextCall::new(LIST_TOOL, json!({})))
    .context("workspace", name)
    .context("hosts", serde_json::to_value(hosts).unwrap_or_default())
}
